"""What a finding's cause costs, from the replayed timeline: the fixed programs measured what is predicted here."""

from __future__ import annotations

import pytest

import traceanalyzer as ta
from tests.support.places import FIXTURES
from traceanalyzer.derive.catalog import Catalog
from traceanalyzer.result.document import Result, Saving

KINETO = FIXTURES / "kineto"


def analysed(name: str) -> Result:
    return ta.analyze(ta.load(KINETO / f"{name}.pt.trace.json.gz"))


def saving(result: Result, rule: str) -> Saving:
    return next(finding.saving for finding in result.findings if finding.rule == rule)


def measured_step(name: str) -> float:
    """The mean time in ns from the end of one step's GPU work to the next's."""
    stats = Catalog(ta.load(KINETO / f"{name}.pt.trace.json.gz")).table("step_stats")
    done = stats["end_ns"].to_numpy()
    return (done[-1] - done[0]) / (len(done) - 1)


@pytest.mark.parametrize(
    ("pair", "rule"), [("h2d_pageable", "CPY002"), ("h2d_pinned_serial", "CPY001"), ("launch_storm", "LCH001")]
)
def test_the_prediction_is_what_the_fixed_program_takes(pair: str, rule: str) -> None:
    found = saving(analysed(f"{pair}.slow"), rule)
    assert found.step_ns == pytest.approx(measured_step(f"{pair}.slow"), rel=0.001)
    assert found.predicted_step_ns == pytest.approx(measured_step(f"{pair}.fixed"), rel=0.15)
    assert found.predicted_speedup == pytest.approx(found.step_ns / found.predicted_step_ns, rel=0.001)


def test_waits_that_hide_nothing_give_little_although_the_ledger_promises_more() -> None:
    """Without `.item()` the host is still the slower one: the ledger's ceiling is a quarter, the fixed program won a tenth."""
    found = saving(analysed("item_sync.slow"), "SYN001")
    assert found.predicted_step_ns == pytest.approx(measured_step("item_sync.fixed"), rel=0.05)
    assert found.speedup_ceiling > found.predicted_speedup > 1.05


def test_a_prediction_is_withheld_where_the_timeline_cannot_be_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("traceanalyzer.derive.replay.Timeline.replay", lambda self, change, marks: marks * 0)
    found = saving(analysed("h2d_pageable.slow"), "CPY002")
    assert found.recoverable_ns and found.predicted_speedup is None
    assert "cannot be replayed" in found.prediction_note


def test_a_wait_that_is_taken_out_leaves_the_copy_that_it_was_for() -> None:
    """What GAP001 claims behind pageable copies is a twentieth of the window; the copies, which hold up the host, are not its."""
    found = saving(ta.analyze(ta.load(FIXTURES / "captured" / "pageable.json.gz")), "GAP001")
    assert 1 <= found.predicted_speedup < 1.1
