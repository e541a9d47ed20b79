"""Interval algebra against a bitmap of every nanosecond."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from traceanalyzer import intervals

SIZE = 60
raw = st.lists(st.tuples(st.integers(0, SIZE), st.integers(0, SIZE)), max_size=12)


def arrays(pairs):
    return np.array([p[0] for p in pairs], np.int64), np.array([p[1] for p in pairs], np.int64)


def bits(spans):
    line = np.zeros(SIZE, bool)
    for start, end in zip(*spans, strict=True):
        line[start:end] = True
    return line


def well_formed(spans):
    starts, ends = spans
    return bool((ends > starts).all() and (starts[1:] > ends[:-1]).all())


@given(raw)
def test_union_covers_the_same_nanoseconds(pairs):
    spans = intervals.union(*arrays(pairs))
    assert well_formed(spans)
    assert (bits(spans) == bits(arrays([(a, b) for a, b in pairs if a < b]))).all()
    assert intervals.total(spans) == bits(spans).sum()


@given(raw, raw)
def test_intersect_and_subtract_split_a_set_exactly(a, b):
    a, b = intervals.union(*arrays(a)), intervals.union(*arrays(b))
    both, rest = intervals.intersect(a, b), intervals.subtract(a, b)
    assert well_formed(both)
    assert well_formed(rest)
    assert (bits(both) == (bits(a) & bits(b))).all()
    assert (bits(rest) == (bits(a) & ~bits(b))).all()
    assert intervals.total(both) + intervals.total(rest) == intervals.total(a)


@given(raw, st.integers(0, SIZE), st.integers(0, SIZE))
def test_complement_is_what_is_left_of_a_window(pairs, low, high):
    low, high = min(low, high), max(low, high)
    spans = intervals.union(*arrays(pairs))
    window = np.zeros(SIZE, bool)
    window[low:high] = True
    assert (bits(intervals.complement(spans, low, high)) == (window & ~bits(spans))).all()


@given(raw, raw)
def test_covered_counts_the_overlap_of_each_interval(pairs, others):
    pairs = [(min(p), max(p)) for p in pairs]
    spans = intervals.union(*arrays(others))
    starts, ends = arrays(pairs)
    covered = intervals.coverage(starts, ends, spans)
    assert covered.tolist() == [int(bits(spans)[a:b].sum()) for a, b in pairs]
    row, low, high = intervals.pieces(starts, ends, spans)
    sums = np.zeros(len(pairs), np.int64)
    np.add.at(sums, row, np.maximum(high - low, 0))
    assert sums.tolist() == covered.tolist()


@given(raw)
def test_innermost_gives_every_covered_nanosecond_one_owner(pairs):
    starts, ends = arrays([(min(p), max(p)) for p in pairs])
    order = np.lexsort((-ends, starts))
    starts, ends = starts[order], ends[order]
    low, high, owner = intervals.innermost(starts, ends)
    assert (bits((low, high)) == bits(intervals.union(starts, ends))).all()
    assert (low[1:] >= high[:-1]).all()
    assert (starts[owner] <= low).all()
    assert (ends[owner] >= high).all()


@given(raw)
def test_what_started_last_is_around_and_innermost(pairs):
    starts, ends = arrays([(min(p), max(p)) for p in pairs])
    order = np.lexsort((-ends, starts))
    starts, ends = starts[order], ends[order]
    ranges = list(zip(starts.tolist(), ends.tolist(), strict=True))
    # An empty range is around what starts with it.
    unfinished = [
        [j for j in range(i) if max(ranges[j][1], ranges[j][0] + 1) > start] for i, (start, _) in enumerate(ranges)
    ]
    depth, parent, (low, high, owner) = intervals.flatten(starts, ends)
    assert depth.tolist() == [len(others) for others in unfinished]
    assert parent.tolist() == [max(others, default=-1) for others in unfinished]
    for start, end, one in zip(low.tolist(), high.tolist(), owner.tolist(), strict=True):
        assert {max(i for i, (a, b) in enumerate(ranges) if a <= time < b) for time in range(start, end)} == {one}


def test_nesting_finds_the_innermost_range_around():
    starts = np.array([0, 1, 1, 5, 20], np.int64)
    ends = np.array([10, 4, 3, 9, 30], np.int64)
    depth, parent = intervals.nesting(starts, ends)
    assert depth.tolist() == [0, 1, 2, 1, 0]
    assert parent.tolist() == [-1, 0, 1, 0, -1]
    low, high, owner = intervals.innermost(starts, ends)
    assert list(zip(low.tolist(), high.tolist(), owner.tolist(), strict=True)) == [
        (0, 1, 0),
        (1, 3, 2),
        (3, 4, 1),
        (4, 5, 0),
        (5, 9, 3),
        (9, 10, 0),
        (20, 30, 4),
    ]


def test_an_empty_range_closes_nothing_around_it():
    starts, ends = np.array([0, 2, 3], np.int64), np.array([9, 2, 5], np.int64)
    depth, parent = intervals.nesting(starts, ends)
    assert depth.tolist() == [0, 1, 1]
    assert parent.tolist() == [-1, 0, 0]


def test_ranges_that_cross_leave_no_nanosecond_without_owner():
    starts, ends = np.array([0, 5, 12, 30]), np.array([10, 20, 13, 40])
    depth, parent = intervals.nesting(starts, ends)
    assert (depth.tolist(), parent.tolist()) == ([0, 1, 1, 0], [-1, 0, 1, -1])
    low, high, owner = intervals.innermost(starts, ends)
    assert list(zip(low.tolist(), high.tolist(), owner.tolist(), strict=True)) == [
        (0, 5, 0), (5, 12, 1), (12, 13, 2), (13, 20, 1), (30, 40, 3),
    ]  # fmt: skip


def test_a_long_chain_of_crossing_ranges_takes_no_longer_than_its_length():
    starts = np.arange(50_000, dtype=np.int64) * 10
    _, parent = intervals.nesting(starts, starts + 15)
    assert parent.tolist() == [-1, *range(49_999)]
    low, _, owner = intervals.innermost(starts, starts + 15)
    assert (low.tolist(), owner.tolist()) == (starts.tolist(), list(range(50_000)))


@given(
    ranges=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 20), st.integers(0, 9)), max_size=8),
    asked=st.lists(st.tuples(st.integers(0, 3), st.integers(-2, 30)), max_size=6),
)
def test_the_range_of_a_lane_that_began_last_counts_while_it_lasts(ranges, asked):
    lanes, starts, lengths = (np.array([r[i] for r in ranges], np.int64) for i in range(3))
    lane, times = (np.array([a[i] for a in asked], np.int64) for i in range(2))
    ends = starts + lengths
    expected = []
    for own, time in asked:
        begun = [i for i, (of, start, _) in enumerate(ranges) if of == own and start <= time]
        last = max(begun, key=lambda i: (ranges[i][1], i), default=-1)
        expected.append(last if last >= 0 and time < ends[last] else -1)
    assert intervals.latest_of(lanes, starts, ends, lane, times).tolist() == expected
    one = np.flatnonzero(lanes == 0)[np.argsort(starts[lanes == 0], kind="stable")]
    found = intervals.latest(starts[one], ends[one], times[lane == 0])
    assert [int(one[at]) if at >= 0 else -1 for at in found] == [
        e for (o, _), e in zip(asked, expected, strict=True) if o == 0
    ]


@given(raw, raw)
def test_parted_is_what_lies_inside_and_what_is_left(pairs, cover):
    starts, ends = arrays([pair for pair in pairs if pair[0] < pair[1]])
    spans = intervals.union(*arrays(cover))
    inside, outside = intervals.parted(starts, ends, spans)
    left = intervals.complement(spans, 0, SIZE)
    assert [one.tolist() for one in inside] == [one.tolist() for one in intervals.pieces(starts, ends, spans)]
    assert [one.tolist() for one in outside] == [one.tolist() for one in intervals.pieces(starts, ends, left)]


@given(raw, st.integers(0, SIZE), st.integers(1, SIZE))
def test_near_spans_are_those_that_reach_into_a_stretch(pairs, start, length):
    spans = intervals.union(*arrays(pairs))
    found = intervals.near(spans, start, start + length)
    wanted = [(a, b) for a, b in zip(*map(np.ndarray.tolist, spans), strict=True) if a < start + length and b > start]
    assert list(zip(*map(np.ndarray.tolist, found), strict=True)) == wanted


@given(st.lists(st.integers(0, 60), max_size=40), st.lists(st.integers(-5, 65), max_size=40), st.booleans())
def test_how_many_have_begun(starts, times, in_order):
    starts = np.array(sorted(starts), np.int64)
    times = np.array(sorted(times) if in_order else times, np.int64)
    assert intervals.begun(starts, times).tolist() == [int((starts <= time).sum()) for time in times]
