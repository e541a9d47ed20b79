"""What is said of the recorded runs: alone, both files together, and beside the traces of both ranks."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.evidence.deepspeed_log.logs import told
from tests.support.places import CORPUS, needs_corpus
from traceanalyzer.result.document import Result

DEEPSPEED = CORPUS / "evidence" / "deepspeed_log"
RUNS = ("ds_zero1", "ds_zero3")


def said(result: Result) -> str:
    return " ".join([result.verdict.headline, *(finding.message for finding in result.findings)])


def of(run: str, *names: str) -> Result:
    return told(*(DEEPSPEED / run / name for name in names))


def test_every_recorded_run_is_asked_for() -> None:
    if DEEPSPEED.is_dir():
        assert set(yaml.safe_load((DEEPSPEED / "TRUTH.yaml").read_text())) == set(RUNS)


@needs_corpus
def test_zero1_beside_both_traces_waits_for_the_host_and_the_timers_synchronise() -> None:
    result = of("ds_zero1", *(path.name for path in sorted((DEEPSPEED / "ds_zero1").iterdir())))
    headline = result.verdict.headline
    assert result.verdict.bound_by == "host"
    assert headline.startswith("The 2 GPUs are idle 82% of the time")
    assert "the timers themselves and the comms logger after each of 4 collectives a step wait for the GPU" in headline
    assert {Path(one.path).name: (one.rank, one.placed_by) for one in result.evidence} == {
        "flops_profile.txt": (0, "rank"),
        "log.txt": (0, "rank"),
    }
    measuring = next(one.message for one in result.findings if one.rule == "DSP001")
    assert (
        "In the trace 402 such calls take 4.95 ms of a 49.1 ms step, in which the GPU is busy 19% of the time"
        in measuring
    )
    assert "They are 10 more in each step than in the one before" in measuring
    latencies = next(one.message for one in result.findings if one.rule == "DSP005")
    assert "all_reduce of 216 MiB takes 755 us in the trace (at most 756 us), not 42.6 ms" in latencies
    assert not {one.rule for one in result.findings} & {"DSP002", "DSP007"}


@needs_corpus
def test_zero1_alone_says_where_a_step_goes_and_not_that_it_is_the_network() -> None:
    result = of("ds_zero1", "log.txt")
    assert "The optimizer's step takes 13.4 ms of a 25.7 ms step" in result.verdict.headline
    assert "the timers themselves and the comms logger" in result.verdict.headline
    assert "ommunication" not in said(result)
    assert "neither is of the network" in said(result)


@needs_corpus
@pytest.mark.parametrize("run", RUNS)
def test_the_latency_of_the_root_module_is_never_taken_for_one(run: str) -> None:
    result = of(run, "flops_profile.txt")
    (finding,) = [one for one in result.findings if one.rule == "DSP003"]
    assert "is no duration but the time of day" in finding.message
    assert ("3.29 ms" if run == "ds_zero1" else "11.5 ms") in finding.message


@needs_corpus
@pytest.mark.parametrize("names", [("log.txt",), ("log.txt", "flops_profile.txt")])
def test_zero3_is_dominated_by_the_optimizers_step_which_grows(names: tuple[str, ...]) -> None:
    result = of("ds_zero3", *names)
    assert result.findings[0].rule == "DSP002"
    assert result.findings[0].severity == "high"
    assert result.verdict.headline == (
        "By DeepSpeed's timers the optimizer's step dominates (264 ms of 335 ms median) and grows over the run: from 83.9 ms "
        "to 506 ms in 35 steps, all of a step from 135 ms to 594 ms."
    )
    assert "comms logger, which adds up all earlier calls of an operation again at each call: 786 calls more" in said(
        result
    )


@needs_corpus
def test_zero3_has_the_model_of_zero1_and_half_of_what_is_counted() -> None:
    result = of("ds_zero3", "flops_profile.txt")
    assert "the model has 113.31 M by the printed shapes of its modules" in result.verdict.headline
    assert "Matrix products are counted twice: a forward pass does 464.02 G (231.93 G MACs)" in said(result)
    assert "64.51 K" not in said(result)
    assert "927.88" not in said(result)


@needs_corpus
@pytest.mark.parametrize("run", RUNS)
def test_the_same_files_give_the_same_result(run: str) -> None:
    once, again = (of(run, "log.txt", "flops_profile.txt").to_json() for _ in range(2))
    assert once == again
