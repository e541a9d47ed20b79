"""Waits for Python's interpreter lock: when the launching thread is silent because another thread runs Python, and when it is not."""

from __future__ import annotations

from typing import Any

import pytest

import traceanalyzer as ta
from tests.support.kineto import MAIN, KinetoTrace
from tests.support.places import FIXTURES
from traceanalyzer.catalog.catalog import Catalog

OTHER = 529
TURN, WORK = 5_130, 100
PLACES = ("aten::linear", "aten::mean", "aten::pow", "aten::add_")
STEPS = 20
ENCODE = "train.py(10): encode"


def stepping(
    turns: float = 1,
    places: tuple[str, ...] = PLACES,
    *,
    jitter: float = 0,
    category: str = "cpu_op",
    inner: str | None = None,
) -> KinetoTrace:
    """Steps that launch a kernel, then are silent for so many turns within an operator, and go on. `inner` is a frame in it."""
    trace = KinetoTrace()
    at = 1_000.0
    for n in range(STEPS):
        length = turns * TURN + jitter * n
        trace.range("train.py(30): step", at, at + WORK + length + 50, category="python_function")
        trace.op(at + 20, at + 40, launch=(at + 5, at + 10))
        trace.range(places[n % len(places)], at + 50, at + WORK + length, category=category)
        if inner:
            trace.range(inner, at + 51, at + WORK + length - 1, category="python_function")
        at += WORK + length + 50
    trace.range("train.py(40): main", 0, at + 100, category="python_function")
    return trace.op(at + 70, at + 90, launch=(at + 50, at + 60))


def beside(trace: KinetoTrace, frame: str = ENCODE, *, thread: int = OTHER) -> KinetoTrace:
    """Another thread that calls a function, which takes 10 ms, over and over."""
    end = max(event["ts"] + event["dur"] for event in trace.events if event["tid"] == MAIN)
    start = -20_000
    trace.range("train.py(18): write_records", start, end, category="python_function", thread=thread)
    while start + 10_000 < end:
        trace.range(frame, start + 2, start + 9_998, category="python_function", thread=thread)
        start += 10_000
    return trace.range(frame, start + 2, end - 2, category="python_function", thread=thread)


@pytest.fixture
def waits(tmp_path):
    def of(trace: KinetoTrace) -> list[dict[str, Any]]:
        return Catalog(ta.load(trace.write(tmp_path / "t.json"))).table("other_threads").to_pylist()

    return of


@pytest.mark.parametrize("turns", [1, 2, 4])
def test_a_thread_that_runs_python_is_named(waits, turns):
    found = waits(beside(stepping(turns)))
    assert len(found) == STEPS
    assert {(row["thread"], row["other"], row["frame"]) for row in found} == {
        (MAIN, "thread 529", "train.py:10 (encode)")
    }
    assert {row["place"] for row in found} == set(PLACES) and {row["turns"] for row in found} == {turns}
    # From when the operator began, which is in the GPU's idle time, to its end.
    assert {row["end_ns"] - row["start_ns"] for row in found} == {(turns * TURN + WORK - 50) * 1_000}


@pytest.mark.parametrize(
    "trace",
    [
        pytest.param(stepping(), id="no other thread has frames"),
        pytest.param(beside(stepping(), "<built-in function sleep>"), id="it sleeps"),
        pytest.param(beside(stepping(), "<built-in method acquire of _thread.lock object at 0x7f00>"), id="it waits for a lock"),
        pytest.param(beside(stepping(), "threading.py(359): wait"), id="it waits in C that is not shown"),
        pytest.param(beside(stepping(), "<built-in method recv_into of _socket.socket object>"), id="it reads from the network"),
        pytest.param(beside(stepping(1, PLACES[:2])), id="two places only: they may take as long by themselves"),
        pytest.param(beside(stepping(1, jitter=160)), id="any length"),
        pytest.param(beside(stepping(0.9)), id="less than a turn"),
        pytest.param(beside(stepping(7)), id="many turns within operators, which run without the lock"),
        pytest.param(beside(stepping(inner="<built-in function sleep>")), id="the launching thread itself sleeps"),
        pytest.param(beside(stepping(category="cuda_runtime")), id="the launching thread is in a call of CUDA"),
        pytest.param(beside(stepping()).op(150_000, 150_010, launch=(3, 4), thread=OTHER), id="it launches kernels too"),
    ],
)  # fmt: skip
def test_other_silence_is_no_wait_for_the_lock(waits, trace):
    assert waits(trace) == []


def test_what_a_thread_was_in_when_its_recording_began_may_be_a_wait(waits):
    trace = stepping()
    end = max(event["ts"] + event["dur"] for event in trace.events)
    assert waits(trace.range("worker.py(5): run", 0, end, category="python_function", thread=OTHER)) == []


def test_long_waits_count_within_python_frames_once_there_are_waits(waits):
    """The gradients are freed one by one, and each gives the lock away: 9 turns in which Python code only goes on."""
    trace = stepping(9, category="python_function", places=("torch/optim/optimizer.py(1): zero_grad",))
    alone = waits(beside(trace))
    assert alone == []
    last = max(event["ts"] + event["dur"] for event in trace.events if event["tid"] == MAIN)
    for event in stepping().events:
        if event.get("tid") == MAIN or event["cat"] == "kernel":
            args = event.get("args", {})
            args = {**args, "correlation": args["correlation"] + 1_000} if "correlation" in args else args
            trace.add(**{**event, "ts": event["ts"] + last, "args": args})
    trace.events = [event for event in trace.events if event["tid"] != OTHER]
    found = waits(beside(trace))
    assert {row["turns"] for row in found} == {1, 9}


def test_without_frames_of_a_second_thread_the_rule_says_why(tmp_path):
    result = ta.analyze(ta.load(stepping().write(tmp_path / "t.json")))
    outcome = next(one for one in result.rules if one.rule == "HST004")
    assert outcome.outcome == "not_applicable" and "profile_all_threads" in (outcome.reason or "")


class TestCaptured:
    def test_the_first_sentence_names_the_thread_and_its_function(self):
        result = ta.analyze(ta.load(FIXTURES / "captured" / "other_thread.slow.json.gz"))
        assert result.verdict.headline.startswith(
            "Thread 529, which runs encode (torch_cases.py:10) and holds Python's lock, leaves GPU 0 idle 2"
        )
        first = result.findings[0]
        assert first.rule == "HST004" and first.saving.gain_share > 0.5

    def test_a_thread_that_sleeps_is_not_blamed(self):
        result = ta.analyze(ta.load(FIXTURES / "captured" / "other_thread.fixed.json.gz"))
        assert "HST004" not in [finding.rule for finding in result.findings] and "hread" not in result.verdict.headline
