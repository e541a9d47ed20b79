"""Whom the headline names: the function, range or activity that leaves the GPU idle, never the step or the loop around it."""

from __future__ import annotations

import pytest

import traceanalyzer as ta
from tests.support.kineto import KinetoTrace
from tests.support.places import CORPUS, FIXTURES, needs_corpus
from tests.support.results import result_of

STEPS, STEP, WORK = 6, 10_000, 4_000
"""Of each step of 10 ms the GPU is idle 6 ms before a kernel of 4 ms."""


def trained(before, *, marked: bool = True, loop: bool = True, kind: str = "kernel") -> KinetoTrace:
    """A loop of such steps; `before` is called with the trace and the start and end of what the host does first in each."""
    trace = KinetoTrace()
    if loop:
        trace.range("train.py(1): main", -100, STEPS * STEP, category="python_function")
    for n in range(STEPS):
        start = n * STEP
        if marked:
            trace.range(f"ProfilerStep#{n}", start, start + STEP - 1)
        trace.range("train.py(40): train_step", start + 1, start + STEP - 2, category="python_function")
        before(trace, start + 10, start + 5_900)
        args = (
            {"category": kind, "name": "Memcpy HtoD (Pinned -> Device)", "bytes": 1 << 20} if kind != "kernel" else {}
        )
        trace.op(start + 6_000, start + 6_000 + WORK, launch=(start + 5_950, start + 5_960), **args)
    return trace


def frame(name: str):
    return lambda trace, start, end: trace.range(name, start, end, category="python_function")


def annotated(name: str):
    return lambda trace, start, end: trace.range(name, start, end)


def headline(trace: KinetoTrace, tmp_path) -> str:
    return ta.analyze(ta.load(trace.write(tmp_path / "trace.json"))).verdict.headline


@pytest.mark.parametrize(
    ("before", "subject"),
    [
        (frame("train.py(155): log_metrics"), "log_metrics (train.py:155)"),
        # Innermost is a library's; the program's own code around it is named.
        (
            lambda t, a, b: frame("json/encoder.py(183): encode")(frame("train.py(155): log_metrics")(t, a, b), a + 1, b),
            "log_metrics (train.py:155)",
        ),
        (annotated("postprocess"), 'The range "postprocess"'),
        (frame("<built-in function collect>"), "Garbage collection"),
        # No code of the program but the step itself is around it: what ran there is named, and where.
        (
            lambda t, a, b: t.range("aten::unique", a, b, category="cpu_op"),
            "aten::unique in train_step (train.py:40)",
        ),
    ],
)  # fmt: skip
def test_who_leaves_the_gpu_idle_is_named(tmp_path, before, subject):
    said = headline(trained(before), tmp_path)
    assert said.startswith(f"{subject} leaves GPU 0 idle 5.") and said.endswith(" of each 10 ms step.")


def test_the_step_and_the_loop_are_nobody_to_blame(tmp_path):
    """All that is known of the host is that it was in the step and in the loop around it."""
    said = headline(trained(lambda *_: None), tmp_path)
    assert said.startswith("GPU 0 is idle 6") and "train" not in said and "main" not in said and "Step" not in said
    # A range of the program's own that holds the launches is no better.
    said = headline(trained(lambda t, a, b: t.range("iterate", a, b + 100)), tmp_path)
    assert "iterate" not in said


def test_half_of_it_must_lie_in_one_place(tmp_path):
    third = 5_890 / 3

    def three(trace, start, end):
        for n, name in enumerate(("a", "b", "c")):
            frame(f"train.py({n + 2}): {name}")(trace, start + n * third, start + (n + 1) * third)

    assert headline(trained(three), tmp_path).startswith("GPU 0 is idle")


def test_gaps_before_copies_are_not_kernel_launches(tmp_path):
    """2,000 small copies, each launched when the one before it is done."""
    trace = KinetoTrace()
    for n in range(2_000):
        at = n * 20
        trace.op(at, at + 4, launch=(at - 8, at - 7), api="cudaMemcpyAsync", category="gpu_memcpy",
                 name="Memcpy HtoD (Pinned -> Device)", bytes=64)  # fmt: skip
    said = headline(trace, tmp_path)
    assert "kernels" not in said and "copies" in said


@needs_corpus
@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("multirank/clean_ddp.slow", "The 4 GPUs compute 97%"),
        ("multirank/slow_link.slow", "The 4 GPUs spend "),
        ("public/kineto_multirank/param_dlrm_8rank", "The 8 GPUs are idle 5"),
    ],
)
def test_of_a_job_no_rank_is_accused_that_is_like_the_others(file, said):
    result = result_of(CORPUS / file)
    assert result.verdict.headline.startswith(said) and "ank " not in result.verdict.headline


@needs_corpus
def test_the_checkpoint_comes_before_the_barrier_that_waits_for_it():
    result = result_of(CORPUS / "evidence" / "jobs" / "rank0_checkpoint.slow")
    rules = [finding.rule for finding in result.findings]
    assert rules.index("CPY004") < rules.index("COM002") and "rank 0" in result.verdict.headline


@pytest.mark.parametrize("file", ["kineto/dataloader.slow.pt.trace.json.gz", "jobs/ddp_loader_late.slow"])
def test_findings_come_by_what_a_fix_gives(file):
    findings = result_of(FIXTURES / file).findings
    # What others gain by not waiting for a GPU may come after the cause there, in windows that are not equally long.
    late = [finding for finding in findings if finding.saving.gpu_count > 1 and finding.scope.rank is not None]
    gains = [finding.saving.gain_ns for finding in findings if finding not in late]
    assert gains == sorted(gains, reverse=True)
    for finding in late:
        before = findings[: findings.index(finding)]
        assert all(
            one.saving.gain_ns >= finding.saving.gain_ns
            or (one.scope == finding.scope and one.saving.gain_share >= finding.saving.gain_share)
            for one in before
        )
    # Notes about the recording claim no time, and keep a level of their own.
    claims = [finding for finding in findings if not finding.rule.startswith("TRC")]
    assert all(finding.severity == "info" for finding in claims if finding.saving.gain_share < 0.03)
    assert all(finding.severity in ("info", "low") for finding in findings if finding not in claims)
