"""Makes CPU profiles of each form from the same samples, and reads profiles by themselves."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from traceanalyzer.evidence.contract import Marks
from traceanalyzer.evidence.cpu_profile import KIND
from traceanalyzer.evidence.cpu_profile.tables import TABLES
from traceanalyzer.ingest.bytes.source import source_of


class At(NamedTuple):
    """A frame of Python."""

    name: str
    file: str
    line: int


MAIN = At("<module>", "train.py", 50)
STEP = At("step", "train.py", 45)
TOKENIZE = At("tokenize", "data.py", 22)
MERGE, MERGE_TOO = At("merge", "data.py", 17), At("merge", "data.py", 18)
LOAD = At("_find_and_load", "<frozen importlib._bootstrap>", 1360)
CALL = At("_call_with_frames_removed", "<frozen importlib._bootstrap>", 488)
MODULE = At("<module>", "/venv/lib/python3.12/site-packages/scipy/__init__.py", 7)
WORK = (MAIN, STEP, TOKENIZE, MERGE)
Stack = Sequence[At]
SAMPLES: list[Stack] = [
    *[(MAIN, LOAD, CALL, MODULE)] * 30,
    *[WORK] * 40,
    (MAIN, STEP, TOKENIZE, MERGE_TOO),
    *[(MAIN, STEP)] * 9,
]
"""30 of an import chain; of the 50 others 41 in merge, 40 of them at its line 17."""


def speedscope(
    given: Sequence[Stack] = tuple(SAMPLES), period_ns: int = 10_000_000, start: int = 0, **more: Any
) -> dict[str, Any]:
    """As py-spy writes it; `start` in ns."""
    frames: dict[At, int] = {}
    stacks = [[frames.setdefault(frame, len(frames)) for frame in stack] for stack in given]
    profile = {"type": "sampled", "name": 'Thread 100 "MainThread"', "unit": "nanoseconds", "startValue": start}
    profile |= {"endValue": start + period_ns * len(given), "samples": stacks, "weights": [period_ns] * len(given)}
    listed = [frame._asdict() for frame in frames]
    schema = "https://www.speedscope.app/file-format-schema.json"
    return {"$schema": schema, "profiles": [profile | more], "shared": {"frames": listed}, "exporter": "py-spy@0.4.3"}


def evented(samples: Sequence[Stack] = tuple(SAMPLES), period_ns: int = 10_000_000) -> dict[str, Any]:
    """The same as events that open and close frames."""
    whole = speedscope(samples, period_ns)
    (profile,) = whole["profiles"]
    events: list[dict[str, Any]] = []
    before: list[int] = []
    for number, stack in enumerate([*profile["samples"], []]):
        at = number * period_ns
        same = next(
            (n for n, (one, two) in enumerate(zip(before, stack, strict=False)) if one != two),
            min(len(before), len(stack)),
        )
        events += [{"type": "C", "frame": frame, "at": at} for frame in reversed(before[same:])]
        events += [{"type": "O", "frame": frame, "at": at} for frame in stack[same:]]
        before = stack
    own = {name: profile[name] for name in ("name", "unit", "startValue", "endValue")}
    return whole | {"profiles": [own | {"type": "evented", "events": events}]}


def chrometrace(samples: Sequence[Stack] = tuple(SAMPLES), period_us: int = 10_000) -> list[dict[str, Any]]:
    """As py-spy writes it."""
    root = At("thread (100): MainThread", "", 0)
    events: list[dict[str, Any]] = []
    before: list[At] = []
    for number, each in enumerate([*[(root, *stack) for stack in samples], ()]):
        stack = list(each)
        same = next(
            (n for n, (one, two) in enumerate(zip(before, stack, strict=False)) if one != two),
            min(len(before), len(stack)),
        )
        for phase, some in (
            ("E", before[: same - 1 if same else None : -1] if same else before[::-1]),
            ("B", stack[same:]),
        ):
            events += [
                {"args": {"filename": frame.file, "line": frame.line}, "cat": "py-spy", "name": frame.name, "ph": phase, "pid": 100,
                 "tid": 140416, "ts": number * period_us}
                for frame in some
            ]  # fmt: skip
        before = stack
    return events


def folded(samples: Sequence[Stack] = tuple(SAMPLES)) -> str:
    """As py-spy's raw format."""
    counts: dict[str, int] = {}
    for stack in samples:
        text = ";".join(["thread (100): MainThread", *(f"{name} ({file}:{line})" for name, file, line in stack)])
        counts[text] = counts.get(text, 0) + 1
    return "".join(f"{text} {count}\n" for text, count in counts.items())


def austin(samples: Sequence[Stack] = tuple(SAMPLES), period_us: int = 10_000) -> str:
    """The text of Austin 3."""
    head = f"# austin: 3.6.0\n# interval: {period_us}\n# mode: wall\n\n"
    return head + "".join(
        f"P100;T0:100;{';'.join(f'{file}:{name}:{line}' for name, file, line in stack)} {period_us}\n"
        for stack in samples
    )


def _integer(value: int) -> bytes:
    out = bytearray([value & 0x3F])
    value >>= 6
    while value:
        out[-1] |= 0x80
        out.append(value & 0x7F)
        value >>= 7
    return bytes(out)


def mojo(samples: Sequence[Stack] = tuple(SAMPLES), period_us: int = 10_000, version: int = 3) -> bytes:
    """Austin's binary form."""
    out = [b"MOJ", _integer(version), b"\1mode\0wall\0", b"\1interval\0%d\0" % period_us]
    strings: dict[str, int] = {}
    frames: dict[At, int] = {}
    for stack in samples:
        out += [b"\2", _integer(100), _integer(0) if version >= 3 else b"", b"64\0"]
        for frame in stack:
            for text in (frame.file, frame.name):
                if text not in strings:
                    strings[text] = len(strings) + 2
                    out += [b"\x0b", _integer(strings[text]), text.encode(), b"\0"]
            if frame not in frames:
                frames[frame] = len(frames) + 1
                numbers = [frames[frame], strings[frame.file], strings[frame.name], frame.line]
                out += [b"\3", *map(_integer, numbers), *([_integer(0)] * 3 if version >= 2 else [])]
            out += [b"\5", _integer(frames[frame])]
        out += [b"\x09", _integer(period_us)]
    return b"".join(out)


def perf_script(
    samples: Sequence[Stack] = tuple(SAMPLES), period_ns: int = 10_000_000, start_ns: int = 5 * 10**9
) -> str:
    """What `perf script --ns` prints of a Python with perf's trampolines."""
    out = []
    for number, stack in enumerate(samples):
        at = start_ns + number * period_ns
        out.append(f"python   100/100   [003] {at // 10**9}.{at % 10**9:09d}:   {period_ns} cpu-clock:pppH: ")
        out.append("\t          1c6595 _PyEval_EvalFrameDefault+0x95 (/usr/lib/libpython3.12.so.1.0)")
        out += [
            f"\t    7ff46{line:06x} py::{name}:{file}+0x{line:x} (/tmp/perf-100.map)"
            for name, file, line in reversed(stack)
        ]
        out += ["\t           29d90 __libc_start_call_main+0x80 (/usr/lib/x86_64-linux-gnu/libc.so.6)", ""]
    return "\n".join(out) + "\n"


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def pprof(
    samples: Sequence[Stack] = tuple(SAMPLES),
    period_ns: int = 10_000_000,
    start: int | None = None,
    kind: str = "cpu",
    unit: str = "nanoseconds",
    packed: bool = True,
    count: str = "samples",
) -> bytes:
    """profile.proto; with `start` each sample has the time at which it ended as a label."""
    strings = {"": 0}

    def text(value: str) -> int:
        return strings.setdefault(value, len(strings))

    frames: dict[At, int] = {}
    out = [
        _bytes(1, _number(1, text(count)) + _number(2, text("count"))),
        _bytes(1, _number(1, text(kind)) + _number(2, text(unit))),
    ]
    for number, stack in enumerate(samples):
        ids = [frames.setdefault(frame, len(frames) + 1) for frame in reversed(stack)]
        values = [1, period_ns]
        if packed:
            body = _bytes(1, b"".join(map(_varint, ids))) + _bytes(2, b"".join(map(_varint, values)))
        else:
            body = b"".join(_number(2, one) for one in values) + b"".join(_number(1, one) for one in ids)
        labels = {"thread id": 100, "process id": 100}
        if start is not None:
            labels["end_timestamp_ns"] = start + number * period_ns
        for key, value in labels.items():
            body += _bytes(3, _number(1, text(key)) + _number(3, value))
        body += _bytes(3, _number(1, text("thread name")) + _number(2, text("MainThread")))
        out.append(_bytes(2, body))
    for frame, number in frames.items():
        out.append(_bytes(4, _number(1, number) + _bytes(4, _number(1, number) + _number(2, frame.line))))
        out.append(_bytes(5, _number(1, number) + _number(2, text(frame.name)) + _number(4, text(frame.file))))
    out += [_bytes(6, one.encode()) for one in strings]
    out.append(_number(12, period_ns))
    return gzip.compress(b"".join(out), mtime=0)


def viztracer(
    base: int | None = None, overflow: bool = False, more: Sequence[dict[str, Any]] = (), **metadata: Any
) -> dict[str, Any]:
    """Four steps of 10 ms from 1 s on, each with 8 ms of tokenize, 7 ms of that in merge."""
    own = {"cat": "FEE", "ph": "X", "pid": 100, "tid": 100}
    events: list[dict[str, Any]] = [
        {"ph": "M", "pid": 100, "tid": 100, "name": "process_name", "args": {"name": "MainProcess"}},
        {"ph": "M", "pid": 100, "tid": 100, "name": "thread_name", "args": {"name": "MainThread"}},
    ]
    for n in range(4):
        at = 1_000_000 + n * 10_000
        events.append(own | {"ts": at + 1000.5, "dur": 7000.0, "name": "merge (/home/ann/data.py:17)"})
        events.append(own | {"ts": at + 500.25, "dur": 8000.0, "name": "tokenize (/home/ann/data.py:22)"})
        events.append(own | {"ts": at + 0.125, "dur": 9900.0, "name": "step (/home/ann/train.py:45)"})
    about = {
        "version": "1.1.1",
        "overflow": overflow,
        **({} if base is None else {"baseTimeNanoseconds": base}),
        **metadata,
    }
    files = {"/home/ann/data.py": ["TOP SECRET SOURCE", 99]}
    return {
        "traceEvents": [*events, *more],
        "viztracer_metadata": about,
        "file_info": {"files": files, "functions": {}},
    }


class NoProfileError(Exception):
    """The content does not tell that it is a CPU profile."""


class Sink:
    """Keeps what is read."""

    def __init__(self) -> None:
        self.batches: dict[str, list[pa.Table]] = {}
        self.notes: list[tuple[str, str, str, int]] = []

    def add(self, table: str, batch: pa.Table) -> None:
        self.batches.setdefault(table, []).append(batch)

    def candidates(self, batch: pa.Table) -> None:
        raise AssertionError

    def health(self, code: str, severity: str, message: str, count: int = 1, example: str | None = None) -> None:
        self.notes.append((code, severity, message, count))

    def tables(self) -> dict[str, pa.Table]:
        """Whole, with rank 0."""
        found = {}
        for spec in TABLES:
            schema = pa.schema([field for field in spec.schema if field.name != "rank"])
            table = pa.concat_tables([schema.empty_table(), *self.batches.get(spec.name, ())])
            found[spec.name] = table.add_column(0, "rank", pa.repeat(pa.scalar(0, pa.int32()), table.num_rows)).cast(
                spec.schema
            )
        return found


def read(path: Path, data: Any = None) -> tuple[Marks, Sink]:
    """Read a file, written first where there are `data`; its content must tell the kind."""
    if data is not None:
        write(path, data)
    source = source_of(path, path, None)
    if not KIND.sniff(source):
        raise NoProfileError
    sink = Sink()
    return KIND.read(source, sink, lambda size: None), sink


def write(path: Path, data: Any) -> Path:
    """Bytes and text as they are, anything else as JSON."""
    path.write_bytes(
        data if isinstance(data, bytes) else data.encode() if isinstance(data, str) else json.dumps(data).encode()
    )
    return path


def functions(sink: Sink) -> list[tuple[str, int]]:
    """The user's functions of all threads and what ran in them."""
    from traceanalyzer.evidence.cpu_profile.answers.threads import cpu_functions, walked_profiles

    return [(row["path"], row["weight"]) for row in cpu_functions(walked_profiles(*sink.tables().values())).to_pylist()]


def threads(sink: Sink) -> list[dict[str, Any]]:
    """What is told of the threads."""
    from traceanalyzer.evidence.cpu_profile.answers.threads import cpu_threads, walked_profiles

    found: list[dict[str, Any]] = cpu_threads(walked_profiles(*sink.tables().values())).to_pylist()
    return found
