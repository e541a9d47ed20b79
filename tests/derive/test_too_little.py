"""Recordings of a graph's capture, and of a handful of operations that were left over, are not judged; what is enough still is."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import traceanalyzer as ta
from tests.support.kineto import KinetoTrace, steady
from traceanalyzer.analysis import analyze
from traceanalyzer.doctor import diagnose
from traceanalyzer.result.document import Result

sys.path.insert(0, str(Path(__file__).parents[1] / "nsys"))


def judged(trace: KinetoTrace, tmp_path: Path) -> Result:
    return analyze(ta.load(trace.write(tmp_path / "t.json")))


def ran(count: int, first: float = 0.0, length: float = 5.0) -> KinetoTrace:
    """Kernels, each launched before it runs."""
    trace = KinetoTrace()
    for n in range(count):
        trace.op(first + 20 * n, first + 20 * n + length, launch=(first + 20 * n - 10, first + 20 * n - 5))
    return trace


def captured(
    trace: KinetoTrace, count: int, first: float = 10_000.0, begins: bool = True, ends: bool = True
) -> KinetoTrace:
    if begins:
        trace.call("cudaStreamBeginCapture", first, first + 5)
    for n in range(count):
        trace.call("cudaLaunchKernel", first + 10 + 10 * n, first + 15 + 10 * n, correlation=1000 + n)
    if ends:
        trace.call("cudaStreamEndCapture", first + 20 + 10 * count, first + 25 + 10 * count)
    return trace


def built(trace: KinetoTrace, count: int) -> KinetoTrace:
    for n in range(count):
        trace.call("cudaGraphAddKernelNode", 10_000 + 10 * n, 10_005 + 10 * n)
    return trace


@pytest.mark.parametrize(
    "trace",
    [
        captured(ran(2), 60),
        captured(ran(12), 60),
        captured(ran(2), 60, begins=False),
        captured(ran(2), 60, ends=False),
        built(ran(3), 40),
    ],
)
def test_the_capture_of_a_graph(tmp_path: Path, trace: KinetoTrace) -> None:
    found = judged(trace, tmp_path)
    assert not found.judged
    assert "launches were captured into a CUDA graph, and no graph was launched" in found.verdict.headline
    assert [finding.rule for finding in found.findings] == ["TRC010"]
    assert {rule.outcome for rule in found.rules if rule.rule in ("HST001", "GAP001")} == {"could_not_judge"}


def test_a_capture_after_the_same_work_ran_is_only_noted(tmp_path: Path) -> None:
    found = judged(captured(ran(60, length=15), 60), tmp_path)
    assert found.judged
    assert any("what the graph runs is not in this trace" in note.message for note in found.health)


def test_a_graph_that_was_launched_is_judged(tmp_path: Path) -> None:
    trace = captured(ran(2), 60)
    for n in range(3):
        trace.op(20_000 + 900 * n, 20_800 + 900 * n, launch=(19_000 + n, 19_000.5 + n), api="cudaGraphLaunch")
    found = judged(trace, tmp_path)
    assert found.judged
    assert not any("captured" in note.message for note in found.health)


@pytest.mark.parametrize(
    ("count", "around", "enough"),
    [
        (1, 600_000, False),
        (9, 600_000, False),
        (10, 600_000, True),
        # Most of what was recorded.
        (3, 90, True),
    ],
)
def test_a_handful_of_operations_in_a_long_recording(tmp_path: Path, count: int, around: float, enough: bool) -> None:
    trace = ran(count).range("all", -20, around)
    found = judged(trace, tmp_path)
    assert found.judged is enough
    assert found.verdict.headline.startswith("Could not judge: only") is not enough


def test_a_few_long_operations_are_enough(tmp_path: Path) -> None:
    trace = KinetoTrace().op(0, 50_000, launch=(-20, -10)).range("all", -30, 60_000_000)
    assert judged(trace, tmp_path).judged


def test_marked_steps_of_few_operations_are_enough(tmp_path: Path) -> None:
    trace = ran(6).range("all", -50, 600_000, category="python_function")
    for n in range(3):
        trace.range(f"ProfilerStep#{n}", 40 * n - 15, 40 * n + 24)
    assert judged(trace, tmp_path).judged


def test_what_the_file_says_of_its_length_counts(tmp_path: Path) -> None:
    from nsys_export import kernel, make_export, runtime

    tables = {"CUPTI_ACTIVITY_KIND_KERNEL": [kernel()], "CUPTI_ACTIVITY_KIND_RUNTIME": [runtime()]}
    assert analyze(ta.load(make_export(tmp_path / "a.sqlite", tables))).judged
    tables["ANALYSIS_DETAILS"] = [{"duration": 600_000_000, "startTime": 0, "stopTime": 600_000_000}]
    found = analyze(ta.load(make_export(tmp_path / "b.sqlite", tables)))
    assert not found.judged
    assert "within 1 us of 600 ms" in found.verdict.headline


def test_a_rank_with_a_handful_hides_nothing_of_the_others(tmp_path: Path) -> None:
    ran(2).range("all", -20, 600_000).write(tmp_path / "a.json")
    steady(5).write(tmp_path / "b.json")
    found = analyze(ta.load(tmp_path))
    assert found.judged
    assert "low" in {note.severity for note in found.health if note.code == "TRC010"}


def test_doctor_says_the_same_and_what_to_record(tmp_path: Path) -> None:
    path = captured(ran(2), 60).write(tmp_path / "t.json")
    (recording,) = diagnose([path]).recordings
    assert recording.could_not_judge == analyze(ta.load(path)).verdict.headline
    names = {setting.name for setting in recording.next_time.settings}
    assert "replay" in names
    path = ran(1).range("all", -20, 600_000).write(tmp_path / "u.json")
    (recording,) = diagnose([path]).recordings
    assert "iterations" in {setting.name for setting in recording.next_time.settings}
