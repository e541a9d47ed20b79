"""What the host threads of one rank were doing at each moment, as paths of calls."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import Flags
from traceanalyzer.columns.uniques import unique
from traceanalyzer.derive.host.levels import by_level, depths, enclosing
from traceanalyzer.derive.trees.lanes import Lane, lane_of, on_top
from traceanalyzer.derive.trees.paths import KIND, TOP, Paths
from traceanalyzer.intervals import Array, complement, flatten, overlaps, pieces
from traceanalyzer.places import frame_text, parsed_frame

_KIND_OF = {
    "operator": "operator",
    "annotation": "annotation",
    "nvtx": "annotation",
    "openacc": "annotation",
    "openmp": "annotation",
    "python": "python",
    "mpi": "mpi",
    "os": "os",
    "callback": "call",
}
"""The kinds of nodes by the categories of host ranges."""
_BACKWARD = "autograd::engine::evaluate_function: "
_NO_TIMES = np.empty(0, np.int64)
_Columns = tuple[NDArray[Any], ...]
SAMPLE_REACH = 10
"""A thread is sampled while it runs. Where its samples are so many times as far apart as mostly, it did not, and no one saw why."""


class Spent(NamedTuple):
    """Time of some intervals by what a thread did: the position of the interval, a path, and how many ns."""

    row: Array
    path: Array
    ns: Array


class CallStacks:
    """The threads of one rank. `unrecorded` and `unlaunched` are the paths of what nothing recorded tells."""

    def __init__(
        self,
        paths: Paths,
        host_ranges: pa.Table,
        api_calls: pa.Table,
        cpu_samples: pa.Table,
        in_stack: Flags,
        is_mpi: Flags,
        threads: Collection[tuple[int, int]],
    ) -> None:
        """The tables and flags are of one rank; `threads` are the (process, thread) of those that are asked for."""
        self.paths = paths
        self.unrecorded = paths.one("(not recorded)", "unrecorded")
        self.unlaunched = paths.one("(launch not recorded)", "unrecorded")
        self._lanes: dict[tuple[int, int], Lane] = {}
        self._samples: dict[tuple[int, int], tuple[Array, Array]] = {}
        ranges = _Ranges(paths, host_ranges, is_mpi)
        calls = _Calls(paths, api_calls)
        wanted = set(threads)
        joins = ranges.may_join()
        found: list[tuple[Array, ...]] = []
        count = 0
        range_rows, call_rows = (_by_thread(table) for table in (host_ranges, api_calls))
        samples = _Samples(paths, cpu_samples)
        for key in dict.fromkeys([*range_rows, *call_rows, *wanted]):
            first, stop = range_rows.get(key, (0, 0))
            mine = first + np.flatnonzero(in_stack[first:stop])
            if key not in wanted and not joins[mine].any():
                continue
            columns, lane = _thread(ranges, calls, mine, call_rows.get(key, (0, 0)))
            start, inside, *others = columns
            found.append((start, np.where(inside >= 0, inside + count, -1), *others))
            self._lanes[key] = lane.moved(count)
            self._samples[key] = samples.of(key)
            count += len(start)
        del calls
        start, parent, depth, name, kind, row = (
            _in_a_row(column) for column in (zip(*found, strict=True) if found else ((),) * 6)
        )
        del found
        levels = by_level(depth)
        # One more at the end, for what is in nothing.
        self._own = np.append(paths.nested(levels, parent, name, kind, np.full(count, TOP)), TOP)
        self._launching = self._own
        forward = ranges.forwards(row, start, parent, levels)
        if (forward >= 0).any():
            self._launching = np.append(self._joined(forward, parent, name, kind, levels), TOP)

    def spent(self, key: tuple[int, int], start: Array, end: Array) -> Spent:
        """What a thread, given by process and thread, did in these intervals, which may overlap: their time exactly."""
        lane = self._lanes.get(key)
        if lane is None:
            rows = np.arange(len(start))
            return Spent(rows, np.full(len(start), self.unrecorded), end - start)
        row, item, ns = lane.within(start, end)
        found = [Spent(row, self._own[item], ns)]
        sampled, path = self._samples[key]
        if len(sampled) < 2:  # no sample tells of what no range covers
            left = end - start - np.bincount(row, ns, len(start)).astype(np.int64)
            found.append(Spent(np.arange(len(start)), np.full(len(start), self.unrecorded), left))
            return Spent(*(np.concatenate(column) for column in zip(*found, strict=True)))
        bare = _outside(lane, start, end)
        if len(bare[0]):
            some, sample, ns = _sampled(*bare[1:], sampled)
            left = bare[2] - bare[1]
            np.subtract.at(left, some, ns)
            found.append(Spent(bare[0][some], path[sample], ns))
            found.append(Spent(bare[0], np.full(len(left), self.unrecorded), left))
        return Spent(*(np.concatenate(column) for column in zip(*found, strict=True)))

    def all_spent(self, key: tuple[int, int], low: int, high: int) -> Iterator[Spent]:
        """What a thread did from one time to another, stretch by stretch."""
        lane = self._lanes.get(key)
        cuts = np.array([low, high]) if lane is None else lane.cut(low, high)
        for at in range(len(cuts) - 1):
            yield self.spent(key, cuts[at : at + 1], cuts[at + 1 : at + 2])

    def at(self, process: Array, thread: Array, time: Array, launching: bool) -> Array:
        """For each time on a thread the path that it was in, `TOP` where in none; `unrecorded` where nothing tells of the thread.

        `launching`: backward operators are inside of the forward ones that asked for them.
        """
        result = np.full(len(time), self.unrecorded)
        by_range = self._launching if launching else self._own
        for (one, other), rows in frames.together(process, thread):
            lane = self._lanes.get((one, other))
            if lane is not None:
                result[rows] = by_range[lane.at(time[rows])]
        return result

    def _joined(self, forward: Array, parent: Array, name: Array, kind: Array, levels: list[Array]) -> Array:
        """The paths with backward operators inside of forward ones; those of all others stay."""
        changed = np.zeros(len(parent) + 1, bool)
        inside = []
        for here in levels:
            changed[here] = (forward[here] >= 0) | changed[parent[here]]
            inside.append(here[changed[here]])
        parent, name = parent.copy(), name.copy()
        known = np.flatnonzero(forward >= 0)
        parent[known] = forward[known]
        code, at = unique(name[known])
        names = self.paths.names
        marked = [names.code(f"{names.values[one]} (backward)") for one in code.tolist()]
        name[known] = np.array(marked)[at]
        return self.paths.nested(inside, parent, name, kind, self._own[:-1])


class _Ranges:
    """Host ranges as columns: start, end, name and kind; `frame_text` makes names of frames short."""

    def __init__(self, paths: Paths, table: pa.Table, is_mpi: Flags) -> None:
        start, end = frames.ints(table, "start_ns"), frames.ints(table, "end_ns")
        code, values = frames.codes(table, "name")
        category, categories = frames.codes(table, "category")
        kind = np.array([KIND[_KIND_OF.get(one or "", "annotation")] for one in categories])[category]
        kind[is_mpi] = KIND["mpi"]
        frame = kind == KIND["python"]
        name = np.empty(len(code), np.int64)
        name[~frame] = paths.names.codes(code[~frame], values)
        name[frame] = paths.names.codes(code[frame], values, frame_text)
        self.columns: _Columns = (start, end, name, kind)
        self._operator = kind == KIND["operator"]
        self._backward = self._operator & frames.passing(
            code, values, lambda one: one.startswith(_BACKWARD), self._operator
        )
        self._sequence = frames.ints(table, "sequence")
        self._process, self._thread = frames.ints(table, "process"), frames.ints(table, "thread")

    def may_join(self) -> Flags:
        """The forward operators that backward ones may belong to."""
        known: Flags = self._operator & (self._sequence >= 0)
        return known if (self._backward & known).any() else np.zeros(len(known), bool)

    def forwards(self, row: Array, start: Array, parent: Array, levels: list[Array]) -> Array:
        """For each of some ranges (-1 is a call) the position of the forward operator of which it is the backward one, -1 for others.

        Autograd counts on each thread, and every operator is recorded with the number that the next backward function will get
        (PyTorch's documentation of emit_nvtx). So of those with one number the one that started last made it. Where several threads
        have the number, it tells nothing.
        """
        result = np.full(len(row), -1)
        known = np.append(self.may_join(), False)[row]
        backward = known & np.append(self._backward, False)[row]
        if not backward.any():
            return result
        inside = np.zeros(len(row) + 1, bool)
        for here in levels:
            inside[here] = backward[here] | inside[parent[here]]
        asked, forward = np.flatnonzero(backward), np.flatnonzero(known & ~inside[:-1])
        both = np.concatenate((asked, forward))
        process, thread, sequence = (column[row[both]] for column in (self._process, self._thread, self._sequence))
        key = frames.packed(process, sequence)
        order = np.lexsort((start[forward], key[len(asked) :]))
        keys, rows = key[len(asked) :][order], forward[order]
        threads = thread[len(asked) :][order]
        last = np.searchsorted(keys, key[: len(asked)], side="right") - 1
        first = np.searchsorted(keys, key[: len(asked)], side="left")
        hit = last >= first
        # One thread alone: the running count of changes of thread or key is the same at both ends.
        change = np.cumsum(np.concatenate(([0], (np.diff(threads) != 0) | (np.diff(keys) != 0)))) if len(keys) else keys
        hit[hit] = change[first[hit]] == change[last[hit]]
        hit[hit] = start[rows[last[hit]]] < start[asked[hit]]
        result[asked[hit]] = rows[last[hit]]
        return result


class _Calls:
    """API calls by thread; `name` is the number of the name for each position in their dictionary of names."""

    def __init__(self, paths: Paths, table: pa.Table) -> None:
        code, values = frames.codes(table, "name")
        self._code = code.astype(np.int32)
        self.name = paths.names.of(self._code, values)
        self._start, self._end = frames.ints(table, "start_ns"), frames.ints(table, "end_ns")

    def of(self, first: int, stop: int) -> _Columns:
        """Start, end and position of the name of these rows, sorted by (start, -end)."""
        rows = slice(first, stop)
        return _sorted(self._start[rows], self._end[rows], self._code[rows])


def _thread(ranges: _Ranges, calls: _Calls, mine: Array, others: tuple[int, int]) -> tuple[tuple[Array, ...], Lane]:
    """The ranges `mine` and the calls from one row to another of a thread: start, the position of what is around (-1 at the top),
    depth, name, kind, and row of each range, -1 for calls, of which many alike may be one; and when each of them was."""
    begin, until, code = calls.of(*others)
    above = on_top(begin, until, ranges.columns[0][mine], ranges.columns[1][mine])
    rest = np.flatnonzero(~above)
    columns: tuple[Array, ...] = (*(column[mine] for column in ranges.columns), mine)
    if len(rest):
        nested = (
            begin[rest],
            until[rest],
            calls.name[code[rest]],
            np.full(len(rest), KIND["call"]),
            np.full(len(rest), -1),
        )
        columns = tuple(np.concatenate(pair) for pair in zip(columns, nested, strict=True))
    # Of a range and a call with the same times the range is around the call.
    start, end, name, kind, row = _sorted(*columns)
    depth, parent, stretches = flatten(start, end)
    inside = enclosing(parent, end)
    depth = depth if (inside == parent).all() else depths(inside)
    above &= until > begin
    if not above.all():
        begin, until, code = begin[above], until[above], code[above]
    lane, (around, of) = lane_of(stretches, begin, until, code, len(start))
    more = np.full(len(of), -1)
    every = (
        np.concatenate((start, more)),
        np.concatenate((inside, around)),
        np.concatenate((depth, np.append(depth, -1)[around] + 1)),
        np.concatenate((name, calls.name[of])),
        np.concatenate((kind, np.full(len(of), KIND["call"]))),
        np.concatenate((row, more)),
    )
    return every, lane


def _sorted(start: Array, end: Array, *others: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """Columns of ranges sorted by (start, -end). Most are so already."""
    close = start[1:] <= start[:-1]
    if close.any() and ((start[1:] < start[:-1]) | (close & (end[1:] > end[:-1]))).any():
        order = np.lexsort((-end, start))
        return tuple(column[order] for column in (start, end, *others))
    return start, end, *others


class _Samples:
    """CPU samples by thread: their times, ascending, and paths; of those at one time the first."""

    def __init__(self, paths: Paths, table: pa.Table) -> None:
        self._time = frames.ints(table, "time_ns")
        code, values = frames.codes(table, "stack")
        used, at = unique(code)
        stacks = paths.stacks([values[one] or "" for one in used.tolist()], "sample", _function_text)
        self._path = stacks[at] if len(used) else code
        process, thread = (frames.ints(table, column) for column in ("process", "thread"))
        self._rows = dict(frames.together(process, thread))

    def of(self, key: tuple[int, int]) -> tuple[Array, Array]:
        rows = self._rows.get(key)
        if rows is None:
            return _NO_TIMES, _NO_TIMES
        rows = rows[self._path[rows] != TOP]
        time, first = np.unique(self._time[rows], return_index=True)
        return time, self._path[rows][first]


def _in_a_row(parts: Sequence[Array]) -> Array:
    """Numbers of several threads one after another; of one thread they are those."""
    return parts[0] if len(parts) == 1 else np.concatenate([_NO_TIMES, *parts])


def _function_text(name: str) -> str:
    """A function of a stack as a person reads it: a frame of Python with its line."""
    return frame_text(name) if "): " in name and parsed_frame(name) else name


def _by_thread(table: pa.Table) -> dict[tuple[int, int], tuple[int, int]]:
    """The rows of each (process, thread) of one rank, which the table keeps together."""
    return {key[1:]: (rows.start, rows.stop) for key, rows in frames.threads(table)}


def _outside(lane: Lane, start: Array, end: Array) -> tuple[Array, Array, Array]:
    """What no range of a thread covers of these intervals: (row, start, end)."""
    if not len(start):
        return (_NO_TIMES,) * 3
    covered = lane.near(start, end).covered()
    return pieces(start, end, complement(covered, int(start.min()), int(end.max())))


def _sampled(start: Array, end: Array, time: Array) -> tuple[Array, Array, Array]:
    """Samples that stand for time of these intervals: (interval, sample, ns).

    A sample stands for the time up to half way to its neighbours, within the interval in which it lies, but for no more than
    `SAMPLE_REACH` times half of what mostly lies between two. The first and the last of a thread reach as far on their open side as on
    the other; a single one tells of no time.
    """
    if len(time) < 2:
        return (_NO_TIMES,) * 3
    apart = np.diff(time)
    most = SAMPLE_REACH * int(np.median(apart) + 1) // 2
    before, behind = np.minimum(apart // 2, most), np.minimum((apart + 1) // 2, most)
    low = time - np.concatenate((before[:1], before))
    high = time + np.concatenate((behind, behind[-1:]))
    row, sample, first, last = overlaps(start, end, (low, high))
    here = (time[sample] >= start[row]) & (time[sample] < end[row])
    return row[here], sample[here], (last - first)[here]
