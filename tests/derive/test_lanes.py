"""The time of a thread: with calls on top it is what it would be if they were nested as all else."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from traceanalyzer.derive.host.levels import enclosing
from traceanalyzer.derive.trees.lanes import Lane, lane_of, on_top
from traceanalyzer.intervals import flatten, latest, overlaps

spans = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 12)), max_size=12)


def ordered(given: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    start, length = np.array(sorted((at, -n) for at, n in given), np.int64).reshape(-1, 2).T
    return start, start - length


@given(spans, spans, st.lists(st.tuples(st.integers(-2, 45), st.integers(0, 20)), max_size=8))
def test_calls_on_top_are_what_they_are_nested(ranges, calls, asked):
    low, high = ordered(ranges)
    start, end = ordered(calls)
    name = np.arange(len(start)) % 3
    # All of them nested.
    every = np.concatenate((low, start)), np.concatenate((high, end))
    order = np.lexsort((-every[1], every[0]))
    _, parent, (first, last, owner) = flatten(every[0][order], every[1][order])
    inside = enclosing(parent, every[1][order])
    # Some of them on top.
    top = on_top(start, end, low, high)
    rest = np.flatnonzero(~top)
    some = np.concatenate((low, start[rest])), np.concatenate((high, end[rest]))
    ids = np.concatenate((np.arange(len(low)), len(low) + rest))
    inner = np.lexsort((-some[1], some[0]))
    _, above, stretches = flatten(some[0][inner], some[1][inner])
    assert [ids[inner][at] if at >= 0 else -1 for at in enclosing(above, some[1][inner])] == [
        order[at] if at >= 0 else -1
        for at in inside[[int(np.flatnonzero(order == one)[0]) for one in ids[inner]]].tolist()
    ]
    top &= end > start
    lane, (around, of) = lane_of(stretches, start[top], end[top], name[top], len(ids))

    def known(at: int) -> tuple[str, int, int]:
        """Which range it is, or the name of a call and what is around it."""
        if at < 0:
            return "nothing", -1, -1
        if at < len(ids):
            return told(int(ids[inner][at]))
        outer = around[at - len(ids)]
        return "call", int(of[at - len(ids)]), int(ids[inner][outer]) if outer >= 0 else -1

    def told(one: int) -> tuple[str, int, int]:
        if one < len(low):
            return "range", one, -1
        if not top[one - len(low)]:
            return "nested", one, -1
        outer = inside[int(np.flatnonzero(order == one)[0])]
        return "call", int(name[one - len(low)]), int(order[outer]) if outer >= 0 else -1

    time = np.arange(-2, 45)
    plain = [told(int(order[owner[at]])) if at >= 0 else known(-1) for at in latest(first, last, time).tolist()]
    assert [known(at) for at in lane.at(time).tolist()] == plain
    begin = np.array([at for at, _ in asked], np.int64)
    until = begin + np.array([n for _, n in asked], np.int64)
    assert summed(lane, begin, until, known) == plainly_summed(begin, until, (first, last), owner, order, told)


def summed(lane: Lane, begin, until, known) -> dict:
    found: dict = {}
    for row, item, ns in zip(*(column.tolist() for column in lane.within(begin, until)), strict=True):
        found[row, known(item)] = found.get((row, known(item)), 0) + ns
    return {key: ns for key, ns in found.items() if ns}


def plainly_summed(begin, until, spans, owner, order, told) -> dict:
    found: dict = {}
    for row, stretch, low, high in zip(*(one.tolist() for one in overlaps(begin, until, spans)), strict=True):
        key = row, told(int(order[owner[stretch]]))
        found[key] = found.get(key, 0) + high - low
    return {key: ns for key, ns in found.items() if ns}
