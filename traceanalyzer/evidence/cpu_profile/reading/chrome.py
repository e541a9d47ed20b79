"""Chrome traces of Python's functions: py-spy's chrometrace (events that begin and end) and VizTracer's files (whole calls)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec
import numpy as np

from traceanalyzer.errors import InputError
from traceanalyzer.evidence.cpu_profile.reading.content import PYSPY, VIZTRACER, whole_json
from traceanalyzer.evidence.cpu_profile.reading.frames import frame_of
from traceanalyzer.evidence.cpu_profile.reading.rows import TOP, About, Rows
from traceanalyzer.garbage import without_collection
from traceanalyzer.ingest.bytes.source import Source
from traceanalyzer.ingest.contract import Progress
from traceanalyzer.intervals import Array, flatten
from traceanalyzer.model.trace import EPOCH_NS
from traceanalyzer.units import format_duration

_MOST_US = float(1 << 62) / 1000
_THREAD = re.compile(r"thread \((?P<tid>\d+|0x[0-9a-fA-F]+)\)(?:: (?P<name>.*))?", re.DOTALL)
_PROCESS = re.compile(r"process \d+:.*", re.DOTALL)


class _Event(msgspec.Struct):
    ph: Any = None
    name: Any = None
    cat: Any = None
    pid: Any = None
    tid: Any = None
    ts: float | int | None = None
    dur: float | int | None = None


class _SpyEvent(msgspec.Struct):
    ph: Any = None
    name: Any = None
    pid: Any = None
    tid: Any = None
    ts: float | int | None = None
    args: Any = None


class _Named(_Event):
    args: Any = None


class _Metadata(msgspec.Struct):
    version: Any = None
    overflow: Any = None
    baseTimeNanoseconds: Any = None  # noqa: N815


class _VizFile(msgspec.Struct):
    # What else VizTracer writes, its source texts among it, is never taken out of the file.
    traceEvents: list[_Event]  # noqa: N815
    viztracer_metadata: _Metadata = msgspec.field(default_factory=_Metadata)


class _SpyFile(msgspec.Struct):
    traceEvents: list[_SpyEvent]  # noqa: N815


_META = re.compile(rb'\{(?=[^{}]{0,200}"ph"\s*:\s*"M")[^{}]{0,200}(?:\{[^{}]{0,400}\}[^{}]{0,200})?\}')


def read_pyspy(source: Source, progress: Progress, rows: Rows) -> About:
    """py-spy opens and closes frames where two samples differ; times count from its start. Raises InputError for damaged JSON."""
    about = About(PYSPY, "py-spy", timed=True, stretches=True)
    with without_collection():
        text = whole_json(source, progress)
        kind: Any = list[_SpyEvent] if text.lstrip()[:1] == b"[" else _SpyFile
        found = _decoded(source, text, kind)
        events: list[_SpyEvent] = found.traceEvents if isinstance(found, _SpyFile) else found
        del text, found
        _begun_and_ended(events, rows, about)
    return about


def _begun_and_ended(events: Iterable[_SpyEvent], rows: Rows, about: About) -> None:
    """Stretches between the events of each thread."""
    stacks: dict[tuple[Any, Any], list[Any]] = {}
    for event in events:
        if event.ph not in ("B", "E") or not _is_time(event.ts) or not isinstance(event.name, str):
            if event.ph != "M":
                about.skip(f"an event of the phase {event.ph!r}")
            continue
        at = round(event.ts * 1000)  # type: ignore[operator]
        state = stacks.setdefault((event.pid, event.tid), [TOP, at, None, []])
        node, since, thread, names = state
        if at > since and node != TOP:
            if thread is None:
                thread = state[2] = _thread(rows, event.pid, event.tid, names)
            rows.sample(thread, since, at - since, node)
        state[1] = max(at, since)
        root = _THREAD.fullmatch(event.name) or _PROCESS.fullmatch(event.name)
        if root is not None and not _file(event.args):
            if event.ph == "B" and _THREAD.fullmatch(event.name):
                names.append(event.name)
                state[2] = None
            continue
        frame = rows.frame(frame_of(event.name, _file(event.args), _line(event.args)))
        if event.ph == "B":
            state[0] = rows.within(node, frame)
        else:
            up = node
            while up != TOP and rows.frame_of(up) != frame:
                up = rows.around(up)
            if up == TOP:
                about.skip("the end of a frame that had not begun")
            else:
                state[0] = rows.around(up)


def _thread(rows: Rows, pid: Any, tid: Any, names: list[str]) -> int:
    """The thread: py-spy writes the system's number of it, and what it is called, as the outermost frame."""
    found = _THREAD.fullmatch(names[-1]) if names else None
    number, name = tid, None
    if found:
        number, name = int(found["tid"], 0), found["name"]
    return rows.thread(_int(pid), _int(number), name)


def read_viztracer(source: Source, progress: Progress, rows: Rows) -> About:
    """Calls with their begin and length; where its ring ran over, what is whole begins with the first end. Raises InputError."""
    about = About(VIZTRACER, "VizTracer", timed=True, stretches=True, idle_kept=True)
    with without_collection():
        text = whole_json(source, progress)
        names = _thread_names(text)
        kind: Any = list[_Event] if text.lstrip()[:1] == b"[" else _VizFile
        found = _decoded(source, text, kind)
        del text
        events = found.traceEvents if isinstance(found, _VizFile) else found
        said = found.viztracer_metadata if isinstance(found, _VizFile) else _Metadata()
        calls = [
            one
            for one in events
            if one.ph == "X" and _is_time(one.ts) and _is_time(one.dur) and isinstance(one.name, str)
        ]
        about.skipped = sum(one.ph == "X" for one in events) - len(calls)
        if about.skipped:
            about.skipped_example = "a call without a time"
        del events, found
    if isinstance(said.version, str) and said.version[:40].isprintable():
        about.producer = f"VizTracer {said.version[:40]}"
    start = np.rint(np.array([one.ts for one in calls], np.float64) * 1000).astype(np.int64)
    length = np.rint(np.array([one.dur for one in calls], np.float64) * 1000).astype(np.int64)
    base = said.baseTimeNanoseconds
    if isinstance(base, int) and 0 <= base < 1 << 62 and len(start) and EPOCH_NS <= base + int(start[0]) < 1 << 62:
        about.clock_base_ns = base
    elif len(start) and int(start.min()) >= EPOCH_NS:
        about.clock_base_ns = 0
    keys: dict[tuple[Any, Any], int] = {}
    texts: dict[str, int] = {}
    key = np.array([keys.setdefault((one.pid, one.tid), len(keys)) for one in calls], np.int64)
    name = np.array([texts.setdefault(one.name, len(texts)) for one in calls], np.int64)
    del calls
    whole_from = int((start + length).min()) if said.overflow and len(start) else None
    frames = np.array([rows.frame(frame_of(text)) for text in texts], np.int64)
    for (pid, tid), number in keys.items():
        mine = key == number
        thread = rows.thread(_int(pid), _int(tid), names.get((pid, tid)))
        _nested(rows, thread, start[mine], length[mine], frames[name[mine]], whole_from)
    if whole_from is not None and len(start):
        kept = int((start + length).max()) - whole_from
        about.lost = (
            f"its ring of {len(start):,} calls ran over, so that only the last {format_duration(kept)} are whole"
        )
    return about


def _nested(rows: Rows, thread: int, start: Array, length: Array, frame: Array, whole_from: int | None) -> None:
    """The stretches of one thread's calls, of which each lies inside of another or beside it."""
    order = np.lexsort((-length, start))
    start, end, frame = start[order], (start + length)[order], frame[order]
    depth, parent, (low, high, owner) = flatten(start, end)
    node = np.full(len(start) + 1, TOP)
    for level in range(int(depth.max()) + 1 if len(depth) else 0):
        here = np.flatnonzero(depth == level)
        around = node[parent[here]]
        keys, at = np.unique(np.stack((around, frame[here])), axis=1, return_inverse=True)
        found = np.array([rows.within(one, other) for one, other in keys.T.tolist()], np.int64)
        node[here] = found[np.reshape(at, -1)]
    if whole_from is not None:
        low = np.maximum(low, whole_from)
    some = high > low
    rows.samples(thread, low[some], (high - low)[some], node[owner[some]])


def _decoded(source: Source, text: bytes, kind: Any) -> Any:
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{source.path}: damaged JSON of a CPU profile ({error}); copy or record it again") from error


def _thread_names(text: bytes) -> dict[tuple[Any, Any], str]:
    """What threads are called: the few events that say so are decoded each for itself."""
    found = {}
    for match in _META.finditer(text, 0, min(len(text), 1 << 20)):
        try:
            event = msgspec.json.decode(match[0], type=_Named)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
        said = event.args.get("name") if isinstance(event.args, dict) else None
        if event.ph == "M" and event.name == "thread_name" and isinstance(said, str):
            found[event.pid, event.tid] = said
    return found


def _is_time(value: float | None) -> bool:
    return value is not None and 0 <= value < _MOST_US


def _file(args: Any) -> str | None:
    found = args.get("filename") if isinstance(args, dict) else None
    return found if isinstance(found, str) and found else None


def _line(args: Any) -> int | None:
    found = args.get("line") if isinstance(args, dict) else None
    return found if isinstance(found, int) else None


def _int(value: Any) -> int | None:
    return value if isinstance(value, int) else None
