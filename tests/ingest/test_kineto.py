"""The Kineto importer: exact times, every layout of the file, and damage that costs only what it hit."""

from __future__ import annotations

import gzip
import io
import json

import pytest

import traceanalyzer as ta
from tests.support.kineto import KinetoTrace
from traceanalyzer.ingest.formats.kineto.text.decode import Events
from traceanalyzer.ingest.formats.kineto.text.opening import NoEventsError
from traceanalyzer.ingest.formats.kineto.text.splitter import Splitter


def times(text: bytes) -> list[tuple[int, int]]:
    events = Events(text)
    return list(zip(events.start.tolist(), events.duration.tolist(), strict=True))


@pytest.mark.parametrize(
    ("ts", "ns"),
    [
        ("4955325388754.317", 4955325388754317),
        ("7889237999999.999", 7889237999999999),
        ("0.001", 1),
        ("17", 17000),
        # Absolute times of older traces, which a float64 cannot hold.
        ("1719000000000000.123", 1719000000000000123),
        ("1719000000000000.25", 1719000000000000250),
        ("1.7126e+15", 1712600000000000000),
        ('"1719000000000000.123"', 1719000000000000123),
        ('"12.5"', 12500),
        ("-3.5", -3500),
    ],
)
def test_times_are_exact(ts, ns):
    assert times(f'[{{"ts": {ts}, "dur": 1.001}}]'.encode()) == [(ns, 1001)]


def test_one_absolute_time_does_not_change_its_neighbours():
    assert times(b'[{"ts":1.001,"dur":2},{"ts":1719000000000000.123,"dur":0.5}]') == [
        (1001, 2000),
        (1719000000000000123, 500),
    ]


def test_a_negative_duration_becomes_zero():
    assert times(b'[{"ts": 5, "dur": -2}]') == [(5000, 0)]


def split(text: bytes, chunk_bytes: int) -> tuple[list[str | None], Splitter]:
    splitter = Splitter(io.BytesIO(text), Events, chunk_bytes)
    return [event.name for chunk in splitter for event in chunk.events], splitter


NAMES = [f"event {n}" for n in range(40)]
EVENTS = [{"ph": "X", "name": n, "args": {"list": [{"a": 1}, {"b": [{}, {}]}], "text": "}, {"}} for n in NAMES]
OBJECT = {"before": [{"x": 1}, {"y": 2}], "traceEvents": EVENTS, "after": [{"z": 3}, {"w": 4}]}


@pytest.mark.parametrize("chunk_bytes", [1, 7, 64, 1000, 1 << 20])
@pytest.mark.parametrize("indent", [None, 1])
def test_chunks_of_any_size_give_the_same_events(chunk_bytes, indent):
    names, splitter = split(json.dumps(OBJECT, indent=indent).encode(), chunk_bytes)
    assert names == NAMES
    assert (splitter.dropped, splitter.truncated) == (0, False)
    assert json.loads(splitter.header + b'"traceEvents":[]' + splitter.trailer) == {**OBJECT, "traceEvents": []}


def test_bytes_that_are_no_utf8_cost_only_themselves(tmp_path):
    trace = KinetoTrace().op(0, 10, name="kXXern\u00e9l", launch=(-5, -1))
    data = json.dumps({**trace.metadata, "note": "YY", "traceEvents": trace.events}, ensure_ascii=False).encode()
    (tmp_path / "t.json").write_bytes(data.replace(b"XX", b"\xff\xfe").replace(b"YY", b"\x80"))
    loaded = ta.load(tmp_path / "t.json")
    assert loaded.table("gpu_ops")["name"].to_pylist() == ["k??ern\u00e9l"]
    (note,) = loaded.table("health").to_pylist()
    assert (note["code"], note["count"]) == ("TRC001", 3)
    assert loaded.table("devices").num_rows == 1


@pytest.mark.parametrize("what", ["{", "["])
def test_deep_nesting_costs_only_its_event(tmp_path, what):
    deep = '{"ph":"X","cat":"kernel","name":"deep","ts":1,"dur":1,"args":' + '{"a":' * 5000 + "1" + "}" * 5000 + "}"
    if what == "[":
        deep = '{"ph":"X","cat":"kernel","name":"deep","ts":1,"dur":1,"args":{"x":' + "[" * 5000 + "]" * 5000 + "}}"
    text = KinetoTrace().op(0, 10).text().replace('"traceEvents": [', f'"traceEvents": [{deep},')
    (tmp_path / "t.json").write_text(text)
    loaded = ta.load(tmp_path / "t.json")
    assert "gemm" in loaded.table("gpu_ops")["name"].to_pylist()


@pytest.mark.parametrize("chunk_bytes", [64, 1 << 20])
def test_a_list_at_top_level(chunk_bytes):
    assert split(b"\xef\xbb\xbf " + json.dumps(EVENTS).encode(), chunk_bytes)[0] == NAMES


@pytest.mark.parametrize("text", [b'{"traceEvents": []}', b"[]", b'{"traceEvents": [ ] , "a": 1}'])
def test_no_events(text):
    names, splitter = split(text, 4)
    assert (names, splitter.dropped, splitter.truncated) == ([], 0, False)


def test_no_event_array():
    with pytest.raises(NoEventsError):
        split(b'{"a": 1}', 64)


@pytest.mark.parametrize("chunk_bytes", [64, 1 << 20])
def test_a_broken_event_costs_only_itself(chunk_bytes):
    text = json.dumps(OBJECT).replace('"event 7"', '"event" 7').encode()
    names, splitter = split(text, chunk_bytes)
    assert names == [n for n in NAMES if n != "event 7"]
    assert splitter.dropped == 1
    assert splitter.first_dropped.startswith('{"ph": "X", "name": "event" 7, ')


def test_a_cut_inside_an_event_keeps_those_before_it():
    text = json.dumps(OBJECT).encode()
    names, splitter = split(text[: text.index(b'"event 20"') + 4], 256)
    assert names == NAMES[:20]
    assert splitter.truncated


def test_metadata_may_follow_the_events(tmp_path):
    trace = KinetoTrace().op(0, 10, launch=(-5, -1))
    text = json.dumps(
        {"traceEvents": trace.events, "distributedInfo": {"rank": 3, "world_size": 8}, "baseTimeNanoseconds": 1 << 60}
    )
    (tmp_path / "t.json").write_text(text)
    (found,) = ta.load(tmp_path / "t.json").inputs
    assert (found.rank, found.world_size, found.clock_base_ns, found.ordinal) == (3, 8, 1 << 60, 3)


def test_a_truncated_file_is_said_to_be(tmp_path):
    text = KinetoTrace().op(0, 10, launch=(-5, -1)).op(20, 30).text()
    (tmp_path / "t.json").write_text(text[:-20])
    trace = ta.load(tmp_path / "t.json")
    assert trace.table("gpu_ops").num_rows >= 1
    assert trace.table("health")["code"].to_pylist()[0] == "TRC001"


def test_columns_of_a_kernel_and_its_launch(tmp_path):
    trace = KinetoTrace().op(
        1.5, 4.25, launch=(0.5, 1), api="cuLaunchKernelEx", name="sgemm", grid=[4, 2, 1], block=[128, 1, 1],
        **{"registers per thread": 32, "shared memory": 1024, "est. achieved occupancy %": 25, "External id": 9},
    )  # fmt: skip
    loaded = ta.load(trace.write(tmp_path / "t.json.gz"))
    (op,) = loaded.table("gpu_ops").to_pylist()
    assert (op["start_ns"], op["end_ns"], op["kind"], op["class"]) == (1500, 4250, "kernel", "compute")
    assert (op["grid"], op["block"], op["registers"], op["shared_memory"]) == ([4, 2, 1], [128, 1, 1], 32, 1024)
    assert (op["occupancy"], op["process"], op["external_id"], op["quarantined"]) == (0.25, 100, 9, False)
    (call,) = loaded.table("api_calls").to_pylist()
    assert (call["name"], call["class"], call["start_ns"], call["end_ns"]) == ("cuLaunchKernelEx", "launch", 500, 1000)
    assert loaded.table("devices").to_pylist()[0]["sm_count"] == 100


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Memcpy HtoD (Pageable -> Device)", ("htod", "pageable", "device")),
        ("Memcpy HtoD (Pinned -> Device)", ("htod", "pinned", "device")),
        ("Memcpy DtoH (Device -> Pageable)", ("dtoh", "device", "pageable")),
        ("Memcpy DtoD (Device -> Device)", ("dtod", "device", "device")),
        ("Memcpy PtoP (Device -> Device)", ("ptop", "device", "device")),
        ("CopyHostToDevice", ("htod", "unknown", "unknown")),
        ("something else", ("other", "unknown", "unknown")),
    ],
)
def test_what_a_copy_says(tmp_path, name, expected):
    trace = KinetoTrace().op(0, 1, category="gpu_memcpy", name=name, bytes=64)
    (op,) = ta.load(trace.write(tmp_path / "t.json")).table("gpu_ops").to_pylist()
    assert (op["copy_kind"], op["src_memory"], op["dst_memory"], op["bytes"]) == (*expected, 64)


def test_collective_arguments_decide_the_class(tmp_path):
    trace = KinetoTrace().op(
        0, 10, name="void custom_kernel()",
        **{"Collective name": "allreduce", "In msg nelems": 1000, "Out msg nelems": 1000, "dtype": "BFloat16",
           "Group size": 4, "Process Group Name": "0", "Process Group Ranks": "[0, 1, 2, 3]", "Seq": 17},
    )  # fmt: skip
    loaded = ta.load(trace.write(tmp_path / "t.json"))
    assert loaded.table("gpu_ops")["class"].to_pylist() == ["communication"]
    (row,) = loaded.table("collectives").to_pylist()
    assert (row["name"], row["elements"], row["bytes"], row["group_size"]) == ("allreduce", 1000, 2000, 4)
    assert (row["sequence"], row["group"], row["group_ranks"]) == (17, "0", "[0, 1, 2, 3]")


def test_what_lies_on_gpu_tracks_but_is_no_work(tmp_path):
    trace = KinetoTrace().op(0, 10).add(cat="gpu_user_annotation", name="step", pid=0, tid=7, ts=0, dur=500)
    trace.add(cat="cuda_sync", name="Stream Sync", pid=0, tid=7, ts=0, dur=500, args={"stream": 7, "device": 0})
    trace.add(cat="Trace", name="PyTorch Profiler (0)", pid="Spans", tid="PyTorch Profiler", ts=0, dur=500)
    assert ta.load(trace.write(tmp_path / "t.json")).table("gpu_ops").num_rows == 1


def test_categories_of_old_releases(tmp_path):
    trace = KinetoTrace()
    trace.add(cat="Kernel", name="k", pid=0, tid=7, ts=0, dur=5, args={"device": 0, "stream": 7, "correlation": 1})
    trace.add(cat="Runtime", name="cudaLaunchKernel", ts=-3, dur=1, args={"correlation": 1})
    trace.add(cat="Operator", name="aten::add", ts=-4, dur=3, args={"Input Dims": [[2, 3]], "external id": 5})
    loaded = ta.load(trace.write(tmp_path / "t.json"))
    assert [loaded.table(n).num_rows for n in ("gpu_ops", "api_calls", "host_ranges")] == [1, 1, 1]
    (operator,) = loaded.table("host_ranges").to_pylist()
    assert (operator["shapes"], operator["external_id"], operator["depth"], operator["parent"]) == (
        "[[2, 3]]",
        5,
        0,
        None,
    )


def test_the_id_that_execution_traces_call_an_operator_by(tmp_path):
    trace = KinetoTrace()
    for at, number in enumerate((7, "8", 0, None)):
        args = {} if number is None else {"Record function id": number}
        trace.add(cat="cpu_op", name="aten::add", ts=10 * at, dur=3, args=args)
    ranges = ta.load(trace.op(0, 10).write(tmp_path / "t.json")).table("host_ranges")
    assert ranges["record_function"].to_pylist() == [7, 8, None, None]


def test_annotations_that_old_releases_list_as_operators(tmp_path):
    trace = KinetoTrace().op(0, 10)
    names = ["ProfilerStep#5", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "Optimizer.step#SGD.step"]
    for n, name in enumerate(names):
        trace.range(name, n * 20, n * 20 + 9, category="Operator")
    trace.range("aten::add", 90, 95, category="Operator")
    loaded = ta.load(trace.write(tmp_path / "t.json"))
    assert loaded.table("host_ranges")["category"].to_pylist() == ["annotation"] * 3 + ["operator"]
    assert loaded.table("steps")["name"].to_pylist() == ["ProfilerStep#5"]


def test_hip_default_stream_and_missing_arguments(tmp_path):
    trace = KinetoTrace().add(cat="kernel", name="k", pid=2, tid=0, ts=0, dur=5, args={"stream": 0, "correlation": 1})
    trace.add(cat="kernel", name="k", pid=2, tid=4, ts=9, dur=5)
    found = ta.load(trace.write(tmp_path / "t.json")).table("gpu_ops").to_pylist()
    assert [(op["device"], op["stream"], op["correlation"]) for op in found] == [(2, 0, 1), (2, 4, None)]


def test_steps_come_from_annotations(tmp_path):
    trace = KinetoTrace().op(0, 10)
    for n in (4, 3, 5):
        trace.range(f"ProfilerStep#{n}", n * 100, n * 100 + 90).range("forward", n * 100 + 1, n * 100 + 9)
    steps = ta.load(trace.write(tmp_path / "t.json")).table("steps").to_pylist()
    assert [(s["index"], s["name"], s["method"]) for s in steps] == [
        (0, "ProfilerStep#3", "annotation"),
        (1, "ProfilerStep#4", "annotation"),
        (2, "ProfilerStep#5", "annotation"),
    ]


def test_calls_of_an_unnamed_process(tmp_path):
    trace = KinetoTrace().op(0, 10, launch=(-5, -1)).add(cat="cuda_runtime", name="cudaFree", pid=None, ts=20, dur=1)
    loaded = ta.load(trace.add(cat="cuda_runtime", name="cudaFree", pid="", ts=30, dur=1).write(tmp_path / "t.json"))
    assert loaded.table("api_calls").num_rows == 3
    assert loaded.table("processes")["process"].to_pylist() == [100]


def test_files_without_a_rank_get_free_numbers(tmp_path):
    trace = KinetoTrace().op(0, 10)
    trace.write(tmp_path / "b.json")
    trace.write(tmp_path / "c.json")
    trace.metadata["distributedInfo"] = {"rank": 0, "world_size": 2}
    trace.write(tmp_path / "a.json")
    assert [(i.rank, i.ordinal) for i in ta.load(tmp_path).inputs] == [(0, 0), (None, 1), (None, 2)]


def test_gzip_is_known_by_its_content(tmp_path):
    path = tmp_path / "trace.json"
    path.write_bytes(gzip.compress(KinetoTrace().op(0, 10).text().encode()))
    assert ta.load(path).table("gpu_ops").num_rows == 1


def test_gzip_of_several_members(tmp_path):
    data = KinetoTrace().op(0, 10).op(20, 30).text().encode()
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(data[:100]) + gzip.compress(data[100:]))
    assert ta.load(path).table("gpu_ops").num_rows == 2


def test_steps_of_each_process_are_numbered_on_their_own(tmp_path):
    trace = KinetoTrace().op(0, 10)
    for process in (100, 200):
        for n in range(3):
            # The profiler rounds: a step may begin before the last one ends.
            trace.add(
                cat="user_annotation", name=f"ProfilerStep#{n}", pid=process, tid=1, ts=n * 100 - n * 0.001, dur=100
            )
            trace.add(cat="user_annotation", name=f"iteration {n}", pid=process, tid=1, ts=n * 100 + 5, dur=90)
    steps = ta.load(trace.write(tmp_path / "t.json")).table("steps").to_pylist()
    assert [(s["process"], s["index"], s["name"]) for s in steps] == [
        (process, n, f"ProfilerStep#{n}") for process in (100, 200) for n in range(3)
    ]
