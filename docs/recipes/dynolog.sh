#!/bin/bash
# A capture on demand of all training processes on a host that runs dynolog: five iterations of each, renamed as a whole when the last
# process has written its file.
# Usage: dynolog.sh CAPTURES [HOST]
set -euo pipefail
captures=$1 host=${2:-localhost}
name="on-demand-$host-$(date -u +%Y%m%dT%H%M%SZ)"
unfinished="$captures/.$name"
mkdir -p "$unfinished"

said=$(dyno --hostname "$host" gputrace --log-file "$unfinished/trace.json" --iterations 5 --process-limit 64)
mapfile -t files < <(sed -n 's/^ *\(\/.*_[0-9][0-9]*\.json\)$/\1/p' <<<"$said")
if [ "${#files[@]}" -eq 0 ]; then
  echo "$said" >&2
  exit 1
fi

deadline=$((SECONDS + ${PATIENCE:-600}))
for file in "${files[@]}"; do
  until [ -e "$file" ]; do
    if [ "$SECONDS" -ge "$deadline" ]; then
      echo "$file: not there after ${PATIENCE:-600} s; what has come is in $unfinished" >&2
      exit 1
    fi
    sleep 1
  done
done
mv "$unfinished" "$captures/$name"
