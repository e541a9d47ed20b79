"""Idle time in which a launching thread waited for Python's interpreter lock, because another thread of its process ran Python.

A trace does not record the lock. What it does record is how a wait for it looks. CPython lets a thread that wants the lock ask for it
only when `sys.getswitchinterval()` has passed, 5 ms unless the program changes that; the one that holds it gives it up at its next
bytecode. So each turn that is lost to a thread that runs Python takes 5 ms and a little, and within it nothing begins or ends on the
waiting thread. One such stretch may be chance. Several, in several places, nearly all of them whole numbers of turns, are not.

https://docs.python.org/3/library/sys.html#sys.setswitchinterval
"""

from __future__ import annotations

import re
from collections import defaultdict

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL, Flags, ThreadKey
from traceanalyzer.derive.host.host import Host, Thread
from traceanalyzer.derive.host.tables import OTHER_THREADS
from traceanalyzer.intervals import EMPTY, Array, Spans, coverage, innermost, join, overlaps, union
from traceanalyzer.places import parsed_frame
from traceanalyzer.records import dataclass
from traceanalyzer.vocabulary.lines import HOST_UNTRACED, HOST_WORK

TURN_NS = 5_000_000
"""The interpreter's switch interval. What is longer than whole turns of it, within `LATE`, is the other thread's bytecode."""
LATE = 0.1
"""By this share of it a turn may be longer."""
SPREAD_NS = 150_000
"""So much the length of one turn varies, and that of n turns by the root of n times as much."""
FEW_TURNS, MOST_TURNS = 4, 16
"""Stretches of few turns tell whether threads wait for the lock. In longer ones any length is near a whole number of turns: they count
only inside Python frames, which cannot run without the lock, and up to the most."""
LEAST_STRETCHES, LEAST_PLACES, NEARLY = 10, 3, 0.6
"""Threads of a process wait for the lock where so many stretches, in so many places, and this share of all that are as long, are whole
numbers of turns. Work of the thread itself has one place or any length."""
RUNS = 0.8
"""Another thread must have run Python for this share of a stretch."""
BEGINS_NS = 1_000_000
"""What a thread was in when its recording began may be a call in C that is not shown."""
WAITING = re.compile(
    r"_*(acquire|wait\w*|join|select|poll|epoll_wait|sleep|pause|lock|get|put|read\w*|recv\w*|accept|connect|send\w*|write|flush|fsync"
    r"|communicate|synchronize|item)_*"
)
"""Functions that wait for something else than the lock, and release it."""
_BUILTIN = re.compile(r"<built-in (?:method|function) ([^\s>]+)")


def side_threads(host_ranges: pa.Table, launches: pa.Table) -> pa.Table:
    """The (rank, process, thread) of those that have Python frames and launch no kernels."""
    keys = ("rank", "process", "thread")
    python = frames.equals(host_ranges, "category", "python")
    found = [key for key, rows in frames.threads(host_ranges) if python[rows].any()]
    if found:
        kernels = frames.equals(launches, "op_kind", "kernel")
        launching = {key for key, _ in frames.together(*(frames.ints(launches, c)[kernels] for c in keys))}
        found = [key for key in found if key not in launching]
    return pa.table([pa.array([key[at] for key in found], pa.int64()) for at in range(3)], list(keys))


def other_threads(gaps: pa.Table, host: Host, host_ranges: pa.Table, side_threads: pa.Table) -> pa.Table:
    """The pieces of idle time, sorted by (rank, device, start); see OTHER_THREADS."""
    mates: dict[tuple[int, int], list[ThreadKey]] = defaultdict(list)
    for who in zip(*(side_threads[c].to_pylist() for c in ("rank", "process", "thread")), strict=True):
        mates[who[:2]].append(who)
    if not mates:
        return OTHER_THREADS.empty()
    lanes = _Lanes(host, host_ranges)
    parts = gaps.filter(pa.array(frames.equals(gaps, "cause", HOST_WORK.cause, HOST_UNTRACED.cause)))
    start, end = frames.ints(parts, "start_ns"), frames.ints(parts, "end_ns")
    launching: dict[tuple[int, int], dict[ThreadKey, Array]] = defaultdict(dict)
    for (rank, process, thread), rows in frames.together(
        *(frames.ints(parts, c) for c in ("rank", "process", "thread"))
    ):
        if (rank, process) in mates and thread != NULL:
            launching[rank, process][rank, process, thread] = rows
    found: list[tuple[Array, ...]] = []
    for key, mine in launching.items():
        silent = [lanes.silent(who, mates[key]) for who in mine]
        for rows, one in zip(mine.values(), _proven(silent), strict=True):
            part, wait, low, high = overlaps(start[rows], end[rows], (one.start, one.end))
            names = (column[wait] for column in (one.other, one.frame, one.place, one.turns))
            found.append((rows[part], low, high, *names))
    if not found:
        return OTHER_THREADS.empty()
    row, low, high, other, frame, place, turns = (np.concatenate(column) for column in zip(*found, strict=True))
    order = np.lexsort((low, *(frames.ints(parts, c)[row] for c in ("device", "rank"))))
    some = parts.take(pa.array(row[order]))
    return frames.build(
        OTHER_THREADS,
        {
            **{column: some[column] for column in ("rank", "device", "process", "thread")},
            "start_ns": low[order],
            "end_ns": high[order],
            "other": _threads(other[order]),
            "frame": host.texts(frame[order]),
            "place": host.texts(place[order]),
            "turns": turns[order],
        },
    )


@dataclass(frozen=True)
class _Waits:
    """Stretches of one thread in which nothing begins or ends while another runs Python. `place` and `frame` are names of the host's
    list: its own innermost range, and what the thread `other` ran. `in_python`: that range is a frame of Python code."""

    start: Array
    end: Array
    place: Array
    in_python: Flags
    other: Array
    frame: Array
    turns: Array

    def take(self, rows: Flags, turns: Array) -> _Waits:
        return _Waits(
            self.start[rows],
            self.end[rows],
            self.place[rows],
            self.in_python[rows],
            self.other[rows],
            self.frame[rows],
            turns[rows],
        )


def _proven(found: list[_Waits]) -> list[_Waits]:
    """Of the stretches of the threads of one process those that are waits for the lock; none where that is not certain."""
    length = np.concatenate([one.end - one.start for one in found])
    turns = length // TURN_NS
    few = turns <= FEW_TURNS
    each = (length // turns)[few]
    turn = np.median(each[each <= (1 + LATE) * TURN_NS]) if (each <= (1 + LATE) * TURN_NS).any() else TURN_NS
    whole = np.abs(length - turns * turn) <= SPREAD_NS * np.sqrt(turns)
    places = np.unique(np.concatenate([one.place for one in found])[whole & few])
    told = int((whole & few).sum())
    certain = told >= LEAST_STRETCHES and len(places) >= LEAST_PLACES and told >= NEARLY * few.sum()
    long = np.concatenate([one.in_python for one in found]) & (turns <= MOST_TURNS)
    keep = whole & (few | long) & certain
    bounds = np.cumsum([len(one.start) for one in found])[:-1]
    return [
        one.take(mine, count)
        for one, mine, count in zip(found, np.split(keep, bounds), np.split(turns, bounds), strict=True)
    ]


class _Lanes:
    """The threads that launch, and what the others run."""

    def __init__(self, host: Host, host_ranges: pa.Table) -> None:
        self._host = host
        self._rows = dict(frames.threads(host_ranges))
        self._span = frames.ints(host_ranges, "start_ns"), frames.ints(host_ranges, "end_ns")
        python = frames.equals(host_ranges, "category", "python")
        self._runs = python & frames.where(host_ranges, "name", lambda name: not _waits(name))
        self._running: dict[ThreadKey, Spans] = {}

    def silent(self, who: ThreadKey, mates: list[ThreadKey]) -> _Waits:
        """The stretches of one thread that may be waits for the lock."""
        lane = self._host.thread(*who)
        start, end = _silent(lane)
        place = lane.work.main_name(start, end)[0]
        names = self._host.named(place)
        free = ~frames.passing(*_coded(names), _waits)
        start, end, place = start[free], end[free], place[free]
        in_python = frames.passing(*_coded(self._host.named(place)), lambda name: parsed_frame(name) is not None)
        ran = np.array([coverage(start, end, self._running_of(mate)) for mate in mates]).reshape(len(mates), len(start))
        anyone = join(EMPTY, *(self._running_of(mate) for mate in mates))
        some = np.flatnonzero(coverage(start, end, anyone) >= RUNS * (end - start))
        most = ran[:, some].argmax(axis=0)
        frame = np.full(len(some), NULL)
        for at in np.unique(most).tolist():
            here = most == at
            frame[here] = self._frame(mates[at], start[some][here], end[some][here])
        other = np.array([mate[2] for mate in mates], np.int64)[most]
        return _Waits(start[some], end[some], place[some], in_python[some], other, frame, np.ones(len(some), np.int64))

    def _frame(self, mate: ThreadKey, start: Array, end: Array) -> Array:
        """What a thread ran in some intervals, as names."""
        found = self._host.thread(*mate).stack.within(start, end).names(start, end, self._host.place)
        return np.where(found.source == NULL, np.where(found.frame == NULL, found.range, found.frame), found.source)

    def _running_of(self, mate: ThreadKey) -> Spans:
        """When a thread ran Python, and not something that waits or that releases the lock."""
        if mate not in self._running:
            rows = self._rows[mate]
            own = np.arange(rows.start, rows.stop)[self._host.in_stack[rows]]
            order = own[np.lexsort((-self._span[1][own], self._span[0][own]))]
            low, high, owner = innermost(self._span[0][order], self._span[1][order])
            runs = self._runs[order][owner] & (low >= low[:1] + BEGINS_NS)
            self._running[mate] = union(low[runs], high[runs])
        return self._running[mate]


def _silent(lane: Thread) -> Spans:
    """Stretches of at least one turn in which nothing begins or ends on a thread, inside of something but not of a call that waits."""
    ranges = (lane.work, lane.calls, lane.mpi, lane.os)
    times = np.unique(np.concatenate([column for one in ranges for column in (one.start, one.end)]))
    start, end = times[:-1], times[1:]
    long = end - start >= TURN_NS
    start, end = start[long], end[long]
    calls = join(lane.calls.cover, lane.mpi.cover, lane.os.cover)
    here = (coverage(start, end, lane.work.cover) == end - start) & (coverage(start, end, calls) == 0)
    return start[here], end[here]


def _threads(number: Array) -> pa.DictionaryArray:
    """Threads as a person reads them."""
    used, at = np.unique(number, return_inverse=True)
    return frames.names(np.reshape(at, -1), [f"thread {one}" for one in used.tolist()])


def _coded(names: pa.DictionaryArray) -> tuple[Array, list[str | None]]:
    return frames.codes(pa.table({"name": names}), "name")


def _waits(name: str) -> bool:
    """Whether a frame is a function that waits."""
    frame = parsed_frame(name)
    if frame is not None:
        return WAITING.fullmatch(frame[2]) is not None
    builtin = _BUILTIN.match(name)
    return builtin is not None and WAITING.fullmatch(builtin[1].rpartition(".")[2]) is not None
