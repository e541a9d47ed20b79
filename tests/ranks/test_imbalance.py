"""Ranks with unequal work: what that is called, and that nothing is promised beyond equal work on all."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import traceanalyzer as ta
from tests.support.made_up_experts import write_experts
from tests.support.made_up_jobs import kernels_of
from traceanalyzer.analysis import analyze
from traceanalyzer.ranks.waits.loads import even_waits, loads
from traceanalyzer.result.document import Finding


def promised(found: Finding) -> float:
    return max(found.saving.predicted_speedup or 1.0, found.saving.speedup_ceiling or 1.0)


@pytest.mark.parametrize("shares", [(1, 1, 1, 5), (1, 2, 1, 3, 1, 1, 1, 6), (0.2, 1.8, 0.2, 0.2)])
def test_what_ranks_wait_for_the_one_with_most_tokens_is_imbalance(tmp_path, shares):
    folder, faster = write_experts(tmp_path / "job", shares)
    result = analyze(ta.load(folder))
    most = max(range(len(shares)), key=shares.__getitem__)
    found = next(f for f in result.findings if f.rule == "COM005")
    assert result.verdict.bound_by in ("imbalance", "compute")
    assert f"for rank {most}, which computes" in result.verdict.headline
    assert "is imbalance" in result.verdict.headline and "communication" not in result.verdict.headline
    assert found.scope.rank == most
    assert found.saving.predicted_speedup == pytest.approx(faster, rel=0.001)
    assert promised(found) <= 1.001 * faster


def test_most_time_waited_for_more_work_elsewhere_is_not_bound_by_communication(tmp_path):
    assert analyze(ta.load(write_experts(tmp_path / "job", (1, 1, 1, 5))[0])).verdict.bound_by == "imbalance"


def test_the_rank_with_most_tokens_may_be_another_one_each_time(tmp_path):
    folder, faster = write_experts(tmp_path / "job", (1, 1, 1, 5), rotating=True)
    result = analyze(ta.load(folder))
    first, *others = [f for f in result.findings if f.saving.recoverable_ns]
    assert (first.rule, first.scope.rank) == ("COM005", None)
    assert "now one and now another" in first.message and "250% of the mean" in first.message
    assert promised(first) <= 1.001 * faster
    assert all(f.saving.predicted_speedup is None or f.saving.predicted_speedup < 1.1 for f in others)


def test_of_two_ranks_the_one_that_was_given_more_has_more_to_do(tmp_path):
    result = analyze(ta.load(write_experts(tmp_path / "job", (1, 4))[0]))
    assert "for rank 1, which computes" in next(f.message for f in result.findings if f.rule == "COM005")


def test_equal_work_is_no_imbalance(tmp_path):
    result = analyze(ta.load(write_experts(tmp_path / "job", (1, 1, 1, 1))[0]))
    assert {f.rule for f in result.findings}.isdisjoint({"COM005", "COM002"})
    assert result.verdict.bound_by == "compute"


def test_a_wait_until_all_ranks_record_counts_for_nothing(tmp_path):
    plain = analyze(ta.load(write_experts(tmp_path / "plain", (1, 3))[0])).verdict
    begun = analyze(ta.load(write_experts(tmp_path / "begun", (1, 3), wait=800_000.0)[0])).verdict
    head, _, note = begun.headline.partition(" Left out: ")
    assert note.startswith("up to 80") and note.endswith("ms in which a rank only waits until all ranks record.")
    assert (head[:80], begun.bound_by) == (plain.headline[:80], plain.bound_by)


def exchanges() -> pa.Table:
    """Two all-to-alls of two ranks: the first gives rank 1 three quarters, the second finds it late; then rank 0 is late to another."""
    rows = {
        "rank": np.array([0, 0, 0, 1, 1, 1]),
        "start_ns": np.array([0, 10, 30, 0, 20, 30]),
        "end_ns": np.array([5, 25, 35, 5, 25, 35]),
        "kind": ["all-to-all"] * 6,
        "group": ["1"] * 6,
        "group_ranks": ["[0, 1]"] * 6,
        "instance": np.array([0, 1, 2, 0, 1, 2]),
        "out_bytes": np.array([100, 200, 200, 300, 200, 200]),
        "late_rank": np.array([0, 1, 0, 0, 1, 0]),
        "late_device": np.zeros(6, np.int64),
        "exposed_wait": np.array([0, 10, 0, 0, 0, 0]),
    }
    return kernels_of(rows)


def test_what_the_last_one_was_given_is_told_by_the_exchange_before():
    assert np.array_equal(loads(exchanges()), [np.nan, 1.5, 1, np.nan, 1.5, 1], equal_nan=True)


def test_equal_work_saves_the_mean_of_the_waits():
    assert even_waits(exchanges()).tolist() == [0, 5, 0, 0, 5, 0]
