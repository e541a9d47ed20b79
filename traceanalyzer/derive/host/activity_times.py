"""When each host thread was at which of the activities."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.derive.host.activities import ACTIVITIES, FIRST_OPERATOR, FIRST_OPERATOR_NS, FIRST_USE_NS, Matcher
from traceanalyzer.derive.host.start_up import context_calls
from traceanalyzer.intervals import EMPTY, Array, Spans, join, subtract, union

_KEYS = ("rank", "process", "thread", "start_ns", "end_ns")
_KINDS = {"named": ("annotation", "nvtx"), "operators": ("operator",), "frames": ("python",)}
NAMES = [activity.name for activity in ACTIVITIES]
_FIRST_USE = NAMES.index("first_use")


class ActivityTimes:
    """The ranges and calls that stand for an activity; few of all there are."""

    def __init__(
        self,
        api_calls: pa.Table,
        host_ranges: pa.Table,
        overheads: pa.Table,
        launches: pa.Table,
        gpu_ops: pa.Table,
        real: frames.Flags,
    ) -> None:
        """`real` is false for the rows of `host_ranges` whose times are not to be believed."""
        found = [_matching(overheads, "overheads"), _matching(api_calls, "calls")]
        found += [_matching(api_calls, "long_calls", frames.duration(api_calls) >= FIRST_USE_NS)]
        for kind, categories in _KINDS.items():
            of_kind = frames.equals(host_ranges, "category", *categories)
            found.append(_matching(host_ranges, kind, of_kind & real))
        found += [_first_launches(launches, gpu_ops), _context_creation(api_calls), _first_operators(host_ranges)]
        *keys, self._start, self._end, self._activity = (np.concatenate(column) for column in zip(*found, strict=True))
        # What the profiler lists as overhead may have no owner; then it is everybody's.
        self._of = frames.OfThreads(*keys)

    def thread(self, rank: int, process: int, thread: int) -> tuple[Array, Array, Array]:
        """(start, end, place in `NAMES`) of the stretches of one thread, sorted and disjoint."""
        rows = self._of.rows(rank, process, thread)
        start, end, activity = self._start[rows], self._end[rows], self._activity[rows]
        taken: Spans = EMPTY
        parts = [(*EMPTY, np.empty(0, np.int64))]
        for one in np.unique(activity).tolist():
            mine = activity == one
            spans = subtract(union(start[mine], end[mine]), taken)
            taken = join(taken, spans)
            parts.append((*spans, np.full(len(spans[0]), one, np.int64)))
        low, high, which = (np.concatenate(column) for column in zip(*parts, strict=True))
        order = np.argsort(low)
        return low[order], high[order], which[order]


@cache
def _matcher(kind: str) -> Callable[[str], int | None]:
    """The ranks of a job have the same names."""
    return lru_cache(maxsize=1 << 16)(Matcher(kind))


def _matching(table: pa.Table, kind: str, which: frames.Flags | None = None) -> list[Array]:
    """The key columns and the activity of the rows whose names match."""
    name, names = frames.codes(table, "name")
    used = np.zeros(len(names), bool)
    used[name if which is None else name[which]] = True
    activity_of, of_name = _matcher(kind), np.full(len(names), -1, np.int64)
    for at in np.flatnonzero(used).tolist():
        if (text := names[at]) is not None and (activity := activity_of(text)) is not None:
            of_name[at] = activity
    if (of_name < 0).all():
        name = name[:0]
        which = None
    of_row = of_name[name]
    rows = np.flatnonzero((of_row >= 0) if which is None else (of_row >= 0) & which)
    found = table.take(pa.array(rows)) if len(rows) else table.slice(0, 0)
    return [*(frames.ints(found, column) for column in _KEYS), of_row[rows]]


def _first_operators(host_ranges: pa.Table) -> list[Array]:
    """First calls of operators that took very much longer than all later ones of the same name: they set up what those find ready, such
    as the handle of a library."""
    length = frames.duration(host_ranges)
    setting_up = frames.where(host_ranges, "name", lambda name: "::" in name)
    code = frames.codes(host_ranges, "name")[0]
    rows = np.flatnonzero(frames.equals(host_ranges, "category", "operator") & setting_up)
    rows = rows[np.isin(code[rows], code[rows[length[rows] >= FIRST_OPERATOR_NS]])]
    if not len(rows):
        return [np.empty(0, np.int64)] * (len(_KEYS) + 1)
    group = frames.dense(*(frames.ints(host_ranges, column)[rows] for column in ("rank", "process")), code[rows])
    order = np.lexsort((frames.ints(host_ranges, "start_ns")[rows], group))
    begin = np.flatnonzero(np.diff(group[order], prepend=-1))
    first = rows[order[begin]]
    later = np.diff(begin, append=len(order)) - 1
    spent = np.add.reduceat(length[rows[order]], begin) - length[first]
    slow = (length[first] >= FIRST_OPERATOR_NS) & (later > 0) & (length[first] * later >= FIRST_OPERATOR * spent)
    found = host_ranges.take(pa.array(first[slow]))
    return [*(frames.ints(found, column) for column in _KEYS), np.full(found.num_rows, _FIRST_USE, np.int64)]


def _context_creation(api_calls: pa.Table) -> list[Array]:
    found = api_calls.take(pa.array(context_calls(api_calls)))
    return [*(frames.ints(found, column) for column in _KEYS), np.full(found.num_rows, _FIRST_USE, np.int64)]


def _first_launches(launches: pa.Table, gpu_ops: pa.Table) -> list[Array]:
    """Launch calls that took long because they launched a kernel for the first time: its code had to be loaded.

    The first launch of a CUDA graph is slow for other reasons, and so is one that finds the queue full; that one, though, ends no gap.
    """
    start, length = frames.ints(launches, "start_ns"), frames.duration(launches)
    graph = frames.where(launches, "api_name", lambda name: "Graph" in name)
    long = np.flatnonzero((length >= FIRST_USE_NS) & frames.equals(launches, "op_kind", "kernel") & ~graph)
    if not len(long):
        return [np.empty(0, np.int64)] * (len(_KEYS) + 1)
    kernel = frames.codes(gpu_ops, "name")[0][frames.ints(launches, "op")]
    alike = np.flatnonzero(np.isin(kernel, kernel[long]))
    same = frames.dense(*(frames.ints(launches, column)[alike] for column in ("rank", "process")), kernel[alike])
    earliest = np.full(same.max() + 1, np.iinfo(np.int64).max)
    np.minimum.at(earliest, same, start[alike])
    first = np.intersect1d(alike[start[alike] == earliest[same]], long)
    found = launches.take(pa.array(first))
    return [*(frames.ints(found, column) for column in _KEYS), np.full(len(first), _FIRST_USE, np.int64)]
