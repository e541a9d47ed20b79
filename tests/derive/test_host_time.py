"""The host's own time, and unions and cuts of spans where little changes, against the plain functions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceanalyzer.derive.replay import host_time
from traceanalyzer.derive.replay.host_time import HostTime, Without, with_few, within
from traceanalyzer.intervals import Array, Spans, clip, covered_before, join, union

TIMES = st.lists(st.integers(0, 60), max_size=12).map(lambda times: np.array(times, np.int64))


def spans(most: int, *, size: int = 40) -> st.SearchStrategy[Spans]:
    pairs = st.lists(st.tuples(st.integers(0, most), st.integers(1, 5)), max_size=size)
    return pairs.map(
        lambda all_: union(np.array([a for a, _ in all_], np.int64), np.array([a + n for a, n in all_], np.int64))
    )


def listed(one: Spans) -> list[list[int]]:
    return [side.tolist() for side in one]


@given(spans(400), spans(400, size=3))
def test_a_union_with_few_is_a_union(many: Spans, few: Spans) -> None:
    assert listed(with_few(many, few)) == listed(join(many, few))


@given(spans(60), st.integers(0, 60), st.integers(0, 60))
def test_what_lies_within_is_what_is_clipped(one: Spans, start: int, end: int) -> None:
    assert listed(within(one, start, end)) == listed(clip(one, start, end))


@given(spans(60), spans(60), TIMES, st.integers(0, 30))
def test_a_clock_stands_still_in_what_is_gone(one: Spans, more: Spans, times: Array, origin: int) -> None:
    one, more = clip(one, origin, 100), clip(more, origin, 100)
    host = HostTime.at([times], origin, one)
    assert host.shown.tolist() == (times - origin - covered_before(times, one)).tolist()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(host_time, "BLOCK", 3)
        (shown,) = Without([host], more).shown(slice(None), times)
    assert shown.tolist() == (times - origin - covered_before(times, join(one, more))).tolist()
