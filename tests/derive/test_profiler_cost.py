"""What recording cost the host, and what steps take without it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import traceanalyzer as ta
from tests.support.kineto import MAIN, KinetoTrace
from traceanalyzer.catalog.catalog import Catalog
from traceanalyzer.derive.replay.profiler_cost import (
    CALL_NS,
    FEW,
    FRAME_NS,
    LAUNCH_NS,
    OPERATOR_NS,
    REACH_NS,
    ROOM,
    SLOWER,
    ProfilerCost,
)
from traceanalyzer.derive.replay.tables import UNPROFILED_STEPS
from traceanalyzer.derive.replay.unprofiled import job_unprofiled_steps
from traceanalyzer.intervals import EMPTY, Spans, coverage, total
from traceanalyzer.model.schema import API_CALLS, HOST_RANGES
from traceanalyzer.model.trace import Input
from traceanalyzer.result.document import Saving, Steps
from traceanalyzer.result.words.unprofiled import saving_without_profiler, steps_without_profiler
from traceanalyzer.units import format_duration

THREAD = (0, 1, 2)
MS = 1_000_000
Rows = list[tuple[int, int]]


def table(spec, rows: list[tuple[int, int, str]], column: str) -> pa.Table:
    keys = dict(zip(("rank", "process", "thread"), THREAD, strict=True))
    given = [{**keys, "start_ns": start, "end_ns": end, column: value} for start, end, value in rows]
    return pa.Table.from_pylist(given, schema=spec.schema)


def cost(
    ranges: list[tuple[int, int, str]], calls: list[tuple[int, int, str]] = (), producer: str = "PyTorch profiler"
) -> ProfilerCost:
    source = Input("a.json", "", 0, "kineto", producer, None, None, 0, None)
    return ProfilerCost(table(HOST_RANGES, ranges, "category"), table(API_CALLS, list(calls), "class"), [source])


def taken(spans: Spans | None, start: int, end: int) -> int:
    assert spans is not None
    return int(coverage(np.array([start]), np.array([end]), spans)[0])


def test_an_operator_costs_around_itself_and_not_in_itself() -> None:
    spans = cost([(100_000, 101_000, "operator"), (300_000, 301_000, "operator")]).of([THREAD])
    slowed = SLOWER * REACH_NS
    begin, end = OPERATOR_NS
    assert taken(spans, 101_000, 300_000) == pytest.approx(begin + end + slowed, abs=2)
    assert taken(spans, 100_000, 101_000) == pytest.approx(SLOWER * 1000, abs=1)
    # Before the first and after the last event nothing is known.
    assert total(spans or EMPTY) == taken(spans, 100_000, 301_000)


def test_a_call_costs_in_itself_a_launch_more() -> None:
    spans = cost([], [(0, 20_000, "launch"), (40_000, 60_000, "other")]).of([THREAD])
    assert taken(spans, 0, 20_000) == pytest.approx(LAUNCH_NS + SLOWER * (20_000 - LAUNCH_NS), abs=1)
    assert taken(spans, 40_000, 60_000) == pytest.approx(CALL_NS + SLOWER * (20_000 - CALL_NS), abs=1)
    assert taken(spans, 20_000, 40_000) == pytest.approx(SLOWER * 20_000, abs=1)


def test_something_is_always_left() -> None:
    spans = cost([(i * 100, i * 100 + 50, "python") for i in range(1000)]).of([THREAD], 10.0)
    assert total(spans or EMPTY) <= ROOM * 99_950


def test_what_an_operator_costs_the_trace_tells_itself() -> None:
    """Pairs, one in the other, of which the second begins 3 us after the first; a long way from pair to pair."""
    pairs = [(i * MS + at, i * MS + 200_000 - at, "operator") for i in range(FEW + 1) for at in (0, 3_000)]
    spans = cost(pairs).of([THREAD])
    one = 3_000 + 3_000 + SLOWER * REACH_NS
    assert taken(spans, 200_000, MS) == pytest.approx(one, abs=2)


@pytest.mark.parametrize("producer", ["Chrome trace", "another profiler"])
def test_of_an_unknown_profiler_nothing_is_said(producer: str) -> None:
    assert cost([(0, 10, "operator")], producer=producer).of([THREAD]) is None
    assert cost([(0, 10, "python")], producer=producer).frame_count([THREAD], 0, 10) == 0


def test_without_records_of_the_host_nothing_is_said() -> None:
    assert cost([]).of([THREAD]) is None
    assert cost([(0, 10, "operator")]).of([]) is None


@given(
    st.lists(
        st.tuples(st.integers(0, 500_000), st.integers(0, 90_000), st.sampled_from(["operator", "python", "nvtx"])),
        max_size=30,
    ),
    st.lists(
        st.tuples(st.integers(0, 500_000), st.integers(0, 90_000), st.sampled_from(["launch", "sync"])), max_size=10
    ),
)
def test_more_is_taken_of_more(ranges, calls) -> None:
    made = cost(sorted((a, a + b, c) for a, b, c in ranges), sorted((a, a + b, c) for a, b, c in calls))
    less, more = made.of([THREAD], 0.4), made.of([THREAD], 1.3)
    assert (less is None) == (more is None) == (not ranges and not calls)
    if less and more:
        assert total(less) <= total(more)
        low, high = min(a for a, *_ in [*ranges, *calls]), max(a + b for a, b, _ in [*ranges, *calls])
        assert total(more) == taken(more, low, high) <= ROOM * (high - low)


# ---- steps ----


def program(busy: int, host: int, operators: int = 0, steps: int = 5) -> KinetoTrace:
    """Steps of one kernel of `busy` us, launched after `host` us in which so many operators were recorded."""
    trace, length = KinetoTrace(), max(busy, host) + 20
    for n in range(steps):
        at = n * length
        trace.range(f"ProfilerStep#{n}", at, at + length - 1)
        for i in range(operators):
            trace.range("aten::add", at + i * host / operators, at + (i + 0.5) * host / operators, category="cpu_op")
        trace.op(at + host + 10, at + host + 10 + busy, launch=(at + host, at + host + 5))
    return trace


def steps_of(trace: KinetoTrace, tmp_path) -> Steps:
    (steps,) = ta.analyze(ta.load(trace.write(tmp_path / "a.json"))).steps
    return steps


def test_a_step_that_the_host_sets_the_pace_of_is_shorter_without_the_profiler(tmp_path) -> None:
    steps = steps_of(program(busy=10, host=1000, operators=400), tmp_path)
    assert steps.unprofiled_least_ns < steps.unprofiled_step_ns < steps.unprofiled_most_ns
    assert steps.unprofiled_step_ns < 0.7 * steps.median_ns


def test_a_step_that_the_gpu_sets_the_pace_of_is_as_long_without_the_profiler(tmp_path) -> None:
    steps = steps_of(program(busy=1000, host=300, operators=100), tmp_path)
    assert steps.unprofiled_step_ns > 0.9 * steps.median_ns


def test_a_step_of_one_long_sleep_is_as_long_without_the_profiler(tmp_path) -> None:
    steps = steps_of(program(busy=10, host=10_000, operators=1), tmp_path)
    assert steps.unprofiled_step_ns > 0.98 * steps.median_ns


def test_what_no_profiler_is_known_of_has_no_such_time(tmp_path) -> None:
    trace = program(busy=10, host=1000, operators=400)
    trace.metadata.clear()
    steps = steps_of(trace, tmp_path)
    assert steps.median_ns and steps.unprofiled_step_ns is None and steps.unprofiled_least_ns is None


def test_predictions_are_told_without_the_profiler_too(tmp_path) -> None:
    result = ta.analyze(ta.load(program(busy=10, host=1000, operators=400).write(tmp_path / "a.json")))
    savings = [f.saving for f in result.findings if f.saving.predicted_step_ns is not None]
    assert savings
    for saving in savings:
        assert saving.unprofiled_step_ns == result.steps[0].unprofiled_step_ns
        assert 0 < saving.predicted_unprofiled_step_ns <= saving.unprofiled_step_ns


def rows_of(*rows: tuple[int, int, int]) -> pa.Table:
    """(rank, step, unprofiled) with a range of one around it."""
    names = UNPROFILED_STEPS.schema.names
    made = [dict(zip(names, (rank, 0, step, then, then - 1, then + 1), strict=True)) for rank, step, then in rows]
    return pa.Table.from_pylist(made, schema=UNPROFILED_STEPS.schema)


def test_ranks_in_step_take_as_long_as_the_one_that_waits_least() -> None:
    communicating = pa.table({"rank": pa.array([0, 1, 2, 2], pa.int32())})
    found = job_unprofiled_steps(
        rows_of((0, 1000, 1000), (1, 1010, 600), (2, 5000, 300), (3, 1005, 100)), communicating
    ).to_pylist()
    assert {row["rank"]: (row["least"], row["unprofiled"], row["most"]) for row in found} == {
        **dict.fromkeys((0, 1), (599, 600, 601)),
        2: (299, 300, 301),
        3: (99, 100, 101),
    }


def test_nothing_to_put_together() -> None:
    assert job_unprofiled_steps(rows_of(), pa.table({"rank": pa.array([], pa.int32())})).num_rows == 0


# ---- stacks ----


@pytest.mark.parametrize(("frames", "said"), [(3000, True), (100, False)])
def test_stacks_that_slow_the_host_are_said(tmp_path, frames: int, said: bool) -> None:
    trace = program(busy=10, host=2000)
    for i in range(frames):
        trace.add(cat="python_function", name="a.py(1): f", ph="X", pid=MAIN, tid=MAIN, ts=i * 2, dur=1)
    notes = Catalog(ta.load(trace.write(tmp_path / "a.json"))).table("health").to_pylist()
    found = [note["message"] for note in notes if note["code"] == "TRC004"]
    assert len(found) == said
    assert not said or (f"about {format_duration(3000 * FRAME_NS)}, 14% of the time (3,000 frames)" in found[0])


# ---- words ----

STEPS = Steps(None, 0, 5, "annotation", 10 * MS, 11 * MS, 0.1, 0, 0, 5 * MS, 4 * MS, 6 * MS)


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        (STEPS, "about 5 ms (4 ms to 6 ms) without the profiler"),
        (replace(STEPS, unprofiled_step_ns=10 * MS), None),
        (replace(STEPS, unprofiled_step_ns=None), None),
    ],
)
def test_steps_in_words(steps: Steps, words: str | None) -> None:
    assert steps_without_profiler(steps, format_duration) == words


def test_savings_in_words() -> None:
    saving = Saving(
        1, 0.3, 1.6, 1, 10 * MS, 8 * MS, 1.25, unprofiled_step_ns=5 * MS, predicted_unprofiled_step_ns=3 * MS
    )
    assert saving_without_profiler(saving, format_duration) == "about 3 ms instead of 5 ms without the profiler"
    assert saving_without_profiler(replace(saving, unprofiled_step_ns=10 * MS), format_duration) is None
    assert saving_without_profiler(replace(saving, predicted_unprofiled_step_ns=None), format_duration) is None
