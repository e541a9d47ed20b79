"""The robust trend of a series, and steps that get longer, with what grows in them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import traceanalyzer as ta
from tests.support.kineto import KinetoTrace
from traceanalyzer.catalog.catalog import Catalog
from traceanalyzer.derive.steps.step_growth import LEAST
from traceanalyzer.derive.trends import MOST, trend

VALUES = st.lists(st.floats(0, 1e9), min_size=1, max_size=60)


@given(VALUES)
def test_a_trend_lies_within_its_series_and_turns_with_it(values):
    series = np.array(values)
    there, back = trend(series), trend(series[::-1])
    assert series.min() <= min(there.first, there.last) <= max(there.first, there.last) <= series.max()
    assert 0 <= there.chance <= 1
    assert (there.slope, there.chance) == pytest.approx((-back.slope, back.chance))


@given(st.floats(-1e6, 1e6), st.floats(1, 1e6), st.integers(LEAST, 3 * MOST))
def test_a_line_is_found_exactly(slope, start, count):
    found = trend(start + slope * np.arange(count))
    assert found.slope == pytest.approx(slope, rel=1e-6, abs=1e-6)
    assert (found.first, found.last) == pytest.approx((start, start + slope * (count - 1)), rel=1e-6, abs=1e-3)
    if abs(slope) > 1e-3:
        assert found.steady
        assert found.chance < 0.01


def test_a_few_outliers_change_nothing():
    series = 10.0 + np.arange(40)
    series[[3, 17, 30]] = 500
    assert trend(series).slope == pytest.approx(1.0, rel=0.1)


def test_the_chance_is_that_of_the_test_by_mann_and_kendall():
    # Eight values in order: S = 28, variance 8 * 7 * 21 / 18, z = 27 / 8.083.
    assert trend(np.arange(8.0)).chance == pytest.approx(0.000837, abs=1e-6)
    assert trend(np.ones(8)).chance == 1


@pytest.mark.parametrize(
    "series",
    [
        [90, 80, 70, *[10] * 20],  # Warm-up.
        [*[10] * 20, *[20] * 20],  # One jump.
        [1, 2, 3, 4, *[10] * 20],  # The host gets ahead at first.
    ],
)
def test_not_steady(series):
    found = trend(np.array(series, float))
    assert not (found.steady and found.last > found.first)


def test_random_steps_have_no_trend():
    draws = np.random.default_rng(7).normal(100, 10, (300, 30))
    assert np.mean([trend(draw).chance < 0.01 for draw in draws]) < 0.03


class Steps(KinetoTrace):
    """Marked steps, one behind the other, with kernels of 100 us that follow each other at once, and pauses of the host."""

    def __init__(self) -> None:
        super().__init__()
        self.now, self.count = 0.0, 0

    def step(self, kernels: int, *, length: float = 100, blocks: int = 64, pause: float = 0, copied: int = 0) -> Steps:
        start = self.now
        at = start + 20
        if pause:
            self.range("write_log", at, at + pause, category="cpu_op")
            at += pause
        if copied:
            took = copied / 10_000
            self.op(at, at + took, launch=(at - 10, at - 5), category="gpu_memcpy", name="Memcpy HtoD (Pinned -> Device)",
                    api="cudaMemcpyAsync", bytes=copied)  # fmt: skip
            at += took + 1
        for _ in range(kernels):
            self.op(at, at + length, launch=(at - 10, at - 5), name="gemm", grid=[blocks, 1, 1], block=[128, 1, 1])
            at += length + 1
        self.call("cudaDeviceSynchronize", at - 50, at + 1)
        self.range(f"ProfilerStep#{self.count}", start, at + 4)
        self.now, self.count = at + 10, self.count + 1
        return self


def growth(trace: KinetoTrace, tmp_path) -> dict:
    (row,) = Catalog(ta.load(trace.write(tmp_path / "trace.json"))).table("step_growth").to_pylist()
    return row


def fired(trace: KinetoTrace, tmp_path) -> list:
    result = ta.analyze(ta.load(trace.write(tmp_path / "trace.json")))
    return [finding for finding in result.findings if finding.rule == "STP002"]


def test_more_kernels_in_each_step(tmp_path):
    trace = Steps()
    for n in range(8):
        trace.step(10 + 5 * n)
    row = growth(trace, tmp_path)
    assert row["steady"] and row["chance"] < 0.01 and not row["larger"]
    assert (row["line"], row["reason"]) == (
        "compute",
        "the number of kernels: 10 a step at first and 45 at last of gemm",
    )
    (finding,) = fired(trace, tmp_path)
    assert (finding.severity, finding.saving.recoverable_ns) == ("low", None)
    assert finding.message.startswith(
        "Steps on GPU 0 get longer from one to the next: 1.04 ms at first and 4.58 ms at last"
    )


def test_the_first_sentence_says_so_where_nothing_is_lost_otherwise(tmp_path):
    trace = Steps()
    for n in range(8):
        trace.step(10 + 5 * n, length=400)
    headline = ta.analyze(ta.load(trace.write(tmp_path / "trace.json"))).verdict.headline
    assert "steps on GPU 0 get longer from one to the next" in headline


def test_larger_inputs_are_told_from_growth(tmp_path):
    trace = Steps()
    for n in range(10):
        trace.step(10, length=100 + 30 * n, blocks=64 + 20 * n)
    row = growth(trace, tmp_path)
    assert row["larger"] and row["reason"].startswith("the size of kernels: 64 blocks at first and 244 at last")
    (finding,) = fired(trace, tmp_path)
    assert finding.severity == "info"
    assert "Its kernels have ever larger grids" in finding.message


def test_kernels_of_one_size_that_take_longer(tmp_path):
    trace = Steps()
    for n in range(10):
        trace.step(10, length=100 + 20 * n)
    assert growth(trace, tmp_path)["reason"] == (
        "the time of kernels of the same size: gemm takes 100 us at first and 280 us at last"
    )


def test_a_host_that_takes_longer_is_named_by_its_place(tmp_path):
    trace = Steps()
    for n in range(10):
        trace.step(5, pause=500 + 200 * n)
    row = growth(trace, tmp_path)
    assert (row["line"], row["reason"]) == ("idle.host_work", "host work in write_log")


def test_copies_that_grow_say_how_many_bytes(tmp_path):
    trace = Steps()
    for n in range(10):
        trace.step(3, copied=10_000_000 * (1 + n))
    assert growth(trace, tmp_path)["reason"].startswith("what is copied: 9.54 MiB a step at first and 95.4 MiB at last")


@pytest.mark.parametrize(
    "kernels",
    [
        [10] * 20,
        [60, 50, 30, *[10] * 20],  # Warm-up.
        [*range(40, 10, -1)],  # Shrinking.
        [10] * 12 + [20] * 12,  # One change.
        [10 + 9 * (n * 7 % 5) for n in range(20)],  # Lengths that vary.
        [10, 15, 20, 25],  # Few steps.
    ],
)
def test_silent(kernels, tmp_path):
    trace = Steps()
    for count in kernels:
        trace.step(count)
    assert fired(trace, tmp_path) == []
