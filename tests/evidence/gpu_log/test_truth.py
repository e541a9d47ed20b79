"""What is said of logs of programs whose behaviour is known, in each way to write them, alone and beside their traces."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest
import yaml

import traceanalyzer as ta
from tests.support.places import CORPUS, needs_corpus
from traceanalyzer.result.document import Result

GPU_LOG = CORPUS / "evidence" / "gpu_log"
EXTRAS = CORPUS / "extras"
WAYS = ("nvml.jsonl", "dcgm.prom", "smi.csv")
CLOCK = {"nvml.jsonl": "1,395", "dcgm.prom": "1,365", "smi.csv": "1,395"}
"""DCGM's log has a fifth of the samples."""
POWER = {"nvml.jsonl": "696 of 700 W", "dcgm.prom": "696 W", "smi.csv": "696 W"}
NEVER = ("hermal", "heat", "another process", "processes use", "Somebody else", "idle device", "is idle", "fault")


@cache
def result_of(*paths: Path) -> Result:
    return ta.analyze(ta.load(list(paths)))


def trace(name: str) -> Path:
    return GPU_LOG / f"{name}.pt.trace.json.gz"


def told(result: Result) -> str:
    own = [(finding.title, finding.message) for finding in result.findings if finding.rule.startswith("PWR")]
    return json.dumps([result.verdict.headline, own])


def test_every_program_is_asked_for():
    if GPU_LOG.is_dir():
        assert set(yaml.safe_load((GPU_LOG / "TRUTH.yaml").read_text())) == {"gemm_sustained", "healthy_train"}


@needs_corpus
@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_a_power_cap_that_is_normal(way, beside):
    log = GPU_LOG / f"gemm_sustained.{way}"
    result = result_of(trace("gemm_sustained"), log) if beside else result_of(log)
    headline = result.verdict.headline
    assert f"The SM clock of GPU 0 falls to a median of {CLOCK[way]} of 1,980 MHz" in headline
    assert f"at {POWER[way]} with reason 0x4 (software power cap)" in headline and "normal for such load" in headline
    assert headline.startswith("GPU 0 computes over 99% of the time" if beside else "The SM clock")
    (finding,) = [one for one in result.findings if one.rule.startswith("PWR")]
    assert (finding.rule, finding.severity) == ("PWR001", "info")
    assert [words for words in NEVER if words in told(result)] == []
    assert [one for one in result.rules if one.outcome == "error"] == []


@needs_corpus
@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_a_healthy_step(way, beside):
    log = GPU_LOG / f"healthy_train.{way}"
    result = result_of(trace("healthy_train"), log) if beside else result_of(log)
    headline = result.verdict.headline
    assert "GPU 0 is fully used (99%)" in headline and "of 1,980 MHz" in headline and "which is normal" in headline
    assert headline.startswith("GPU 0 computes 98% of the time" if beside else "GPU 0 is fully used")
    assert not [one for one in result.findings if one.rule.startswith("PWR")]
    assert [words for words in NEVER if words in told(result)] == []
    if way != "dcgm.prom":
        assert "a median of 1,770 of 1,980 MHz" in headline


@needs_corpus
def test_the_share_of_the_load_is_said():
    (finding,) = result_of(GPU_LOG / "gemm_sustained.nvml.jsonl").findings
    assert finding.metrics["count"].value == 120 and finding.metrics["by_power"].value == 1.0
    assert "in 100% of the samples under load" in finding.message
    assert "up to 30% less time" in finding.message
    (beside,) = result_of(trace("gemm_sustained"), GPU_LOG / "gemm_sustained.nvml.jsonl").findings
    assert "a step of 16.3 ms could take up to 4.79 ms less" in beside.message


@needs_corpus
def test_all_logs_of_one_run_are_one_witness():
    files = [GPU_LOG / f"gemm_sustained.{way}" for way in WAYS]
    result = result_of(trace("gemm_sustained"), *files)
    assert [(one.placed_by, one.note) for one in result.evidence] == [("overlap in time", None)] * 3
    assert {one.clock for one in result.evidence} == {"epoch", "reading its local times as UTC+00:00"}
    (finding,) = [one for one in result.findings if one.rule.startswith("PWR")]
    assert finding.metrics["count"].value == 120


@needs_corpus
def test_a_program_that_waits_for_its_data():
    result = result_of(EXTRAS / "nvml_dataloader.pt.trace.json.gz", EXTRAS / "gpu_metrics.jsonl")
    assert result.verdict.headline.endswith("leaves GPU 0 idle 133 ms of each 240 ms step.")
    outcomes = {one.rule: one.outcome for one in result.rules if one.rule.startswith("PWR")}
    assert set(outcomes.values()) == {"could_not_judge"}
    alone = result_of(EXTRAS / "gpu_metrics.jsonl")
    assert (
        "is busy 1.7% of the time of its log" in alone.verdict.headline
        or "of the time of its log" in alone.verdict.headline
    )
    assert "fully used" not in told(alone)
