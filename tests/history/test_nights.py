"""The simulated series: the verdict on each, and how often a steady one raises an alarm."""

from __future__ import annotations

from statistics import fmean

import pytest

from tests.history.nights import CASES, NOISES, Case, entries_of, is_right, judged
from traceanalyzer.result.history.trend import series_of
from traceanalyzer.result.history.verdicts import NOISE

NIGHTS, SEEDS = 100, 10


def test_the_verdicts_on_the_series_are_right() -> None:
    told = [(case.name, seed) for case in CASES for seed in range(20) if not is_right(case, judged(case, seed))]
    assert len(CASES) == 30
    assert len(told) <= 0.05 * 20 * len(CASES), told


@pytest.mark.parametrize("noise", NOISES)
def test_a_steady_series_raises_one_alarm_in_a_hundred_nights_at_most(noise: str) -> None:
    assert fmean(_alarms(noise, seed) for seed in range(SEEDS)) <= 1


def _alarms(noise: str, seed: int) -> int:
    """How many changes somebody was told of who looked each night."""
    entries = entries_of(Case(f"steady {noise}", None, 0.0, noise=noise, spread=0.01, nights=NIGHTS), seed)
    looked = (series_of(entries[:night]) for night in range(1, NIGHTS + 1))
    return len({shift.after for series in looked for shift in series.shifts if shift.verdict != NOISE})
