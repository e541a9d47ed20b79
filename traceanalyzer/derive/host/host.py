"""What one host thread was doing: the interval sets from which a gap's host time is split into causes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fnmatch import translate
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL
from traceanalyzer.columns.in_blocks import InBlocks, alike
from traceanalyzer.columns.spill import put_away
from traceanalyzer.derive.host import stack
from traceanalyzer.derive.host.activity_times import ActivityTimes
from traceanalyzer.derive.host.callers import Callers
from traceanalyzer.derive.host.places import Key, PlacesInBlocks, distinct_places
from traceanalyzer.derive.host.ranges import NO_RANGES, Ranges
from traceanalyzer.derive.host.samples import OTHERS, THREAD, Samples, ThreadSamples
from traceanalyzer.derive.host.stack import Stack
from traceanalyzer.intervals import EMPTY, Array, Spans, join, union
from traceanalyzer.model.markers import is_step_name
from traceanalyzer.places import frame_text, is_internal, is_user_frame, place_text
from traceanalyzer.records import dataclass

# Ranges in which a data loader works, matched without regard to case. `[tool.traceanalyzer] input_patterns` adds to them.
INPUT_PATTERNS = (
    "enumerate(DataLoader)*",
    "data[_ -]load*",
    "*dataload*",
    "data[_ -]fetch*",
    "data[_ -]wait*",
    "wait[_ -]for[_ -]data*",
    "wait[_ -]for[_ -]batch*",
    "load[_ -]batch*",
    "load[_ -]data*",
    "get[_ -]batch*",
    "next[_ -]batch*",
    "batch[_ -]load*",
    "fetch*",
    "input[_ -]pipeline*",
    "dali*",
    "*[ _:.]dali[ _:.]*",
)
# A Python frame is named after its file, and any file may have one of those words in its name.
INPUT_FRAMES = ("*utils/data/dataloader.py(*): __next__",)
BLOCK = 1 << 16
"""So many calls at a time are looked at."""
# How the profiler names frames of functions without source, and how far apart it closes those that are open when it stops.
_BUILTIN, _STOP_NS = "<built-in", 1000
# Calls of MPI, in C, Fortran and as the profiling interface names them.
_MPI = re.compile(r"P?MPI_[A-Z]\w*(?:\s|\(|$)", re.IGNORECASE)
_DRIVER_OVERHEAD = re.compile(
    r"lazy function loading|module loading|driver compiler|command buffer full", re.IGNORECASE
)


@lru_cache
def matcher(patterns: tuple[str, ...]) -> Callable[[str], bool]:
    """A test of a name against shell-style patterns, without regard to case."""
    expression = re.compile("|".join(translate(p) for p in patterns), re.IGNORECASE)
    # The ranks of a job have the same names.
    return lru_cache(maxsize=1 << 16)(lambda name: expression.match(name) is not None)


def is_driver_overhead(name: str) -> bool:
    """Whether what the profiler lists under overhead is what the driver does on its own account."""
    return _DRIVER_OVERHEAD.search(name) is not None


@dataclass(frozen=True)
class Waits:
    """Host calls that waited for the GPU, sorted by start. `name` indexes into the shared list of names."""

    start: Array
    end: Array
    name: Array

    @cached_property
    def _longest(self) -> Array:
        """For each wait, of those that began until then, the one that returns last."""
        reach = np.maximum.accumulate(self.end)
        later = np.concatenate(([True], reach[1:] > reach[:-1]))
        return np.maximum.accumulate(np.where(later, np.arange(len(reach)), 0))

    def around(self, time: Array) -> Array:
        """For each time the position of the wait that began before it and returns last after it, -1 where there is none.

        A driver call inside a runtime call is a wait inside a wait: the outer one decides when the host goes on.
        """
        if not len(self.start):
            return np.full(len(time), -1, np.int64)
        index = self._longest[np.maximum(np.searchsorted(self.start, time, side="right") - 1, 0)]
        return np.where((self.start[index] <= time) & (self.end[index] > time), index, -1)


@dataclass(frozen=True)
class Thread:
    """One launching thread. `work` has every named range but those that mark whole steps, `stack` the same with what they are.

    `calls` are the outermost API calls, `mpi` and `os` those of MPI and of the operating system; what the latter does inside of
    one of the others is that call's. `activities` are (start, end, place in `activity_times.NAMES`), sorted and disjoint. `sampled`
    says whose CPU samples were recorded: `THREAD`, `OTHERS` (of the process, but not its own) or None.
    """

    work: Ranges
    stack: Stack
    input: Ranges
    calls: Ranges
    mpi: Ranges
    os: Ranges
    memory: Spans
    waits: Waits
    profiler: Spans
    activities: tuple[Array, Array, Array]
    samples: ThreadSamples
    sampled: str | None


NO_STACK = Stack(*EMPTY, *EMPTY)
NO_WAITS = Waits(*EMPTY, np.empty(0, np.int64))


class Host:
    """The threads of all ranks, with one shared list of names.

    Of the host ranges `in_stack` says which are part of what a thread was doing (those that mark whole steps are not, nor calls that
    the profiler left open), and `is_mpi` which are calls of MPI.
    """

    def __init__(
        self,
        api_calls: pa.Table,
        waits: frames.Flags,
        host_ranges: pa.Table,
        overheads: pa.Table,
        steps: pa.Table,
        launches: pa.Table,
        gpu_ops: pa.Table,
        input_patterns: tuple[str, ...],
        cpu_samples: pa.Table,
        thread_runs: pa.Table,
        callers: Callers,
    ) -> None:
        range_name, range_names = frames.codes(host_ranges, "name")
        call_name, call_names = frames.short_codes(api_calls, "name")
        self._values: list[str | None] = [*range_names, *call_names]
        self._places: dict[Key, int] = {}
        self._callers = callers
        self._range_name, self._call_name, self._first_call_name = range_name, call_name, len(range_names)
        step_names = set(pc.unique(steps["name"].cast(pa.string())).to_pylist())
        named, frame, operator = (
            frames.equals(host_ranges, "category", *c) for c in (("annotation", "nvtx"), ("python",), ("operator",))
        )

        def passing(test: Callable[[str], bool], rows: frames.Flags | None = None) -> frames.Flags:
            return frames.passing(range_name, range_names, test, rows)

        is_step = passing(lambda name: name in step_names or is_step_name(name))
        self._kind = np.full(host_ranges.num_rows, stack.OTHER, np.int8)
        for kind, rows in (
            (stack.OPERATOR, operator),
            (stack.INTERNAL, operator & passing(is_internal, operator)),
            (stack.ANNOTATION, named),
            (stack.FRAME, frame),
            (stack.USER_FRAME, frame & passing(is_user_frame, frame)),
        ):
            self._kind[rows] = kind
        loads = matcher((*INPUT_PATTERNS, *input_patterns))
        self._is_input = named & passing(loads, named) | frame & passing(matcher(INPUT_FRAMES), frame)
        system, mpi = (frames.equals(host_ranges, "category", category) for category in ("os", "mpi"))
        self._is_os, self.is_mpi = system, mpi | named & passing(lambda name: _MPI.match(name) is not None, named)
        builtin = frame & passing(lambda name: name.startswith(_BUILTIN), frame)
        closed = ~_left_open(host_ranges, frame, builtin)
        self.in_stack = ~is_step & closed
        self._is_work = self.in_stack & ~mpi & ~system
        self._calls = (frames.ints(api_calls, "start_ns"), frames.ints(api_calls, "end_ns"))
        self._is_memory = frames.equals(api_calls, "class", "memory")
        self._is_wait = waits
        self._call_rows = dict(frames.threads(api_calls))
        self._activities = ActivityTimes(api_calls, host_ranges, overheads, launches, gpu_ops, closed)
        own = overheads.filter(pa.array(~frames.where(overheads, "name", is_driver_overhead)))
        self._overheads = frames.OfThreads(*(frames.ints(own, c) for c in ("rank", "process", "thread")))
        self._overhead = frames.ints(own, "start_ns"), frames.ints(own, "end_ns")
        self._interned: dict[str, int] = {}
        self._samples = Samples(cpu_samples, thread_runs, self._intern)
        self._threads: dict[frames.ThreadKey, Thread] = {}

    def thread(self, rank: int, process: int, thread: int) -> Thread:
        """What (rank, process, thread) did; an empty one when nothing was recorded."""
        key = (rank, process, thread)
        if key not in self._threads:
            self._threads[key] = self._build(key)
        return self._threads[key]

    def range_at(self, rank: Array, process: Array, thread: Array, time: Array) -> Array:
        """For each time on a thread the name of the innermost range of `Thread.work` around it, `NULL` where there is none."""
        if not len(self._range_name):
            return alike(NULL, len(time))
        row = self._callers.around(rank, process, thread, time, wanted=self._is_work)
        return np.where(row >= 0, self._range_name[row], NULL)

    @property
    def names(self) -> Sequence[str | None]:
        """The list of names."""
        return self._values

    def named(self, index: Array | frames.Codes) -> pa.DictionaryArray:
        """Names by the indices that threads give; null for `NULL`."""
        return frames.names(index, self._values)

    def texts(self, index: Array) -> pa.DictionaryArray:
        """As `named`, with Python frames as a person reads them."""
        return frames.names(index, self._values, frame_text)

    def place(self, what: Array, source: Array, annotation: Array, *_: object) -> Array:
        """The names of places: what ran, in the user's frame or else in the annotation around it; `NULL` where nothing did."""
        keys, _first, of_row = distinct_places(what, source, annotation)
        return np.array([self._place(key) for key in keys], np.int64)[of_row] if keys else what

    def places_in_blocks(self) -> PlacesInBlocks:
        """The same for what is asked for block by block; meanwhile nobody asks for other names."""
        return PlacesInBlocks(self._values, self._place)

    def _place(self, key: Key) -> int:
        if key not in self._places:
            what, around, by_frame = key
            text, outer = (None if at == frames.NULL else self._values[at] for at in (what, around))
            self._places[key] = frames.NULL if text is None else len(self._values)
            if text is not None:
                near = None if outer is None else frame_text(outer)
                self._values.append(place_text(frame_text(text), near if by_frame else None, near))
        return self._places[key]

    def _intern(self, text: str) -> int:
        """The place of a text in the list of names."""
        if text not in self._interned:
            self._interned[text] = len(self._values)
            self._values.append(text)
        return self._interned[text]

    def _build(self, key: frames.ThreadKey) -> Thread:
        ranges, calls = self._callers.threads.get(key), self._call_rows.get(key)
        work = source = outer = mpi = system = NO_RANGES
        doing, memory, waits = NO_STACK, EMPTY, NO_WAITS
        if ranges is not None:
            work, source, mpi, system = (
                self._select(ranges, which) for which in (self._is_work, self._is_input, self.is_mpi, self._is_os)
            )
            doing = Stack(
                work.start, work.end, work.name.astype(np.int64, copy=False), self._kind[ranges][self._is_work[ranges]]
            )
        if calls is not None:
            start, end = (column[calls] for column in self._calls)
            is_memory, wait = self._is_memory[calls], self._is_wait[calls]
            outer = put_away(_outermost(start, end, self._call_name[calls], self._first_call_name))
            memory = union(start[is_memory], end[is_memory])
            waits = Waits(start[wait], end[wait], self._call_name[calls][wait].astype(np.int64) + self._first_call_name)
        activities = self._activities.thread(*key)
        asked = system.start
        system = system.outside(join(outer.cover, mpi.cover))
        samples = self._samples.thread(key, asked)
        whose = THREAD if samples.sampled else OTHERS if self._samples.of_others(key) else None
        return Thread(
            *(work, doing, source, outer, mpi, system, memory, waits, self._profiler(key), activities), samples, whose
        )

    def _select(self, rows: slice, which: frames.Flags) -> Ranges:
        keep = which[rows]
        columns = (self._callers.start, self._callers.end, self._range_name)
        return put_away(Ranges(*(column[rows][keep] for column in columns)))

    def _profiler(self, key: frames.ThreadKey) -> Spans:
        """The profiler's own overhead on the thread, or on an unknown one."""
        here = self._overheads.rows(*key)
        return union(*(column[here] for column in self._overhead))


def _outermost(start: Array, end: Array, name: npt.NDArray[np.int32], first_name: int) -> Ranges:
    """The calls of one thread, sorted by start, that lie in no other: of a runtime call and the driver call inside it the first.

    Their names count from `first_name` on.
    """
    # Mostly the longer of two that begin at once comes first.
    if ((start[1:] == start[:-1]) & (end[1:] > end[:-1])).any() or (start[1:] < start[:-1]).any():
        order = np.lexsort((-end, start))
        start, end, name = start[order], end[order], name[order]
    made, reached = InBlocks(), NULL
    for first in range(0, len(start), BLOCK):
        some = slice(first, first + BLOCK)
        over = np.maximum.accumulate(np.append(reached, end[some]))
        top = end[some] > over[:-1]
        reached = int(over[-1])
        if top.any():
            made.add({"start": start[some][top], "end": end[some][top], "name": name[some][top] + np.int32(first_name)})
    return Ranges(*(made.take(column) for column in ("start", "end", "name"))) if len(start) else NO_RANGES


def _left_open(ranges: pa.Table, frame: frames.Flags, builtin: frames.Flags) -> frames.Flags:
    """The calls of built-in functions that the profiler closed only when it stopped, although they were over long before.

    They end with the last Python frame. A thread is in one such call at a time: the one that began last may be true.
    """
    result = np.zeros(len(builtin), bool)
    if builtin.any():
        rank, process, thread, end = (frames.ints(ranges, c) for c in ("rank", "process", "thread", "end_ns"))
        file = frames.dense(rank)
        last = np.full(file.max() + 1, frames.NULL)
        np.maximum.at(last, file[frame], end[frame])
        rows = np.flatnonzero(builtin & (end >= last[file] - _STOP_NS))
        where = frames.dense(rank, process, thread)[rows]
        result[rows[:-1][where[1:] == where[:-1]]] = True
    return result


def waits(api_calls: pa.Table, launches: pa.Table, gpu_ops: pa.Table) -> frames.Flags:
    """Which calls waited for the GPU: those that synchronize, and copies and memsets that came back only after them."""
    return frames.equals(api_calls, "class", "sync") | _blocking_copies(api_calls, launches, gpu_ops)


def _blocking_copies(api_calls: pa.Table, launches: pa.Table, gpu_ops: pa.Table) -> frames.Flags:
    """Copies and memsets whose call waited for the GPU: to the host or not asynchronous, and back only after them."""
    if not launches.num_rows:
        return np.zeros(api_calls.num_rows, bool)
    to_host = frames.equals(gpu_ops, "copy_kind", "dtoh")[frames.ints(launches, "op")]
    synchronous = ~frames.where(launches, "api_name", lambda name: "Async" in name)
    copy, memset = (frames.equals(launches, "op_kind", kind) for kind in ("memcpy", "memset"))
    blocking = copy & (to_host | synchronous) | memset & synchronous
    late = frames.ints(launches, "end_ns") >= frames.ints(launches, "op_end_ns")
    columns = ["rank", "process", "thread", "start_ns"]
    waited = launches.select(columns).filter(pa.array(blocking & late))
    result = frames.equals(api_calls, "class", "copy")
    calls = api_calls.select(columns).filter(pa.array(result))
    key = frames.packed(*(np.concatenate((frames.ints(waited, c), frames.ints(calls, c))) for c in columns))
    result[result] = frames.among(key[waited.num_rows :], key[: waited.num_rows])
    return result
