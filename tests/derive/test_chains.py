"""The chain backwards from the end of a step: it tiles what it is asked of, and is bound everywhere."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields

import numpy as np
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import traceanalyzer as ta
from tests.derive.test_replay import TRACES, US, random_timelines, timeline
from traceanalyzer.catalog.catalog import Catalog
from traceanalyzer.columns import frames
from traceanalyzer.derive.replay.chains import GPU, HOST, LAUNCH, Ends, Line, Pieces, chains
from traceanalyzer.derive.replay.critical_path import _times
from traceanalyzer.derive.replay.replay import NOTHING, Change, Timeline
from traceanalyzer.intervals import Array, Spans, clip, complement, total, union


def rows(pieces: Pieces) -> list[tuple[int, int, int]]:
    """(where, start, end) in us."""
    return [
        (where, start // US, end // US)
        for where, start, end in zip(
            *(column.tolist() for column in (pieces.where, pieces.start, pieces.end)), strict=True
        )
    ]


def followed(timeline: Timeline, start: Array, end: Array) -> Pieces:
    every, part = Line.of(timeline), Line.of(timeline, int(min(start.tolist(), default=timeline.origin)))
    pieces, same = (chains(line, Ends.at(line, start, end)).pieces for line in (every, part))
    for column in fields(Pieces):
        assert getattr(pieces, column.name).tolist() == getattr(same, column.name).tolist()
    return pieces


def whole(line: Timeline) -> Pieces:
    return followed(line, np.array([line.origin]), line.reach[-1:])


def test_launches_one_after_another_are_a_chain_of_the_host() -> None:
    """Three kernels of 2 us, each launched 10 us after the one before and begun 5 us later."""
    line = timeline([(10 * i, 10 * i + 5, 10 * i + 7) for i in range(3)])
    assert rows(whole(line)) == [(HOST, 5, 20), (LAUNCH, 20, 25), (GPU, 25, 27)]


def test_a_wait_hands_the_chain_from_the_host_to_the_gpu() -> None:
    line = timeline([(0, 5, 105), (110, 115, 125)], [(20, 106)])
    assert rows(whole(line)) == [(GPU, 5, 105), (HOST, 105, 110), (LAUNCH, 110, 115), (GPU, 115, 125)]


def test_a_queue_that_is_full_is_a_chain_of_the_gpu() -> None:
    line = timeline([(0, 5, 25), (2, 25, 60), (4, 62, 80)])
    assert rows(whole(line)) == [(GPU, 5, 80)]


def test_a_stay_that_ends_with_a_launch_begins_on_the_host() -> None:
    line = timeline([(0, 5, 105), (110, 115, 125)], [(20, 106)])
    assert rows(followed(line, np.array([0]), np.array([108 * US]))) == [(GPU, 0, 105), (HOST, 105, 108)]
    assert rows(followed(line, np.array([0]), np.array([115 * US]))) == [
        (GPU, 0, 105),
        (HOST, 105, 110),
        (LAUNCH, 110, 115),
    ]


@given(random_timelines(), st.data())
def test_chains_tile_what_they_are_asked_of_and_are_bound_everywhere(
    case: tuple[Timeline, Change], data: st.DataObject
) -> None:
    line, _ = case
    first, last = line.origin, int(line.reach[-1])
    pairs = data.draw(st.lists(st.tuples(st.integers(first, last), st.integers(first, last)), max_size=5))
    start, end = (np.array([pair[at] for pair in pairs], np.int64) for at in (0, 1))
    pieces = followed(line, start, end)
    for stay, (low, high) in enumerate(pairs):
        own = pieces.stay == stay
        begin, until = pieces.start[own], pieces.end[own]
        assert (until > begin).all()
        if high <= low:
            assert not own.any()
            continue
        assert (begin[0], until[-1]) == (low, high)
        assert (begin[1:] == until[:-1]).all()
    begins = np.maximum(line.start, line.before)[line.late]
    for where, begin, until in zip(pieces.where, pieces.start, pieces.end, strict=True):
        if where == GPU:
            # No operation in it came late.
            assert not ((begins > begin) & (begins < until)).any()
        elif where == HOST:
            # No wait ended in it.
            waited = line.reach[line.wait_op]
            assert not ((waited > begin) & (waited < until)).any()


@given(random_timelines(), st.data())
def test_chains_that_meet_are_told_once_and_are_the_same(case: tuple[Timeline, Change], data: st.DataObject) -> None:
    line, _ = case
    begin = np.maximum(line.start, line.before)
    running = [time for low, high in zip(begin.tolist(), line.reach.tolist(), strict=True) for time in (low + 1, high)]
    ends = data.draw(st.lists(st.sampled_from(running), min_size=1, max_size=6, unique=True))
    end = np.array(ends, np.int64)
    along = Line.of(line)
    told = chains(along, Ends.at(along, np.full(len(end), line.origin), end), once=True)
    apart = followed(line, np.full(len(end), line.origin), end)
    for where in (GPU, HOST, LAUNCH):
        own = told.pieces.where == where
        assert (
            total(union(told.pieces.start[own], told.pieces.end[own]))
            == (told.pieces.end - told.pieces.start)[own].sum()
        )
    for stay, until in enumerate(ends):
        at, time, found = stay, until, []
        while at >= 0:
            mine = (told.pieces.stay == at) & (told.pieces.start < time)
            columns = (told.pieces.where, told.pieces.start, np.minimum(told.pieces.end, time))
            found += zip(*(column[mine].tolist() for column in columns), strict=True)
            time, at = min(int(told.since[at]), time), int(told.meets[at])
        mine = apart.stay == stay
        alone = zip(*(column[mine].tolist() for column in (apart.where, apart.start, apart.end)), strict=True)
        assert by_place(found) == by_place(alone)


def by_place(pieces: Iterable[tuple[int, int, int]]) -> dict[int, list[tuple[int, int]]]:
    """The times at each place, without borders between them."""
    found: dict[int, list[tuple[int, int]]] = {}
    for where, start, end in pieces:
        found.setdefault(where, []).append((start, end))
    joined = {
        where: union(*(np.array(side) for side in zip(*sorted(one), strict=True))) for where, one in found.items()
    }
    return {where: list(zip(*(side.tolist() for side in spans), strict=True)) for where, spans in joined.items()}


def of(pieces: Pieces, where: int) -> Spans:
    return union(pieces.start[pieces.where == where], pieces.end[pieces.where == where])


@given(random_timelines())
def test_nothing_but_the_chain_makes_a_timeline_shorter(case: tuple[Timeline, Change]) -> None:
    """Of the GPU's work what is on no part of the chain may be taken out, and the end comes no sooner."""
    line, _ = case
    mark = np.array([len(line.start) - 1])
    pieces = whole(line)
    off = Change(work=complement(of(pieces, GPU), line.origin, int(line.reach[-1])))
    assert line.replay(off, mark)[0] == line.replay(NOTHING, mark)[0]


@given(random_timelines(), st.data())
def test_what_comes_before_a_change_need_not_be_played_again(
    case: tuple[Timeline, Change], data: st.DataObject
) -> None:
    line, change = case
    since = data.draw(st.integers(line.origin, int(line.reach[-1])))
    late = [clip(spans, since, 1 << 60) for spans in (change.host, change.work, change.pauses)]
    change = Change(host=late[0], work=late[1], keep=change.keep, pauses=late[2])
    marks = np.unique(data.draw(st.lists(st.integers(0, len(line.start) - 1), min_size=1, max_size=2)))

    def length(without: Change) -> int:
        done = line.replay(without, marks)
        return int(done[-1] - (done[0] if len(done) > 1 else 0))

    assert _times(line, [change, NOTHING], marks) == [length(NOTHING), length(change), length(NOTHING)]


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.name)
def test_the_parts_of_a_real_path_add_up_to_its_steps(path) -> None:
    catalog = Catalog(ta.load(path))
    stays, parts = catalog.table("path_stays"), catalog.table("critical_path")
    for (rank, device), own in frames.split(stays):
        path_ = parts.filter(pc.and_(pc.equal(parts["rank"], rank), pc.equal(parts["device"], device)))
        assert frames.duration(path_).sum() == frames.duration(own).sum()
        begin, end = frames.ints(path_, "start_ns"), frames.ints(path_, "end_ns")
        assert (begin[1:] >= end[:-1]).all()
    links = catalog.table("path_links")
    assert frames.ints(links, "duration").sum() == frames.duration(parts).sum()
    gain = frames.ints(links, "gain")
    assert (gain <= frames.ints(links, "duration")).all()
