"""Jobs as people have them: ranks missing, empty or without sizes of groups, and the same findings however they are read."""

from __future__ import annotations

import json
import lzma
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import traceanalyzer as ta
from tests.cli.test_cli import run
from tests.support.job_results import job_result
from tests.support.places import FIXTURES
from traceanalyzer.analysis import analyze, analyze_parts
from traceanalyzer.analysis.opening import open_parts
from traceanalyzer.analysis.parts import StoredPart
from traceanalyzer.config import Config
from traceanalyzer.ingest.how import How
from traceanalyzer.ranks.waits.rank_work import extra_work
from traceanalyzer.ranks.waits.reasons import _reason
from traceanalyzer.ranks.waits.tables import RANK_WORK
from traceanalyzer.render.text import render_text
from traceanalyzer.result.document import Health, Result
from traceanalyzer.result.words.job import absent

STRAGGLER = FIXTURES / "multirank" / "gpu_straggler.slow"
PIPELINE = FIXTURES / "multirank" / "pipeline_bubble.slow"


def job_text(result: Result) -> str:
    return " ".join(render_text(result).partition("\nJOB\n")[2].partition("\nFINDINGS\n")[0].split())


def test_patterns_of_the_user_count_in_a_store_too(tmp_path):
    config = Config(communication_patterns=("*elementwise*",))
    here = analyze(ta.load(PIPELINE), config)
    with open_parts([PIPELINE], How(jobs=1, store=tmp_path / "store")) as (parts, executor):
        assert executor is None and all(isinstance(part, StoredPart) for part in parts)
        stored = analyze_parts(parts, config).result
    assert stored.to_json() == here.to_json() != analyze(ta.load(PIPELINE)).to_json()


@pytest.mark.parametrize("folder", [STRAGGLER, PIPELINE], ids=lambda p: p.name)
def test_arrow_is_given_nothing_of_pandas(folder, monkeypatch):
    """The command line hides pandas from Arrow, which then reads a Series by its labels and not in its order."""
    plain = pa.array

    def array(values: Any, *args: Any, **kwargs: Any) -> Any:
        for value in (values, *args, *kwargs.values()):
            assert not type(value).__module__.startswith("pandas")
        return plain(values, *args, **kwargs)

    monkeypatch.setattr(pa, "array", array)
    assert analyze(ta.load(folder)).job


def without_arguments(folder: Path, place: Path, ranks: tuple[int, ...]) -> Path:
    """The files of some ranks, whose kernels do not say what they communicate: as other profilers record them."""
    place.mkdir()
    for rank in ranks:
        trace = json.loads(lzma.decompress(next(folder.glob(f"*rank{rank}*")).read_bytes()))
        for event in trace["traceEvents"]:
            if "nccl" in event["name"]:
                event["args"] = {k: v for k, v in event.get("args", {}).items() if k[:1].islower()}
        (place / f"rank{rank}.json").write_text(json.dumps(trace))
    return place


def test_without_sizes_of_groups_missing_ranks_still_pass_for_no_transfer(tmp_path):
    every = analyze(ta.load(without_arguments(STRAGGLER, tmp_path / "every", (0, 1, 2, 3))))
    assert every.job and [late.rank for late in every.job.late_ranks] == [2]
    some = analyze(ta.load(without_arguments(STRAGGLER, tmp_path / "some", (0, 1, 3))))
    assert some.job and some.job.missing_ranks == [2]
    assert some.job.at_least
    assert some.job.replay is None
    assert {o.rule: o.outcome for o in some.rules}["COM002"] == "could_not_judge"
    for finding in some.findings:
        if finding.rule == "COM001":
            assert "is waiting for ranks that were not recorded is not known" in finding.message


def test_who_is_there_is_said_in_words_that_fit():
    given = job_result(4)
    assert given.job
    one = replace(given, job=replace(given.job, missing_ranks=[4]))
    assert "No recording of rank 4: what it did is not known." in job_text(one)
    fewer = replace(given, job=replace(given.job, world_size=2))
    assert job_text(fewer).startswith("4 ranks, though the job is said to have 2; ")
    silent = replace(given, devices=given.devices[:3], job=replace(given.job, gpu_count=3))
    assert job_text(silent).startswith("4 of 4 ranks; ")
    assert "No GPU work was recorded of rank 3" in job_text(silent)
    assert [one.kind for one in absent(silent, silent.job)] == ["no GPU work"]


def test_notes_that_count_in_words_count_once():
    note = Health("TRC006", "low", "2 of 4 ranks are here; missing: 0, 3", 2, None)
    assert "missing: 0, 3\n" in render_text(replace(job_result(4), health=[note]))


def test_of_two_ranks_the_late_one_is_told_by_what_it_has_more_of():
    """The products run on both, and on the late one last; the sines are what it has more of."""
    work = [(0, "gemm", 9, 9_000), (1, "gemm", 9, 9_010), (1, "sine", 150, 5_000)]
    rows = [{"rank": r, "device": 0, "name": name, "count": n, "time": time} for r, name, n, time in work]
    found = extra_work(pa.Table.from_pylist(rows, schema=RANK_WORK.schema)).to_pylist()
    assert [(row["rank"], row["name"], row["count"], row["time"]) for row in found] == [(1, "sine", 150, 5_000)]
    more = "the other rank", "compute", 6_000_000
    assert _reason(*more, "sine", 150, 5_000_000, None, "gemm") == (
        "computes 6 ms more a step than the other rank: 150 more of sine (5 ms)"
    )
    assert _reason(*more, None, None, None, None, "gemm") == "computes 6 ms more a step than the other rank"
    assert (
        _reason("the other rank", "compute", None, None, None, None, None, "gemm")
        == "computes meanwhile, above all in gemm"
    )


def test_a_rank_that_does_the_same_for_longer():
    """Libraries choose other kernels for longer sequences: no name stands for what there is more of."""
    kernels = {0: [("a", 4, 10), ("b", 4, 10)], 1: [("a", 4, 10), ("b", 4, 10)], 2: [("c", 4, 18), ("d", 4, 18)]}
    rows = [
        {"rank": rank, "device": rank, "name": name, "count": count, "time": time * 1_000_000}
        for rank, own in kernels.items()
        for name, count, time in own
    ]
    found = extra_work(pa.Table.from_pylist(rows, schema=RANK_WORK.schema)).to_pylist()
    assert [(row["rank"], row["longer"]) for row in found] == [(2, 1.8)]
    assert _reason("the median rank", "compute", 16_000_000, "c", 4, 7_000_000, 1.8, None) == (
        "computes 16 ms more a step than the median rank: it runs as many operations, but they take 1.8 times as long"
    )


def test_a_store_is_not_kept_in_a_store(tmp_path, capsysbinary):
    run(capsysbinary, "ingest", FIXTURES / "multirank" / "pipeline_bubble.slow", "-o", tmp_path / "store")
    code, _, said = run(capsysbinary, "analyze", tmp_path / "store", "--store", tmp_path / "other")
    assert code == 2
    assert "is a store already" in said
