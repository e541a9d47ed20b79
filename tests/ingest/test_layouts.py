"""Layouts of PyTorch 1.8 to 2.11, CUDA and ROCm: what each spelling means, and what is never work."""

from __future__ import annotations

import pytest

import traceanalyzer as ta
from tests.support.kineto import KinetoTrace
from traceanalyzer.analysis import analyze


@pytest.fixture
def read(tmp_path):
    return lambda trace: ta.load(trace.write(tmp_path / "trace.json"))


def health(trace):
    return {
        row["message"]: (row["severity"], row["count"], row["example"]) for row in trace.table("health").to_pylist()
    }


LOST = "values that should be whole numbers and are not, or are too large, were left out"


@pytest.mark.parametrize(
    ("stream", "tid", "expected"),
    [
        (7, 7, 7),
        ("7", 7, 7),
        ("stream 7", 7, 7),
        (None, 7, 7),
        (None, "stream 7", 7),
        (None, "stream 7 ", 7),
        (0, 9, 0),
        (2**32 - 1, 7, -1),
        (-1, 7, -1),
        (None, -3, -3),
        (None, "3239786240", 3239786240),
    ],
)
def test_streams(read, stream, tid, expected):
    args = {"device": 0} if stream is None else {"device": 0, "stream": stream}
    trace = read(KinetoTrace().add(cat="kernel", name="k", pid=0, tid=tid, ts=1, dur=2, args=args))
    assert trace.table("gpu_ops")["stream"].to_pylist() == [expected]
    assert health(trace) == {}


@pytest.mark.parametrize(("device", "pid", "expected"), [(2, 0, 2), (None, 3, 3), (None, "3", 3), ("1", 0, 1)])
def test_devices(read, device, pid, expected):
    args = {"stream": 7} if device is None else {"device": device, "stream": 7}
    trace = read(KinetoTrace().add(cat="kernel", name="k", pid=pid, tid=7, ts=1, dur=2, args=args))
    assert trace.table("gpu_ops")["device"].to_pylist() == [expected]


def test_the_kernels_of_two_devices_on_streams_of_one_number(read):
    trace = read(KinetoTrace().op(0, 10, device=0).op(0, 10, device=1))
    assert [(d.device, d.compute_ns) for d in analyze(trace).devices] == [(0, 10000), (1, 10000)]


@pytest.mark.parametrize(
    ("column", "args"),
    [
        ("correlation", {"correlation": 2**63}),
        ("registers", {"registers per thread": 2**31}),
        ("context", {"context": "none"}),
        ("external_id", {"External id": 17093776592125785438}),
        ("bytes", {"bytes": -(2**70)}),
    ],
)
def test_numbers_that_no_column_holds_become_null(read, column, args):
    category = "gpu_memset" if column == "bytes" else "kernel"
    trace = KinetoTrace().op(0, 1, category=category, **{"External id": 5, **args}).op(2, 3, category=category)
    loaded = read(trace)
    assert loaded.table("gpu_ops")[column].to_pylist()[0] is None
    assert health(loaded) == {LOST: ("low", 1, str(next(iter(args.values()))))}


def test_a_grid_that_no_column_holds(read):
    trace = read(KinetoTrace().op(0, 1, grid=[2**31, 1, 1], block=[32, 1]).op(2, 3, grid=[4, 1, 1], block=[32, 1, 1]))
    assert trace.table("gpu_ops").select(["grid", "block"]).to_pylist() == [
        {"grid": None, "block": None},
        {"grid": [4, 1, 1], "block": [32, 1, 1]},
    ]


def test_ids_of_threads(read):
    trace = KinetoTrace()
    for tid in (-5, 2**40, "12", 2**64):
        trace.add(cat="cpu_op", name="a", tid=tid, ts=1, dur=2)
    loaded = read(trace)
    assert loaded.table("host_ranges")["thread"].to_pylist() == [-5, 12, 2**40, None]
    assert health(loaded) == {LOST: ("low", 1, str(2**64))}


def test_elements_beyond_64_bits(read):
    about = {"Collective name": "allreduce", "In msg nelems": 2**62, "dtype": "Double", "Group size": "8", "Seq": 2**65}
    loaded = read(KinetoTrace().op(0, 10, **about))
    (row,) = loaded.table("collectives").to_pylist()
    assert (row["elements"], row["bytes"], row["group_size"], row["sequence"]) == (2**62, None, 8, None)
    assert health(loaded)[LOST][1] == 3


def test_graph_ids_of_zero_are_none(read):
    trace = (
        KinetoTrace().op(0, 1, **{"graph id": 0, "graph node id": 0}).op(2, 3, **{"graph id": 4, "graph node id": "9"})
    )
    found = read(trace).table("gpu_ops").select(["graph_id", "graph_node_id"]).to_pylist()
    assert found == [{"graph_id": None, "graph_node_id": None}, {"graph_id": 4, "graph_node_id": 9}]


def test_one_graph_launch_starts_many_kernels(read):
    trace = KinetoTrace().call("cudaGraphLaunch", 10, 15, correlation=7)
    for node, start in ((1, 20), (2, 26), (3, 32)):
        args = {"device": 0, "stream": 7, "correlation": 7, "graph id": 3, "graph node id": node}
        trace.add(cat="kernel", name="k", pid=0, tid=7, ts=start, dur=5, args=args)
    loaded = read(trace)
    assert loaded.table("gpu_ops")["correlation"].to_pylist() == [7, 7, 7]
    assert loaded.table("api_calls")["class"].to_pylist() == ["launch"]
    assert analyze(loaded).devices[0].idle_ns == 2000


@pytest.mark.parametrize("percent", [25, 25.0, "25"])
def test_occupancy_is_the_achieved_one(read, percent):
    trace = KinetoTrace().op(0, 1, **{"est. achieved occupancy %": percent}).op(2, 3, **{"theoretical occupancy %": 50})
    assert read(trace).table("gpu_ops")["occupancy"].to_pylist() == [0.25, None]


@pytest.mark.parametrize("percent", ["inf", "nan", "N/A", "1e999"])
def test_no_number_is_no_occupancy(read, percent):
    trace = KinetoTrace().op(0, 1, **{"est. achieved occupancy %": percent})
    assert read(trace).table("gpu_ops")["occupancy"].to_pylist() == [None]


def test_the_older_spelling_of_an_external_id(read):
    trace = KinetoTrace().op(0, 1, **{"external id": 5}).op(2, 3, **{"External id": 6, "external id": 7}).op(4, 5)
    assert read(trace).table("gpu_ops")["external_id"].to_pylist() == [5, 6, None]


@pytest.mark.parametrize(
    ("category", "name"),
    [
        ("cuda_sync", "Stream Sync"),
        ("cuda_sync", "Context Sync"),
        ("cuda_event", "cudaEventRecord"),
        ("gpu_user_annotation", "ProfilerStep#5"),
        ("Trace", "PyTorch Profiler (0)"),
        ("external_correlation", "x"),
        ("cuda_profiler_range", "x"),
        ("collective_comm", "x"),
        ("async_cpu_to_gpu", "x"),
    ],
)
def test_what_is_never_work(read, category, name):
    args = {"device": 0, "stream": 7, "correlation": 1}
    trace = read(KinetoTrace().op(0, 10).add(cat=category, name=name, pid=0, tid=7, ts=0, dur=500, args=args))
    assert analyze(trace).devices[0].window_ns == 10000
    assert [trace.table(t).num_rows for t in ("gpu_ops", "host_ranges", "steps", "api_calls", "health")] == [
        1,
        0,
        0,
        0,
        0,
    ]


def test_a_step_marked_on_the_gpu_is_no_step(read):
    trace = KinetoTrace().op(0, 10)
    for n in range(3):
        trace.range(f"ProfilerStep#{n}", n * 100, n * 100 + 100)
        trace.add(cat="gpu_user_annotation", name=f"ProfilerStep#{n}", pid=0, tid=7, ts=n * 100 + 50, dur=2)
    assert [s["end_ns"] - s["start_ns"] for s in read(trace).table("steps").to_pylist()] == [100000] * 3


def test_overhead_of_no_process(read):
    trace = KinetoTrace().op(0, 10, launch=(-2, -1))
    trace.add(cat="overhead", name="Buffer Flush", pid=-1, tid=0, ts=3, dur=4)
    trace.add(cat="overhead", name="Lazy Function Loading", ts=8, dur=1)
    found = read(trace).table("overheads").to_pylist()
    assert [(o["process"], o["thread"], o["start_ns"]) for o in found] == [(100, None, 3000), (100, 100, 8000)]


def test_rocm(read):
    trace = KinetoTrace()
    trace.metadata |= {"roctracer_version": 4, "hip_runtime_version": 6}
    calls = ["hipLaunchKernel", "hipExtModuleLaunchKernel", "hipModuleLaunchKernel", "hipGraphLaunch"]
    for n, name in enumerate(calls):
        trace.op(n * 10, n * 10 + 5, launch=(n * 10 - 3, n * 10 - 2), api=name, stream=0, name="Cijk_Ailk_Bljk")
    copies = {"CopyHostToDevice": "hipMemcpyWithStream", "Copy Device to Host": "hipMemcpyAsync"}
    for n, (name, api) in enumerate(copies.items(), 4):
        trace.op(
            n * 10, n * 10 + 5, launch=(n * 10 - 3, n * 10 - 2), api=api, stream=0, name=name, category="gpu_memcpy"
        )
    loaded = read(trace)
    assert loaded.table("api_calls")["class"].to_pylist() == ["launch"] * 4 + ["copy"] * 2
    ops = loaded.table("gpu_ops").to_pylist()
    assert [op["stream"] for op in ops] == [0] * 6
    assert [op["copy_kind"] for op in ops] == [None] * 4 + ["htod", "dtoh"]
    assert [op["registers"] for op in ops] == [None] * 6
    assert analyze(loaded).devices[0].compute_ns == 20000
    assert loaded.inputs[0].producer == "PyTorch profiler (Kineto, roctracer 4)"


def test_without_device_properties(read):
    trace = KinetoTrace().op(0, 10, launch=(-5, -1))
    trace.metadata = {"schemaVersion": 1, "distributedInfo": {"rank": "3", "world_size": "8"}}
    loaded = read(trace)
    assert loaded.table("devices").num_rows == 0
    assert (loaded.inputs[0].rank, loaded.inputs[0].world_size) == (3, 8)
    assert analyze(loaded).judged


class TestTimes:
    def test_negative_durations_are_counted(self, read):
        trace = read(KinetoTrace().op(5, 2).op(10, 20).range("a", 7, 3))
        assert [(o["start_ns"], o["end_ns"]) for o in trace.table("gpu_ops").to_pylist()] == [
            (5000, 5000),
            (10000, 20000),
        ]
        assert health(trace) == {"negative durations were read as 0": ("low", 2, None)}

    def test_missing_durations_are_counted(self, read):
        trace = read(KinetoTrace().op(10, 20).add(cat="kernel", name="k", pid=0, tid=7, ts=5))
        assert [(o["start_ns"], o["end_ns"]) for o in trace.table("gpu_ops").to_pylist()] == [
            (5000, 5000),
            (10000, 20000),
        ]
        assert health(trace) == {"complete events without a duration were read as instants": ("low", 1, None)}

    def test_builtin_calls_that_the_profiler_closed(self, read):
        trace = KinetoTrace()
        for n in range(5):
            trace.range("<built-in method add>", n, 100, category="python_function")
        trace.range("<built-in method stop>", 60, 100, category="python_function", thread=9)
        trace.range("a.py(3): f", 0, 100, category="python_function")
        trace.range("no frame", 0, 200, category="nvtx")
        message = "Python frames that the profiler closed only when it stopped look longer than they were"
        assert health(read(trace)) == {message: ("info", 4, None)}

    def test_the_calls_that_really_ended_last_are_no_news(self, read):
        trace = KinetoTrace().range("a.py(3): f", 0, 100, category="python_function")
        for n in range(5):
            trace.range("<built-in method add>", n * 10, n * 10 + 9, category="python_function")
        assert health(read(trace.range("<built-in method stop>", 60, 100, category="python_function"))) == {}


def test_more_names_than_a_vocabulary_holds(read, monkeypatch):
    monkeypatch.setattr("traceanalyzer.ingest.formats.kineto.columns.Vocabulary.LIMIT", 10)
    monkeypatch.setattr("traceanalyzer.ingest.formats.kineto.text.splitter.CHUNK_BYTES", 500)
    trace = KinetoTrace()
    for n in range(60):
        trace.op(
            n * 10,
            n * 10 + 5,
            name=f"kernel {n % 25}" if n % 5 else "ncclDevKernel_AllReduce",
            launch=(n * 10 - 3, n * 10 - 2),
        )
    ops = read(trace).table("gpu_ops").to_pylist()
    assert [op["name"] for op in ops] == [f"kernel {n % 25}" if n % 5 else "ncclDevKernel_AllReduce" for n in range(60)]
    assert [op["class"] for op in ops] == ["compute" if n % 5 else "communication" for n in range(60)]


def test_an_event_without_a_name(read):
    trace = KinetoTrace().op(0, 10).add(cat="kernel", pid=0, tid=7, ts=20, dur=5).add(cat="cuda_runtime", ts=1, dur=1)
    loaded = read(trace)
    assert [(op["name"], op["class"]) for op in loaded.table("gpu_ops").to_pylist()] == [
        ("gemm", "compute"),
        (None, None),
    ]
    assert loaded.table("api_calls")["class"].to_pylist() == [None]
    assert analyze(loaded).devices[0].compute_ns == 15000


@pytest.mark.parametrize(("correlation", "expected"), [(5.0, 5), ("5", 5), ("1_000", None), (2**70, None)])
def test_ids_that_are_no_whole_numbers(read, correlation, expected):
    trace = read(
        KinetoTrace().add(cat="kernel", name="k", pid=0, tid=7, ts=1, dur=2, args={"correlation": correlation})
    )
    assert trace.table("gpu_ops")["correlation"].to_pylist() == [expected]
    assert health(trace) == ({} if expected else {LOST: ("low", 1, str(correlation))})


def test_a_gpu_that_is_described_twice_or_has_no_number(read):
    made = KinetoTrace().op(0, 10)
    first, again = {"id": "0", "name": "GPU"}, {"id": 0, "name": "again"}
    made.metadata["deviceProperties"] = [first, again, {"id": 1 << 40}, {"id": True}, {"name": "none"}, "none"]
    made.metadata["baseTimeNanoseconds"] = 1.767189312e18
    trace = read(made)
    assert trace.table("devices").select(["device", "name"]).to_pylist() == [{"device": 0, "name": "GPU"}]
    assert trace.inputs[0].clock_base_ns == 1_767_189_312_000_000_000
