"""Threads, frames, stacks and samples as they are read, each distinct one once, and the tables that they become."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceanalyzer.evidence.cpu_profile.reading.frames import OTHER, Frame
from traceanalyzer.evidence.cpu_profile.tables import FRAMES, SAMPLES, STACKS, THREADS
from traceanalyzer.intervals import Array
from traceanalyzer.records import dataclass

TOP = -1
"""The stack of nothing."""
_ROWS = 1 << 17
NO_TIME = np.iinfo(np.int64).min
"""The time of a sample that has none."""
MOST_LEVELS = 2048
"""What lies deeper counts for what is around it."""
_MOST_WEIGHT = 1 << 61


class Thread(NamedTuple):
    """A thread as its profiler names it; None where it does not."""

    pid: int | None
    tid: int | None
    name: str | None


@dataclass
class About:
    """What a file says of all its samples.

    `form` is what wrote them in which form, `unit` what weights are counted in. `period_ns` is how far samples are meant to be apart.
    `clock_base_ns` + a sample's time = ns since the epoch, None where no start is recorded; `timed` is whether samples have times at
    all, in whatever clock, and `span_ns` from when to when since the epoch they were taken, where only that is known. `stretches` says
    that a row holds from its time for as long as its weight says. `lost` is what the file lost of its beginning, in words.
    """

    form: str
    producer: str
    unit: str = "ns"
    period_ns: int | None = None
    clock_base_ns: int | None = None
    timed: bool = False
    ordered: bool = True
    stretches: bool = False
    idle_kept: bool | None = None
    lost: str | None = None
    span_ns: tuple[int, int] | None = None
    skipped: int = 0
    skipped_example: str | None = None
    notes: list[tuple[str, int]] = field(default_factory=list)

    def skip(self, example: object) -> None:
        """Count what could not be read."""
        self.skipped += 1
        if self.skipped_example is None:
            self.skipped_example = str(example)[:80]


class Rows:
    """What was read so far."""

    def __init__(self) -> None:
        self._threads: dict[tuple[object, ...], int] = {}
        self._named: list[Thread] = []
        self._frames: dict[Frame, int] = {}
        self._roots: set[int] = set()
        self._nodes: dict[int, int] = {}
        self._parent, self._frame, self._depth = array("q"), array("q"), array("q")
        self._thread, self._time, self._weight, self._stack = (array("q") for _ in range(4))
        self._bulk: list[tuple[Array, Array, Array, Array]] = []

    def __len__(self) -> int:
        return len(self._thread) + sum(len(part[0]) for part in self._bulk)

    def thread(self, pid: int | None, tid: int | None, name: str | None) -> int:
        """The number of a thread. One that has a number of the system's may be named later."""
        one = Thread(_number(pid), _number(tid), name or None)
        key = (one.pid, one.tid) if one.tid is not None else one
        found = self._threads.setdefault(key, len(self._named))
        if found == len(self._named):
            self._named.append(one)
        elif one.name is not None and self._named[found].name is None:
            self._named[found] = one
        return found

    def frame(self, frame: Frame) -> int:
        """The number of a frame. That of a thread or process is no part of any stack."""
        found = self._frames.setdefault(frame, len(self._frames))
        if frame.kind == OTHER:
            self._roots.add(found)
        return found

    def within(self, parent: int, frame: int) -> int:
        """The stack of a frame inside of another stack."""
        if frame in self._roots:
            return parent
        key = (parent + 1) << 32 | frame
        found = self._nodes.get(key)
        if found is not None:
            return found
        depth = self._depth[parent] + 1 if parent >= 0 else 0
        if depth >= MOST_LEVELS:
            return parent
        found = self._nodes[key] = len(self._parent)
        self._parent.append(parent)
        self._frame.append(frame)
        self._depth.append(depth)
        return found

    def stack(self, frames: Iterable[int]) -> int:
        """The stack of frames, from the outermost to the innermost."""
        node = TOP
        for frame in frames:
            node = self.within(node, frame)
        return node

    def around(self, node: int) -> int:
        """The stack that a stack is inside of."""
        return self._parent[node]

    def frame_of(self, node: int) -> int:
        """The innermost frame of a stack."""
        return self._frame[node]

    def sample(self, thread: int, time: int | None, weight: int, stack: int) -> None:
        """Add a sample. Raises OverflowError for numbers beyond 64 bits."""
        self._thread.append(thread)
        self._time.append(NO_TIME if time is None else time)
        self._weight.append(weight)
        self._stack.append(stack)

    def samples(self, thread: int, time: Array | None, weight: Array, stack: Array) -> None:
        """Add many samples of one thread."""
        count = len(stack)
        times = np.full(count, NO_TIME) if time is None else time
        self._bulk.append((np.full(count, thread), times, weight, stack))

    def columns(self) -> tuple[Array, Array, Array, Array]:
        """Thread, time (`NO_TIME` without), weight and stack of all samples, by thread and time, as they came where these are equal."""
        own = tuple(np.array(one, np.int64) for one in (self._thread, self._time, self._weight, self._stack))
        parts = [own, *self._bulk]
        thread, time, weight, stack = (np.concatenate(column) for column in zip(*parts, strict=True))
        order = np.lexsort((time, thread))
        return thread[order], time[order], weight[order], stack[order]

    @property
    def threads(self) -> Sequence[Thread]:
        """By number."""
        return self._named

    def tables(self, columns: tuple[Array, Array, Array, Array]) -> Iterator[tuple[str, pa.Table]]:
        """The tables, without ranks, in batches."""
        threads = self.threads
        yield (
            THREADS.name,
            pa.table(
                {
                    "thread": pa.array(range(len(threads)), pa.int32()),
                    "process": pa.array([one.pid for one in threads], pa.int64()),
                    "tid": pa.array([one.tid for one in threads], pa.int64()),
                    "name": pa.array([one.name for one in threads], pa.string()),
                }
            ),
        )
        frames = list(self._frames)
        for at in range(0, len(frames), _ROWS):
            part = frames[at : at + _ROWS]
            yield (
                FRAMES.name,
                pa.table(
                    {
                        "frame": pa.array(range(at, at + len(part)), pa.int32()),
                        "name": pa.array([one.name for one in part], pa.string()),
                        "file": pa.array([one.file for one in part], pa.string()),
                        "line": pa.array([one.line for one in part], pa.int32()),
                        "kind": pa.array([one.kind for one in part], pa.string()),
                    }
                ),
            )
        parent, frame = np.array(self._parent, np.int64), np.array(self._frame, np.int64)
        for at in range(0, len(parent), _ROWS):
            some = slice(at, at + _ROWS)
            number = np.arange(at, at + len(parent[some]))
            yield STACKS.name, _table({"stack": number, "parent": parent[some], "frame": frame[some]}, ("parent",))
        thread, time, weight, stack = columns
        for at in range(0, len(thread), _ROWS):
            some = slice(at, at + _ROWS)
            yield (
                SAMPLES.name,
                _table(
                    {"thread": thread[some], "time_ns": time[some], "weight": weight[some], "stack": stack[some]},
                    ("time_ns", "stack"),
                ),
            )


def _table(columns: dict[str, Array], may_lack: Sequence[str]) -> pa.Table:
    """Columns; of those that may lack a value what stands for none is null."""
    return pa.table(
        {
            name: pa.array(values, mask=(_lacks(name, values)) if name in may_lack else None)
            for name, values in columns.items()
        }
    )


def _lacks(name: str, values: Array) -> npt.NDArray[np.bool_]:
    lacks: npt.NDArray[np.bool_] = values == (NO_TIME if name == "time_ns" else TOP)
    return lacks


def _number(value: int | None) -> int | None:
    """A number of the system's; None where it is none that a system has."""
    return value if value is not None and 0 < value < 1 << 63 else None


def checked_weight(weight: Array) -> bool:
    """Whether weights are such as a recording has: their sum fits."""
    return not len(weight) or (int(weight.min()) >= 0 and float(weight.astype(np.float64).sum()) < _MOST_WEIGHT)
