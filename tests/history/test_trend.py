"""The document of a history: what it says of each series, whatever order the captures come in."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.history.nights import Case, entries_of, host_longer, night
from traceanalyzer.result.history.changepoints import FEWEST
from traceanalyzer.result.history.entry import Entry
from traceanalyzer.result.history.trend import STEADY, UNKNOWN, Trend, name_of, series_of, trend_of
from traceanalyzer.result.history.verdicts import NOISE, REAL

CASE = Case("a host function", REAL, 0.08, host_longer, spread=0.005)


@cache
def changed() -> tuple[Entry, ...]:
    return tuple(entries_of(CASE, 0))


def labelled(entries: tuple[Entry, ...], **labels: str) -> list[Entry]:
    return [replace(entry, id=f"{entry.id}-{labels}", labels=entry.labels | labels) for entry in entries]


def unjudged(entry: Entry, reason: str | None = "no GPU work") -> Entry:
    return replace(entry, id=f"{entry.id}-0", unit=None, unit_ns=None, unjudged=reason, time_ns=entry.time_ns + 1)


@given(st.permutations(range(40)))
def test_the_order_of_entries_does_not_matter(order: list[int]) -> None:
    assert trend_of(changed()[at] for at in order).to_json() == trend_of(changed()).to_json()


def test_captures_of_one_moment_come_by_id() -> None:
    entries = [replace(entry, time_ns=1) for entry in changed()]
    assert trend_of(entries).to_json() == trend_of(reversed(entries)).to_json()
    assert trend_of(entries).series[0].captures == sorted(entry.id for entry in entries)


def test_a_change_is_told_with_its_night_and_commits() -> None:
    series = series_of(changed())
    (shift,) = series.shifts
    at = series.captures.index(shift.after)
    assert abs(at - CASE.change_at) <= 1
    assert series.captures[at - 1] == shift.before
    assert shift.commits == (f"c{at - 1:04d}", f"c{at:04d}")
    assert shift.low < 0.08 < shift.high
    assert shift.share == pytest.approx(0.08, abs=0.01)
    assert shift.captures == 40 - at
    assert (shift.verdict, series.state) == (REAL, REAL)
    assert re.fullmatch(
        rf"since 20\d\d-\d\d-\d\d \(commit {shift.commits[1]}\) a step takes 8(\.\d)?% more time, [\d.]+ ms instead of [\d.]+ ms: "
        r"[\d.]+ ms of host work instead of [\d.]+ ms \(HST001 .*\)",
        series.latest,
    )


def test_stretches_meet_and_hold_the_captures() -> None:
    series = series_of(changed())
    assert [one.first for one in series.stretches[1:]] == [one.end for one in series.stretches[:-1]]
    assert series.stretches[-1].end == len(series.captures) == len(series.unit_ns)
    inside = [one.low_ns <= ns <= one.high_ns for one in series.stretches for ns in series.unit_ns[one.first : one.end]]
    assert sum(inside) >= 0.9 * len(inside)
    assert series.noise == pytest.approx(0.005, rel=0.6)


def test_a_noisy_night_is_named_and_makes_no_change() -> None:
    series = series_of(entries_of(Case("noisy", NOISE, 0.12, change_at=20), 0))
    assert series.noisy == [series.captures[20]]
    assert (series.shifts, series.state) == ([], STEADY)


def test_two_noisy_nights_are_noise_too() -> None:
    entries = entries_of(Case("steady", None, 0.0), 1)
    for at in (20, 21):
        entries[at] = replace(entries[at], unit_ns=round(1.1 * (entries[at].unit_ns or 0)))
    series = series_of(entries)
    assert all(shift.verdict == NOISE for shift in series.shifts)
    assert series.shifts or set(series.noisy) == {series.captures[20], series.captures[21]}
    assert series.state != REAL


def test_a_last_night_that_is_far_off_waits_for_the_next() -> None:
    entries = entries_of(Case("noisy", NOISE, 0.15, change_at=39), 0)
    series = series_of(entries)
    assert series.state == NOISE
    assert series.latest.endswith("a noisy night, or the first of a change; the next capture tells")


def test_a_change_below_what_anybody_looks_for_is_none() -> None:
    quiet = [replace(night(at, np.random.default_rng(at)), deviation_ns=None) for at in range(40)]
    moved = [replace(one, unit_ns=50_000_000 + at % 3 * 10_000 + 200_000 * (at > 20)) for at, one in enumerate(quiet)]
    series = series_of(moved)
    assert len(series.stretches) == 2
    assert (series.shifts, series.state) == ([], STEADY)


def test_what_a_capture_itself_is_unsure_by_is_noise() -> None:
    """Steps that vary much say little of the mean, however alike two nights look."""
    sure = [
        replace(one, unit_ns=50_000_000 + 1_000_000 * (at > 5), unit_count=4) for at, one in enumerate(changed()[:12])
    ]
    unsure = [replace(one, deviation_ns=5_000_000) for one in sure]
    assert len(series_of([replace(one, deviation_ns=None) for one in sure]).shifts) == 1
    assert series_of(unsure).shifts == []


def test_captures_that_could_not_be_judged_are_left_out_and_named() -> None:
    entries = list(changed())
    entries.insert(10, unjudged(entries[9]))
    series = series_of(entries)
    assert [(one.id, one.reason) for one in series.left_out] == [(entries[10].id, "no GPU work")]
    assert series.unit_ns == series_of(changed()).unit_ns
    assert series.shifts == series_of(changed()).shifts


def test_a_last_capture_that_could_not_be_judged_is_the_state() -> None:
    entries = [*changed(), unjudged(changed()[-1], None)]
    series = series_of(entries)
    assert (series.state, series.latest) == (
        UNKNOWN,
        "the last capture, night-39, could not be judged: it holds no unit of work",
    )


def test_nothing_that_could_be_judged() -> None:
    series = series_of([unjudged(entry) for entry in changed()[:3]])
    assert (series.state, series.latest) == (UNKNOWN, "no capture could be judged: no GPU work")
    assert (series.captures, series.stretches, series.noise, len(series.left_out)) == ([], [], None, 3)


@pytest.mark.parametrize("count", range(1, FEWEST))
def test_few_captures_say_how_many_are_needed(count: int) -> None:
    series = series_of(changed()[:count])
    assert (series.state, series.shifts, series.noisy, series.noise) == (UNKNOWN, [], [], None)
    assert f"from {FEWEST} on" in series.latest


def test_series_are_told_apart_by_project_and_config() -> None:
    entries = [*labelled(changed(), config="b"), *labelled(changed(), config="a", project="p"), *changed()]
    series = trend_of(entries).series
    assert [name_of(one) for one in series] == ["all captures", "b", "p / a"]
    assert [one.labels for one in series] == [{}, {"config": "b"}, {"project": "p", "config": "a"}]
    assert all(len(one.captures) == 40 for one in series)


def test_headlines() -> None:
    steady = tuple(entries_of(Case("steady", None, 0.0), 1))
    assert trend_of([]).headline == "The history is empty."
    assert trend_of(changed()).headline.startswith("Since 2023-")
    one_worse = trend_of([*labelled(changed(), config="a"), *labelled(steady, config="b")])
    assert one_worse.headline.startswith("1 of 2 series takes more time: a. Since 2023-")
    none = trend_of([*labelled(steady, config="a"), *labelled(steady, config="b")])
    assert none.headline == "None of 2 series takes more time by the program's doing."


def test_the_document_can_be_read_back() -> None:
    trend = trend_of(changed())
    assert msgspec.json.decode(trend.to_json(), type=Trend) == trend
