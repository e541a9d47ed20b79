"""The text output: readable at 100 columns, whatever the run."""

from __future__ import annotations

from dataclasses import replace

import pytest

import traceanalyzer as ta
from tests.support.job_results import job_result
from tests.support.places import CORPUS, FIXTURES, needs_corpus
from tests.support.results import result_of
from traceanalyzer.render.lines import WIDTH
from traceanalyzer.render.text import render_text
from traceanalyzer.result.document import (
    Device,
    Evidence,
    Finding,
    Health,
    InputInfo,
    Result,
    RuleOutcome,
    Saving,
    Scope,
    Verdict,
)
from traceanalyzer.result.gpus import steps_of_gpus
from traceanalyzer.result.job_shape import Lateness, PersistentRank


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
        [word for n in numbers for word in ("rank", str(n))] for numbers in (range(8), range(8, 9))
    ]
    assert "and 5 more" in text  # inputs
    assert max(map(len, text.splitlines())) <= WIDTH
    assert render_text(result(16)).count("share of the window") == 2


def test_of_many_gpus_the_spread_is_shown_and_those_that_differ_most():
    text = render_text(job_result(512, late=300, pieces=20))
    lines = text.splitlines()
    assert max(map(len, lines)) <= WIDTH and len(lines) < 70
    (head,) = [line for line in lines if "share of the window" in line]
    assert head.split()[4:] == ["least", "median", "most", "rank", "0", "rank", "1", "rank", "300"]
    (compute,) = [line for line in lines if line.startswith("  compute")]
    assert compute.split()[1:] == ["40%", "rank", "0", "46%", "90%", "rank", "300", "40%", "50%", "90%"]
    # where all GPUs have the same, none of them is at an end
    assert (
        "  window                                 1 s      1 s               1 s       1 s      1 s      1 s" in lines
    )


def parted(one: Device, wait: int) -> Device:
    return replace(one, exposed_wait_ns=wait, exposed_transfer_ns=one.exposed_communication_ns - wait)


def test_exposed_communication_is_waiting_and_transfer_where_that_is_told():
    one = result(1)
    text = render_text(replace(one, devices=[parted(one.devices[0], 30)]))
    assert "  exposed waiting              30 ns    3.0%  █\n" in text
    assert "  exposed transfer             20 ns    2.0%  █\n" in text and "exposed communication" not in text
    assert "exposed communication" in render_text(one)


@pytest.mark.parametrize("gpus", [4, 40])
def test_ledgers_that_stand_beside_each_other_are_parted_alike(gpus):
    job = result(gpus)
    whole = render_text(replace(job, devices=[parted(one, 30) for one in job.devices]))
    assert "exposed waiting" in whole and "exposed communication" not in whole
    some = render_text(replace(job, devices=[parted(job.devices[0], 30), *job.devices[1:]]))
    assert "exposed communication" in some and "exposed waiting" not in some
    silent = replace(job.devices[0], exposed_communication_ns=0, compute_ns=650)
    rest = render_text(replace(job, devices=[silent, *(parted(one, 30) for one in job.devices[1:])]))
    assert "exposed waiting" in rest and "exposed communication" not in rest


def test_jitter_names_nobody():
    job = job_result(4)
    noise = Lateness(1000, 100, 0, 900, 0, 12, 950)
    text = " ".join(render_text(replace(job, job=replace(job.job, lateness=noise))).split())
    assert "now one is late and now another, as chance has it: none of them is to blame." in text
    assert "makes about 950 ns of waiting, and they wait 1 us" in text
    assert "comes last to" not in text
    late = Lateness(1000, 900, 0, 100, 0, 3, 50, [PersistentRank(2, 0, 3, 3, 900, 0.0004)])
    text = " ".join(render_text(replace(job, job=replace(job.job, late_ranks=[], lateness=late))).split())
    assert "is to blame" not in text


def test_several_gpus_a_rank_have_short_names():
    devices = [
        replace(one, rank=one.rank // 8, device=one.rank % 8) for one in job_result(64).devices if one.rank is not None
    ]
    text = render_text(replace(job_result(64), devices=devices))
    assert "90% r0/GPU2" in text and max(map(len, text.splitlines())) <= WIDTH


def test_the_job_says_who_is_there_and_who_is_late():
    lines = render_text(job_result(4)).splitlines()
    section = lines[lines.index("JOB") : lines.index("FINDINGS")]
    text = " ".join(line.strip() for line in section)
    assert "4 of 4 ranks; data parallel over 4 (all-reduce, 896 MiB a step); clocks agree within 1 us" in text
    assert "Ranks wait for late ones 36% of the GPUs' time." in text
    assert "rank 2 comes last to 66 of 68 collectives, typically 499 us late, at most 25.3 ms" in text
    assert "others wait 1.4 s for it, 97% of all waiting. It computes 25.3 ms more a step" in text
    assert "rank 0 comes" not in text  # 3% of the waiting
    rows = [line.split() for line in section]
    assert ["all-reduce,", "data", "parallel", "4", "64", "MiB", "42", "393", "us", "257", "288", "ms"] in rows
    assert ["all-gather", "-", "-", "3", "-", "-", "-"] in rows
    assert len(section) <= 12


def test_missing_and_doubled_ranks_are_named():
    given = job_result(4)
    assert given.job
    job = replace(given.job, world_size=12, missing_ranks=[4, 6, 7, 8, 9, 10, 11], doubled_ranks=[1])
    text = " ".join(render_text(replace(given, job=job)).split())
    assert "4 of 12 ranks; " in text
    assert "No recording of ranks 4, 6-11: what they did is not known." in text
    assert "Recorded more than once: rank 1." in text


def test_a_little_waiting_names_nobody():
    given = job_result(4)
    assert given.job
    late = [replace(one, waited_ns=one.waited_ns // 1000) for one in given.job.late_ranks]
    text = render_text(replace(given, job=replace(given.job, late_ranks=late)))
    assert "Ranks hardly wait for one another: <0.1% of the GPUs' time." in text and "comes last" not in text


def test_collectives_that_are_not_there_are_counted():
    given = job_result(4)
    assert given.job
    job = replace(given.job, collectives=given.job.collectives * 50)
    assert "  and 96 more in --format json\n" in render_text(replace(given, job=job))
    job = replace(job, collectives_left=1234)
    assert "  and 96 more in --format json; 1,234 others are not listed\n" in render_text(replace(given, job=job))


def test_without_matches_nothing_is_said_of_waiting_and_bandwidths_are_lower_bounds():
    given = job_result(4)
    assert given.job
    alone = replace(given.job.collectives[0], wait_ns=None, median_transfer_ns=None)
    job = replace(given.job, matched_share=0.0, late_ranks=[], collectives=[alone])
    text = " ".join(render_text(replace(given, job=job)).split())
    assert "none of the communication time could be matched" in text
    assert "wait for" not in text.partition("JOB")[2].partition("FINDINGS")[0]
    assert "42 - ≥ 257 -" in text


def test_a_prediction_for_the_job_is_a_conditional_sentence():
    text = " ".join(render_text(job_result(4)).split())
    assert (
        "1.91× faster had the last rank come to each collective with the one before it; "
        "a typical step would take 23 ms instead of 44 ms." in text
    )
    assert "Replayed" not in text
    first = job_result(4).findings[0]
    cases = [
        ({"step_ns": None, "predicted_step_ns": None}, "before it, over the whole recording."),
        (
            {"predicted_speedup": 1.0},
            "with the one before it: something else sets the pace.",
        ),
    ]
    for change, words in cases:
        found = replace(first, saving=replace(first.saving, **change))
        assert words in " ".join(render_text(replace(job_result(4), findings=[found])).split())


def test_many_findings_alike_are_cut_to_a_range():
    text = " ".join(render_text(job_result(512)).split())
    assert "rank 3 (GPU 0), 12%; and on 508 more GPUs (12 to 17%)." in text


def test_health_notes_of_many_ranks_are_said_once():
    text = render_text(job_result(512))
    notes = [line for line in text.splitlines() if line.startswith("health")]
    assert len(notes) == 3
    assert notes[0].endswith("TRC001 0 events were cut off (171×) [ranks 0, 3, 6, 9, 12, 15 and 165 more]")
    given = job_result(64)
    each = [replace(note, message=f"{note.rank} events were cut off") for note in given.health]
    text = render_text(replace(given, health=each))
    assert "TRC001 more of this kind, with other figures (60×) [ranks 4-63]" in text


def test_names_cannot_command_the_terminal():
    given = job_result(4)
    hostile = [replace(one, path="rank0\x1b[2J.json") for one in given.inputs]
    assert given.job
    late = [replace(given.job.late_ranks[0], why="runs \x1b]0;owned\x07")]
    text = render_text(replace(given, inputs=hostile, job=replace(given.job, late_ranks=late)))
    assert "\x1b" not in text and "\x07" not in text and "rank0?[2J.json" in text


def test_a_finding_on_many_gpus_is_said_once():
    text = render_text(result(4))
    assert text.count("Communication [COM001, high]") == 1
    assert "The same on rank 1 (GPU 1), 30%; rank 2 (GPU 2), 30%; rank 3 (GPU 3), 30%." in text
    assert text.count("→ pytorch: this") == text.count("→ pytorch: that") == 1
    assert "· 2 more in the report" in text and "gap 0, a stretch of 100 ns" in text


def test_what_reads_the_same_is_said_once():
    """A device that is not read, and twelve rules that all say so."""
    found = replace(finding(None, 0, "this"), evidence=[Evidence(None, 0, at, at + 5, "5 ns: copy") for at in range(9)])
    reason = "the trace holds work of a device that is not read yet: nothing about its use can be judged"
    rules = [RuleOutcome(f"INP{n:03}", "could_not_judge", reason) for n in range(12)]
    health = [Health("TRC002", "high", reason, 1, None), Health("TRC010", "low", "it is short", 1, None)]
    notes = [replace(found, rule=note.code, evidence=[], message=f"So {note.message}.") for note in health]
    notes = [replace(note, saving=Saving(0, 0.0, 1.0, None), recommend=[]) for note in notes]
    text = render_text(replace(result(1), findings=[found, *notes], rules=rules, health=health))
    assert "· 5 ns: copy (9×)" in text and "INP000, INP001, INP002," in text
    lines = [line.strip() for line in text.splitlines() if len(line.strip()) > 25]
    assert len(lines) == len(set(lines))


def test_commands_are_not_broken_at_hyphens():
    long = "word " * 18 + "nsys profile --cuda-graph-trace=node"
    text = render_text(replace(result(1), findings=[finding(None, 0, long)]))
    assert "--cuda-graph-trace=node" in text


def test_nothing_found_and_nothing_to_judge_are_not_the_same():
    calm = replace(result(1), findings=[], verdict=Verdict("compute", "GPU 0 computes."))
    assert "nothing worth fixing" in render_text(calm)
    assert "nothing worth fixing" not in render_text(replace(calm, verdict=Verdict("host", "GPU 0 is idle.")))
    text = render_text(replace(result(1), findings=[], devices=[]))
    assert "no GPU work to look at" in text and "bound by" not in text


@pytest.mark.parametrize("name", ["dataloader.slow", "launch_storm.slow", "gc_stack.slow", "clean_infer.slow"])
def test_real_traces_fit(name):
    trace = ta.load(FIXTURES / "kineto" / f"{name}.pt.trace.json.gz")
    lines = render_text(ta.analyze(trace)).splitlines()
    assert [line for line in lines if len(line) > WIDTH and not line.startswith("input ")] == []


@needs_corpus
def test_a_job_of_four_fits_one_screen():
    text = render_text(result_of(CORPUS / "multirank" / "comm_not_overlapped.slow"))
    assert len(text.splitlines()) < 66


def test_steps_of_two_files_of_one_rank_are_not_mixed_up():
    job = job_result(3)
    devices = [*job.devices, replace(job.devices[1], kernel_count=7)]
    again = replace(job.steps[1], median_ns=99_000_000)
    text = render_text(replace(job, devices=devices, steps=[*job.steps, again]))
    assert next(line.split()[2:] for line in text.splitlines() if "median step" in line) == [
        *("44", "ms") * 3,
        *("99", "ms"),
    ]
    # Which of the two has steps is not told.
    assert [s is None for s in steps_of_gpus(replace(job, devices=devices))] == [False, True, False, True]
