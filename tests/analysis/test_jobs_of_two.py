"""Jobs on two GPUs, recorded with one fault each: who is late, why, and what the job would take without that."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from traceanalyzer.analysis import analyze, load
from traceanalyzer.result.document import Finding, Result
from traceanalyzer.result.words.job import replayed

JOBS = Path(__file__).parents[1] / "fixtures" / "jobs"
MS = 1_000_000


@cache
def _result(name: str) -> Result:
    return analyze(load(JOBS / name))


def _finding(result: Result, rule: str) -> Finding:
    return next(finding for finding in result.findings if finding.rule == rule)


@pytest.mark.parametrize(
    ("name", "late", "doing"),
    [
        ("barrier_readback.slow", 0, "copy_state_to_host"),
        ("evaluating_rank.slow", 0, "evaluate"),
    ],
)
def test_a_late_rank_is_named_with_what_it_does(name, late, doing):
    result = _result(name)
    assert f"for rank {late}" in result.verdict.headline
    assert f"inside '{doing}'" in result.verdict.headline
    finding = _finding(result, "COM002")
    assert finding.scope.rank == late
    # The range comes before the kernels that it launches.
    assert finding.message.index(doing) < min(
        (finding.message.index(word) for word in ("nvjet", "Memcpy") if word in finding.message), default=10**6
    )


@pytest.mark.parametrize(
    ("name", "rule", "least", "most"),
    [
        # The same programs without the fault take 5.4, 6.1, 6.9 and 9.1 ms a step under the profiler, 3.4, 3.3, 4.1 and 9.6 ms without.
        ("barrier_readback.slow", "COM002", 3.4, 6.0),
        ("evaluating_rank.slow", "COM002", 3.3, 6.2),
        ("host_sleeps.slow", "COM002", 4.1, 7.2),
        ("unequal_experts.slow", "COM005", 8.9, 9.7),
    ],
)
def test_the_job_played_again_without_the_fault_takes_what_the_mended_program_takes(name, rule, least, most):
    saving = _finding(_result(name), rule).saving
    assert saving.predicted_step_ns is not None
    assert least * MS <= saving.predicted_step_ns <= most * MS


def test_mended_load_has_no_imbalance():
    result = _result("unequal_experts.fixed")
    assert not any(finding.rule == "COM005" for finding in result.findings)
    assert result.job is not None
    assert result.job.replay is not None
    assert result.job.replay.balanced_step_ns >= 0.98 * result.job.replay.step_ns


def test_unequal_load_is_called_imbalance():
    headline = _result("unequal_experts.slow").verdict.headline
    assert "imbalance" in headline
    assert "rank 0" in headline


def test_ranks_that_are_late_by_chance_are_not_blamed():
    result = _result("loader_jitter.slow")
    assert "for rank" not in result.verdict.headline
    late = [finding for finding in result.findings if finding.rule in ("COM002", "COM005")]
    assert all(finding.scope.rank is None for finding in late)
    assert result.job is not None
    assert "had nobody waited" not in (replayed(result, result.job) or "")


def test_the_longer_stage_of_a_pipeline_is_named():
    headline = _result("pipeline_unequal_pair.slow").verdict.headline
    assert headline.startswith("Rank 1 waits")
    assert "for rank 0, which computes" in headline
    assert "uneven" in headline


def test_a_rank_whose_host_sleeps_is_late_and_not_computing():
    result = _result("host_sleeps.slow")
    assert result.verdict.headline.startswith("Rank 1")
    assert "computes" not in _finding(result, "COM002").message


def test_recordings_that_begin_apart_are_no_fault_of_the_program():
    """One rank began to record 0.9 s after the other, which waits for it in the first collective: 79% of what was recorded of it."""
    result = _result("unequal_experts.fixed")
    assert max(device.exposed_communication_ns / device.window_ns for device in result.devices) > 0.75
    assert all((finding.saving.recoverable_share or 0) < 0.2 for finding in result.findings)
    assert "79%" not in result.verdict.headline
