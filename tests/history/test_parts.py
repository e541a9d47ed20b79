"""Changes of single lines and findings, also where the unit takes the time that it took."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.history.nights import STEP_NS, Case, entries_of, host_longer
from traceanalyzer.result.history.entry import Entry, Followed
from traceanalyzer.result.history.parts import LINE, RULE, PartShift
from traceanalyzer.result.history.trend import series_of
from traceanalyzer.result.history.verdicts import HARDWARE, METHOD, NOISE, REAL
from traceanalyzer.vocabulary.levels import MEDIUM

STEADY = Case("steady", NOISE, 0.0, lambda entry, share: entry, spread=0.003)
FIRST = 20
"""The night from which on something is different."""
HOST, COPIES = "idle.host_work", "exposed_memcpy"


def parts(entries: list[Entry]) -> list[PartShift]:
    return series_of(entries).parts


def moved(entry: Entry, ns: int) -> Entry:
    """So much of the host's time are copies that nothing hides."""
    return replace(entry, lines={**entry.lines, HOST: entry.lines[HOST] - ns, COPIES: ns})


def with_finding(entry: Entry, ns: int | None, rule: str = "HST001") -> Entry:
    return replace(entry, findings=[Followed(rule, "The host works between launches", MEDIUM, ns)])


def from_then_on(change: object, seed: int = 0) -> list[Entry]:
    entries = entries_of(STEADY, seed)
    return [change(entry) if night >= FIRST else entry for night, entry in enumerate(entries)]  # type: ignore[operator]


def test_time_that_moves_between_lines_is_told_though_the_step_takes_what_it_took() -> None:
    entries = from_then_on(lambda entry: moved(entry, STEP_NS // 10))
    series = series_of(entries)
    assert series.shifts == []
    copies, host = sorted(series.parts, key=lambda one: one.name)
    assert (copies.kind, copies.name, host.kind, host.name) == (LINE, COPIES, LINE, HOST)
    assert copies.after_ns - copies.before_ns == pytest.approx(STEP_NS / 10, rel=0.02)
    assert host.after_ns - host.before_ns == pytest.approx(-STEP_NS / 10, rel=0.1)
    assert (copies.before, copies.after) == (entries[FIRST - 1].id, entries[FIRST].id)
    assert not copies.with_unit and copies.verdict == REAL


def test_the_reason_is_that_of_the_part() -> None:
    """Kernels that vary by less than a percent are no hardware that made a finding of five."""
    copies, _ = sorted(parts(from_then_on(lambda entry: moved(entry, STEP_NS // 10))), key=lambda one: one.name)
    assert copies.reason == "with 5.03 ms less of host work from then on"
    (finding,) = parts(from_then_on(lambda entry: with_finding(entry, STEP_NS // 20)))
    assert (finding.verdict, finding.reason) == (REAL, "nothing tells of another recording or other hardware")


def test_kernels_that_all_take_longer_behind_a_host_that_is_busy() -> None:
    """The step takes what it took, and the GPU is slower all the same."""

    def slower(entry: Entry) -> Entry:
        more = round(0.1 * entry.lines["compute"])
        lines = {"compute": entry.lines["compute"] + more, HOST: entry.lines[HOST] - more}
        return replace(entry, lines=lines, kernels=[replace(one, ns=round(one.ns * 1.1)) for one in entry.kernels])

    series = series_of(from_then_on(slower))
    assert series.shifts == []
    assert {(one.name, one.verdict) for one in series.parts} == {("compute", HARDWARE), (HOST, HARDWARE)}


def test_what_changes_with_the_step_has_its_verdict() -> None:
    series = series_of(entries_of(Case("a host function", REAL, 0.1, host_longer, spread=0.003), 0))
    (shift,) = series.shifts
    (line,) = [one for one in series.parts if one.kind == LINE]
    assert (line.name, line.with_unit, line.verdict) == (HOST, True, shift.verdict)
    assert line.after_ns - line.before_ns == pytest.approx(0.1 * STEP_NS, rel=0.1)


def test_less_than_two_percent_of_a_step_is_not_told() -> None:
    assert parts(from_then_on(lambda entry: moved(entry, STEP_NS // 100))) == []


@pytest.mark.parametrize("seed", range(5))
def test_lines_that_only_vary_are_not_told(seed: int) -> None:
    random = np.random.default_rng(seed)
    entries = [moved(entry, round(STEP_NS * random.uniform(0.05, 0.1))) for entry in entries_of(STEADY, seed)]
    assert parts(entries) == []


def test_a_finding_that_comes_is_told() -> None:
    (shift,) = parts(from_then_on(lambda entry: with_finding(entry, STEP_NS // 20)))
    assert (shift.kind, shift.name, shift.before_ns) == (RULE, "HST001", 0)
    assert shift.words == "HST001 The host works between launches"
    assert shift.after_ns == pytest.approx(STEP_NS // 20, rel=0.02)


def test_a_rule_that_was_not_judged_before_says_nothing() -> None:
    """It was new in the program that judged, or lacked what it is told by."""
    assert parts(from_then_on(lambda entry: with_finding(entry, STEP_NS // 20, "NEW001"))) == []


def test_a_finding_that_comes_with_another_threshold_is_the_methods() -> None:
    entries = from_then_on(
        lambda entry: replace(with_finding(entry, STEP_NS // 20), settings={"HST001.min_share": "0.01 instead of 0.05"})
    )
    (shift,) = parts(entries)
    assert shift.verdict == METHOD
    assert shift.reason == "it is judged by other thresholds (HST001.min_share)"


def test_a_threshold_that_changed_long_before_is_not_to_blame() -> None:
    entries = [
        replace(entry, settings={"HST001.min_share": "0.01 instead of 0.05"})
        for entry in from_then_on(lambda entry: with_finding(entry, STEP_NS // 20))
    ]
    (shift,) = parts(entries)
    assert shift.verdict == REAL


def test_findings_that_claim_nothing_and_few_captures() -> None:
    assert parts(from_then_on(lambda entry: with_finding(entry, None))) == []
    assert parts(from_then_on(lambda entry: moved(entry, STEP_NS // 10))[FIRST - 1 : FIRST + 1]) == []


def test_the_largest_comes_first() -> None:
    def both(entry: Entry) -> Entry:
        return with_finding(moved(entry, STEP_NS // 5), STEP_NS // 20)

    sizes = [abs(one.after_ns - one.before_ns) for one in parts(from_then_on(both))]
    assert sizes == sorted(sizes, reverse=True) and len(sizes) == 3
