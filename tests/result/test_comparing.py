"""Two programs compared: real pairs whose difference is known, and made-up captures for what must not be concluded."""

from __future__ import annotations

import gzip
import json
import lzma
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.comparisons import MS, capture
from tests.support.pairs import captured_of
from tests.support.places import CORPUS, FIXTURES, needs_corpus
from traceanalyzer.result.captures.capture import MOST_NAMES, Problem, Samples, Unit, Work
from traceanalyzer.result.comparing import compare
from traceanalyzer.result.comparing.alike import unlike
from traceanalyzer.result.comparing.changes import unit_change

PAIRS = {
    "h2d_pageable": "CPY002",
    "item_sync": "SYN001",
    "launch_storm": "LCH001",
    "attention_masked": "KRN002",
    "cpu_postprocess": "HST001",
    "mask_sync": "SYN001",
    "readback_logits": "CPY004",
    "recompile": "HST003",
    "small_grid": "KRN004",
    "elementwise_chain": "KRN005",
    "dict_h2d": "CPY003",
}
"""Pairs among the fixtures, and the rule that must be named as fixed."""


def fixture(name: str):
    (path,) = (FIXTURES / "kineto").glob(f"{name}.pt.trace.json.*")
    return captured_of(path)


def with_steps(samples: list[int], **other):
    """A capture of one line whose steps take so long."""
    time = Samples(sum(samples) // len(samples), samples)
    unit = Unit("step", "annotation", len(samples), time, None, 40.0)
    return capture(**{"unit": unit, "lines": {"compute": time}, "problems": [], **other})


def states(comparison) -> dict[str, str]:
    return {one.rule: one.state for one in comparison.problems}


@pytest.mark.parametrize(("name", "rule"), PAIRS.items())
def test_a_fix_is_faster_and_named(name, rule):
    slow, fixed = fixture(f"{name}.slow"), fixture(f"{name}.fixed")
    there, back = compare([slow], [fixed]), compare([fixed], [slow])
    assert (there.outcome, back.outcome) == ("faster", "slower")
    assert states(there)[rule] == "fixed"
    assert states(back)[rule] in ("new", "worse")
    # The other way round everything is the other way round, noise too.
    assert there.step.ratio == pytest.approx(1 / back.step.ratio, rel=1e-3)
    assert (there.step.low, there.step.high) == pytest.approx((1 / back.step.high, 1 / back.step.low), rel=1e-3)
    assert there.step.low <= there.step.ratio <= there.step.high
    assert sum(line.change_ns for line in there.lines) == there.step.change_ns


@pytest.mark.parametrize("name", ["item_sync.slow", "clean_infer.slow", "leak_growth.fixed", "small_grid.fixed"])
def test_a_trace_against_itself_is_no_change(name):
    comparison = compare([fixture(name)], [fixture(name)])
    assert (comparison.outcome, comparison.step.ratio, comparison.reason) == ("no_change", 1.0, None)
    assert {change.direction for change in (*comparison.lines, *comparison.kernels)} == {"same"}
    assert set(states(comparison).values()) <= {"same"}


def halves(path: Path, folder: Path) -> list[Path]:
    """What had ended before the middle and what began after it, as captures of fixed length have it."""
    trace = json.loads(gzip.decompress(path.read_bytes()))
    timed = [event for event in trace["traceEvents"] if event["ph"] == "X" and event.get("cat") != "Trace"]
    middle = (min(event["ts"] for event in timed) + max(event["ts"] + event["dur"] for event in timed)) / 2
    parts = {
        "first": [event for event in timed if event["ts"] + event["dur"] < middle],
        "second": [event for event in timed if event["ts"] >= middle],
    }
    for name, events in parts.items():
        (folder / f"{name}.json").write_text(json.dumps({**trace, "traceEvents": events}))
    return [folder / f"{name}.json" for name in parts]


def check_halves(path: Path, folder: Path) -> None:
    first, second = (captured_of(half) for half in halves(path, folder))
    # Of a step that was cut nothing is taken.
    assert (first.unit.kind, second.unit.kind) == ("repetition", "repetition")
    for pair in ((first, second), (second, first), (captured_of(path), second)):
        comparison = compare([pair[0]], [pair[1]])
        assert (comparison.outcome, comparison.base.unit_count > 1) == ("no_change", True)


def test_halves_by_time_are_no_change(tmp_path):
    check_halves(FIXTURES / "kineto" / "clean_infer.slow.pt.trace.json.gz", tmp_path)


@needs_corpus
def test_halves_of_a_training_run_are_no_change(tmp_path):
    check_halves(CORPUS / "kineto" / "clean_train.slow.pt.trace.json.gz", tmp_path)


def steps_by_hand(path: Path) -> list[int]:
    """Step times in ns from the file alone: operations by the call that launched them, calls by the step they lie in.

    A step ends with its last operation or, if later, its mark; the first begins with its mark or, if later, when what was launched
    before is done.
    """
    opened = {".gz": gzip.open, ".xz": lzma.open}[path.suffix]
    with opened(path) as file:
        events = [event for event in json.load(file)["traceEvents"] if event["ph"] == "X"]
    marks = sorted(
        (event["ts"], event["ts"] + event["dur"])
        for event in events
        if event["name"].startswith("ProfilerStep#") and event["cat"] == "user_annotation"
    )
    calls = {e["args"]["correlation"]: e["ts"] for e in events if e["cat"] in ("cuda_runtime", "cuda_driver")}
    before, ends = marks[0][0], [end for _, end in marks]
    kernels = [event for event in events if event["cat"] == "kernel"]
    first = min(k["ts"] for k in kernels if calls.get(k["args"]["correlation"], -1.0) >= before)
    for event in events:
        if event["cat"] in ("kernel", "gpu_memcpy", "gpu_memset"):
            called = calls.get(event["args"]["correlation"], -1.0)
            for step, (start, end) in enumerate(marks):
                if start <= called < end:
                    ends[step] = max(ends[step], event["ts"] + event["dur"])
            if called < marks[0][0] and event["ts"] + event["dur"] <= first:
                before = max(before, event["ts"] + event["dur"])
    return [round((later - earlier) * 1000) for earlier, later in pairwise([before, *ends])]


@pytest.mark.parametrize("name", PAIRS)
def test_the_factor_is_that_of_the_file(name):
    """Computed independently; the steps are the same to the ns."""
    means = []
    for state in ("slow", "fixed"):
        (path,) = (FIXTURES / "kineto").glob(f"{name}.{state}.pt.trace.json.*")
        steps = steps_by_hand(path)
        assert captured_of(path).unit.time.samples_ns == pytest.approx(steps, abs=2)
        means.append(sum(steps) / len(steps))
    step = compare([fixture(f"{name}.slow")], [fixture(f"{name}.fixed")]).step
    assert step.ratio == pytest.approx(means[1] / means[0], rel=1e-4)


def test_other_gpus_and_other_numbers_of_ranks_are_refused():
    one, other = capture(), capture(gpus=["NVIDIA H200"])
    refused = compare([one], [other])
    assert (refused.outcome, refused.step, refused.lines) == ("could_not_judge", None, [])
    assert refused.reason == "BASE ran on NVIDIA H100 80GB HBM3, NEW on NVIDIA H200"
    assert refused.reason in refused.headline
    ranks = compare([capture(world_size=8)], [capture(world_size=4)])
    assert ranks.reason == "BASE is a job of 8 ranks, NEW of 4"
    assert unlike(one, capture(gpus=[one.gpus[0]] * 2)) == "BASE shows 1 GPU, NEW 2"
    assert unlike(one, capture(gpus=[None])) is None
    anyway = compare([one], [other], anyway=True)
    assert anyway.outcome == "no_change"
    assert any(note.about == "gpu" and note.message.endswith("compared anyway") for note in anyway.notes)


@needs_corpus
def test_jobs_of_other_machines_are_refused():
    single = captured_of(CORPUS / "kineto" / "clean_train.slow.pt.trace.json.gz")
    job = captured_of(CORPUS / "multirank" / "clean_ddp.slow")
    assert compare([single], [job]).outcome == "could_not_judge"


def test_a_side_that_could_not_be_judged_is_refused():
    comparison = compare([capture()], [capture(unjudged="Could not judge: the trace holds no GPU work.", unit=None)])
    assert (comparison.outcome, "the trace holds no GPU work" in comparison.reason) == ("could_not_judge", True)
    damaged = compare([capture()], [capture(damage=["TRC001: cut short"])])
    assert any(note.about == "damage" and "NEW" in note.message for note in damaged.notes)


def unmarked(kind: str, method: str | None, works: list[Work], **other):
    time = Samples(10 * MS, [10 * MS] * 5)
    unit = Unit(kind, method, 5, time, None, sum(work.count for work in works))
    return replace(capture(**other), unit=unit, kernels=works)


def test_units_that_nobody_marked_must_be_the_same_work():
    layer = [Work("gemm", 4, 5 * MS, 0), Work("norm", 2, 5 * MS, 0)]
    twice = [replace(work, count=2 * work.count) for work in layer]
    assert compare([unmarked("repetition", None, layer)], [unmarked("repetition", None, layer)]).outcome == "no_change"
    refused = compare([unmarked("repetition", None, layer)], [unmarked("repetition", None, twice)])
    assert refused.outcome == "could_not_judge" and "do not match" in refused.reason
    # Steps that were found by their weight updates may differ a little, but not by half.
    assert compare([unmarked("step", "repetition", layer)], [unmarked("step", "repetition", twice)]).step is None
    # Another precision has other kernels in the same operators.
    operators = {"families": [Work("matmul", 6, 9 * MS, 0)], "operators": [Work("aten::mm", 6, 9 * MS, 0)]}
    tf32 = [Work("tf32_gemm", 4, 5 * MS, 0), layer[1]]
    told = [replace(unmarked("step", "repetition", works), **operators) for works in (layer, tf32)]
    assert compare(told[:1], told[1:]).outcome == "no_change"
    assert compare([unmarked("step", "repetition", layer)], [unmarked("step", "repetition", tf32)]).step is None
    # Marked steps are taken at their word, and it is said.
    marked = compare([unmarked("step", "annotation", layer)], [unmarked("step", "nvtx", [Work("fused", 1, MS, 0)])])
    assert marked.outcome == "no_change" and [note.about for note in marked.notes] == ["work"]


def test_steps_that_are_marked_twice_as_often_are_no_faster():
    step = [Work("gemm", 40, 5 * MS, 0), Work("norm", 20, 4 * MS, 0), Work("adam", 1, MS, 0)]
    # Of five halves three are the first ones.
    half = [replace(work, count=work.count * share) for work, share in zip(step, (0.6, 0.4, 0.4), strict=True)]
    marked = [[unmarked("step", "annotation", works)] for works in (step, half)]
    refused = compare(*marked)
    assert refused.outcome == "could_not_judge" and "in the same proportions" in refused.reason
    anyway = compare(*marked, anyway=True)
    assert anyway.step is not None and "compared anyway" in next(n.message for n in anyway.notes if n.about == "work")
    # More micro-batches in a step are more of all kernels but those of the optimizer.
    other = [Work("gemm", 10, 5 * MS, 0), Work("norm", 5, 4 * MS, 0), Work("adam", 4, MS, 0)]
    assert compare([unmarked("step", "annotation", step)], [unmarked("step", "annotation", other)]).step is not None


def test_a_recording_that_ends_sooner_is_no_faster():
    whole = [Work("gemm", 100, 5 * MS, 0), Work("norm", 50, 5 * MS, 0)]
    cut = [Work("gemm", 95, 5 * MS, 0), Work("norm", 47, 5 * MS, 0)]
    for kind, method in (("capture", None), ("step", "annotation"), ("repetition", None)):
        refused = compare([unmarked(kind, method, whole)], [unmarked("capture", None, cut)])
        assert refused.outcome == "could_not_judge" and "do not match" in refused.reason
    assert compare([unmarked("capture", None, whole)], [unmarked("capture", None, whole)]).outcome == "no_change"


def test_captures_of_one_side_must_be_the_same_work():
    step = [Work("gemm", 40, 5 * MS, 0), Work("norm", 20, 4 * MS, 0)]
    whole, crashed = unmarked("step", "annotation", step), unmarked("capture", None, step[:1])
    refused = compare([whole], [whole, crashed])
    assert refused.outcome == "could_not_judge" and refused.reason.startswith(
        "the captures of NEW do not belong together"
    )
    assert compare([whole, crashed], [whole]).outcome == "could_not_judge"


def test_a_unit_without_time_is_not_compared():
    none = with_steps([0, 0])
    assert compare([none], [with_steps([5, 5])]).outcome == "could_not_judge"
    assert compare([with_steps([5, 5])], [none]).outcome == "could_not_judge"


def test_a_change_within_the_noise_is_none():
    noisy = compare([with_steps([80, 120, 90, 110])], [with_steps([85, 125, 95, 115])])
    assert (noisy.outcome, noisy.step.ratio) == ("no_change", 1.05)
    assert noisy.step.low < 1 < noisy.step.high
    steady = compare([with_steps([10_000, 10_010, 9_990] * 3)], [with_steps([10_500, 10_510, 10_490] * 3)])
    assert (steady.outcome, steady.step.direction) == ("slower", "slower")
    small = compare([with_steps([10_000, 10_001] * 5)], [with_steps([10_150, 10_151] * 5)])
    assert (small.outcome, small.step.low > 1) == ("no_change", True)


def test_one_step_on_each_side_tells_no_change_from_noise():
    comparison = compare([with_steps([10 * MS])], [with_steps([13 * MS])])
    assert (comparison.outcome, comparison.noise.source) == ("could_not_judge", None)
    assert "does not tell a change from noise" in comparison.reason
    assert compare([with_steps([10 * MS])], [with_steps([10 * MS])]).outcome == "no_change"


def test_a_first_step_does_not_make_a_single_one_certain():
    """Of two single steps nothing is known of the noise, however long those before them were."""
    one, other = (with_steps([ms * MS]) for ms in (100, 104))
    one, other = (replace(side, unit=replace(side.unit, first_ns=ns * MS)) for side, ns in ((one, 60), (other, 80)))
    assert (compare([one], [other]).outcome, compare([other], [one]).outcome) == ("could_not_judge", "could_not_judge")


def test_a_single_step_or_capture_varies_as_those_of_the_other_side_do():
    steps = with_steps([ms * MS for ms in (90, 100, 110)])
    assert compare([steps], [with_steps([112 * MS])]).outcome == "no_change"
    assert compare([steps], [with_steps([300 * MS])]).outcome == "slower"
    runs = [with_steps([ms * MS] * 10) for ms in (90, 100, 110)]
    assert compare(runs, [with_steps([112 * MS] * 10)]).outcome == "no_change"
    assert compare(runs, [with_steps([300 * MS] * 10)]).outcome == "slower"


@pytest.mark.parametrize(("base", "new"), [(2, 2), (3, 3), (5, 5), (3, 1), (50, 3)])
def test_the_same_program_is_seldom_called_slower(base, new):
    """One in twenty at the most by the level of the interval; with some allowance for so few values."""
    draw, tries = np.random.default_rng(1), 150
    pairs = [
        [with_steps((MS * draw.normal(100, 8, n)).astype(int).tolist()) for n in (base, new)] for _ in range(tries)
    ]
    assert sum(unit_change([a], [b], a, b).direction == "slower" for a, b in pairs) <= 0.12 * tries
    late = [(a, with_steps([2 * ns for ns in b.unit.time.samples_ns])) for a, b in pairs]
    assert sum(unit_change([a], [b], a, b).direction == "slower" for a, b in late) >= 0.9 * tries


def test_noise_between_runs_is_measured_from_several_captures():
    runs = [with_steps([ms * MS] * 10) for ms in (95, 100, 105, 110)]
    alone = compare(runs[:1], [with_steps([104 * MS] * 10)])
    among = compare(runs, [with_steps([104 * MS] * 10)])
    assert (alone.outcome, alone.noise.source) == ("slower", "steps")
    assert (among.outcome, among.noise.source, among.base.captures) == ("no_change", "captures", 4)
    assert compare(runs, [with_steps([140 * MS] * 10)]).outcome == "slower"


def test_a_first_step_may_witness_that_a_side_was_slow():
    slow = with_steps([22 * MS, 437 * MS])
    assert compare([slow], [with_steps([42 * MS, 29 * MS])]).outcome == "no_change"
    seen = with_steps([22 * MS, 437 * MS], unit=replace(slow.unit, first_ns=442 * MS))
    assert compare([seen], [with_steps([42 * MS, 29 * MS])]).outcome == "faster"


def _compared(base: list[Work], new: list[Work]):
    return compare([replace(capture(), kernels=base)], [replace(capture(), kernels=new)]).kernels


def test_kernels_that_are_new_gone_slower_or_the_same():
    base = [Work("a", 1, 4 * MS, 1000), Work("b", 2, 2 * MS, 1000), Work("gone", 1, MS, 0), Work("same", 1, MS, 0)]
    new = [Work("a", 1, 3 * MS, 1000), Work("b", 2, 3 * MS, 1000), Work("came", 1, MS, 0), Work("same", 1, MS, 0)]
    changes = {c.name: c.direction for c in _compared(base, new)}
    assert changes == {"a": "faster", "b": "slower", "gone": "vanished", "came": "new", "same": "same"}


def test_a_kernel_that_a_full_list_may_have_dropped_is_not_called_new():
    many = [Work(f"k{at:03}", 1, 2 * MS - at, 0) for at in range(MOST_NAMES)]
    new = [*many[:-1], Work("small", 1, 100, 0)]
    names = {c.name for c in _compared(many, new) if c.direction == "new"}
    assert names == set()
    large = [Work("large", 1, 3 * MS, 0), *many[:-1]]
    found = _compared(many, large)
    assert [c.name for c in found if c.direction == "new"] == ["large"]


def with_problem(ns: int | None, host: int, step: int = 100 * MS, outcome: str | None = None, **other):
    """A capture whose host line takes `host` ns a step, of which HST001 accounts for `ns`."""
    found = [
        Problem("HST001", "The GPU waits for the host", "high", "high", ns, ["idle.host_work"], "GPU 0", "It waits.")
    ]
    lines = {"compute": Samples(step - host, [step - host] * 5), "idle.host_work": Samples(host, [host] * 5)}
    unit = Unit("step", "annotation", 5, Samples(step, [step] * 5), None, 40.0)
    outcomes = {"HST001": outcome or ("clean" if ns is None else "fired")}
    kept = found if ns is not None else []
    return capture(unit=unit, lines=lines, problems=kept, outcomes=outcomes, reasons={"HST001": "no stacks"}, **other)


@pytest.mark.parametrize(
    ("before", "after", "state"),
    [
        (with_problem(40 * MS, 40 * MS), with_problem(None, 0, 60 * MS), "fixed"),
        (with_problem(40 * MS, 40 * MS), with_problem(3 * MS, 3 * MS, 63 * MS), "fixed"),
        (with_problem(40 * MS, 40 * MS), with_problem(20 * MS, 20 * MS, 80 * MS), "better"),
        (with_problem(40 * MS, 40 * MS), with_problem(41 * MS, 41 * MS), "same"),
        (with_problem(20 * MS, 20 * MS), with_problem(40 * MS, 40 * MS), "worse"),
        (with_problem(None, 0), with_problem(40 * MS, 40 * MS, 140 * MS), "new"),
        # The host takes as long as before; only the step is shorter.
        (with_problem(None, 9 * MS, 300 * MS), with_problem(9 * MS, 9 * MS, 30 * MS), "uncovered"),
        # So does what another finding accounted for before.
        (with_problem(5 * MS, 40 * MS), with_problem(20 * MS, 20 * MS, 80 * MS), "uncovered"),
        (with_problem(40 * MS, 40 * MS), with_problem(None, 40 * MS, outcome="could_not_judge"), "unknown"),
        # No time is left that the rule could claim, so that it does not apply is as good.
        (with_problem(40 * MS, 40 * MS), with_problem(None, 0, 60 * MS, "not_applicable"), "fixed"),
        (with_problem(None, 40 * MS, outcome="could_not_judge"), with_problem(40 * MS, 40 * MS), "unknown"),
    ],
)
def test_what_became_of_a_finding(before, after, state):
    (problem,) = compare([before], [after]).problems
    assert problem.state == state
    assert (problem.reason is not None) == (state == "unknown")


def test_shapes_and_versions_are_said():
    one = capture(versions={"CUDA": "12.4"})
    other = capture(versions={"CUDA": "13.0"}, shapes=[replace(one.shapes[0], shapes="[[128,128],[128,64]]")])
    notes = {note.about: note.message for note in compare([one], [other]).notes}
    assert notes["versions"] == "CUDA: 12.4 in BASE, 13.0 in NEW"
    assert "[[128,128],[128,64]]" in notes["shapes"]


@given(
    st.lists(st.integers(1, 10**9), min_size=2, max_size=12), st.lists(st.integers(1, 10**9), min_size=2, max_size=12)
)
def test_the_interval_holds_the_ratio_and_turns_around(base, new):
    there, back = compare([with_steps(base)], [with_steps(new)]), compare([with_steps(new)], [with_steps(base)])
    assert there.step.low <= there.step.ratio <= there.step.high
    opposite = {"faster": "slower", "slower": "faster", "no_change": "no_change"}
    assert back.outcome == opposite[there.outcome]
    assert there.to_json() == compare([with_steps(base)], [with_steps(new)]).to_json()
