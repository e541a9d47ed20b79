"""What is said of records of programs with planted faults, and of healthy ones: alone, by any name, and beside their traces."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path

import pytest

from tests.evidence.nccl_records.made import analysed, said
from tests.support.places import CORPUS, FIXTURES, needs_corpus
from traceanalyzer.analysis import Analysis

OWN = FIXTURES / "evidence" / "nccl_records"
JOBS = CORPUS / "evidence" / "jobs"
HEALTHY = "No collective is missing or mismatched, and no rank is late, on 2 ranks of 18 collectives each."


@cache
def _of(folder: Path) -> Analysis:
    return analysed(*sorted(path for path in folder.iterdir() if path.name != "TRUTH.yaml"))


def test_healthy() -> None:
    result = _of(OWN / "fr_healthy").result
    assert result.verdict.headline == HEALTHY
    assert result.findings == []


def test_missing() -> None:
    result = _of(OWN / "fr_missing").result
    assert result.verdict.headline == (
        "Rank 1 is missing: rank 0 has all_reduce 19 scheduled (fr.py:25 (<module>)), and rank 1 ends at 18."
    )
    (finding,) = result.findings
    assert (finding.rule, finding.severity, finding.scope.rank) == ("NCL001", "high", 1)


def test_straggler() -> None:
    result = _of(OWN / "fr_straggler").result
    assert result.verdict.headline.startswith("Rank 1 is late: it holds up 5 of 18 collectives")
    assert "by 400 ms each" in result.verdict.headline
    (finding,) = result.findings
    assert (finding.rule, finding.scope.rank) == ("NCL003", 1)


@pytest.mark.parametrize("name", ["fr_healthy", "fr_missing", "fr_straggler"])
def test_the_same_by_other_names(name: str, tmp_path: Path) -> None:
    shutil.copy(OWN / name / "nccl_fr.rank0.pkl.xz", tmp_path / "zulu")
    shutil.copy(OWN / name / "nccl_fr.rank1.pkl.xz", tmp_path / "alpha")
    own, other = _of(OWN / name).result, analysed(tmp_path).result
    assert (
        other.verdict.headline.replace("the rank of alpha", "rank 1")
        .replace("The rank of alpha", "Rank 1")
        .replace("the rank of zulu", "rank 0")
        == own.verdict.headline
    )


@needs_corpus
def test_four_ranks_of_which_the_rings_lost_their_beginnings() -> None:
    result = _of(CORPUS / "nccl_flight_recorder").result
    assert result.verdict.headline.startswith(
        "No collective is missing or mismatched on 4 ranks of 400 collectives each"
    )
    assert not result.findings
    assert (
        sum("lost its beginning: the first call in it is number 27,115" in note.message for note in result.health) == 4
    )


JUDGED = {
    "healthy_ddp.slow": (),
    "many_small_allreduce.fixed": (),
    "many_small_allreduce.slow": (),
    "pipeline_uneven.fixed": (),
    "pipeline_uneven.slow": (),
    "rank0_checkpoint.fixed": (),
    "rank0_checkpoint.slow": ("Rank 0 is late",),
    "straggler_host.fixed": (),
    "straggler_host.slow": (),
}


@needs_corpus
@pytest.mark.parametrize("name", JUDGED)
def test_beside_their_traces(name: str) -> None:
    """What the traces say stays as it was, and records say nothing against it; collectives get their numbers."""
    files = sorted((JOBS / name).iterdir())
    traces = analysed(*(path for path in files if "trace.json" in path.name))
    both = analysed(*files)
    assert both.result.verdict.headline.startswith(traces.result.verdict.headline)
    assert both.result.job and traces.result.job
    assert (both.result.job.matched_share or 0) >= (traces.result.job.matched_share or 0)
    assert [one.placed_by is not None for one in both.result.evidence] == [True, True]
    late = said(both.result, "NCL003")
    assert [message.split(":")[0] for message in late] == list(JUDGED[name])
    assert not said(both.result, "NCL001") and not said(both.result, "NCL002")
    numbered = both.tables.table("communication")["sequence"]
    assert "pipeline" in name or numbered.null_count < len(numbered) / 2


@needs_corpus
def test_the_late_rank_of_a_checkpoint_alone() -> None:
    folder = JOBS / "rank0_checkpoint.slow"
    result = analysed(*folder.glob("*.pkl.xz")).result
    assert result.verdict.headline.startswith("Rank 0 is late")
    assert "all_reduce_barrier" in result.verdict.headline
