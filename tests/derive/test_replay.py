"""The replayed timeline: against a simulation event by event, and on real traces."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import traceanalyzer as ta
from tests.analysis.test_findings import inputs
from tests.support.places import FIXTURES
from traceanalyzer.catalog.catalog import Catalog
from traceanalyzer.columns.frames import NULL, dense, latest_before
from traceanalyzer.derive.replay import host_time
from traceanalyzer.derive.replay.replay import HANDOVER_NS, NOTHING, Change, Timeline, covered_rows
from traceanalyzer.derive.replay.timelines import latest_of_call
from traceanalyzer.intervals import EMPTY, Spans, clip, coverage, union

TRACES = [FIXTURES / file for file in inputs(FIXTURES)]
US = 1_000


def spans(*pairs: tuple[int, int]) -> Spans:
    return union(np.array([a for a, _ in pairs], np.int64), np.array([b for _, b in pairs], np.int64))


def timeline(ops: list[tuple[int | None, int, int]], waits: list[tuple[int, int]] = ()) -> Timeline:
    """From (launch call, start, end) in us, each call returning at once, and waits (start, end) for the last operation before. The
    window starts with the first operation."""
    start, end = (np.array([op[i] for op in ops], np.int64) * US for i in (1, 2))
    call = np.array([NULL if op[0] is None else op[0] * US for op in ops], np.int64)
    reach = np.maximum.accumulate(end)
    before = np.concatenate((start[:1], reach[:-1]))
    late = (start > before) & (call != NULL) & (call > before)
    latency = np.where(late, start - call, np.minimum(start - call, 5 * US))
    wait_start, wait_end = (np.array([wait[i] for wait in waits], np.int64) * US for i in (0, 1))
    op = np.searchsorted(reach, wait_end, side="right") - 1
    return Timeline(
        [(0, 0, 0)],
        int(start[0]),
        start,
        call,
        call,
        before,
        reach,
        late,
        np.zeros(len(start), bool),
        latency,
        np.zeros(len(start), bool),
        wait_start,
        wait_end,
        op,
    )


def length(line: Timeline, change: Change = NOTHING) -> int:
    return int(line.replay(change, np.array([len(line.start) - 1]))[0])


def test_a_launch_storm_without_the_host() -> None:
    """Ten kernels of 2 us, each launched 10 us after the one before."""
    storm = timeline([(10 * i, 10 * i + 5, 10 * i + 7) for i in range(10)])
    idle = spans(*((10 * i + 7, 10 * i + 15) for i in range(9)))
    idle_us = tuple(part * US for part in idle)
    assert length(storm) == 92 * US
    assert length(storm, Change(host=idle_us, pauses=idle_us)) == 10 * 2 * US + 9 * HANDOVER_NS


def test_a_copy_that_is_hidden() -> None:
    line = timeline([(None, 0, 10), (None, 10, 40), (None, 40, 50)])
    copy = (np.array([10 * US]), np.array([40 * US]))
    assert length(line, Change(work=copy)) == 20 * US
    assert length(line, Change(work=copy, keep=0.5)) == 35 * US


def test_a_host_that_no_longer_waits_runs_ahead_of_the_gpu() -> None:
    """The host needs 10 us a step, the GPU 30 us; it waited each time until the GPU was done."""
    ops, waits = [], []
    for i in range(5):
        ops.append((45 * i, 45 * i + 5, 45 * i + 35))
        waits.append((45 * i + 5, 45 * i + 36))
    line = timeline(ops, waits)
    assert length(line) == line.reach[-1] - line.origin == 210 * US
    asked = spans(*waits)
    assert length(line, Change(waits=tuple(part * US for part in asked))) == 5 * 30 * US + 4 * HANDOVER_NS


def test_a_wait_lasts_as_long_as_the_gpu_makes_it() -> None:
    """Half of the GPU's work is gone, so that the wait for it ends earlier, and the launch behind it comes earlier too."""
    line = timeline([(0, 5, 105), (110, 115, 125)], [(20, 106)])
    half = (np.array([5 * US]), np.array([105 * US]))
    assert length(line) == 120 * US
    assert length(line, Change(work=half, keep=0.5)) == 70 * US


def test_work_queued_before_the_capture_is_only_followed() -> None:
    line = timeline([(None, 0, 20), (None, 25, 30), (2, 30, 40)])
    assert length(line) == 40 * US
    assert length(line, Change(host=(np.array([0]), np.array([2 * US])))) == 40 * US


@st.composite
def random_timelines(draw: st.DrawFn) -> tuple[Timeline, Change]:
    """Operations and waits as a host and a GPU make them, and something to take out."""
    host = gpu = 0
    ops, waits = [], []
    for _ in range(draw(st.integers(1, 20))):
        host += draw(st.integers(0, 20))
        if ops and draw(st.integers(0, 3)) == 0:
            begun = host
            host = max(host, gpu) + draw(st.integers(1, 3))
            if gpu > begun:
                waits.append((begun, host))
        start = max(host + draw(st.integers(1, 5)), gpu + draw(st.integers(0, 1)))
        gpu = start + draw(st.integers(1, 20))
        ops.append((host if draw(st.integers(0, 9)) else None, start, gpu))
    line = timeline(ops, waits)

    def some() -> Spans:
        points = sorted(draw(st.lists(st.integers(0, max(host, gpu) + 5), max_size=6)))
        pairs = list(zip(points[::2], points[1::2], strict=False))
        return tuple(part * US for part in spans(*pairs)) if pairs else EMPTY

    gaps = spans(*((int(a), int(b)) for a, b in zip(line.before, line.start, strict=True) if b > a))
    pauses = gaps if draw(st.booleans()) else EMPTY
    return line, Change(some(), some(), some(), draw(st.sampled_from((0.0, 0.5))), pauses)


def simulated(line: Timeline, change: Change) -> int:
    """The replay one event after another, in the words of its definition."""

    def inside(time: int, parts: Spans) -> int:
        return sum(max(0, min(time, b) - a) for a, b in zip(*parts, strict=True))

    dropped = [
        inside(b, change.waits) > inside(a, change.waits) for a, b in zip(line.wait_start, line.wait_end, strict=True)
    ]
    gone = [list(zip(*change.host, strict=True))]
    for lost, a, b, op in zip(dropped, line.wait_start, line.wait_end, line.wait_op, strict=True):
        gone.append([(a, b if lost else line.reach[op])])
    pairs = [pair for part in gone for pair in part]
    outside = (
        union(np.array([a for a, _ in pairs], np.int64), np.array([b for _, b in pairs], np.int64)) if pairs else EMPTY
    )
    origin = line.origin
    outside = clip(outside, origin, int(line.reach[-1]))

    def host_time(time: int) -> int:
        return time - origin - inside(time, outside)

    delay, reach = 0, []
    waits = [w for w, lost in enumerate(dropped) if not lost]
    for k in range(len(line.start)):
        start, before, call = int(line.start[k]), int(line.before[k]), int(line.call[k])
        begin = max(start, before)
        taken = inside(int(line.reach[k]), change.work) - inside(begin, change.work)
        own = int(line.reach[k]) - begin - taken + round(taken * change.keep)
        pause = inside(begin, change.pauses) - inside(before, change.pauses)
        if call != NULL:
            for w in [w for w in waits if line.reach[line.wait_op[w]] <= call]:
                waits.remove(w)
                delay = max(delay, reach[line.wait_op[w]] - host_time(int(line.reach[line.wait_op[w]])))
        if call == NULL:
            arrival = NULL
        elif line.late[k]:
            arrival = host_time(call) + delay + max(int(line.latency[k]) - pause, 0)
        else:
            arrival = host_time(call) + delay + int(line.latency[k])
        lead = min(begin - before, HANDOVER_NS) if line.late[k] else begin - before - pause
        reach.append(max((reach[-1] if reach else 0) + lead, arrival) + own)
    return reach[-1]


@given(random_timelines(), st.sampled_from((1, 2, 5, 100)))
def test_the_replay_is_the_simulation(case: tuple[Timeline, Change], block: int) -> None:
    """However many operations are looked at at once."""
    line, change = case
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(host_time, "BLOCK", block)
        assert length(line, change) == simulated(line, change)


@given(random_timelines(), st.data())
def test_when_an_operation_is_done_does_not_hang_on_later_ones(
    case: tuple[Timeline, Change], data: st.DataObject
) -> None:
    line, change = case
    every = line.replay(change, np.arange(len(line.start)))
    marks = np.array(sorted(data.draw(st.sets(st.integers(0, len(line.start) - 1), min_size=1))))
    assert line.replay(change, marks).tolist() == every[marks].tolist()


@given(random_timelines())
def test_nothing_taken_out_changes_nothing_and_more_taken_out_is_never_slower(case: tuple[Timeline, Change]) -> None:
    line, change = case
    assert length(line) == line.length
    assert length(line, change) <= line.length
    assert length(line, Change(change.host)) <= length(line)


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.name)
def test_a_real_timeline_replays_as_it_was(path) -> None:
    catalog = Catalog(ta.load(path))
    for line in catalog.value("timelines").values():
        marks = np.array([len(line.start) // 2, len(line.start) - 1])
        was = line.reach[marks] - line.origin
        assert np.abs(line.replay(NOTHING, marks) - was).max() <= 0.01 * was[-1]


@given(random_timelines())
def test_what_few_spans_cover_of_each_stretch_is_their_coverage(case: tuple[Timeline, Change]) -> None:
    line, change = case
    begin = np.maximum(line.start, line.before)
    for low, high in ((line.before, begin), (begin, line.reach)):
        assert covered_rows(low, high, change.work).tolist() == coverage(low, high, change.work).tolist()


@given(st.lists(st.tuples(st.integers(0, 1), st.sampled_from((None, 1, 2, 3, 4)), st.integers(1, 9)), max_size=12))
def test_the_latest_end_of_the_same_call_is_that_of_its_group(ops: list[tuple[int, int | None, int]]) -> None:
    table = pa.table(
        {
            "process": pa.array([op[0] for op in ops], pa.int64()),
            "correlation": pa.array([op[1] for op in ops], pa.int64()),
        }
    )
    end = np.array([op[2] for op in ops], np.int64)
    group = dense(*(np.array([NULL if op[i] is None else op[i] for op in ops], np.int64) for i in (0, 1)))
    assert latest_of_call(table, end).tolist() == latest_before(group, end).tolist()
