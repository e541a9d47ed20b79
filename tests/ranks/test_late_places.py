"""Where in the program a late rank is, and lateness by the calls for many small collectives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import traceanalyzer as ta
from tests.ranks.test_communication import ALL_REDUCE, collective
from tests.support.kineto import KinetoTrace
from tests.support.made_up_jobs import kernels_of
from traceanalyzer.analysis import analyze, analyze_parts, load, parts_of
from traceanalyzer.ranks.collectives.calls import MANY, call_waits
from traceanalyzer.ranks.waits.reasons import Range

BASE_NS = 1_700_000_000_000_000_000


def trace_of(rank: int, world: int) -> KinetoTrace:
    trace = KinetoTrace()
    trace.metadata |= {"baseTimeNanoseconds": BASE_NS, "distributedInfo": {"rank": rank, "world_size": world}}
    return trace


def write_late(folder: Path, how: str, world: int = 3, late: int = 1, steps: int = 6) -> Path:
    """A rank that is 6 ms late to each all-reduce by what it does in `how`: a range `evaluate` around launches, a function, or a range
    in which its host only waits."""
    length, extra, transfer = 4_000.0, 6_000.0, 200.0
    for rank in range(world):
        trace, now = trace_of(rank, world), 1_000.0
        for step in range(steps):
            own, start = rank == late, now
            more = extra if own else 0.0
            idle = more if how == "sleep" else 0.0
            trace.op(start + idle, start + idle + length, launch=(start + idle - 15, start + idle - 10), device=rank)
            if own and how != "sleep":
                trace.op(
                    start + length, start + length + extra, launch=(start + 5, start + 9), name="eval_gemm", device=rank
                )
            if own:
                until = start + extra - 16 if how == "sleep" else start + 10
                if how == "frame":
                    trace.range("train.py(8): main", start - 48, start + 29, category="python_function")
                    trace.range("train.py(40): validate", start + 3, until, category="python_function")
                else:
                    trace.range({"sleep": "write_log"}.get(how, "evaluate"), start + 3, until)
            else:
                trace.range("train.py(8): main", start - 48, start + 29, category="python_function")
            arrived, end = start + length + more + 5, start + length + extra + 5 + transfer
            call = start + idle - 9 if idle else start + 12
            trace.op(
                arrived,
                end,
                launch=(call, call + 4),
                name=ALL_REDUCE,
                stream=20,
                device=rank,
                **collective(ranks=world),
            )
            trace.range(f"ProfilerStep#{step}", start - 50, end + 10)
            now = end + 100
        trace.write(folder / f"r{rank}.json")
    return folder


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (
            "range",
            "computes 6 ms more a step than the median rank, inside 'evaluate' (6 ms of each step): 1 more of eval_gemm",
        ),
        (
            "frame",
            "computes 6 ms more a step than the median rank, inside train.py:40 (validate) (6 ms of each step): 1 more of",
        ),
        ("sleep", "while its host is at work, above all in write_log"),
    ],
)
def test_the_place_in_the_program_comes_before_the_kernels(tmp_path, how, said):
    result = analyze(ta.load(write_late(tmp_path, how)))
    (late,) = result.job.late_ranks
    assert late.rank == 1
    assert said in late.why


def test_a_place_that_is_rare_is_told_by_the_steps_that_have_it():
    often = Range("evaluate", False, 43_500_000, 43_500_000, True, 4, 4)
    assert often.words == "inside 'evaluate' (43.5 ms of each step)"
    rare = Range("save", False, 50_000_000, 50_000_000, True, 10, 1)
    assert rare.words == "inside 'save' (500 ms in 1 of 10 steps)"
    shared = Range("train.py:8 (forward)", True, 50_000_000, 20_000_000, False, 10, 10)
    assert shared.words == "inside train.py:8 (forward) (20 ms more a step)"


def write_many(folder: Path, count: int, elements: int = 64, world: int = 2, steps: int = 3) -> Path:
    """Ranks that ask for `count` all-reduces a step one after the other: rank 1 takes 100 us for a call, the others 40."""
    for rank in range(world):
        trace, now = trace_of(rank, world), 1_000.0
        for step in range(steps):
            slow, fast = 100.0, 40.0
            own = slow if rank == world - 1 else fast
            trace.op(now, now + 900, launch=(now - 15, now - 10), device=rank)
            end = now + 905.0
            for n in range(count):
                call = now + 10 + n * (own + 5)
                last = now + 10 + n * (slow + 5) + 0.6 * slow + 5
                begin = max(call + 0.6 * own + 5, end + 1)
                end = max(last, begin) + 5
                trace.range("c10d::allreduce_", call, call + own, category="cpu_op")
                args = collective(elements=elements, ranks=world)
                trace.op(
                    begin,
                    end,
                    launch=(call + 0.6 * own, call + 0.6 * own + 4),
                    name=ALL_REDUCE,
                    stream=20,
                    device=rank,
                    **args,
                )
            over = now + 10 + count * (slow + 5) + 1_000
            trace.range(f"ProfilerStep#{step}", now - 20, over)
            now = over + 30
        trace.write(folder / f"r{rank}.json")
    return folder


@pytest.mark.parametrize("elements", [64, 1 << 18])
def test_calls_for_many_collectives_are_said_first(tmp_path, elements):
    result = analyze(ta.load(write_many(tmp_path, 120, elements)))
    by_rule = {f.rule: f for f in result.findings if f.rule != "COM003" or f.scope.rank == 0}
    assert "what they cost is the calls" in by_rule["COM003"].message
    assert result.verdict.headline.startswith("120 small collectives a step (mostly all-reduce")
    assert "bucket" in result.verdict.headline
    mine = by_rule["COM003"].saving.recoverable_ns
    others = by_rule["COM002"].saving.recoverable_ns if "COM002" in by_rule else 0
    waited = sum(late.waited_ns for late in result.job.late_ranks)
    # What one of them has the other one has not.
    assert mine > others and mine + others <= 1.1 * waited + 3 * 120 * 6_000
    saving = by_rule["COM003"].saving
    assert 1.5 < saving.predicted_speedup <= saving.speedup_ceiling


def test_a_few_collectives_are_not_to_be_put_together(tmp_path):
    result = analyze(ta.load(write_many(tmp_path, 10)))
    assert "COM003" not in {f.rule for f in result.findings}
    assert "bucket" not in result.verdict.headline


def test_only_calls_that_take_longer_than_what_they_ask_for_make_late():
    count = 2 * MANY
    rows = {
        "rank": np.repeat([0, 1], MANY),
        "start_ns": np.tile(np.arange(MANY) * 1_000, 2) + np.repeat([100, 600], MANY),
        "end_ns": np.tile(np.arange(MANY) * 1_000, 2) + 700,
        "step": np.zeros(count, np.int64),
        "call_start_ns": np.tile(np.arange(MANY) * 1_000, 2) + np.repeat([0, 300], MANY),
        "call": np.full(count, 400),
    }
    kernels, late = kernels_of(rows), np.tile(np.arange(MANY, count), 2)
    wait = np.repeat([500, 0], MANY)
    assert call_waits(kernels, np.full(count, 100), wait, late).tolist() == [300] * MANY + [0] * MANY
    assert not call_waits(kernels, np.full(count, 450), wait, late).any()
    few = kernels.filter(kernels["start_ns"].to_numpy() >= 2_000)
    left = few.num_rows // 2
    assert not call_waits(
        few, np.full(2 * left, 100), np.repeat([500, 0], left), np.tile(np.arange(left, 2 * left), 2)
    ).any()


def test_what_is_asked_for_besides_is_of_the_whole_job(tmp_path):
    found = analyze_parts(parts_of(load([write_late(tmp_path, "range")])), also=("collective_waits",))
    assert "for rank 1" in found.result.verdict.headline
    waits = found.tables.table("collective_waits").to_pylist()
    assert sum(row["exposed_wait"] or 0 for row in waits) < max(row["job_window"] for row in waits)
