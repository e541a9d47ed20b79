"""A whole job: what is said of its ranks together, and that names and order of files do not matter."""

from __future__ import annotations

import json
import lzma
import shutil
from pathlib import Path
from typing import Any

import pytest

import traceanalyzer as ta
from tests.support.places import CORPUS, FIXTURES, needs_corpus
from traceanalyzer.analysis import analyze
from traceanalyzer.config import Config
from traceanalyzer.result.document import Finding, Result
from traceanalyzer.result.job import Job

STRAGGLER = FIXTURES / "multirank" / "gpu_straggler.slow"
SLOW_LINK = FIXTURES / "multirank" / "slow_link.slow"
PIPELINE = FIXTURES / "multirank" / "pipeline_bubble.slow"


def rank_file(folder: Path, rank: int) -> Path:
    return next(folder.glob(f"rank{rank}.*"))


def job_of(result: Result) -> Job:
    assert result.job is not None
    return result.job


def finding(result: Result, rule: str) -> Finding:
    return next(f for f in result.findings if f.rule == rule)


@pytest.fixture(scope="module")
def straggler() -> Result:
    return analyze(ta.load(STRAGGLER))


def test_the_late_rank_and_what_it_does_more_of(straggler):
    (late,) = job_of(straggler).late_ranks
    assert (late.rank, late.device, late.line, late.waited_share) == (2, 2, "compute", 1.0)
    assert late.late_count == late.collective_count
    assert late.why.startswith("computes 25 ms more a step than the median rank: 120 more of nvjet_sm90")
    assert straggler.verdict.headline.count("for rank 2, which computes 25 ms more a step") == 1


def test_a_job_wide_finding_is_about_the_late_rank_and_saves_the_time_of_the_others(straggler):
    found = finding(straggler, "COM005")
    assert (found.scope.rank, found.scope.device) == (2, 2)
    windows = sum(d.window_ns for d in straggler.devices)
    assert found.saving.recoverable_share == pytest.approx(found.saving.recoverable_ns / windows, abs=1e-6)
    assert {e.rank for e in found.evidence if e.label.startswith("late:")} == {2}
    assert {e.rank for e in found.evidence if e.label.startswith("waiting:")} == {0, 1, 3}


def test_the_prediction_is_that_of_balanced_load(straggler):
    # Without its extra products the same program took 17.7 ms a step where this one took 40.7.
    saving = finding(straggler, "COM005").saving
    assert saving.prediction_note.startswith("Had all ranks taken equally long")
    assert 1.7 < saving.predicted_speedup < 40.7 / 17.7


def test_steps_of_the_ranks_stand_beside_each_other(straggler):
    steps = job_of(straggler).steps
    assert steps.names == ["ProfilerStep#3", "ProfilerStep#4", "ProfilerStep#5"]
    assert [row.rank for row in steps.rows] == [0, 1, 2, 3]
    assert all(40_000_000 < step < 50_000_000 for row in steps.rows for step in row.step_ns)
    for row in steps.rows:
        for step, wait in zip(row.step_ns[1:], row.wait_ns[1:], strict=True):
            assert 0 <= wait < step
            assert (wait > 0.4 * step) == (row.rank != 2)


def test_clocks_and_collectives(straggler):
    job = job_of(straggler)
    assert (job.world_size, job.ranks, job.gpu_count) == (4, [0, 1, 2, 3], 4)
    assert max(clock.residual_ns for clock in job.clocks) < 5_000
    largest = job.collectives[0]
    assert (largest.kind, largest.group_size) == ("all-reduce", 4)
    assert largest.bus_bandwidth == pytest.approx(1.5 * largest.algorithm_bandwidth, rel=1e-3)
    assert largest.wait_ns < largest.total_ns
    assert [(p.kind, p.group_size) for p in job.parallelism] == [("data parallel", 4)]


def test_collectives_beyond_those_listed_are_counted(straggler, monkeypatch):
    every = job_of(straggler)
    assert (len(every.collectives), every.collectives_left, every.collectives_left_exposed_ns) == (2, 0, 0)
    monkeypatch.setattr("traceanalyzer.ranks.waits.side_by_side.MOST_COLLECTIVES", 1)
    fewer = job_of(analyze(ta.load(STRAGGLER)))
    assert fewer.collectives == every.collectives[:1]
    assert (fewer.collectives_left, fewer.collectives_left_exposed_ns) == (1, every.collectives[1].exposed_ns)


def test_every_wait_lies_in_exposed_communication(straggler):
    waited = sum(late.waited_ns for late in job_of(straggler).late_ranks)
    assert waited <= sum(d.exposed_communication_ns for d in straggler.devices)


def shuffled(folder: Path, place: Path) -> Path:
    place.mkdir()
    for name, file in zip("dbac", sorted(folder.iterdir()), strict=True):
        shutil.copy(file, place / f"trace_{name}")
    return place


def told(result: Result) -> list[Any]:
    return [[(f.rule, f.message, f.scope, f.saving, f.evidence) for f in result.findings], result.verdict, result.job]


@pytest.mark.parametrize("folder", [STRAGGLER, PIPELINE], ids=lambda p: p.name)
def test_names_and_order_of_files_change_nothing(folder, tmp_path):
    assert told(analyze(ta.load(shuffled(folder, tmp_path / "other")))) == told(analyze(ta.load(folder)))


def test_one_rank_alone_is_not_judged_for_others():
    result = analyze(ta.load(rank_file(STRAGGLER, 0)))
    outcomes = {o.rule: o.outcome for o in result.rules}
    assert outcomes["COM002"] == outcomes["COM005"] == "could_not_judge"
    assert job_of(result).late_ranks == []
    # As many collectives as all ranks together show: they are the same ones.
    every = job_of(analyze(ta.load(STRAGGLER)))
    assert [c.count for c in job_of(result).collectives] == [c.count for c in every.collectives] == [42, 27]
    assert job_of(result).missing_ranks == [1, 2, 3]


def test_a_missing_rank_narrows_what_is_said(tmp_path):
    for rank in (0, 1, 3):
        shutil.copy(rank_file(STRAGGLER, rank), tmp_path)
    result = analyze(ta.load(tmp_path))
    assert job_of(result).missing_ranks == [2]
    assert {o.outcome for o in result.rules if o.rule == "COM002"} == {"could_not_judge"}
    assert "COM005" not in finding_rules(result)
    assert ["missing: 2" in h.message for h in result.health if h.code == "TRC006"] == [True]
    # All its waiting is in there, so nobody may be sure that it is communication.
    assert {f.confidence for f in result.findings if f.rule == "COM001"} <= {"low"}


def test_a_rank_that_is_there_twice_is_compared_with_none(tmp_path):
    for file in STRAGGLER.iterdir():
        shutil.copy(file, tmp_path)
    trace = json.loads(lzma.decompress(rank_file(STRAGGLER, 1).read_bytes()))
    trace["traceName"] = "another one"
    (tmp_path / "again.json").write_text(json.dumps(trace))
    result = analyze(ta.load(tmp_path))
    assert job_of(result).doubled_ranks == [1]
    assert len(result.devices) == 5
    # The others are matched without rank 1, and their clocks agree.
    assert [(c.rank, c.offset_ns is None, c.residual_ns is None) for c in job_of(result).clocks] == [
        (0, False, False),
        (2, False, False),
        (3, False, False),
        (1, True, True),
        (1, True, True),
    ]
    assert max(c.residual_ns or 0 for c in job_of(result).clocks) < 5_000
    assert job_of(result).at_least
    assert any(h.code == "TRC006" and "rank 1" in h.message for h in result.health)
    # Rank 2 is late to the two that are compared with it, and so to the other one as well.
    assert finding(result, "COM005").message.startswith("At least ")
    assert finding(result, "COM005").scope.rank == 2


def test_two_jobs_are_not_compared(tmp_path):
    for rank in (0, 1):
        shutil.copy(rank_file(STRAGGLER, rank), tmp_path)
    for rank in (2, 3):
        shutil.copy(rank_file(SLOW_LINK, rank), tmp_path)
    result = analyze(ta.load(tmp_path))
    assert any(h.code == "TRC006" for h in result.health)
    assert finding_rules(result).isdisjoint({"COM002", "COM005"})


def finding_rules(result: Result) -> set[str]:
    return {f.rule for f in result.findings if f.saving.recoverable_ns}


def test_stages_of_a_pipeline():
    result = analyze(ta.load(PIPELINE))
    found = finding(result, "COM002")
    assert "GPipe and 1F1B schedules with 1 micro-batch a step in 4 stages leave 75% of a step empty" in found.message
    assert job_of(result).parallelism[0].kind == "pipeline parallel"
    assert (found.scope.rank, found.saving.predicted_speedup) == (None, None)
    assert found.saving.prediction_note.startswith("No prediction")


@needs_corpus
def test_a_stage_with_more_layers_is_named_and_not_the_schedule():
    result = analyze(ta.load(CORPUS / "evidence" / "jobs" / "pipeline_uneven.slow"))
    assert result.verdict.headline.startswith(
        "Rank 1 waits 10.6 ms of each 14.2 ms step for rank 0, which computes 13.2 ms of it"
    )
    assert "the stages of the pipeline are uneven" in result.verdict.headline
    told = job_of(result).pipeline
    assert told.uneven and told.uneven_share > 0.9
    # The same layers in equal stages, recorded apart, take 8.97 ms a step.
    assert told.balanced_step_ns == pytest.approx(8_970_000, rel=0.05)


@needs_corpus
@pytest.mark.parametrize(
    "folder", sorted((CORPUS / "multirank").glob("*")) if CORPUS.exists() else [], ids=lambda p: p.name
)
def test_every_job_of_the_corpus_is_one_job_with_all_its_ranks(folder):
    job = job_of(analyze(ta.load(folder)))
    assert (job.ranks, job.missing_ranks, job.doubled_ranks) == ([0, 1, 2, 3], [], [])
    assert all(clock.residual_ns is None or clock.residual_ns < 2_000_000 for clock in job.clocks)


OWN_RULE = """\
id: USR001
slug: many-gaps
title: Many gaps
status: stable
category: host
after: []
why: They are many.
requires: {tables: [gaps]}
from: gaps
metrics:
  gaps: count()
having: gaps > 1000
message: '{gaps} {plural(gaps, "gap")}.'
recommend:
  - any: Fewer of them.
references: []
tests: []
"""


def test_a_rule_that_does_not_tell_ranks_apart_is_about_one_all_the_same(tmp_path):
    (tmp_path / "USR001-many-gaps.yaml").write_text(OWN_RULE)
    result = analyze(ta.load(STRAGGLER), Config(rules=(tmp_path,)))
    assert [(f.scope.rank, f.scope.device) for f in result.findings if f.rule == "USR001"] == [(2, None)]
