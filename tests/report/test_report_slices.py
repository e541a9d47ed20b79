"""Packing into rows and merging: nothing overlaps, nothing is lost, totals are exact."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traceanalyzer.report.timeline import slices as module
from traceanalyzer.report.timeline.points import make_points, thin, thinned_size, within
from traceanalyzer.report.timeline.slices import Merging, Slices, joined, make_slices, pack

SPANS = st.lists(st.tuples(st.integers(0, 300), st.integers(0, 60), st.integers(0, 2)), min_size=1, max_size=60)


def build(spans: list[tuple[int, int, int]]) -> Slices:
    start, length, colour = (np.array(column, dtype=np.int64) for column in zip(*spans, strict=True))
    number = np.arange(len(start), dtype=np.uint32)
    return make_slices(start, start + length, number, colour.astype(np.uint8))


def merged_row(row: Slices, quantum: int, keep: np.ndarray) -> Slices:
    return joined([fewer for _, fewer, _ in Merging(row, keep).merged(quantum)])


@given(SPANS)
def test_rows_never_overlap_and_keep_every_slice(spans: list[tuple[int, int, int]]) -> None:
    rows, left = pack(build(spans), 100)
    assert left == 0
    for row in rows:
        assert np.all(row.start[1:] >= row.end[:-1])
    assert sorted(int(n) for row in rows for n in row.name) == list(range(len(spans)))


@st.composite
def nested_spans(draw: st.DrawFn, low: int = 0, high: int = 300, depth: int = 4) -> list[tuple[int, int, int]]:
    """Ranges that do not cross: each lies in the one around it, or beside it."""
    cuts = sorted(draw(st.lists(st.integers(low, high), min_size=2, max_size=6)))
    found = [(low, high - low, 0)]
    for start, end in pairwise(cuts):
        found += draw(nested_spans(start, end, depth - 1)) if depth else [(start, end - start, 1)]
    return found


@given(SPANS | nested_spans())
def test_packing_is_first_fit(spans: list[tuple[int, int, int]]) -> None:
    slices = build(spans)
    free: list[int] = []
    expected: list[list[int]] = []
    for start, end, name in zip(slices.start, slices.end, slices.name, strict=True):
        at = next((i for i, until in enumerate(free) if until <= start), len(free))
        if at == len(free):
            free.append(0)
            expected.append([])
        free[at] = end
        expected[at].append(name)
    assert [row.name.tolist() for row in pack(slices, 100)[0]] == expected


def test_nested_ranges_land_at_their_depth_and_deep_ones_are_counted() -> None:
    rows, left = pack(build([(0, 100, 0), (0, 90, 0), (10, 20, 0), (40, 20, 0), (12, 5, 0)]), 3)
    assert [row.start.tolist() for row in rows] == [[0], [0], [10, 40]]
    assert left == 1


@settings(max_examples=200)
@given(SPANS, st.integers(1, 200))
def test_merging_keeps_totals_by_colour_and_counts(spans: list[tuple[int, int, int]], quantum: int) -> None:
    row = pack(build(spans), 100)[0][0]
    keep = np.zeros(len(row), dtype=np.bool_)
    merged = merged_row(row, quantum, keep)
    assert len(merged) == Merging(row, keep).size(quantum, len(row))
    assert int(merged.count.sum()) == len(row)
    assert np.all(merged.start[1:] >= merged.end[:-1])
    for colour in range(3):
        assert merged.duration[merged.colour == colour].sum() == row.duration[row.colour == colour].sum()


def plainly_merged(row: Slices, quantum: int, keep: np.ndarray) -> list[tuple[int, ...]]:
    """Slice by slice: those of a quantum are gathered by colour until one comes that stays alone."""
    groups: list[list[int]] = []
    alone = keep | (row.duration >= quantum)
    for at in range(len(row)):
        last = groups[-1][-1] if groups else -1
        same = last >= 0 and row.start[last] // quantum == row.start[at] // quantum
        if same and not alone[at] and not alone[last]:
            groups[-1].append(at)
        else:
            groups.append([at])
    found = []
    for group in groups:
        start = int(row.start[group[0]])
        for colour in sorted({int(row.colour[at]) for at in group}):
            mine = [at for at in group if row.colour[at] == colour]
            longest = max(mine, key=lambda at: (row.duration[at], -at))
            length = sum(int(row.duration[at]) for at in mine)
            rough = len(mine) > 1 or start != row.start[longest]
            found.append((start, length, int(row.name[longest]), colour, len(mine), int(rough)))
            start += length
    return found


@settings(max_examples=200)
@given(SPANS, st.integers(1, 200), st.randoms(use_true_random=False), st.integers(1, 70))
def test_merging_is_what_it_says(spans: list[tuple[int, int, int]], quantum: int, random: Random, stretch: int) -> None:
    row = pack(build(spans), 100)[0][0]
    keep = np.array([random.random() < 0.2 for _ in range(len(row))])
    with patch.object(module, "STRETCH", stretch):
        merged = merged_row(row, quantum, keep)
        assert Merging(row, keep).size(quantum, len(row)) == len(merged)
    columns = (merged.start, merged.duration, merged.name, merged.colour, merged.count, merged.rough)
    assert [*zip(*(column.tolist() for column in columns), strict=True)] == plainly_merged(row, quantum, keep)


@pytest.mark.parametrize("quantum", [1, 50, 10_000])
def test_kept_slices_are_not_merged(quantum: int) -> None:
    row = build([(i * 10, 9, i % 2) for i in range(40)])
    keep = np.zeros(40, dtype=np.bool_)
    keep[10:14] = True
    merged = merged_row(row, quantum, keep)
    for start in (100, 110, 120, 130):
        at = merged.start.tolist().index(start)
        assert (merged.duration[at], merged.count[at]) == (9, 1)


def test_a_merged_slice_has_the_name_of_the_longest() -> None:
    merged = merged_row(build([(0, 2, 1), (3, 5, 1), (9, 1, 1)]), 1000, np.zeros(3, dtype=np.bool_))
    assert (merged.name.tolist(), merged.duration.tolist(), merged.count.tolist()) == ([1], [8], [3])


SAMPLES = st.lists(st.tuples(st.integers(0, 300), st.integers(-5, 5)), min_size=1, max_size=80)


@given(SAMPLES)
def test_points_say_at_each_time_what_was_sampled_last(samples: list[tuple[int, int]]) -> None:
    time, value = (np.array(column) for column in zip(*samples, strict=True))
    points = make_points(time, value.astype(np.float64))
    order = np.argsort(time, kind="stable")
    for at in range(int(time.min()), int(time.max()) + 1):
        last = value[order][np.searchsorted(time[order], at, side="right") - 1]
        assert points.value[np.searchsorted(points.time, at, side="right") - 1] == last
    assert (points.time[0], points.time[-1]) == (time.min(), time.max())


@given(SAMPLES, st.integers(1, 400))
def test_thinning_keeps_the_ends_and_extremes_of_each_quantum(samples: list[tuple[int, int]], quantum: int) -> None:
    time, value = (np.array(column) for column in zip(*samples, strict=True))
    points = make_points(time, value.astype(np.float64))
    few = thin(points, quantum)
    assert len(few) == thinned_size(points, quantum)
    for bucket in np.unique(points.time // quantum):
        before, after = points.value[points.time // quantum == bucket], few.value[few.time // quantum == bucket]
        assert len(after) <= 4
        assert (after[0], after[-1], after.min(), after.max()) == (before[0], before[-1], before.min(), before.max())


def test_what_held_before_the_start_holds_at_the_start() -> None:
    points = within(make_points(np.array([5, 10, 20, 30, 40]), np.array([1.0, 2.0, 3.0, 4.0, 5.0])), 15, 30)
    assert (points.time.tolist(), points.value.tolist()) == ([15, 20, 30], [2.0, 3.0, 4.0])
    assert len(within(points, 0, 10)) == len(within(points, 31, 40)) == 0  # nobody says that the last one still held
