"""Which events of a Chrome trace become which rows: phases, tracks named by metadata, counters, devices that are not read."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import traceanalyzer as ta
from tests.support.kineto import KinetoTrace
from tests.support.places import CORPUS, needs_corpus
from traceanalyzer.analysis import analyze


@pytest.fixture
def read(tmp_path):
    """Load events, given as a list or with what stands around them."""

    def load(events, **around):
        path = tmp_path / "trace.json"
        path.write_text(json.dumps({**around, "traceEvents": events} if around else events))
        return ta.load(path)

    return load


def at(phase, ts, name=None, pid=1, tid=1, **more):
    return {"ph": phase, "ts": ts, "pid": pid, "tid": tid, **({} if name is None else {"name": name}), **more}


def ranges(trace):
    return sorted((r["name"], r["start_ns"], r["end_ns"]) for r in trace.table("host_ranges").to_pylist())


def health(trace):
    return {row["message"]: (row["code"], row["severity"], row["count"]) for row in trace.table("health").to_pylist()}


OPEN = "ranges that never end were closed at the last begin or end in the file"
ORPHANS = "ends of ranges that began before the recording were left out"
UNREAD = "events of kinds that are not read"


class TestBeginAndEnd:
    """B and E on a thread."""

    @pytest.mark.parametrize(
        ("events", "expected"),
        [
            ([at("B", 0, "a"), at("B", 1, "b"), at("E", 2, "b"), at("E", 3, "a")], [("a", 0, 3000), ("b", 1000, 2000)]),
            # The file's order says nothing.
            (
                [at("E", 9, "b"), at("B", 1, "b"), at("E", 10, "a"), at("B", 0, "a")],
                [("a", 0, 10000), ("b", 1000, 9000)],
            ),
            # An end needs no name; it closes what began last.
            ([at("B", 0, "a"), at("B", 1, "b"), at("E", 2), at("E", 3)], [("a", 0, 3000), ("b", 1000, 2000)]),
            # One ends where the next begins.
            ([at("B", 0, "a"), at("E", 5, "a"), at("B", 5, "a"), at("E", 9, "a")], [("a", 0, 5000), ("a", 5000, 9000)]),
            (
                [
                    at("B", 0, "a"),
                    at("E", 5),
                    at("B", 5, "b"),
                    at("E", 9),
                    at("B", 9, "c"),
                    at("B", 9, "d"),
                    at("E", 9),
                    at("E", 12),
                ],
                [("a", 0, 5000), ("b", 5000, 9000), ("c", 9000, 12000), ("d", 9000, 9000)],
            ),
            # Nothing lasts for no time.
            ([at("B", 0, "a"), at("B", 1, "b"), at("E", 1, "b"), at("E", 2, "a")], [("a", 0, 2000), ("b", 1000, 1000)]),
            # Threads and processes do not mix.
            (
                [
                    at("B", 0, "a"),
                    at("B", 1, "a", tid=2),
                    at("E", 2, "a"),
                    at("E", 3, "a", tid=2),
                    at("B", 4, "c", 2),
                    at("E", 5, "c", 2),
                ],
                [("a", 0, 2000), ("a", 1000, 3000), ("c", 4000, 5000)],
            ),
            # They may cross.
            ([at("B", 0, "a"), at("B", 1, "b"), at("E", 2, "a"), at("E", 3, "b")], [("a", 0, 2000), ("b", 1000, 3000)]),
        ],
    )
    def test_pairs(self, read, events, expected):
        trace = read(events)
        assert ranges(trace) == expected
        assert health(trace) == {}

    def test_a_begin_without_an_end_lasts_to_the_last_begin_or_end(self, read):
        trace = read([at("B", 0, "a"), at("B", 1, "b"), at("B", 2, "c"), at("E", 7, "c")])
        assert ranges(trace) == [("a", 0, 7000), ("b", 1000, 7000), ("c", 2000, 7000)]
        assert health(trace) == {OPEN: ("TRC001", "low", 2)}

    def test_an_end_without_a_begin_is_counted(self, read):
        trace = read([at("E", 1, "a"), at("B", 2, "b"), at("E", 3, "b"), at("E", 4)])
        assert ranges(trace) == [("b", 2000, 3000)]
        assert health(trace) == {ORPHANS: ("TRC001", "info", 2)}

    def test_an_end_of_another_name_ends_nothing(self, read):
        trace = read([at("B", 0, "alpha"), at("E", 10, "beta")])
        assert ranges(trace) == [("alpha", 0, 10000)]
        assert health(trace) == {OPEN: ("TRC001", "low", 1), ORPHANS: ("TRC001", "info", 1)}

    def test_many_that_never_match_take_no_time(self, read):
        events = [at("B", n, "a") for n in range(20000)] + [at("E", 30000 + n, "b") for n in range(20000)]
        assert health(read(events)) == {OPEN: ("TRC001", "low", 20000), ORPHANS: ("TRC001", "info", 20000)}

    def test_they_nest_with_complete_events(self, read):
        trace = read([at("B", 0, "a"), at("X", 1, "x", dur=2), at("E", 9, "a")])
        assert [(r["name"], r["depth"], r["parent"]) for r in trace.table("host_ranges").to_pylist()] == [
            ("a", 0, None),
            ("x", 1, 0),
        ]

    def test_a_category_counts_as_on_complete_events(self, read):
        events = [at("B", 0, "aten::add", cat="cpu_op"), at("E", 5, "aten::add", cat="cpu_op")]
        events += [at("B", 6, "gemm", 0, 7, cat="kernel"), at("E", 8, "gemm", 0, 7, cat="kernel")]
        trace = read(events)
        assert trace.table("host_ranges")["category"].to_pylist() == ["operator"]
        (op,) = trace.table("gpu_ops").to_pylist()
        assert (op["device"], op["stream"], op["start_ns"], op["end_ns"], op["kind"]) == (0, 7, 6000, 8000, "kernel")

    def test_arguments_are_those_of_the_begin(self, read):
        shapes, args = [[2, 3], []], {"device": 3, "stream": 20, "correlation": 9, "grid": [4, 1, 1]}
        events = [at("B", 0, "aten::add", cat="cpu_op", args={"Input Dims": shapes, "External id": 5})]
        events += [
            at("E", 5, "aten::add", cat="cpu_op", args={"External id": 6}),
            at("B", 6, "gemm", 0, 7, cat="kernel", args=args),
        ]
        trace = read([*events, at("E", 8, "gemm", 0, 7, cat="kernel")])
        (row,), (op,) = trace.table("host_ranges").to_pylist(), trace.table("gpu_ops").to_pylist()
        assert (json.loads(row["shapes"]), row["external_id"]) == (shapes, 5)
        assert [op[name] for name in args] == [*args.values()]


class TestAsynchronous:
    """b and e under an id."""

    def test_pairs_belong_to_no_thread(self, read):
        events = [
            at("b", 0, "send", id=1, cat="rpc"),
            at("b", 2, "send", tid=2, id=2, cat="rpc"),
            at("e", 5, "send", tid=3, id=1, cat="rpc"),
            at("e", 9, "send", id=2, cat="rpc"),
        ]
        trace = read(events)
        assert ranges(trace) == [("send", 0, 5000), ("send", 2000, 9000)]
        found = trace.table("host_ranges").to_pylist()
        assert [(r["process"], r["thread"], r["category"]) for r in found] == [(1, None, "annotation")] * 2

    def test_no_thread_is_not_thread_minus_one(self, read):
        events = [
            at("b", 5, "a", id=1),
            at("e", 9, "a", id=1),
            at("X", 0, "b", tid=-1, dur=20),
            at("X", 1, "c", tid=-1, dur=2),
        ]
        found = {r["name"]: (r["thread"], r["depth"]) for r in read(events).table("host_ranges").to_pylist()}
        assert found == {"a": (None, 0), "b": (-1, 0), "c": (-1, 1)}

    @pytest.mark.parametrize("apart", [{"cat": "other"}, {"scope": "s"}, {"id": "0x2"}, {"id2": {"local": 1}}])
    def test_what_tells_two_apart(self, read, apart):
        first, second = {"id": 1, "cat": "c"}, {"id": 1, "cat": "c", **apart}
        events = [
            at("b", 0, "a", **first),
            at("b", 1, "a", **second),
            at("e", 2, "a", **first),
            at("e", 3, "a", **second),
        ]
        assert ranges(read(events)) == [("a", 0, 2000), ("a", 1000, 3000)]

    def test_local_ids_of_two_processes(self, read):
        mine = {"id2": {"local": 1}}
        events = [
            at("b", 0, "a", 1, **mine),
            at("b", 1, "a", 2, **mine),
            at("e", 2, "a", 1, **mine),
            at("e", 3, "a", 2, **mine),
        ]
        found = read(events).table("host_ranges").to_pylist()
        assert [(r["process"], r["start_ns"], r["end_ns"]) for r in found] == [(1, 0, 2000), (2, 1000, 3000)]

    def test_the_old_spelling(self, read):
        trace = read([at("S", 0, "a", id=1), at("T", 1, "a", id=1), at("F", 2, "a", id=1)])
        assert ranges(trace) == [("a", 0, 2000)]
        assert health(trace) == {UNREAD: ("TRC001", "info", 1)}


class TestOtherPhases:
    def test_what_no_table_has_a_place_for_is_counted(self, read):
        events = [
            at("i", 0, "mark", cat="app", s="t"),
            at("N", 1, "object", id=1),
            at("P", 2, "sample"),
            at("n", 3, "step", id=1),
            at("X", None, "no time", dur=1),
            at("C", 4, "empty", args={}),
        ]
        trace = read(events)
        assert health(trace) == {
            UNREAD: ("TRC001", "info", 5),
            "events without a time were left out": ("TRC001", "low", 1),
        }

    def test_the_first_one_is_shown(self, read):
        (row,) = read([at("i", 0, "mark", cat="app")]).table("health").to_pylist()
        assert row["example"] == "phase i, category app, name mark"

    def test_what_is_no_loss_is_not_counted(self, read):
        events = [
            {},
            at("i", 0, "Iteration Start: PyTorch Profiler", "Traces", "Trace PyTorch Profiler", s="g"),
            at("i", 9, "Record Window End", "", "", s="g"),
            at("X", 0, "PyTorch Profiler (0)", "Spans", "PyTorch Profiler", cat="Trace", dur=9),
            at("s", 0, "ac2g", cat="ac2g", id=1),
            at("f", 1, "ac2g", 0, 7, cat="ac2g", id=1, bp="e"),
            at("t", 1, "ac2g", 0, 7, cat="ac2g", id=1),
            at("M", 0, "process_sort_index", args={"sort_index": 1}),
            at("M", 0, "process_labels", args={"labels": "GPU 0"}),
        ]
        trace = read(events)
        assert health(trace) == {}
        assert [trace.table(t).num_rows for t in ("host_ranges", "gpu_ops", "api_calls")] == [0, 0, 0]

    def test_names(self, read):
        events = [
            at("M", 0, "process_name", 5, 0, args={"name": "python"}),
            at("M", 0, "thread_name", "5", "9", args={"name": "loader"}),
            at("X", 0, "a", "5", "9", dur=1),
            at("X", 0, "b", "MainProcess", "MainThread", dur=1),
        ]
        trace = read(events)
        assert [(p["pid"], p["name"]) for p in trace.table("processes").to_pylist()] == [
            (None, "MainProcess"),
            (5, "python"),
        ]
        assert [(t["process"], t["thread"], t["name"]) for t in trace.table("threads").to_pylist()] == [
            (5, 9, "loader")
        ]
        assert trace.table("host_ranges").num_rows == 2


class TestCounters:
    def test_every_number_is_a_row(self, read):
        events = [
            at("C", 2, "memory (GB)", args={"used": 1.5, "free": "2", "note": "x"}),
            at("C", 1, "clock", args={"value": 7}),
        ]
        found = read(events).table("counters").to_pylist()
        columns = ("time_ns", "metric", "value", "unit", "device", "process")
        assert sorted(tuple(c[name] for name in columns) for c in found) == [
            (1000, "clock", 7.0, None, None, 1),
            (2000, "memory (GB).free", 2.0, "GB", None, 1),
            (2000, "memory (GB).used", 1.5, "GB", None, 1),
        ]

    def test_hardware_counters_of_kineto(self, read):
        event = at("C", 3, "sm__cycles", "GPU 2 Counters", 0, cat="hardware_counters", args={"sm__cycles": 12})
        (row,) = read([event]).table("counters").to_pylist()
        assert (row["device"], row["metric"], row["value"], row["process"]) == (2, "sm__cycles", 12.0, None)

    def test_a_device_among_the_arguments(self, read):
        event = at("C", 3, "power", args={"device": 1, "unit": "W", "value": 300})
        (row,) = read([event]).table("counters").to_pylist()
        assert (row["device"], row["metric"], row["unit"], row["value"]) == (1, "power", "W", 300.0)


def named(what, name, pid, tid=0):
    return {"ph": "M", "name": f"{what}_name", "pid": pid, "tid": tid, "args": {"name": name}}


KERNEL = {
    "context_id": "$$1",
    "correlation_id": "1",
    "hlo_op": "dot",
    "kernel_details": "regs:28 static_shared:8 dynamic_shared:64 grid:8,2,1 block:128,1,1 occ_pct:100",
}
COPY = {
    "context_id": "$$1",
    "correlation_id": "2",
    "memcpy_details": "kind_src:pinned kind_dst:device size:4096 dest:0 async:1",
}
XLA_NAMES = [
    named("process", "/device:GPU:3", 4),
    named("thread", "Stream #13(Compute)", 4, 130),
    named("thread", "Stream #14(MemcpyH2D)", 4, 140),
    named("thread", "XLA Modules", 4, 150),
    named("thread", "Steps", 4, 160),
    named("process", "/host:CPU", 700),
    named("thread", "python3", 700, 701),
]
XLA_EVENTS = [
    at("X", 10, "fusion", 4, 130, dur=5, args=KERNEL),
    at("X", 30, "MemcpyH2D", 4, 140, dur=2, args=COPY),
    at("X", 33, "Memset 0", 4, 140, dur=1),
    at("X", 0, "jit_f", 4, 150, dur=100, args={"hlo_module": "jit_f"}),
    at("X", 0, "1", 4, 160, dur=100),
    at("X", 1, "train", 700, 701, dur=50, args={"step_num": "0"}),
    at("X", 2, "$core.py:317 jit", 700, 701, dur=40),
    at("X", 3, "fusion", 700, 701, dur=2, args={"context_id": "$$1", "correlation_id": "1", "device_id": "3"}),
    at("X", 6, "MemcpyH2D", 700, 701, dur=2, args={"context_id": "$$1", "correlation_id": "2", "device_id": "3"}),
    at("X", 10, "cuStreamSynchronize", 700, 701, dur=3),
    at("X", 14, "cuLaunchHostFunc", 700, 701, dur=1),
]


class TestXla:
    """Streams and devices that only metadata names."""

    @pytest.mark.parametrize("events", [XLA_NAMES + XLA_EVENTS, XLA_EVENTS + XLA_NAMES])
    def test_operations_lie_on_streams(self, read, events):
        trace = read(events)
        ops = trace.table("gpu_ops").to_pylist()
        columns = ("device", "stream", "kind", "name", "start_ns", "end_ns", "correlation", "process", "context")
        assert [tuple(op[c] for c in columns) for op in ops] == [
            (3, 13, "kernel", "fusion", 10000, 15000, 1, 700, 1),
            (3, 14, "memcpy", "MemcpyH2D", 30000, 32000, 2, 700, 1),
            (3, 14, "memset", "Memset 0", 33000, 34000, None, 700, None),
        ]
        kernel, copy, _ = ops
        assert (kernel["grid"], kernel["block"], kernel["registers"], kernel["shared_memory"]) == (
            [8, 2, 1],
            [128, 1, 1],
            28,
            72,
        )
        assert (copy["bytes"], copy["copy_kind"], copy["src_memory"], copy["dst_memory"]) == (
            4096,
            "htod",
            "pinned",
            "device",
        )
        assert (kernel["occupancy"], kernel["copy_kind"], kernel["src_memory"]) == (None, None, None)

    @pytest.mark.parametrize("events", [XLA_NAMES + XLA_EVENTS, XLA_EVENTS + XLA_NAMES])
    def test_the_host_side(self, read, events):
        trace = read(events)
        calls = trace.table("api_calls").to_pylist()
        assert [(c["name"], c["class"], c["correlation"], c["thread"]) for c in calls] == [
            ("fusion", "launch", 1, 701),
            ("MemcpyH2D", "copy", 2, 701),
            ("cuStreamSynchronize", "sync", None, 701),
        ]
        found = [(r["name"], r["category"], r["depth"]) for r in trace.table("host_ranges").to_pylist()]
        assert found == [
            ("train step_num=0", "annotation", 0),
            ("$core.py:317 jit", "python", 1),
            ("cuLaunchHostFunc", "annotation", 2),
        ]
        assert trace.table("steps").select(["name", "method"]).to_pylist() == [
            {"name": "train step_num=0", "method": "annotation"}
        ]

    def test_other_tracks_of_the_gpu_are_never_busy(self, read):
        trace = read(XLA_NAMES + XLA_EVENTS)
        message = "events of GPU tracks that are no streams, such as modules and steps, were left out"
        assert health(trace) == {message: ("TRC001", "info", 2)}
        (gpu,) = analyze(trace).devices
        # The window is that of the marked step, from 1 to 51.
        assert (gpu.window_ns, gpu.compute_ns, gpu.memcpy_ns, gpu.idle_ns) == (50000, 5000, 2000, 42000)

    def test_streams_of_tensorflow_1(self, read):
        events = [
            named("process", "/job:localhost/replica:0/task:0/device:GPU:1/stream:17 Compute", 3),
            named("process", "/device:GPU:1/stream:all Compute", 4),
            at("X", 1, "MatMul", 3, 0, cat="Op", dur=4, args={"name": "m", "op": "MatMul"}),
            at("X", 1, "MatMul", 4, 0, cat="Op", dur=4, args={"name": "m", "op": "MatMul"}),
        ]
        found = read(events).table("gpu_ops").to_pylist()
        assert [(op["device"], op["stream"], op["name"]) for op in found] == [(1, 17, "MatMul")]

    @needs_corpus
    def test_a_real_trace(self):
        trace = ta.load(CORPUS / "extras" / "jax_vm.trace.json.gz")
        rows = [trace.table(t).num_rows for t in ("gpu_ops", "api_calls", "host_ranges", "health")]
        assert rows == [42, 42, 8218, 0]
        assert trace.table("gpu_ops")["kind"].value_counts().to_pylist() == [
            {"values": "kernel", "counts": 36},
            {"values": "memcpy", "counts": 6},
        ]


def test_frames_of_viztracer_beside_kernels(read):
    events = [
        at("X", 0, "dot", 0, 7, cat="kernel", dur=1, args={"device": 0, "stream": 7}),
        named("process", "MainProcess", 9),
        at("X", 0, "f (/a/b.py:12)", 9, 9, cat="FEE", dur=5),
        at("X", 1, "len", 9, 9, cat="FEE", dur=1),
    ]
    assert read(events).table("host_ranges")["category"].to_pylist() == ["python", "python"]


class TestDevicesThatAreNotRead:
    @pytest.mark.parametrize(
        ("category", "device"),
        [
            ("xpu_runtime", "an XPU"),
            ("mtia_ccp_events", "an MTIA accelerator"),
            ("hpu_op", "an HPU"),
            ("glow_runtime", "a Glow accelerator"),
            ("privateuse1_driver", "an accelerator outside of PyTorch (privateuse1)"),
        ],
    )
    def test_a_trace_of_one_alone(self, read, category, device):
        trace = read([at("X", 0, "work", cat=category, dur=5), at("X", 0, "aten::add", cat="cpu_op", dur=9)])
        message = f"the trace holds work of {device}, which is not read yet: nothing about its use can be judged"
        assert health(trace) == {message: ("TRC002", "high", 1)}
        result = analyze(trace)
        assert not result.judged
        assert result.verdict.headline == f"Could not judge: {message}."

    @pytest.mark.parametrize(
        ("process", "device"),
        [("/device:TPU:0", "a TPU"), ("Ascend Hardware", "an Ascend NPU"), ("/device:CUSTOM:1", "an accelerator")],
    )
    def test_told_by_its_process(self, read, process, device):
        trace = read([named("process", process, 3), at("X", 0, "matmul", 3, 1, dur=5), at("X", 0, "host", 4, 1, dur=9)])
        assert health(trace) == {
            f"the trace holds work of {device}, which is not read yet: nothing about its use can be judged": (
                "TRC002",
                "high",
                1,
            )
        }
        assert ranges(trace) == [("host", 0, 9000)]

    def test_the_old_autograd_profiler(self, read):
        events = [
            at("X", 0, "add", "CPU functions", 0, dur=9, args={}),
            at("X", 1, "add", "CUDA functions", 0, dur=5, args={}),
        ]
        trace = read(events)
        assert ranges(trace) == [("add", 0, 9000)]
        assert trace.table("gpu_ops").num_rows == 0
        assert not analyze(trace).judged

    def test_beside_cuda_it_is_only_said(self, tmp_path):
        trace = KinetoTrace().op(0, 10, launch=(-5, -1)).add(cat="xpu_runtime", name="work", ts=0, dur=5)
        loaded = ta.load(trace.write(tmp_path / "t.json"))
        assert health(loaded) == {
            "the trace holds work of an XPU, which is not read yet: only the other devices are judged": (
                "TRC001",
                "info",
                1,
            )
        }
        assert analyze(loaded).judged


FULL = (
    KinetoTrace()
    .op(0, 10, launch=(-5, -1))
    .op(20, 30, launch=(12, 14), category="gpu_memcpy", name="Memcpy HtoD (Pinned -> Device)", bytes=8)
    .range("aten::add", -6, 15, category="cpu_op")
    .events
    + XLA_NAMES
    + XLA_EVENTS
    + [
        at("B", 1, "a", 50, 1),
        at("B", 2, "b", 50, 1),
        at("E", 3, "b", 50, 1),
        at("E", 4, "a", 50, 1),
        at("C", 3, "c", args={"value": 1}),
    ]
)
TABLES = ("gpu_ops", "api_calls", "host_ranges", "counters", "processes", "threads")
PIDS = sorted({e["pid"] for e in FULL if e["pid"] > 9})


def tables(trace, shift=0, pids=None):
    """The tables as lists of rows, with times moved back and processes renamed back."""
    back = {new: old for old, new in (pids or {}).items()}
    found = {}
    for table in TABLES:
        rows = trace.table(table).to_pylist()
        for row in rows:
            for column in row:
                if column.endswith("_ns"):
                    row[column] -= shift
                elif column in ("process", "pid"):
                    row[column] = back.get(row[column], row[column])
            row.pop("parent", None)
        found[table] = sorted(map(repr, rows))
    return found


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_order_numbering_and_time_of_the_events_do_not_matter(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("shuffled")
    (folder / "a.json").write_text(json.dumps(FULL))
    shift = data.draw(st.integers(-1000, 10**9))
    # The GPU belongs to the process with most calls; of equals the first, so their order stays.
    pids = dict(
        zip(
            PIDS,
            sorted(data.draw(st.sets(st.integers(10, 10**6), min_size=len(PIDS), max_size=len(PIDS)))),
            strict=True,
        )
    )
    events = [
        {**e, "pid": pids.get(e["pid"], e["pid"]), **({"ts": e["ts"] + shift} if "ts" in e else {})} for e in FULL
    ]
    (folder / "b.json").write_text(json.dumps(data.draw(st.permutations(events))))
    assert tables(ta.load(folder / "b.json"), shift * 1000, pids) == tables(ta.load(folder / "a.json"))


@pytest.mark.parametrize("chunk_bytes", [64, 1000])
def test_chunks_of_any_size_give_the_same_rows(read, monkeypatch, chunk_bytes):
    expected = tables(read(FULL))
    monkeypatch.setattr("traceanalyzer.ingest.formats.kineto.text.splitter.CHUNK_BYTES", chunk_bytes)
    assert tables(read(FULL)) == expected
