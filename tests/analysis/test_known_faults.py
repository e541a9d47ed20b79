"""Faults that traces are known to have and that would pass for an answer: what is made of each, in exact figures."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

import traceanalyzer as ta
from tests.support.kineto import AUTOGRAD, KinetoTrace, steady
from traceanalyzer.analysis import analyze
from traceanalyzer.catalog.catalog import Catalog
from traceanalyzer.report.html import render_html
from traceanalyzer.result.document import Device, Result

Run = tuple[Catalog, Result]
Health = list[tuple[str, str, int]]


@pytest.fixture
def run(tmp_path: Path) -> Any:
    """The tables and the result of one trace, or of several as ranks of a job."""

    def of(*traces: KinetoTrace) -> Run:
        for number, trace in enumerate(traces):
            trace.write(tmp_path / f"{number}.json")
        loaded = ta.load(tmp_path)
        return Catalog(loaded), analyze(loaded)

    return of


def ranked(rank: int, trace: KinetoTrace, size: int = 4) -> KinetoTrace:
    trace.metadata["distributedInfo"] = {"rank": rank, "world_size": size}
    return trace


def only(result: Result) -> Device:
    (device,) = result.devices
    return device


def health(result: Result) -> Health:
    """What health says, but for TRC010: these traces are short on purpose."""
    return [(note.code, note.severity, note.count) for note in result.health if note.code != "TRC010"]


class TestTimes:
    @pytest.mark.parametrize("unit", ["ms", "ns", None])
    def test_the_unit_of_display_changes_nothing(self, run, unit):
        """Times are microseconds whatever `displayTimeUnit` says; a reader that believes it is wrong by a factor of 1000."""
        trace = steady(3, first=4955325388754.25)
        if unit:
            trace.metadata["displayTimeUnit"] = unit
        catalog, result = run(trace)
        assert catalog.table("gpu_ops")["start_ns"].to_pylist() == [
            4955325388754250,
            4955325389754250,
            4955325390754250,
        ]
        gpu = only(result)
        assert (gpu.window_ns, gpu.compute_ns, gpu.idle_ns) == (2_900_000, 2_700_000, 200_000)
        assert health(result) == []

    def test_a_gap_of_one_nanosecond_at_absolute_times(self, run):
        """A float64 of microseconds since 1970 holds only steps of 250 ns: these kernels would touch, or overlap."""
        trace = KinetoTrace().op(1, 2).op(3, 4)
        for event, (start, duration) in zip(
            trace.events, (("1719000000000000.123", "0.877"), ("1719000000000001.001", "1.5")), strict=True
        ):
            event |= {"ts": start, "dur": duration}
        catalog, result = run(trace)
        assert catalog.table("gaps").select(["start_ns", "end_ns"]).to_pylist() == [
            {"start_ns": 1719000000000001000, "end_ns": 1719000000000001001}
        ]
        assert (only(result).window_ns, only(result).idle_ns) == (2378, 1)

    def test_each_file_keeps_the_zero_of_its_own_clock(self, run, tmp_path):
        """The base moves by a quarter of a year while a job runs, and files of some weeks of 2024 have none."""
        bases = [1767189312000000000, 1775078550000000000, None]
        traces = [ranked(rank, steady(3)) for rank in range(3)]
        for trace, base in zip(traces, bases, strict=True):
            trace.metadata |= {"baseTimeNanoseconds": base} if base else {}
        _, result = run(*traces)
        assert [i.clock_base_ns for i in ta.load(tmp_path).inputs] == bases
        assert [d.window_ns for d in result.devices] == [2_900_000] * 3

    def test_a_kernel_at_zero_in_a_recording_that_began_later(self, run):
        """A record that was never filled in has the time 0. Here that is nearer to the others than these are to each other."""
        trace = KinetoTrace()
        for n in range(10):
            start = 5e6 + n * 1e6
            trace.op(start, start + 9e5, launch=(start - 20, start - 15))
        _, result = run(trace.op(0, 10, launch=(5.5e6, 5.5e6 + 5)))
        assert (only(result).window_ns, only(result).idle_ns) == (9_900_000_000, 900_000_000)
        assert health(result) == [("TRC007", "low", 1)]

    def test_most_kernels_at_zero(self, run):
        """They must not drag the window back over 46 days, and what is left says little of the run."""
        trace = steady(4, first=4e12)
        for n in range(6):
            trace.op(0, 5 + n, launch=(4e12 + 10 + n, 4e12 + 10.5 + n))
        _, result = run(trace)
        assert only(result).window_ns == 3_900_000
        assert health(result) == [("TRC007", "low", 6), ("TRC002", "high", 6)]
        assert not result.judged

    def test_host_records_that_last_for_years(self, run):
        """A range or a call with a damaged duration would be to blame for all the time in which the GPU is idle."""
        start, years = 4e12 + 100, 236 * 3.15e13
        trace = steady(20, first=4e12).range("aten::add", start, start + years, category="cpu_op")
        catalog, result = run(trace.call("cudaFree", start, start + years))
        idle = {cause: ns for cause, ns in only(result).idle_by_cause_ns.items() if ns}
        assert idle == {"launch_latency": 19 * 20_000, "host_untraced": 19 * 80_000}
        assert health(result) == [("TRC007", "low", 2)]
        assert not [finding for finding in result.findings if finding.rule == "MEM001"]
        (kept,) = catalog.table("host_ranges").to_pylist()
        assert kept["end_ns"] == kept["start_ns"] == 4_000_000_000_100_000

    def test_one_kernel_over_all_the_steps_whose_records_are_lost(self, run):
        """One event of damaged length makes the GPU look 98% busy, while 30 of 32 steps have no GPU records at all."""
        trace = KinetoTrace()
        for step in range(32):
            trace.range(f"ProfilerStep#{step}", step * 10_000, step * 10_000 + 10_000)
            for n in range(20):
                start = step * 10_000 + n * 400
                if step in (0, 31):
                    trace.op(start + 20, start + 320, launch=(start, start + 5))
                else:
                    trace.call("cudaLaunchKernel", start, start + 5, correlation=10_000 + start)
        _, result = run(trace.op(10_020, 310_000, launch=(9_900, 9_905)))
        assert health(result) == [("TRC002", "high", 600)]
        assert not result.judged
        assert result.verdict.headline.startswith("Could not judge: most kernel launches left no usable kernel")

    def test_a_kernel_that_begins_after_the_wait_for_it(self, run):
        """The wait for the device returned at 20 us, so what it waited for cannot have begun at 25."""
        trace = KinetoTrace().op(25, 30, launch=(10, 11)).call("cudaDeviceSynchronize", 12, 20)
        _, result = run(trace.op(50, 60, launch=(40, 41)))
        assert health(result) == [("TRC005", "medium", 1)]
        assert only(result).idle_by_cause_ns["unattributed"] == only(result).idle_ns == 20_000

    def test_work_queued_before_the_recording(self, run):
        """Always there and no fault: kernels without a launch at the front. They count as work and have no launch latency."""
        trace = KinetoTrace()
        for n in range(100):
            trace.op(n * 10, n * 10 + 8, launch=(n * 10 - 5, n * 10 - 3) if n >= 30 else None)
        catalog, result = run(trace)
        assert health(result) == []
        assert catalog.table("launches")["queue_delay"].to_pylist() == [5000] * 70
        assert only(result).compute_ns == 800_000
        assert only(result).idle_by_cause_ns["unattributed"] == 29 * 2000

    def test_a_child_that_ends_a_quarter_microsecond_after_its_parent(self, run):
        """Rounding of absolute times: the child stays a child, and no time is counted twice or below zero."""
        base = 1719000000000000
        trace = KinetoTrace().op(base, base + 10, launch=(base - 5, base - 2))
        trace.op(base + 100, base + 110, launch=(base + 92, base + 95))
        trace.range("parent", base + 20, base + 60.25, category="cpu_op")
        catalog, result = run(trace.range("child", base + 40, base + 60.5, category="cpu_op"))
        found = catalog.table("host_ranges").select(["name", "depth", "parent"]).to_pylist()
        assert [tuple(row.values()) for row in found] == [("parent", 0, None), ("child", 1, 0)]
        assert only(result).idle_by_cause_ns["host_work"] == 40_500
        work = [g for g in catalog.table("gaps").to_pylist() if g["cause"] == "host_work"]
        assert sum(g["end_ns"] - g["start_ns"] for g in work) == 40_500

    def test_a_call_that_the_profiler_closed_when_it_stopped_is_not_to_blame(self, run):
        """Such a call of a built-in function seems to run from somewhere in the loop to the end, across every gap."""
        trace = KinetoTrace().op(0, 10, launch=(-5, -2)).op(100, 110, launch=(90, 95))
        for name, start in (
            ("train.py(3): loop", -30),
            ("<built-in method open>", -20),
            ("<built-in method stop>", 150),
        ):
            trace.range(name, start, 200, category="python_function")
        trace.range("<built-in method short>", 20, 30, category="python_function")
        catalog, _ = run(trace)
        gaps = catalog.table("gaps").to_pylist()
        assert [(g["cause"], g["range_name"]) for g in gaps] == [
            ("host_work", "train.py(3): loop"),
            ("launch_latency", "train.py(3): loop"),
        ]
        assert catalog.table("host_ranges").num_rows == 4


class TestLinks:
    def test_a_graph_launch_is_one_launch(self, run):
        """One call starts three kernels: counted as one launch, and only the first kernel waited for the call."""
        trace = KinetoTrace().call("cudaGraphLaunch", 10, 15, correlation=7)
        for node in range(3):
            args = {"device": 0, "stream": 7, "correlation": 7, "graph id": 3, "graph node id": node + 1}
            trace.add(cat="kernel", name="k", pid=0, tid=7, ts=20 + 6 * node, dur=5, args=args)
        catalog, result = run(trace)
        assert catalog.table("ledger")["launch_count"].to_pylist() == [1]
        links = catalog.table("launches").select(["first", "queue_delay"]).to_pylist()
        assert [tuple(link.values()) for link in links] == [(True, 10_000), (False, 16_000), (False, 22_000)]
        assert only(result).kernel_count == 3
        assert {cause: ns for cause, ns in only(result).idle_by_cause_ns.items() if ns} == {"turnaround": 2000}

    @pytest.mark.parametrize(
        "api", ["INVALID", "cudaLaunchSomethingNew", "hipExtModuleLaunchKernel", "cuLaunchKernelEx_v9"]
    )
    def test_a_call_of_any_name_launches_what_has_its_correlation(self, run, api):
        """Lists of launch functions are never complete: the profiler writes INVALID for those it does not know itself."""
        catalog, result = run(KinetoTrace().op(0, 10, launch=(-5, -3), api=api).op(20, 30, launch=(12, 14), api=api))
        assert catalog.table("launches")["queue_delay"].to_pylist() == [5000, 8000]
        assert only(result).idle_by_cause_ns["launch_latency"] == 8000
        assert health(result) == []

    def test_correlations_of_two_files_do_not_mix(self, run):
        """Both count from 1; joined by the number alone the second rank's kernels would start 50 ms before their launches."""
        catalog, result = run(ranked(0, steady(3, first=50_000)), ranked(1, steady(3)))
        assert catalog.table("launches")["queue_delay"].to_pylist() == [20_000] * 6
        assert [code for code, *_ in health(result)] == ["TRC006"]  # other ranks of the job are missing

    def test_traces_of_two_processes_merged_into_one_file(self, run):
        """Both count their correlations from 1, and kernels do not say whose they are: nothing may be linked by guess."""
        trace = KinetoTrace()
        for n in range(5):
            trace.op(n * 100, n * 100 + 50, launch=(n * 100 - 10, n * 100 - 5))
        for n in range(5):
            start, args = 50_000 + n * 100, {"context": 1, "stream": 7, "correlation": n + 1}
            trace.add(cat="kernel", name="gemm", pid=1, tid=7, ts=start, dur=50, args={"device": 1, **args})
            trace.add(cat="cuda_runtime", name="cudaLaunchKernel", pid=200, tid=200, ts=start - 10, dur=5, args=args)
        catalog, result = run(trace)
        assert catalog.table("launches").num_rows == 0
        assert [(d.idle_ns, d.idle_by_cause_ns["unattributed"]) for d in result.devices] == [(200_000, 200_000)] * 2
        assert ("TRC006", "high", 10) in health(result)
        assert result.verdict.headline.startswith(
            "Could not judge: GPU operations have the correlation ids of calls of several"
        )

    def test_an_external_id_is_no_correlation(self, run):
        """It names the operator, which several kernels share, and is often the same number as another kernel's correlation."""
        trace = KinetoTrace()
        for n in range(3):
            trace.op(n * 100, n * 100 + 50, launch=(n * 100 - 9 - n, n * 100 - 5), **{"External id": 1})
        catalog, _ = run(trace.range("aten::add", -20, 300, category="cpu_op"))
        assert catalog.table("launches")["queue_delay"].to_pylist() == [9000, 10_000, 11_000]
        assert catalog.table("gpu_ops")["external_id"].to_pylist() == [1, 1, 1]

    def test_a_driver_call_within_a_runtime_call_is_no_second_launch(self, run):
        """Both have the kernel's correlation; the outer one is the launch."""
        trace = KinetoTrace().op(0, 10, launch=(-9, -3))
        trace.add(cat="cuda_driver", name="cuLaunchKernel", ts=-7, dur=2, args={"correlation": 1})
        catalog, _ = run(trace)
        links = catalog.table("launches").select(["api_name", "queue_delay"]).to_pylist()
        assert [tuple(link.values()) for link in links] == [("cudaLaunchKernel", 9000)]
        assert catalog.table("ledger")["launch_count"].to_pylist() == [1]


class TestTracks:
    def test_kernels_that_overlap_on_one_stream(self, run):
        """A kernel may begin 12 us before the one ahead of it ends (programmatic dependent launch): no damage, no negative gap."""
        trace = KinetoTrace().op(0, 60362.785191, launch=(-5, -3)).op(60362.772749, 60400, launch=(-2, -1))
        catalog, result = run(trace.op(60410, 60420, launch=(1, 2)))
        assert health(result) == []
        gpu = only(result)
        assert (gpu.window_ns, gpu.compute_ns, gpu.idle_ns) == (60_420_000, 60_410_000, 10_000)
        assert catalog.table("gpu_ops")["end_ns"].to_pylist()[0] == 60_362_785
        assert catalog.table("gaps").num_rows == 1

    @pytest.mark.parametrize(("context", "cause"), [(1, "turnaround"), (2, "dependency")])
    def test_streams_of_one_number_in_two_contexts(self, run, context, cause):
        """Stream 7 is the default in every context: the second kernel does not follow its own stream."""
        _, result = run(KinetoTrace().op(0, 10, launch=(-5, -2)).op(12, 20, launch=(1, 4), context=context))
        assert {cause: ns for cause, ns in only(result).idle_by_cause_ns.items() if ns} == {cause: 2000}

    def test_streams_that_take_turns_leave_no_gap(self, run):
        """Each of the two is idle for half of the time, and the GPU never."""
        trace = KinetoTrace()
        for n in range(10):
            trace.op(n * 10, n * 10 + 10, stream=7 + n % 2, launch=(n * 10 - 5, n * 10 - 4))
        _, result = run(trace)
        assert (only(result).window_ns, only(result).idle_ns) == (100_000, 0)
        assert [finding.rule for finding in result.findings] == ["TRC010"]

    def test_threads_that_wait_at_the_same_time_count_once(self, run):
        """Summed over threads, waits take more time than there is."""
        trace = KinetoTrace().op(0, 10, launch=(-5, -2)).op(100, 110, launch=(90, 95))
        for thread in (100, AUTOGRAD, 102):
            trace.call("cudaDeviceSynchronize", -1, 85, thread=thread)
        _, result = run(trace)
        idle = {cause: ns for cause, ns in only(result).idle_by_cause_ns.items() if ns}
        assert idle == {"synchronization": 80_000, "launch_latency": 10_000}

    def test_a_rank_is_no_device(self, run):
        """Rank 0 on GPU 2, ranks 1 and 3 each on what it calls GPU 0: three GPUs, and no two of them are one."""
        places = {0: 2, 1: 0, 3: 0}
        traces = [
            ranked(rank, KinetoTrace().op(0, 10, device=gpu).op(20, 30, device=gpu)) for rank, gpu in places.items()
        ]
        _, result = run(*traces)
        assert [(d.rank, d.device, d.window_ns, d.idle_ns) for d in result.devices] == [
            (rank, gpu, 30_000, 10_000) for rank, gpu in places.items()
        ]

    def test_numbers_as_text_everywhere(self, run):
        """Some writers quote all numbers; links and gaps are the same."""
        trace = KinetoTrace().op(0, 10, launch=(-5, -4)).op(20, 30, launch=(15, 16))
        for event in trace.events:
            event |= {key: str(event[key]) for key in ("ts", "dur", "pid", "tid")}
            event["args"] = {key: str(value) for key, value in event["args"].items()}
        catalog, result = run(trace)
        assert catalog.table("launches")["queue_delay"].to_pylist() == [5000, 5000]
        assert (only(result).window_ns, only(result).idle_ns, health(result)) == (30_000, 10_000, [])


class TestCollectives:
    @pytest.mark.parametrize(
        ("said", "elements", "size"),
        [
            ({"In msg nelems": 8, "Out msg nelems": 64, "dtype": "Float8_e4m3fn"}, 64, 64),
            ({"In msg nelems": 0, "Out msg nelems": 0, "dtype": "Float"}, 0, 0),
            ({"dtype": "Float"}, None, None),
            ({"In msg nelems": [1, 2], "Out msg nelems": [1, 2], "dtype": "Float"}, None, None),
            ({"In msg nelems": "many", "Out msg nelems": "8", "dtype": "Half"}, 8, 16),
            ({"In msg nelems": 8, "dtype": "Float4"}, 8, None),
        ],
    )
    def test_what_is_not_told_is_unknown_and_not_nothing(self, run, said, elements, size):
        """The arguments of a collective may be missing or, where several were coalesced, be a list."""
        catalog, _ = run(KinetoTrace().op(0, 10, **{"Collective name": "allreduce", **said}))
        (row,) = catalog.table("collectives").to_pylist()
        assert (row["elements"], row["bytes"]) == (elements, size)


class TestVerdict:
    @pytest.mark.parametrize(
        "events",
        [
            [],
            [{}],
            [{}, {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python"}}],
            [{"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 1, "dur": 2}],
        ],
    )
    def test_a_trace_without_gpu_work_is_never_fine(self, run, events):
        """Empty, of names alone, or of the CPU alone: there is nothing to judge."""
        trace = KinetoTrace()
        trace.events = events
        _, result = run(trace)
        assert (result.devices, result.findings, result.judged) == ([], [], False)
        assert result.verdict.headline == "Could not judge: the trace holds no GPU work."

    def test_without_steps_everything_else_is_judged(self, run):
        """Other tools give empty results where no ProfilerStep was recorded."""
        trace = KinetoTrace()
        for n in range(6):
            trace.range("data_loading", n * 1000 + 110, n * 1000 + 990)
            trace.op(n * 1000 + 1000, n * 1000 + 1100, launch=(n * 1000 + 992, n * 1000 + 995))
        catalog, result = run(trace)
        assert (catalog.table("steps").num_rows, result.steps) == (0, [])
        assert only(result).idle_by_cause_ns["input"] == 5 * 880_000
        assert "INP001" in [finding.rule for finding in result.findings]


class TestPrivacy:
    def test_secrets_around_the_events_stay_out(self, run):
        """Users put environment and command lines into the metadata."""
        trace = steady(3)
        trace.metadata |= {"host_name": "s3cret", "env": {"TOKEN": "s3cret"}, "argv": ["--key", "s3cret"]}
        catalog, result = run(trace)
        assert "s3cret" not in json.dumps(dataclasses.asdict(result))
        assert b"s3cret" not in render_html(result, catalog)

    def test_names_are_text_in_the_report(self, run):
        """A kernel's name must not end the page's script."""
        hostile = "</script><img src=x onerror=alert(1)>\u2028\u202e"
        trace = KinetoTrace().op(0, 10, launch=(-5, -2)).op(100, 110, launch=(90, 95), name=hostile)
        catalog, result = run(trace.range(hostile, 12, 88, category="user_annotation"))
        assert result.findings
        page = render_html(result, catalog)
        assert b"<img src=x" not in page and b"</script><img" not in page
