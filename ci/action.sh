#!/usr/bin/env bash
# The shell of action.yml, in one place so that it can be tested: action.sh install | analyse | gate.
# Inputs come as environment variables (INPUT_...) and are only ever quoted. Runs with bash 3.2 and newer; needs no jq.
set -euo pipefail

COMMENT_LIMIT=65000            # bytes; a comment holds 65,536 characters
SUMMARY_LIMIT=$((1024 * 1024)) # bytes; a larger step summary is not shown at all
ENVIRONMENT=${RUNNER_TEMP:?}/traceanalyzer

install() {
  "${INPUT_PYTHON:-python3}" -m venv "$ENVIRONMENT"
  local pip=("$ENVIRONMENT/bin/python" -m pip install --quiet --disable-pip-version-check)
  # What it needs, to the byte as it was when this version was made; then itself, without asking anybody for more.
  "${pip[@]}" --only-binary=:all: --require-hashes --requirement "${GITHUB_ACTION_PATH:?}/ci/requirements.txt"
  "${pip[@]}" --no-deps --no-build-isolation "$GITHUB_ACTION_PATH"
}

analyse() {
  if [ "${INPUT_INSTALL:-true}" = true ]; then
    PATH=$ENVIRONMENT/bin:$PATH
  fi
  cd "${GITHUB_WORKSPACE:?}"
  out=${INPUT_OUTPUT:-traceanalyzer-report}
  case $out in -*) out=./$out ;; esac
  work=$(mktemp -d "$RUNNER_TEMP/traceanalyzer.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  code=0
  # A runner of one's own keeps the folder from job to job: what is old must not pass for what was found today.
  mkdir -p -- "$out"
  (cd -- "$out" && rm -f report.html result.json result.sarif junit.xml summary.md comparison.html comparison.json)

  list_traces
  report
  if [ -f "$out/result.json" ]; then
    [ -z "${INPUT_BUDGETS:-}" ] || check_budgets
    [ -z "${INPUT_BASELINE:-}" ] || compare_with_baseline
  fi
  summarise
  give_outputs
}

# The paths of one capture, one a line; what is no path is a pattern, and what matches nothing is left for the error to name.
list_traces() {
  traces=()
  local line match matched
  while IFS= read -r line || [ -n "$line" ]; do
    line=${line#"${line%%[![:space:]]*}"}
    line=${line%"${line##*[![:space:]]}"}
    [ -n "$line" ] || continue
    matched=
    if [ ! -e "$line" ]; then
      while IFS= read -r match; do
        traces+=("$match")
        matched=1
      done < <(compgen -G "$line" || true)
    fi
    [ -n "$matched" ] || traces+=("$line")
  done <<<"${INPUT_TRACES:-}"
}

# What comes after takes several paths for several captures, so files of one job become one store.
report() {
  local options=("--output=$out/report.html")
  capture=${traces[0]-}
  if [ "${#traces[@]}" -gt 1 ]; then
    capture=$work/job
    options+=("--store=$capture")
  fi
  [ -z "${INPUT_TITLE:-}" ] || options+=("--title=$(one_line "$INPUT_TITLE")")
  [ -z "${INPUT_FAIL_ON:-}" ] || options+=("--fail-on=$INPUT_FAIL_ON")
  run_command Report report "${options[@]}" "--also=json=$out/result.json" "--also=sarif=$out/result.sarif" \
    "--also=junit=$out/junit.xml" "--also=markdown=$work/findings.md" "--also=github=$work/annotations" \
    -- "${traces[@]+"${traces[@]}"}"
}

check_budgets() {
  local options=("--config=$INPUT_BUDGETS")
  [ -z "${INPUT_BASELINE:-}" ] || options+=("--baseline=$INPUT_BASELINE")
  run_command Budgets check "${options[@]}" --format=github "--output=$work/annotations" \
    "--also=markdown=$work/budgets.md" -- "$capture"
}

compare_with_baseline() {
  local options=("--fail-over=${INPUT_FAIL_OVER:-5%}")
  [ -z "${INPUT_FAIL_ON_NEW:-}" ] || options+=("--fail-on-new=$INPUT_FAIL_ON_NEW")
  run_command Comparison compare "${options[@]}" --format=markdown "--output=$work/comparison.md" \
    "--also=json=$out/comparison.json" "--also=html=$out/comparison.html" -- "$INPUT_BASELINE" "$capture"
}

# TITLE ARGUMENT...: one command of traceanalyzer. What it prints is shown and obeyed by nobody; its annotations come after.
run_command() {
  local title=$1 got=0 token
  shift
  token=$(random_word)
  : >"$work/annotations"
  echo "::group::$title"
  echo "::stop-commands::$token"
  traceanalyzer "$@" </dev/null >"$work/log" 2>&1 || got=$?
  cat -- "$work/log"
  echo "::$token::"
  echo "::endgroup::"
  cat -- "$work/annotations"
  if [ "$got" -ne 0 ] && [ "$got" -ne 1 ] && [ "$got" -ne 3 ]; then
    problem=$(one_line "$(grep -i '^error: ' "$work/log" | tail -n 1 || true)")
    problem=${problem:-"$1 ended with exit code $got"}
    echo "::error title=traceanalyzer::$(escaped "$problem")"
    printf '**%s could not be made.**\n\n    %s\n' "$title" "$problem" >"$work/error.md"
  fi
  if [ "$(rank "$got")" -gt "$(rank "$code")" ]; then code=$got; fi
}

# Over several commands: what could not run counts most, then what failed, then what could not be judged. So a pipeline that lets
# 3 pass never lets a broken gate pass with it.
rank() {
  case $1 in 0) echo 0 ;; 3) echo 1 ;; 1) echo 2 ;; *) echo 3 ;; esac
}

# Gates first, since the rest is cut where a comment ends.
summarise() {
  local part room
  {
    [ -z "${INPUT_TITLE:-}" ] || printf '## %s\n\n' "$(plain "$(one_line "$INPUT_TITLE")")"
    for part in error budgets comparison findings; do
      [ ! -s "$work/$part.md" ] || { cat -- "$work/$part.md" && echo; }
    done
  } >"$work/summary.md"
  fit "$work/summary.md" "$COMMENT_LIMIT" >"$out/summary.md"
  if [ "${INPUT_SUMMARY:-true}" = true ] && [ -n "${GITHUB_STEP_SUMMARY:-}" ]; then
    touch -- "$GITHUB_STEP_SUMMARY"
    room=$((SUMMARY_LIMIT - $(size "$GITHUB_STEP_SUMMARY")))
    fit "$out/summary.md" "$room" >>"$GITHUB_STEP_SUMMARY"
  fi
}

# FILE BYTES: whole lines of a file, as many as fit, and a note first when some do not. Nothing when not even the note fits.
fit() {
  local note="> Cut short to fit: the whole is in the report."
  if [ "$(size "$1")" -le "$2" ]; then
    cat -- "$1"
  elif [ "$2" -gt 100 ]; then
    printf '%s\n\n' "$note"
    head -c $(($2 - 100)) -- "$1" | LC_ALL=C sed '$d'
  fi
}

give_outputs() {
  local headline="" report=""
  if [ -f "$out/report.html" ]; then report=$out/report.html; fi
  if [ -f "$out/result.json" ]; then
    # The document has one key of this name, on a line of its own.
    headline=$(LC_ALL=C sed -n -e '/^ *"headline": "/{' -e 's///' -e 's/",\{0,1\}$//' -e 's/\\\(.\)/\1/g' -e p -e '}' "$out/result.json")
  fi
  output exit-code "$code"
  output outcome "$(outcome "$code")"
  output headline "$headline"
  output report "$report"
  output summary "$out/summary.md"
}

# NAME VALUE: the value may hold lines; nobody can guess what ends it.
output() {
  local end
  end=$(random_word)
  printf '%s<<%s\n%s\n%s\n' "$1" "$end" "$2" "$end" >>"${GITHUB_OUTPUT:?}"
}

outcome() {
  case $1 in 0) echo passed ;; 1) echo failed ;; 3) echo could-not-judge ;; *) echo error ;; esac
}

gate() {
  local why
  case ${EXIT_CODE:?} in
    0) exit 0 ;;
    1) why="a gate failed: the step summary and the report say which" ;;
    2) why="wrong usage, or an input that cannot be read" ;;
    3) why="could not judge: the step summary says why" ;;
    *) why="traceanalyzer did not run to its end" ;;
  esac
  echo "::error title=traceanalyzer::$why (exit code $EXIT_CODE)"
  exit "$EXIT_CODE"
}

one_line() { printf '%s' "$1" | LC_ALL=C tr -s '[:space:][:cntrl:]' ' '; }

# Text for a workflow command.
escaped() { printf '%s' "$1" | sed -e 's/%/%25/g'; }

# Text as Markdown that renders as it is.
plain() { printf '%s' "$1" | LC_ALL=C sed -e 's/[]\\`*_{}()<>#+!|~&[]/\\&/g'; }

random_word() { od -An -N16 -tx1 /dev/urandom | tr -d ' \n'; }

size() { wc -c <"$1" | tr -d ' '; }

case ${1:-} in
  install | analyse | gate) "$1" ;;
  *)
    echo "usage: action.sh install | analyse | gate" >&2
    exit 2
    ;;
esac
