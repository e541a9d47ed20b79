"""Each cause of an idle gap, on a trace of two operations with one gap between them (10 to 100 us)."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import traceanalyzer as ta
from tests.support.kineto import AUTOGRAD, KinetoTrace
from tests.support.places import FIXTURES
from traceanalyzer.catalog.catalog import Catalog
from traceanalyzer.derive.host import host, ranges
from traceanalyzer.derive.launches import launches
from traceanalyzer.derive.ledger import gap_table, idle, ledger
from traceanalyzer.derive.steps import step_ledger


def two_ops(launch: tuple[float, float] | None, **second: object) -> KinetoTrace:
    trace = KinetoTrace().op(0, 10, launch=(-5, -2))
    return trace.op(100, 110, launch=launch, name="late", **second)


def parts(trace: KinetoTrace, tmp_path) -> list[tuple[str, int, int]]:
    """(cause, start, end) in us; checks that the parts tile the gap."""
    rows = gap_rows(trace, tmp_path)
    assert all(a["end_ns"] == b["start_ns"] for a, b in pairwise(rows))
    assert (rows[0]["start_ns"], rows[-1]["end_ns"]) == (10_000, 100_000)
    return [(r["cause"], r["start_ns"] // 1000, r["end_ns"] // 1000) for r in rows]


def gap_rows(trace: KinetoTrace, tmp_path) -> list[dict]:
    loaded = ta.load(trace.write(tmp_path / "trace.json"))
    return Catalog(loaded).table("gaps").to_pylist()


def test_nothing_recorded_before_the_launch(tmp_path):
    assert parts(two_ops((90, 95)), tmp_path) == [("host_untraced", 10, 90), ("launch_latency", 90, 100)]


def test_named_host_work_before_the_launch(tmp_path):
    trace = two_ops((90, 95)).range("aten::sort", 20, 60, category="cpu_op")
    assert parts(trace, tmp_path) == [
        ("host_untraced", 10, 20),
        ("host_work", 20, 60),
        ("host_untraced", 60, 90),
        ("launch_latency", 90, 100),
    ]
    work = next(r for r in gap_rows(trace, tmp_path) if r["cause"] == "host_work")
    assert work["range_name"] == "aten::sort"


def test_a_range_that_marks_a_step_is_no_work(tmp_path):
    trace = two_ops((90, 95)).range("ProfilerStep#4", 0, 99)
    assert parts(trace, tmp_path) == [("host_untraced", 10, 90), ("launch_latency", 90, 100)]


@pytest.mark.parametrize(
    "name", ["enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "data_loading", "load_batch_7"]
)
def test_data_loader(tmp_path, name):
    trace = two_ops((90, 95)).range(name, 12, 80).range("aten::stack", 20, 70, category="cpu_op")
    found = parts(trace, tmp_path)
    assert ("input", 12, 80) in found
    loading = next(r for r in gap_rows(trace, tmp_path) if r["cause"] == "input")
    assert loading["range_name"] == name


@pytest.mark.parametrize(
    ("name", "category"),
    [
        ("train_with_dataloader.py(12): main", "python_function"),
        ("fetch_model.py(3): main", "python_function"),
        ("multimodality_encoder", "user_annotation"),
        ("aten::fetch", "cpu_op"),
    ],
)
def test_what_only_sounds_like_loading(tmp_path, name, category):
    trace = two_ops((90, 95)).range(name, 10, 90, category=category)
    assert parts(trace, tmp_path) == [("host_work", 10, 90), ("launch_latency", 90, 100)]


def test_frames_of_the_loader_itself(tmp_path):
    frame = "torch/utils/data/dataloader.py(708): __next__"
    trace = two_ops((90, 95)).range("train_with_dataloader.py(12): main", 0, 99, category="python_function")
    trace.range(frame, 12, 80, category="python_function")
    assert ("input", 12, 80) in parts(trace, tmp_path)


def test_a_loader_on_another_thread_is_not_to_blame(tmp_path):
    trace = two_ops((90, 95), thread=AUTOGRAD).range("data_loading", 12, 80)
    assert parts(trace, tmp_path) == [("host_untraced", 10, 90), ("launch_latency", 90, 100)]


def test_allocation(tmp_path):
    trace = two_ops((90, 95)).call("cudaMalloc", 30, 70)
    assert ("memory_management", 30, 70) in parts(trace, tmp_path)


def test_a_wait_counts_until_it_returns_and_a_little_longer(tmp_path):
    trace = two_ops((90, 95)).call("cudaStreamSynchronize", -1, 12)
    assert parts(trace, tmp_path) == [
        ("synchronization", 10, 62),
        ("host_untraced", 62, 90),
        ("launch_latency", 90, 100),
    ]
    rows = gap_rows(trace, tmp_path)
    assert all(r["draining"] for r in rows)
    assert rows[0]["wait_name"] == "cudaStreamSynchronize"


def test_a_wait_on_an_idle_gpu_is_no_wait(tmp_path):
    trace = two_ops((90, 95)).call("cudaStreamSynchronize", 20, 25)
    assert ("host_work", 20, 25) in parts(trace, tmp_path)


def test_a_copy_to_the_host_that_blocks_is_a_wait(tmp_path):
    trace = KinetoTrace().op(
        0,
        10,
        launch=(-5, 12),
        api="cudaMemcpyAsync",
        category="gpu_memcpy",
        name="Memcpy DtoH (Device -> Pageable)",
        bytes=4,
    )
    trace.op(100, 110, launch=(90, 95))
    assert parts(trace, tmp_path)[0] == ("synchronization", 10, 62)


def test_the_profiler_is_never_blamed_on_the_user(tmp_path):
    trace = two_ops((90, 95)).range("aten::sort", 10, 90, category="cpu_op")
    trace.add(cat="overhead", name="Activity Buffer Request", pid=-1, tid=0, ts=30, dur=20)
    assert ("profiler", 30, 50) in parts(trace, tmp_path)


def test_lazy_loading_is_the_drivers_not_the_profilers(tmp_path):
    trace = two_ops((90, 95)).range("aten::sort", 10, 90, category="cpu_op")
    trace.add(cat="overhead", name="Lazy Function Loading", pid=-1, tid=0, ts=30, dur=20)
    rows = [(r["cause"], r["activity"], r["start_ns"], r["end_ns"]) for r in gap_rows(trace, tmp_path)]
    assert rows == [
        ("host_work", None, 10_000, 30_000),
        ("host_work", "first_use", 30_000, 50_000),
        ("host_work", None, 50_000, 90_000),
        ("launch_latency", None, 90_000, 100_000),
    ]


def test_queued_on_the_same_stream_is_the_hardwares_hand_over(tmp_path):
    trace = KinetoTrace().op(0, 10, launch=(-5, -2)).op(12, 20, launch=(1, 4))
    assert [r["cause"] for r in gap_rows(trace, tmp_path)] == ["turnaround"]


def test_queued_behind_another_stream_is_a_dependency(tmp_path):
    trace = KinetoTrace().op(0, 10, launch=(-5, -2)).op(12, 20, launch=(1, 4), stream=8)
    assert [r["cause"] for r in gap_rows(trace, tmp_path)] == ["dependency"]


def test_a_long_pause_on_one_stream_waits_for_nothing_that_was_seen(tmp_path):
    assert parts(two_ops((1, 4)), tmp_path) == [("queued", 10, 100)]


@pytest.mark.parametrize(
    ("other", "cause"),
    [
        ({"device": 1}, "dependency"),
        ({"device": 1, "stream": 9}, "dependency"),
        ({"device": 1, "until": 40}, "queued"),  # 60 us before: longer ago than a wait takes to end
        ({"device": 1, "until": 101}, "queued"),  # still running when it begins
        ({"stream": 8, "until": 9}, "queued"),  # ended long ago
    ],
)
def test_a_dependency_has_a_partner_that_ended_just_before(tmp_path, other, cause):
    until = other.pop("until", 98)
    trace = two_ops((1, 4)).op(5, until, launch=(-4, -3), **other)
    assert [r["cause"] for r in gap_rows(trace, tmp_path) if r["device"] == 0] == [cause]


def test_late_work_behind_its_launch_needs_a_partner_too(tmp_path):
    late = KinetoTrace().op(0, 10, launch=(-5, -2)).op(5000, 5010, launch=(20, 25))
    assert [r["cause"] for r in gap_rows(late, tmp_path)] == ["host_untraced", "launch_latency", "queued"]
    late.op(3000, 4990, launch=(-1, 0), device=1)
    assert [r["cause"] for r in gap_rows(late, tmp_path)][-1] == "dependency"


def test_a_partner_is_never_on_a_stream_that_is_not_known(tmp_path):
    trace = KinetoTrace().op(0, 10, launch=(-5, -2))
    trace.add(cat="gpu_memcpy", name="Memcpy HtoD", ts=12, dur=3, tid="?", args={"device": 0}).op(40, 50, launch=(1, 4))
    assert [r["cause"] for r in gap_rows(trace, tmp_path)][-1] == "queued"


class TestRecordedWaits:
    """Stream 7 is told to wait for an event of another stream before it is given the operation that begins late."""

    def trace(self, told: float = 0.5, **args: object) -> KinetoTrace:
        trace = two_ops((1, 4)).call("cudaEventRecord", -1, -0.5, correlation=77)
        event = {"cuda_sync_kind": "Stream Wait Event", "device": 0, "context": 1, "stream": 7, "correlation": 78}
        event |= {"wait_on_stream": 20, "wait_on_cuda_event_record_corr_id": 77, "wait_on_cuda_event_id": 3, **args}
        return trace.add(cat="cuda_sync", name="Stream Wait Event", pid=0, tid=7, ts=told, dur=0.1, args=event)

    def cause(self, trace: KinetoTrace, tmp_path) -> str:
        return gap_rows(trace, tmp_path)[-1]["cause"]

    def test_a_wait_for_work_that_is_not_shown_is_a_dependency(self, tmp_path):
        assert self.cause(self.trace(), tmp_path) == "dependency"
        assert self.cause(self.trace(wait_on_cuda_event_record_corr_id=-1), tmp_path) == "dependency"

    def test_work_that_is_shown_tells_itself_when_it_ended(self, tmp_path):
        shown = self.trace().op(-20, -10, stream=20, launch=(-30, -29))
        assert self.cause(shown, tmp_path) == "queued"

    @pytest.mark.parametrize(
        "args",
        [
            {"wait_on_stream": 7},  # its own
            {"wait_on_stream": -1},  # none
            {"stream": 8},  # another one waits
            {"told": 2},  # told after the launch
            {"told": -9},  # the operation before is the one that waited
        ],
    )
    def test_it_must_be_this_one_that_waits_for_another(self, tmp_path, args):
        assert self.cause(self.trace(**args), tmp_path) == "queued"


class TestEarlierWork:
    """A profiler does not show what was launched before it began."""

    def trace(self) -> KinetoTrace:
        """The first thing seen launched on stream 7 begins long after its launch; another stream was at work before."""
        return KinetoTrace().op(0, 10, launch=(-5, -2), stream=8).op(900, 1000, launch=(1, 4))

    def found(self, trace: KinetoTrace, tmp_path) -> list[tuple[str, bool]]:
        return [(r["cause"], r["earlier_work"]) for r in gap_rows(trace, tmp_path)]

    def test_it_may_run_until_the_first_launch_that_was_seen_reaches_its_stream(self, tmp_path):
        assert self.found(self.trace().op(2000, 2100, launch=(6, 7)), tmp_path) == [("queued", True), ("queued", False)]

    def test_also_where_operations_without_launch_are_seen(self, tmp_path):
        trace = KinetoTrace().op(0, 10).op(500, 510).op(900, 1000, launch=(1, 4)).op(2000, 2100)
        assert self.found(trace, tmp_path) == [("unattributed", True), ("queued", True), ("unattributed", False)]

    def test_not_on_a_stream_of_which_no_launch_was_recorded(self, tmp_path):
        assert self.found(KinetoTrace().op(0, 10).op(500, 510), tmp_path) == [("unattributed", False)]

    def test_not_in_a_program_that_was_recorded_from_its_start(self, tmp_path):
        assert self.found(self.trace().call("cuInit", -90, -50), tmp_path) == [("queued", False)]

    def test_it_is_not_called_idle_time(self, tmp_path):
        result = ta.analyze(ta.load(self.trace().write(tmp_path / "trace.json")))
        assert result.verdict.headline == (
            "Could not judge 89% of the time: "
            "work from before the recording, which it does not show, may have been running."
        )
        assert [note.code for note in result.health if "before the recording" in note.message] == ["TRC010"]
        assert not [finding for finding in result.findings if finding.saving.recoverable_ns]


def test_a_launch_still_running_when_the_gap_begins_is_launch_latency(tmp_path):
    assert parts(two_ops((5, 95)), tmp_path) == [("launch_latency", 10, 100)]


def test_no_launch_record(tmp_path):
    assert parts(two_ops(None), tmp_path) == [("unattributed", 10, 100)]


def test_the_nodes_of_one_graph_follow_each_other(tmp_path):
    trace = KinetoTrace()
    trace.call("cudaGraphLaunch", -5, 30, correlation=99)
    for start in (0, 12, 24):
        trace.add(
            cat="kernel", name="node", pid=0, tid=7, ts=start, dur=10,
            args={"device": 0, "context": 1, "stream": 7, "correlation": 99, "graph id": 3},
        )  # fmt: skip
    assert [r["cause"] for r in gap_rows(trace, tmp_path)] == ["turnaround", "turnaround"]


def test_gaps_are_per_device(tmp_path):
    trace = (
        KinetoTrace()
        .op(0, 10, launch=(-5, -2))
        .op(50, 60, launch=(-4, -1), device=1)
        .op(90, 95, launch=(-3, 0), device=1)
    )
    assert [(r["device"], r["start_ns"], r["end_ns"]) for r in gap_rows(trace, tmp_path)] == [(1, 60_000, 90_000)]


@pytest.mark.parametrize("inner", [(1, 3), (1, 14), (11, 20)])
def test_a_wait_inside_a_wait(tmp_path, inner):
    trace = two_ops((90, 95)).call("cudaDeviceSynchronize", -1, 15)
    trace.add(cat="cuda_driver", name="cuCtxSynchronize", ts=inner[0], dur=inner[1] - inner[0], args={})
    assert parts(trace, tmp_path)[0] == ("synchronization", 10, 65)
    assert gap_rows(trace, tmp_path)[0]["wait_name"] == "cudaDeviceSynchronize"


def test_a_step_marker_inside_another_is_no_work(tmp_path):
    trace = two_ops((90, 95)).range("ProfilerStep#4", 0, 99).range("iteration 4", 1, 98).range("step", 2, 97)
    assert parts(trace, tmp_path) == [("host_untraced", 10, 90), ("launch_latency", 90, 100)]


def test_ranges_that_cross_keep_their_names(tmp_path):
    trace = two_ops((90, 95)).range("A", 0, 20).range("B", 15, 90).range("C", 16, 17)
    work = [
        (r["range_name"], r["start_ns"], r["end_ns"]) for r in gap_rows(trace, tmp_path) if r["cause"] == "host_work"
    ]
    assert work == [("B", 10_000, 90_000)]


def test_correlation_zero_links_nothing(tmp_path):
    trace = KinetoTrace().op(0, 10, launch=(-5, -2)).op(100, 110, correlation=0).call("cudaFree", 20, 30, correlation=0)
    assert parts(trace, tmp_path) == [("unattributed", 10, 100)]


def test_hours_of_work_do_not_overflow(tmp_path):
    hour = 3.6e9
    trace = KinetoTrace().op(-10 * hour, -10 * hour + 5, launch=(-10 * hour - 5, -10 * hour - 2))
    for n in range(300):
        start = n * hour / 10
        trace.op(start, start + 10, launch=(start - 5, start - 2)).op(
            start + 12, start + 20, launch=(start - 1, start + 1)
        )
    causes = [r["cause"] for r in gap_rows(trace, tmp_path)]
    assert causes.count("turnaround") == 300
    assert causes.count("launch_latency") == 300


def test_each_process_of_one_file_is_its_own(tmp_path):
    trace = KinetoTrace().op(0, 10, launch=(-5, -2)).op(100, 110)
    trace.add(pid=200, tid=200, cat="cuda_runtime", name="cudaLaunchKernel", ts=90, dur=5, args={"correlation": 2})
    trace.add(pid=200, tid=200, cat="cpu_op", name="aten::sort", ts=20, dur=60).range(
        "aten::other", 10, 90, category="cpu_op"
    )
    assert ("host_work", 20, 80) in parts(trace, tmp_path)
    assert {r["process"] for r in gap_rows(trace, tmp_path)} == {200}


@pytest.mark.parametrize(
    "file",
    [
        *("kineto/gc_stack.slow.pt.trace.json.gz", "kineto/cpu_postprocess.slow.pt.trace.json.gz"),
        *("nsys/nvtx_dataloader.slow.sqlite", "nsys/comm_not_overlapped.slow.4gpu.sqlite.xz"),
    ],
)
def test_it_makes_no_difference_where_a_block_of_gaps_ends(file, monkeypatch):
    tables = ("gaps", "links", "ledger_intervals", "ledger", "step_ledger")
    catalog = Catalog(ta.load(FIXTURES / file))
    whole = {name: catalog.table(name) for name in tables}
    for module in (gap_table, idle, host, launches, ledger, step_ledger):
        monkeypatch.setattr(module, "BLOCK", 7)
    monkeypatch.setattr(ranges, "_STEP", 5)
    catalog = Catalog(ta.load(FIXTURES / file))
    assert [name for name in tables if not catalog.table(name).equals(whole[name])] == []
    table, whole = catalog.table("gaps"), whole["gaps"]
    # The names, too, come in the same order.
    assert all(dictionary(table[name]) == dictionary(whole[name]) for name in ("place", "source", "range_name"))


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 9), st.integers(0, 2), st.integers(0, 2)), min_size=1),
    st.integers(0, 3),
    st.integers(0, 9),
)
def test_a_gap_is_what_nothing_runs_in_and_follows_what_ended_last(drawn, earlier, later):
    drawn = sorted(drawn)
    start, end = (np.array([one[0] + one[1] * side for one in drawn]) for side in (0, 1))
    first, until = int(start.min()) - earlier, int(end.max()) + later
    ops = pa.table(
        {
            "start_ns": start,
            "end_ns": end,
            "stream": [one[2] for one in drawn],
            "correlation": [one[3] for one in drawn],
        }
        | dict.fromkeys(("process", "context"), np.zeros(len(drawn), np.int64))
    )
    expected, done = [], first
    for at in range(len(drawn) + 1):
        begin, op = (until, at - 1) if at == len(drawn) else (int(start[at]), at)
        if begin > done:
            last = [row for row in range(at) if end[row] == done and at]
            same = [any(drawn[row][side] == drawn[op][side] for row in last) and at < len(drawn) for side in (2, 3)]
            expected.append((done, begin, op, max(last, default=-1), at == len(drawn), *same))
        done = max(done, int(end[at])) if at < len(drawn) else done
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(idle, "BLOCK", 4)
        found = idle._Operations(ops).gaps(slice(0, len(drawn)), first, until)
        columns = ("start", "end", "op", "before", "tail", "same_stream", "same_call")
        rows = [row for some in found for row in zip(*(getattr(some, c).tolist() for c in columns), strict=True)]
    assert rows == expected


def dictionary(column: pa.ChunkedArray) -> list[str]:
    return column.combine_chunks().dictionary.to_pylist()


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 15)), max_size=30), st.integers(0, 50), st.integers(1, 20))
def test_the_ranges_that_reach_into_a_stretch_of_time(drawn, start, length):
    spans = sorted(((a, a + b) for a, b in drawn), key=lambda one: (one[0], -one[1]))
    begins, ends = (np.array([one[side] for one in spans], np.int64) for side in (0, 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranges, "_STEP", 3)
        found = ranges.Reaching(begins, ends).rows(start, start + length) if spans else []
    assert list(found) == [at for at, (a, b) in enumerate(spans) if a < start + length and b > start]
