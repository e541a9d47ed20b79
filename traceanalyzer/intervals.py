"""Interval algebra on int64 nanoseconds, vectorised. Half-open intervals [start, end).

`Spans` is a pair of equal-length int64 arrays (starts, ends), sorted and disjoint, with no empty interval and no two that touch. All
functions that return Spans return them in that form.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.int64]
Spans = tuple[Array, Array]

EMPTY: Spans = (np.empty(0, np.int64), np.empty(0, np.int64))
_MANY = 8
"""So many times as many are many."""
_AT_ONCE = 1 << 15
"""So many stay in the processor's cache, with what is made of them."""


def union(starts: Array, ends: Array) -> Spans:
    """Cover of any intervals, in any order; empty and reversed ones count for nothing."""
    keep = ends > starts
    if not keep.all():
        starts, ends = starts[keep], ends[keep]
    if not len(starts):
        return EMPTY
    # Many are a union already, and most are in order.
    if (starts[1:] > ends[:-1]).all():
        return starts, ends
    if (starts[1:] < starts[:-1]).any():
        order = np.argsort(starts, kind="stable")
        starts, ends = starts[order], ends[order]
    reach = np.maximum.accumulate(ends)
    apart = starts[1:] > reach[:-1]
    return starts[np.concatenate(([True], apart))], reach[np.concatenate((apart, [True]))]


def join(*parts: Spans) -> Spans:
    """What lies in any of the sets."""
    some = [part for part in parts if len(part[0])]
    if len(some) == 1:
        return union(*some[0])
    return union(*(np.concatenate([EMPTY[0], *(part[at] for part in some)]) for at in (0, 1)))


def total(spans: Spans) -> int:
    """Covered length in ns."""
    return int((spans[1] - spans[0]).sum())


def total_within(spans: Spans, start: int, end: int) -> int:
    """Covered length in ns inside [start, end)."""
    starts, ends = near(spans, start, end)
    if not len(starts):
        return 0
    return total((starts, ends)) - max(start - int(starts[0]), 0) - max(int(ends[-1]) - end, 0)


def complement(spans: Spans, start: int, end: int) -> Spans:
    """What `spans` leaves of [start, end)."""
    starts, ends = clip(spans, start, end)
    free_starts = np.concatenate(([start], ends))
    free_ends = np.concatenate((starts, [end]))
    keep = free_ends > free_starts
    return free_starts[keep], free_ends[keep]


def clip(spans: Spans, start: int, end: int) -> Spans:
    """The part of `spans` inside [start, end)."""
    starts, ends = np.maximum(spans[0], start), np.minimum(spans[1], end)
    keep = ends > starts
    return starts[keep], ends[keep]


def intersect(a: Spans, b: Spans) -> Spans:
    """What lies in both."""
    if not len(a[0]) or not len(b[0]):
        return EMPTY
    few, many = (a, b) if len(a[0]) <= len(b[0]) else (b, a)
    # No two pieces touch: where they would, one of the sets would have a border in itself.
    _, starts, ends = pieces(*few, many)
    return starts, ends


def subtract(a: Spans, b: Spans) -> Spans:
    """What lies in `a` but not in `b`."""
    if not len(a[0]) or not len(b[0]):
        return a
    if _MANY * len(a[0]) < len(b[0]):
        # Of many spans only those that have something in common with the few.
        at = overlaps(*a, b)[1]
        at = at[np.diff(at, prepend=-1) > 0]
        b = b[0].take(at), b[1].take(at)
    low, high = int(a[0][0]), int(a[1][-1])
    return intersect(a, complement(b, low, high))


def pieces(starts: Array, ends: Array, spans: Spans) -> tuple[Array, Array, Array]:
    """Cut each interval by `spans`: (row, start, end) of every non-empty intersection, in row order.

    The intervals may overlap each other and come in any order; `row` is the position in the input.
    """
    row, _, low, high = overlaps(starts, ends, spans)
    return row, low, high


def near(spans: Spans, start: int, end: int) -> Spans:
    """Those of the spans that reach into [start, end), whole; they may touch."""
    rows = slice(np.searchsorted(spans[1], start, side="right"), np.searchsorted(spans[0], end, side="left"))
    return spans[0][rows], spans[1][rows]


def parted(starts: Array, ends: Array, spans: Spans) -> tuple[tuple[Array, Array, Array], tuple[Array, Array, Array]]:
    """As `pieces`, what lies in `spans` and what they leave of each interval."""
    if not len(starts) or not len(spans[0]):
        return (np.empty(0, np.int64), *EMPTY), (np.arange(len(starts), dtype=np.int64), starts, ends)
    # The spans and what lies between them, in turn, are tiles.
    bounds = np.empty(2 * len(spans[0]) + 2, np.int64)
    bounds[1:-1:2], bounds[2:-1:2] = spans
    bounds[0], bounds[-1] = min(starts.min(), bounds[1]), max(ends.max(), bounds[-2])
    row, tile, low, high = overlaps(starts, ends, (bounds[:-1], bounds[1:]))
    inside = (tile & 1).astype(bool)
    within, without = ((row.compress(some), low.compress(some), high.compress(some)) for some in (inside, ~inside))
    return within, without


def overlaps(starts: Array, ends: Array, spans: Spans) -> tuple[Array, Array, Array, Array]:
    """As `pieces`, with the position of the span: (row, span, start, end). The spans may touch."""
    first = np.searchsorted(spans[1], starts, side="right")
    count = np.maximum(np.searchsorted(spans[0], ends, side="left") - first, 0)
    if count.max(initial=0) <= 1:
        row = np.flatnonzero(count)
        other = first.take(row)
    else:
        row = np.repeat(np.arange(len(starts), dtype=np.int64), count)
        other = np.arange(len(row), dtype=np.int64) + (first - np.cumsum(count) + count).take(row)
    return (
        row,
        other,
        np.maximum(starts.take(row), spans[0].take(other)),
        np.minimum(ends.take(row), spans[1].take(other)),
    )


def latest(starts: Array, ends: Array, times: Array) -> Array:
    """For each time the position of the range that started last until then; -1 where that one is over, or none has started.

    The ranges are sorted by start; of those that start at once the last counts.
    """
    at = begun(starts, times) - 1
    return np.where((at >= 0) & (times < np.append(ends, 0).take(at)), at, -1)


def begun(starts: Array, times: Array) -> Array:
    """For each time how many of these starts, which ascend, are not after it."""
    if 4 * len(starts) > len(times) or (times[1:] < times[:-1]).any():
        return np.searchsorted(starts, times, side="right")
    # Few starts are quickly looked for among many times.
    first = np.searchsorted(times, starts, side="left")
    return np.cumsum(np.bincount(first, minlength=len(times))[: len(times)])


def latest_of(lanes: Array, starts: Array, ends: Array, lane: Array, times: Array) -> Array:
    """As `latest`, for each time among the ranges of its own lane. Lanes are numbers from 0 on; the ranges come in any order."""
    if not lanes.any() and not lane.any():
        order = np.argsort(starts, kind="stable")
        return np.append(order, -1).take(latest(starts.take(order), ends.take(order), times))
    begun, width = np.sort(starts, kind="stable"), len(starts) + 1
    # A lane and how many ranges of any lane have started until then, as one number.
    key = lanes * width + np.searchsorted(begun, starts, side="right")
    order = np.argsort(key, kind="stable")
    asked = lane * width + np.searchsorted(begun, times, side="right")
    # One more at the end, for times before which no range starts.
    found = np.append(order, -1)[np.searchsorted(key[order], asked, side="right") - 1]
    inside = (np.append(lanes, -1)[found] == lane) & (times < np.append(ends, 0)[found])
    return np.where(inside, found, -1)


def coverage(starts: Array, ends: Array, spans: Spans) -> Array:
    """For each interval, how many ns of it `spans` covers (shape of `starts`)."""
    covered = covered_before(ends, spans)
    covered -= covered_before(starts, spans)
    return covered


def covered_before(times: Array, spans: Spans) -> Array:
    """For each time, how many ns of `spans` lie before it."""
    if not len(spans[0]):
        return np.zeros(len(times), np.int64)
    done = np.zeros(len(spans[0]) + 1, np.int64)
    np.cumsum(spans[1] - spans[0], out=done[1:])
    covered = np.empty(len(times), np.int64)
    for first in range(0, len(times), _AT_ONCE):
        some, own = times[first : first + _AT_ONCE], covered[first : first + _AT_ONCE]
        index = np.searchsorted(spans[0], some, side="right")
        # The last span that has begun may not be over yet: take back what lies after `times`.
        unfinished = spans[1].take(index - 1)
        unfinished -= some
        np.maximum(unfinished, 0, out=unfinished)
        unfinished[index == 0] = 0
        np.subtract(done.take(index), unfinished, out=own)
    return covered


def nesting(starts: Array, ends: Array) -> tuple[Array, Array]:
    """Depth and parent of each of the ranges of one thread, given sorted by (start, -end).

    `depth` counts the ranges open when one starts, `parent` is the position of the one of them that started last, -1 at the top.
    """
    return _nested(starts, ends)[:2]


def innermost(starts: Array, ends: Array) -> tuple[Array, Array, Array]:
    """Flatten the ranges of one thread: (start, end, range) of the stretches where each is the one that started last.

    The ranges are sorted by (start, -end). Stretches are sorted, disjoint and non-empty, and cover all that the ranges cover.
    """
    return flatten(starts, ends)[2]


def flatten(starts: Array, ends: Array) -> tuple[Array, Array, tuple[Array, Array, Array]]:
    """Depth and parent as `nesting` tells them, and the stretches of `innermost`."""
    if (starts[1:] >= np.maximum(ends, starts + 1)[:-1]).all():  # as calls mostly are
        here = np.flatnonzero(ends > starts)
        return np.zeros(len(starts), np.int64), np.full(len(starts), -1), (starts[here], ends[here], here)
    depth, parent, until, inside = _nested(starts, ends)
    until = np.minimum(until, ends)
    # At its start a range takes over, at its end the one around it does. At one instant ends come first, the inner before the
    # outer, then starts, the outer before the inner, so that the last of them has the time that follows.
    here = np.flatnonzero(until > starts)
    last = here[::-1]
    time = np.concatenate((until[last], starts[here]))
    order = np.argsort(time, kind="stable")
    time, owner = time[order], np.concatenate((inside[last], here))[order]
    low, high, owner = time[:-1], time[1:], owner[:-1]
    keep = (high > low) & (owner >= 0)
    return depth, parent, (low[keep], high[keep], owner[keep])


def _nested(starts: Array, ends: Array) -> tuple[Array, Array, Array, Array]:
    """Depth and parent; and the ends and parents that the ranges have when those that cross are made to nest."""
    # An empty range ends where it starts and must not close itself.
    ends = np.maximum(ends, starts + 1)
    depth = _open_before(starts, ends)
    parent = inside = _last_above(depth)
    if _cross(ends, parent):
        ends, crossed, by = _cut(starts, ends)
        inside = _last_above(_open_before(starts, ends))
        parent = inside.copy()
        np.maximum.at(parent, by, crossed)
    return depth, parent, ends, inside


def _open_before(starts: Array, ends: Array) -> Array:
    """For each range how many that come before it are not over when it starts."""
    return np.arange(len(starts), dtype=np.int64) - np.searchsorted(np.sort(ends, kind="stable"), starts, side="right")


def _last_above(depth: Array) -> Array:
    """For each range the last one before it that is one level higher, -1 where there is none."""
    parent = np.full(len(depth), -1, np.int64)
    # As narrow as they are, they are put in order digit by digit.
    order = np.argsort(depth.astype(np.min_scalar_type(int(depth.max(initial=0)))), kind="stable")
    levels = np.split(order, np.flatnonzero(np.diff(depth[order])) + 1)
    for previous, here in pairwise(levels):
        above = np.searchsorted(previous, here, side="left") - 1
        parent[here] = np.where(above >= 0, previous[np.maximum(above, 0)], -1)
    return parent


def _cross(ends: Array, parent: Array) -> bool:
    """Whether a range outlasts the one around it."""
    inner = np.flatnonzero(parent >= 0)
    return bool((ends[inner] > ends[parent[inner]]).any())


def _cut(starts: Array, ends: Array) -> tuple[Array, Array, Array]:
    """Ranges that cross made to nest: each ends at the first start of a later one that outlasts it, which hides what is left.

    Returns the ends, the ranges that are cut, and what each is cut by. A loop, over those few that may take part in a crossing.
    """
    outlasted = np.flatnonzero(_outlasted(starts, ends))
    over = np.sort(ends[outlasted])
    longer = np.searchsorted(over, starts, side="right") < np.searchsorted(over, ends, side="left")
    some = np.union1d(outlasted, np.flatnonzero(longer))
    unfinished: list[tuple[int, int]] = []
    cuts: list[tuple[int, int]] = []
    for one, start, end in zip(some.tolist(), starts[some].tolist(), ends[some].tolist(), strict=True):
        while unfinished and unfinished[-1][1] < end:
            above, until = unfinished.pop()
            if start < until:
                cuts.append((above, one))
        unfinished.append((one, end))
    crossed, by = np.array(cuts, np.int64).reshape(-1, 2).T
    ends = ends.copy()
    ends[crossed] = starts[by]
    return ends, crossed, by


def _outlasted(starts: Array, ends: Array) -> npt.NDArray[np.bool_]:
    """Whether a later range starts within each one and ends after it."""
    stop = np.searchsorted(starts, ends, side="left")
    inside = stop - np.arange(1, len(starts) + 1)
    found = np.zeros(len(starts), bool)
    # The latest end among the `width` ranges from each one on: two such stretches cover what lies inside a range.
    latest, width = ends, 1
    while width <= inside.max(initial=0):
        rows = np.flatnonzero((inside >= width) & (inside < 2 * width))
        found[rows] = np.maximum(latest[rows + 1], latest[stop[rows] - width]) > ends[rows]
        latest, width = np.maximum(latest[:-width], latest[width:]), 2 * width
    return found


def first_fit(starts: Array, ends: Array) -> npt.NDArray[np.bool_]:
    """Which of the ranges, given sorted by (start, -end), are kept so that no two overlap: the first, then always the next that starts
    after the last kept one's end.

    "The next after" is a pointer from every range; the chain from the first one is followed by doubling, in log n rounds.
    """
    n = len(starts)
    if n < 2 or bool((starts[1:] >= ends[:-1]).all()):
        return np.ones(n, bool)
    jump = np.append(np.maximum(np.searchsorted(starts, ends), np.arange(1, n + 1)), n)
    kept = np.zeros(n + 1, bool)
    kept[0] = True
    while jump[0] < n:
        kept[jump[kept]] = True
        jump = jump[jump]
    return kept[:n]


def nested_depth(starts: Array, ends: Array) -> Array | None:
    """How many of the ranges, given sorted by (start, -end), are open when each starts, which is the row in which `first_fit` puts it.
    None where two of them cross, or where empty ones start at once."""
    empty = ends <= starts
    if (empty[1:] & empty[:-1] & (starts[1:] == starts[:-1])).any():
        return None
    ends = np.maximum(ends, starts + 1)
    depth = _open_before(starts, ends)
    return None if _cross(ends, _last_above(depth)) else depth


def crossing(starts: Array, ends: Array) -> npt.NDArray[np.bool_]:
    """Which of the ranges, given sorted by (start, -end), outlast the one around them."""
    ends = np.maximum(ends, starts + 1)
    parent = _last_above(_open_before(starts, ends))
    return (parent >= 0) & (ends > ends[np.maximum(parent, 0)])
