"""What CPU samples and the scheduler say of a host thread at some times: which function ran, and whether the thread ran at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cached_property

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL
from traceanalyzer.derive.host.ranges import heaviest
from traceanalyzer.intervals import Array, Spans, coverage, union
from traceanalyzer.model.frame_names import Sampled, read_stack, with_caller
from traceanalyzer.places import place_text
from traceanalyzer.records import dataclass

LEAST_SAMPLES = 5
"""Fewer samples of one name are chance, and name nothing: what ran in the rest of that time is not known."""
THREAD, OTHERS = "thread", "others"
"""Whose samples were recorded: those of the thread that is asked for, or only those of others of its process."""

Intern = Callable[[str], int]
"""A text -> its place in the host's list of names."""


@dataclass(frozen=True)
class Found:
    """What samples say of some intervals: how many fell into each, as names or `NULL` what ran (`place`) and the program's own function
    (`own`), and for how many ns of each interval the place stands."""

    count: Array
    place: Array
    own: Array
    place_length: Array


@dataclass(frozen=True)
class _Taken:
    """Times at which stacks were taken, sorted, and the numbers of the stacks."""

    time: Array
    stack: Array

    def within(self, start: Array, end: Array) -> tuple[Array, Array, Array]:
        """Those in each interval: row of the interval and stack, by row and time; and how many."""
        first = np.searchsorted(self.time, start)
        count = np.searchsorted(self.time, end) - first
        row = np.repeat(np.arange(len(start)), count)
        at = np.arange(len(row)) + np.repeat(first - np.cumsum(count) + count, count)
        return row, self.stack[at], count


class ThreadSamples:
    """The samples of one thread, sorted by time; `stack` is the number of each one's stack. `runs` are None where they are not known.

    `asked` are the times at which a stack was taken because a call of the operating system began: these tell who called, but not how
    the thread spent its time.
    """

    def __init__(self, time: Array, stack: Array, asked: Array, runs: Spans | None, names: StackNames) -> None:
        self._all = _Taken(time, stack)
        regular = ~np.isin(time, asked, kind="sort")
        self._regular = _Taken(time[regular], stack[regular])
        self._runs, self._names = runs, names
        # How much of a thread's running time each sample stands for.
        steps = np.diff(self._regular.time)
        self._period = int(np.median(steps[steps > 0])) if (steps > 0).any() else None

    @property
    def known(self) -> bool:
        """Whether any stack of this thread was recorded."""
        return len(self._all.time) > 0

    @property
    def tells(self) -> bool:
        """Whether anything is known of what the thread did, or of whether it ran."""
        return self.known or self._runs is not None

    @property
    def sampled(self) -> bool:
        """Whether the thread was sampled."""
        return len(self._regular.time) > 0

    def off_cpu(self, start: Array, end: Array) -> Array:
        """For each interval how many ns the system did not run the thread, `NULL` where that was not recorded."""
        if self._runs is None:
            return np.full(len(start), NULL, np.int64)
        return end - start - coverage(start, end, self._runs)

    def untraced(self, start: Array, end: Array) -> Found:
        """What ran in intervals in which nothing else was recorded. A name needs `LEAST_SAMPLES` in all of them together."""
        row, stack, count = self._regular.within(start, end)
        place, own = self._names.of(stack)
        known, tops = len(place), [int(np.bincount(names[names != NULL]).max(initial=0)) for names in (place, own)]
        # Where one function takes time in many that it calls, it is the place.
        if 2 * tops[0] < known <= 2 * tops[1]:
            place = np.where(own == NULL, place, own)
        place, own = _often(place), _often(own)
        name, hits = heaviest(row, place, np.ones(len(row), np.int64), len(start))
        ran = self._running(start, end, count)
        length = ran * hits // np.maximum(count, 1)
        nearest, near = heaviest(row, own, np.ones(len(row), np.int64), len(start))
        return Found(count, name, np.where(2 * near >= count, nearest, NULL), np.where(name == NULL, 0, length))

    def callers(self, start: Array, end: Array) -> Array:
        """For each interval the function of the program's own that most of its stacks have, as names or `NULL`."""
        row, stack, _ = self._all.within(start, end)
        _, own = self._names.of(stack)
        return heaviest(row, own, np.ones(len(row), np.int64), len(start))[0]

    def spent(self, span: tuple[int, int], apart: Spans) -> tuple[Array, Array]:
        """What the program spent one interval on beside the time in `apart`: its own functions, else what ran, and ns of each.

        As `untraced`; each sample stands for the usual time between two.
        """
        low, high = np.array([span[0]]), np.array([span[1]])
        _, stack, _ = self._regular.within(low, high)
        time = self._regular.time[slice(*np.searchsorted(self._regular.time, span))]
        place, own = self._names.of(stack[coverage(time, time + 1, apart) == 0])
        name = _often(np.where(own == NULL, place, own))
        names, count = np.unique(name[name != NULL], return_counts=True)
        return names, count * (self._period or 0)

    def _running(self, start: Array, end: Array, count: Array) -> Array:
        """How long the thread ran in each interval, as far as is known."""
        if self._runs is not None:
            return coverage(start, end, self._runs)
        return np.minimum(end - start, count * self._period) if self._period else np.where(count > 0, end - start, 0)


def _often(name: Array) -> Array:
    """The names that occur often enough, `NULL` for the others."""
    some = name[name != NULL]
    if not len(some):
        return name
    counts = np.bincount(some)
    return np.where((name != NULL) & (counts[np.maximum(name, 0)] >= LEAST_SAMPLES), name, NULL)


class StackNames:
    """What stacks say, in names of the host's list. Each stack is read when it is first asked for."""

    def __init__(self, stacks: list[str | None], intern: Intern) -> None:
        self._stacks, self._intern = stacks, intern
        self._known = np.zeros(len(stacks), bool)
        self._place, self._own = (np.full(len(stacks), NULL, np.int64) for _ in range(2))

    def of(self, stack: Array) -> tuple[Array, Array]:
        """The place and the program's own function of each stack."""
        asked = np.unique(stack)
        for one in asked[~self._known[asked]].tolist():
            text = self._stacks[one]
            said = Sampled(None, None, None) if text is None else read_stack(text)
            ran, caller, own = (self._called(name, said) for name in (said.ran, said.caller, said.own))
            if ran is not None:
                self._place[one] = self._intern(place_text(ran, caller, None))
            if own is not None:
                self._own[one] = self._intern(own)
        self._known[asked] = True
        return self._place[stack], self._own[stack]

    def _called(self, name: str | None, said: Sampled) -> str | None:
        """A name; that of the program's own function in a script with the function that calls it, where only one does."""
        if name is None or name != said.own or said.around is None:
            return name
        return name if self._several[name] else with_caller(name, said.around)

    @cached_property
    def _several(self) -> dict[str, bool]:
        """Of each of the program's own functions of scripts whether more than one function calls it."""
        around: dict[str, set[str | None]] = {}
        for text in self._stacks:
            said = None if text is None else read_stack(text)
            if said is not None and said.own is not None:
                around.setdefault(said.own, set()).add(said.around)
        return {own: len(callers) > 1 for own, callers in around.items()}


class Samples:
    """The samples and running times of all threads."""

    def __init__(self, cpu_samples: pa.Table, thread_runs: pa.Table, intern: Intern) -> None:
        self._rows, self._run_rows = dict(frames.threads(cpu_samples)), dict(frames.threads(thread_runs))
        self._time = frames.ints(cpu_samples, "time_ns")
        self._stack, stacks = frames.codes(cpu_samples, "stack")
        self._names = StackNames(stacks, intern)
        self._runs = frames.ints(thread_runs, "start_ns"), frames.ints(thread_runs, "end_ns")
        self._threads = Counter(key[:2] for key in self._rows)

    def thread(self, key: frames.ThreadKey, asked: Array) -> ThreadSamples:
        """What is known of (rank, process, thread). `asked` as in `ThreadSamples`."""
        rows, runs = self._rows.get(key, slice(0, 0)), self._run_rows.get(key)
        spans = None if runs is None else union(*(column[runs] for column in self._runs))
        return ThreadSamples(self._time[rows], self._stack[rows], asked, spans, self._names)

    def of_others(self, key: frames.ThreadKey) -> bool:
        """Whether another thread of the process was sampled."""
        return self._threads.get(key[:2], 0) > (key in self._rows)
