"""What the tables say of the trace's health: launches without GPU work, and operations whose times cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest

import traceanalyzer as ta
from tests.support.kineto import KinetoTrace, steady
from tests.support.places import CORPUS, FIXTURES, needs_corpus
from tests.support.results import result_of
from traceanalyzer.analysis import analyze
from traceanalyzer.catalog.catalog import Catalog


def health(trace: KinetoTrace, tmp_path) -> list[tuple[str, str, int]]:
    return rows(ta.load(trace.write(tmp_path / "t.json")))


def rows(loaded: ta.Trace) -> list[tuple[str, str, int]]:
    """Without the note that these traces are short, which they are."""
    table = Catalog(loaded).table("health").to_pylist()
    return [(r["code"], r["severity"], r["count"]) for r in table if r["code"] != "TRC010"]


def short(trace: KinetoTrace, tmp_path) -> list[str]:
    table = Catalog(ta.load(trace.write(tmp_path / "t.json"))).table("health").to_pylist()
    return [f"{r['code']} {r['severity']}: {r['message']}" for r in table]


def test_launches_without_gpu_activity(tmp_path):
    trace = KinetoTrace()
    for n in range(4):
        trace.call("cudaLaunchKernel", n * 10, n * 10 + 5, correlation=n + 1)
    found = analyze(ta.load(trace.write(tmp_path / "t.json")))
    assert not found.judged
    assert found.verdict.headline.startswith("Could not judge: the trace has kernel launches but no GPU activity")


def test_one_rank_without_gpu_activity_does_not_hide_the_others(tmp_path):
    steady(3).write(tmp_path / "a.json")
    KinetoTrace().call("cudaLaunchKernel", 0, 5, correlation=1).write(tmp_path / "b.json")
    found = analyze(ta.load(tmp_path))
    assert found.judged
    assert [(h.code, h.severity) for h in found.health if h.code != "TRC010"] == [("TRC002", "low")]


def test_missing_kernels(tmp_path):
    trace = steady(6)
    for n in range(4):
        trace.call("cudaLaunchKernel", 7000 + n, 7000 + n + 0.5, correlation=100 + n)
    assert health(trace, tmp_path) == [("TRC002", "medium", 4)]


@pytest.mark.parametrize(("lost", "found"), [(1, []), (3, [("TRC002", "medium", 3)])])
def test_a_single_launch_may_be_without_its_kernel(tmp_path, lost, found):
    trace = steady(100)
    for n in range(lost):
        trace.call("cudaLaunchKernel", 10_500 + n, 10_500 + n + 0.5, correlation=1000 + n)
    assert health(trace, tmp_path) == found


def test_a_graph_that_begins_with_a_copy_is_not_missing(tmp_path):
    trace = KinetoTrace()
    for n in range(5):
        trace.call("cudaGraphLaunch", n * 100, n * 100 + 5, correlation=n + 1)
        for category, name, start in (("gpu_memcpy", "Memcpy HtoD", 10), ("kernel", "k", 20)):
            args = {"device": 0, "context": 1, "stream": 7, "correlation": n + 1}
            trace.add(cat=category, name=name, pid=0, tid=7, ts=n * 100 + start, dur=5, args=args)
    assert health(trace, tmp_path) == []


def test_a_driver_call_inside_a_runtime_call_is_not_missing(tmp_path):
    trace = steady(5)
    for n in range(5):
        start = n * 1000 - 19
        trace.add(
            cat="cuda_driver", name="cuLaunchKernel", ts=start, dur=1, args={"correlation": n + 1 + 1000 * (n % 2)}
        )
    assert health(trace, tmp_path) == []


def test_a_kernel_at_time_zero_is_set_aside(tmp_path):
    trace = steady(3, first=4e12).op(0, 10)
    loaded = ta.load(trace.write(tmp_path / "t.json"))
    assert rows(loaded) == [("TRC007", "low", 1)]
    (row,) = Catalog(loaded).table("ledger").to_pylist()
    assert row["duration"] == 2_900_000


@pytest.mark.parametrize("years", [1, 236])
def test_a_kernel_longer_than_the_recording_is_set_aside(tmp_path, years):
    start = 4e12 + 20_000
    trace = steady(20, first=4e12).op(start, start + years * 3.15e13, launch=(start - 20, start - 15))
    loaded = ta.load(trace.write(tmp_path / "t.json"))
    assert rows(loaded) == [("TRC007", "low", 1)]
    assert Catalog(loaded).table("ledger")["duration"].to_pylist() == [19_900_000]


def test_a_kernel_that_swallows_its_successors_is_set_aside(tmp_path):
    trace = steady(40)
    gpu = [e for e in trace.events if e["cat"] == "kernel"]
    gpu[3]["dur"] = 30_000
    loaded = ta.load(trace.write(tmp_path / "t.json"))
    assert rows(loaded) == [("TRC007", "low", 1)]
    assert loaded.table("gpu_ops")["quarantined"].to_pylist().index(True) == 3


def test_kernels_of_one_graph_may_overlap_on_a_stream(tmp_path):
    trace = KinetoTrace().call("cudaGraphLaunch", -5, 0, correlation=9)
    for n in range(40):
        args = {"device": 0, "context": 1, "stream": 7, "correlation": 9, "graph id": 1}
        trace.add(cat="kernel", name="k", pid=0, tid=7, ts=n * 100, dur=50_000 if n == 0 else 90, args=args)
    assert health(trace, tmp_path) == []


def test_gpu_work_far_from_scarce_host_records_is_kept(tmp_path):
    trace = KinetoTrace().range("setup", 0, 1, category="cpu_op")
    for n in range(5):
        trace.op(60e6 + n * 100, 60e6 + n * 100 + 50)
    assert health(trace, tmp_path) == []


def test_nothing_but_impossible_times_cannot_be_judged(tmp_path):
    found = analyze(ta.load(KinetoTrace().op(9e15, 9e15 + 10).write(tmp_path / "t.json")))
    assert not found.judged
    assert found.verdict.headline.startswith("Could not judge: every GPU operation has impossible times")


REAL = ("kineto", "multirank", "nsys", "pairs", "public/kineto", "public/kineto_multirank", "public/nsys")


def inputs(root) -> list:
    found = []
    for part in REAL:
        folder = root / part
        found += (
            sorted(p for p in folder.rglob("*") if p.suffix in (".gz", ".xz", ".json", ".sqlite"))
            if folder.is_dir()
            else []
        )
    return [str(p.relative_to(root)) for p in found]


def codes_of(path: Path) -> set[str]:
    """Of a file; what is a trace of its own, other tests analyse too."""
    if "multirank" in str(path):
        return {code for code, _, _ in rows(ta.load(path))}
    return {one.code for one in result_of(path).health}


@pytest.mark.parametrize("file", inputs(FIXTURES))
def test_no_false_alarm_on_fixtures(file):
    assert not {"TRC002", "TRC007"} & codes_of(FIXTURES / file)


@needs_corpus
@pytest.mark.parametrize("file", inputs(CORPUS) if CORPUS.is_dir() else [])
def test_no_false_alarm_on_the_corpus(file):
    assert not {"TRC002", "TRC007"} & codes_of(CORPUS / file)


def test_a_window_too_short_to_say_much(tmp_path):
    (note,) = short(KinetoTrace().op(0, 10, launch=(-5, -2)).op(800, 900, launch=(790, 795)), tmp_path)
    assert note.startswith("TRC010 low: the GPU's work spans only 900 us")
    (note,) = short(steady(3), tmp_path)
    assert note.startswith("TRC010 low: there are only a few GPU operations and no steps")
    assert short(steady(12), tmp_path) == []


def test_few_operations_in_steps_are_enough(tmp_path):
    trace = steady(4)
    for n in range(4):
        trace.range(f"ProfilerStep#{n}", n * 1000 - 50, n * 1000 + 940)
    assert short(trace, tmp_path) == []


@pytest.mark.parametrize(
    ("name", "length", "said"),
    [
        ("Activity Buffer Request", 700, True),
        ("Activity Buffer Request", 300, False),
        ("Lazy Function Loading", 700, False),
    ],
)
def test_what_the_profiler_cost(tmp_path, name, length, said):
    trace = steady(12).add(cat="overhead", name=name, ph="X", pid=-1, tid=0, ts=2100, dur=length)
    found = short(trace, tmp_path)
    assert [note[:10] for note in found] == (["TRC004 low"] if said else [])
    assert not said or "at work for 5.9% of the time (700 us)" in found[0]
