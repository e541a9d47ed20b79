"""Trees of calls for programs that show flame graphs: speedscope's file format, and folded stacks.

speedscope: JSON as https://www.speedscope.app/file-format-schema.json says, an evented profile a tree, in nanoseconds. A tree has no
order in time: what lies in one call stands beside each other, the longest first, then the call's own time.

Folded: one line a stack, `outermost;...;innermost weight`, as flamegraph.pl and its like read. The weight is nanoseconds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import IO

import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.export.perfetto import Recording
from traceanalyzer.redaction.data import places_of, processes_of, redaction_for
from traceanalyzer.result.document import Result
from traceanalyzer.result.words.gpu_names import gpu_of

SCHEMA = "https://www.speedscope.app/file-format-schema.json"
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")

Tree = tuple[str, pa.Table]
"""What a tree is called, and its rows in `call_trees`."""


def write_speedscope(
    result: Result, recordings: Sequence[Recording], trees: Sequence[str], out: IO[bytes], redact: bool = True
) -> int:
    """Write these trees of these recordings, and say how many there were; the same result and tables give the same bytes.

    Paths, users and hosts are left out unless `redact` is false.
    """
    frames: dict[str, int] = {}
    made_by = json.dumps(f"traceanalyzer {result.tool['version']}")
    out.write(f'{{"$schema":"{SCHEMA}","exporter":{made_by},"profiles":['.encode())
    count = 0
    for label, tree in _trees(result, recordings, trees, redact):
        profile = {
            "type": "evented",
            "name": label,
            "unit": "nanoseconds",
            "startValue": 0,
            "endValue": tree["total_ns"][0].as_py(),
            "events": _events(tree, frames),
        }
        out.write((",\n" if count else "\n").encode() + json.dumps(profile, separators=(",", ":")).encode())
        count += 1
    shared = [{"name": name} for name in frames]
    out.write(b'\n],"shared":{"frames":' + json.dumps(shared, ensure_ascii=False).encode("utf-8", "replace") + b"}}\n")
    return count


def write_folded(
    result: Result, recordings: Sequence[Recording], trees: Sequence[str], out: IO[bytes], redact: bool = True
) -> int:
    """As `write_speedscope`, as folded stacks; each begins with the name of its tree."""
    count = 0
    for label, tree in _trees(result, recordings, trees, redact):
        stacks: list[str] = []
        names, parents, selves = (tree[name].to_pylist() for name in ("name", "parent", "self_ns"))
        for name, parent, own in zip(names, parents, selves, strict=True):
            around = stacks[parent] if parent >= 0 else ""
            stacks.append(f"{around};{_folded(name)}" if around else _folded(label))
            if own:
                out.write(f"{stacks[-1]} {own}\n".encode("utf-8", "replace"))
        count += 1
    return count


def _trees(result: Result, recordings: Sequence[Recording], trees: Sequence[str], redact: bool) -> Iterator[Tree]:
    """Those of one recording are held at a time."""
    redaction = redaction_for([processes_of(one.tables()) for one in recordings], places_of(result)) if redact else None
    labels = [one.label for one in recordings]
    labels = redaction.labels(labels) if redaction else labels
    for one, label in zip(recordings, labels, strict=True):
        tables = redaction.tables(one.tables()) if redaction else one.tables()
        table = tables.table("call_trees")
        first = pc.indices_nonzero(pc.equal(table["parent"], -1)).to_pylist()
        parts = [
            table.slice(start, stop - start) for start, stop in zip(first, [*first[1:], table.num_rows], strict=True)
        ]
        for wanted in trees:
            for part in parts:
                if part["tree"][0].as_py() == wanted:
                    device = part["device"][0].as_py()
                    yield f"{gpu_of(label, device)} {part['name'][0].as_py()}".lstrip(), part


def _events(tree: pa.Table, frames: dict[str, int]) -> list[dict[str, object]]:
    """Calls as they begin and end. The root is the profile itself."""
    names, parents, totals = (tree[name].to_pylist() for name in ("name", "parent", "total_ns"))
    events: list[dict[str, object]] = []
    # Where each node has time left, and those that are open: (node, frame, end).
    free = [0] * len(names)
    opened: list[tuple[int, int, int]] = []
    for node in range(1, len(names)):
        parent = parents[node]
        while opened and opened[-1][0] != parent:
            events.append(_event("C", *opened.pop()[1:]))
        start = free[node] = free[parent]
        free[parent] += totals[node]
        frame = frames.setdefault(names[node], len(frames))
        events.append(_event("O", frame, start))
        opened.append((node, frame, start + totals[node]))
    while opened:
        events.append(_event("C", *opened.pop()[1:]))
    return events


def _event(kind: str, frame: int, at: int) -> dict[str, object]:
    return {"type": kind, "frame": frame, "at": at}


def _folded(name: str) -> str:
    """A name without what separates the names and lines of a file of stacks."""
    return _UNPRINTABLE.sub(" ", name).replace(";", ":").strip() or "(no name)"
