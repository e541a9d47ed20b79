"""The text output: readable at 100 columns, whatever the run."""

from __future__ import annotations

from dataclasses import replace

import pytest

import traceanalyzer as ta
from tests.support.places import CORPUS, FIXTURES, needs_corpus
from traceanalyzer.render.text import WIDTH, render_text
from traceanalyzer.result.document import Device, Evidence, Finding, InputInfo, Result, Saving, Scope, Verdict


def device(rank: int | None, number: int) -> Device:
    causes = {"input": 300, "turnaround": 0}
    return Device(rank, number, "H100", 1000, 700, 600, 50, 50, 50, 50, 0, 300, 300, causes, 10, 9)


def finding(rank: int | None, number: int, advice: str = "do this") -> Finding:
    evidence = [Evidence(rank, number, 0, 100 + n, f"gap {n}") for n in range(5)]
    saving = Saving(300, 0.3, 1.43, 75)
    return Finding(
        "COM001", "slug", "Communication", "high", "medium", f"GPU {number} waits.", Scope(rank, number), {}, saving,
        evidence, [{"pytorch": advice}], [],
    )  # fmt: skip


def result(gpus: int) -> Result:
    ranks = [None] if gpus == 1 else list(range(gpus))
    return Result(
        tool={"name": "traceanalyzer", "version": "0"},
        inputs=[InputInfo(f"rank{r}.json", "", 1, "kineto", "PyTorch", r, gpus) for r in ranks],
        health=[],
        devices=[device(r, r or 0) for r in ranks],
        steps=[],
        findings=[finding(r, r or 0, "that" if r == 1 else "this") for r in ranks],
        rules=[],
        verdict=Verdict("host", "Rank 0 is idle."),
    )


def test_one_gpu_has_a_ledger_with_bars():
    lines = render_text(result(1)).splitlines()
    assert lines[0] == "Rank 0 is idle."
    assert "  compute                     600 ns     60%  ████████████████████████" in lines
    assert not [line for line in lines if "turnaround" in line]


def test_many_gpus_stand_beside_each_other():
    text = render_text(result(9))
    head = [line for line in text.splitlines() if "share of the window" in line]
    assert [line.split("window")[1].split() for line in head] == [
        [word for n in numbers for word in ("rank", str(n))] for numbers in (range(7), range(7, 9))
    ]
    assert "and 5 more" in text  # inputs
    assert max(map(len, text.splitlines())) <= WIDTH
    assert "and 9 more GPUs" in render_text(result(30))


def test_a_finding_on_many_gpus_is_said_once():
    text = render_text(result(4))
    assert text.count("Communication [COM001, high]") == 1
    assert "The same on rank 1, GPU 1 (30%); rank 2, GPU 2 (30%); rank 3, GPU 3 (30%)." in text
    assert text.count("→ pytorch: this") == text.count("→ pytorch: that") == 1
    assert "and 2 more in the report" in text and "gap 0 (100 ns)" in text


def test_commands_are_not_broken_at_hyphens():
    long = "word " * 18 + "nsys profile --cuda-graph-trace=node"
    text = render_text(replace(result(1), findings=[finding(None, 0, long)]))
    assert "--cuda-graph-trace=node" in text


def test_nothing_found_and_nothing_to_judge_are_not_the_same():
    assert "nothing worth fixing" in render_text(replace(result(1), findings=[]))
    text = render_text(replace(result(1), findings=[], devices=[]))
    assert "no GPU work to look at" in text and "bound by" not in text


@pytest.mark.parametrize("name", ["dataloader.slow", "launch_storm.slow", "gc_stack.slow", "clean_infer.slow"])
def test_real_traces_fit(name):
    trace = ta.load(FIXTURES / "kineto" / f"{name}.pt.trace.json.gz")
    lines = render_text(ta.analyze(trace)).splitlines()
    assert [line for line in lines if len(line) > WIDTH and not line.startswith("input ")] == []


@needs_corpus
def test_a_job_of_four_fits_one_screen():
    text = render_text(ta.analyze(ta.load(CORPUS / "multirank" / "comm_not_overlapped.slow")))
    assert len(text.splitlines()) < 50
