"""Makes a large trace from a real one: the same events again and again, shifted in time, with fresh correlation ids."""

from __future__ import annotations

import gzip
import json
from pathlib import Path


def tile(source: Path, target: Path, megabytes: int) -> int:
    """Write copies of the Kineto trace `source` to `target` until it has about `megabytes`; return the number of events."""
    trace = json.loads(gzip.decompress(source.read_bytes()))
    events = [e for e in trace["traceEvents"] if e.get("ph") != "M"]
    names = [e for e in trace["traceEvents"] if e.get("ph") == "M"]
    first = min(e["ts"] for e in events)
    length = max(e["ts"] + e.get("dur", 0) for e in events) - first
    ids = 1 + max(e.get("args", {}).get("correlation", 0) for e in events)
    head = json.dumps({k: v for k, v in trace.items() if k != "traceEvents"})[:-1]
    count = len(names)
    with target.open("w") as stream:
        stream.write(head + ', "traceEvents": [\n' + ",\n".join(map(json.dumps, names)))
        copy = 0
        while stream.tell() < megabytes * 1_000_000:
            lines = []
            for event in events:
                moved = {**event, "ts": round(event["ts"] + copy * length, 3)}
                args = event.get("args", {})
                if "correlation" in args:
                    moved["args"] = {**args, "correlation": args["correlation"] + copy * ids}
                lines.append(json.dumps(moved))
            stream.write(",\n" + ",\n".join(lines))
            count += len(lines)
            copy += 1
        stream.write("\n]}")
    return count
