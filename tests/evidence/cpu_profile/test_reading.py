"""Every form of a CPU profile: the same samples come out of all of them, and what is no profile is left alone."""

from __future__ import annotations

import json

import pytest

from tests.evidence.cpu_profile import makers as make
from tests.support.kineto import KinetoTrace
from traceanalyzer.errors import InputError
from traceanalyzer.evidence.cpu_profile import KIND
from traceanalyzer.evidence.cpu_profile.reading.frames import frame_of
from traceanalyzer.ingest.bytes.source import source_of
from traceanalyzer.ingest.registry import find_sources, registry

EPOCH = 1_795_884_000 * 10**9
PERIOD = 10_000_000
FORMS = {
    "speedscope": make.speedscope(),
    "speedscope, evented": make.evented(),
    "py-spy chrometrace": make.chrometrace(),
    "perf script": make.perf_script(),
    "austin": make.austin(),
    "mojo 1": make.mojo(version=1),
    "mojo 3": make.mojo(version=3),
    "pprof": make.pprof(),
    "pprof, not packed": make.pprof(packed=False),
    "folded": make.folded(),
}
WITHOUT_LINES = ("perf script",)


@pytest.mark.parametrize("form", FORMS)
def test_all_forms_tell_the_same(tmp_path, form):
    _, sink = make.read(tmp_path / "x", FORMS[form])
    assert sink.notes == []
    (thread,) = make.threads(sink)
    unit = 1 if form == "folded" else PERIOD
    assert (thread["weight"], thread["startup"], thread["own"]) == (80 * unit, 30 * unit, 50 * unit)
    assert thread["label"] == "the main thread" and thread["main"] and thread["named"]
    merge = "tokenize → merge (data.py)" if form in WITHOUT_LINES else "tokenize → merge (data.py:17)"
    step = "<module> → step (train.py)" if form in WITHOUT_LINES else "<module> → step (train.py:45)"
    assert make.functions(sink) == [(merge, 41 * unit), (step, 9 * unit)]


@pytest.mark.parametrize("form", FORMS)
def test_packed_and_cut_in_any_way_it_is_the_same_kind(tmp_path, form):
    path = make.write(tmp_path / "profile.json", FORMS[form])
    (source,) = find_sources([path])
    assert source.kind == "cpu_profile"
    assert [kind.name for kind in registry().kinds if kind.sniff(source)] == ["cpu_profile"]


@pytest.mark.parametrize(
    "form, data, epoch",
    [
        ("speedscope", make.speedscope(start=EPOCH), True),
        ("speedscope", make.speedscope(start=5 * 10**9), False),
        ("perf script", make.perf_script(start_ns=EPOCH), True),
        ("perf script", make.perf_script(), False),
        ("pprof", make.pprof(start=EPOCH), True),
        ("austin", make.austin(), False),
        ("py-spy chrometrace", make.chrometrace(), False),
    ],
)
def test_times(tmp_path, form, data, epoch):
    marks, sink = make.read(tmp_path / "x", data)
    tables = sink.tables()
    (about,) = tables["profile_about"].to_pylist()
    assert (about["form"], about["timed"], about["epoch"]) == (form, True, epoch)
    assert (marks.clock, marks.clock_base_ns) == (("epoch", EPOCH) if epoch else ("none", None))
    time = tables["profile_samples"]["time_ns"].to_pylist()
    if not about["stretches"]:
        assert [at - time[0] for at in time] == [number * PERIOD for number in range(80)]


def test_folded_stacks_have_no_time(tmp_path):
    marks, sink = make.read(tmp_path / "x", make.folded())
    assert marks.clock == "none" and marks.recorded_ns is None
    assert sink.tables()["profile_samples"]["time_ns"].null_count == 4


def test_viztracer_counts_from_the_epoch_where_it_says_so(tmp_path):
    marks, sink = make.read(tmp_path / "x", make.viztracer(base=EPOCH))
    assert (marks.clock, marks.clock_base_ns, marks.pids) == ("epoch", EPOCH + 1_000_000_125, [100])
    assert make.functions(sink) == [
        ("tokenize → merge (data.py:17)", 28_000_000),
        ("step (train.py:45)", 7_600_000),
        ("step → tokenize (data.py:22)", 4_000_000),
    ]
    marks, _ = make.read(tmp_path / "x", make.viztracer())
    assert marks.clock == "none" and marks.producer == "VizTracer 1.1.1"


def test_viztracer_keeps_no_source_text(tmp_path):
    _, sink = make.read(tmp_path / "x", make.viztracer())
    assert "SECRET" not in json.dumps([table.to_pylist() for table in sink.tables().values()])


def test_a_ring_that_ran_over_says_so_and_counts_only_what_is_whole(tmp_path):
    data = make.viztracer(overflow=True)
    outer = {
        "cat": "FEE",
        "ph": "X",
        "pid": 100,
        "tid": 100,
        "ts": 0.0,
        "dur": 2_000_000.0,
        "name": "main (/home/ann/train.py:1)",
    }
    data["traceEvents"].append(outer)
    _, sink = make.read(tmp_path / "x", data)
    ((code, _, message, _),) = sink.notes
    assert code == "TRC009" and "ring of 13 calls ran over" in message
    # From the end of the first call that it holds, at 1.008 s, to that of main at 2 s.
    assert make.threads(sink)[0]["weight"] == 2_000_000_000 - 1_008_000_500


def test_a_trace_that_viztracer_merged_into_its_own_is_a_trace(tmp_path):
    kernel = {
        "ph": "X",
        "cat": "kernel",
        "name": "gemm",
        "pid": 0,
        "tid": 7,
        "ts": 1_000_000,
        "dur": 5,
        "args": {"device": 0, "stream": 7},
    }
    filler = [
        {"cat": "FEE", "ph": "X", "pid": 100, "tid": 100, "ts": n, "dur": 1, "name": "f (a.py:1)"} for n in range(2000)
    ]
    path = make.write(tmp_path / "x.json", make.viztracer(more=[*filler, kernel]))
    (source,) = find_sources([path])
    assert source.kind == "kineto"


def test_traces_are_no_profiles(tmp_path):
    trace = KinetoTrace().op(0, 10, launch=(-5, -3)).range("train.py(3): step", -9, 9, category="python_function")
    path = trace.write(tmp_path / "t.json")
    assert not KIND.sniff(source_of(path, path, None))


@pytest.mark.parametrize(
    "text",
    [
        "time;value 3\nother text\n",
        "a,b,c\n1,2,3\n",
        "hello world 12\n",
        "2026-11-29 10:00:00 loss 3\n",
        '{"a;b": 12}\n',
        "P4;T\n",
        "# comment\n",
        "\n\x08\x01",
        "rank;0 loss 12 step\n",
    ],
)
def test_other_texts_are_none(tmp_path, text):
    path = make.write(tmp_path / "x.txt", text)
    assert not KIND.sniff(source_of(path, path, None))


def test_names_of_frames():
    assert frame_of("step (train.py:45)")[:3] == ("step", "train.py", 45)
    assert frame_of("f (a (b).py:3)")[:3] == ("f", "a (b).py", 3)
    assert frame_of("g (C:\\run\\train.py:3)")[:3] == ("g", "C:/run/train.py", 3)
    assert frame_of("h (train.py)")[:3] == ("h", "train.py", None)
    assert frame_of("void f<int> (anonymous)").file is None
    assert frame_of("py::step:/run/train.py")[:3] == ("step", "/run/train.py", None)
    kinds = {
        ("f", "/home/ann/train.py"): "own",
        ("f", "/venv/lib/python3.12/site-packages/torch/nn/x.py"): "library",
        ("f", "torch/nn/x.py"): "library",
        ("f", "/usr/lib/python3.12/json/decoder.py"): "library",
        ("f", "threading.py"): "library",
        ("_find_and_load", "<frozen importlib._bootstrap>"): "import",
        ("f", "<string>"): "library",
        ("malloc", "libc.so.6"): "native",
        ("thread (7): MainThread", None): "other",
    }
    assert {key: frame_of(*key).kind for key in kinds} == kinds


def test_threads_and_processes(tmp_path):
    two = make.speedscope()
    two["profiles"] = [
        two["profiles"][0] | {"name": name}
        for name in ('Process 100 Thread 100 "MainThread"', 'Process 100 Thread 103 "loader"')
    ]
    marks, sink = make.read(tmp_path / "x", two)
    assert marks.pids == [100]
    assert [(row["label"], row["main"]) for row in make.threads(sink)] == [
        ("the main thread", True),
        ("thread loader", False),
    ]


@pytest.mark.parametrize(
    "name, label",
    [
        ("Wall time profile for 100:0:100", "the main thread"),
        ("Wall time profile for 100:0:7f12ab", "thread 8327851"),
        ('Thread 0x1F "MainThread"', "the main thread"),
        ("Thread 12", "thread 12"),
        ("worker 3", "thread worker 3"),
        ("", "all threads"),
    ],
)
def test_names_of_profiles(tmp_path, name, label):
    _, sink = make.read(tmp_path / "x", make.speedscope(name=name))
    assert [row["label"] for row in make.threads(sink)] == [label]


def test_what_austin_makes_of_its_own(tmp_path):
    _, sink = make.read(
        tmp_path / "x", make.pprof(count="Wall time", kind="Wall time", unit="\u03bcs", period_ns=10_000)
    )
    assert make.threads(sink)[0]["weight"] == 80 * PERIOD


def test_units_of_speedscope(tmp_path):
    for unit, scale in (("seconds", 10**9), ("milliseconds", 10**6), ("microseconds", 10**3)):
        _, sink = make.read(tmp_path / "x", make.speedscope(period_ns=2) | {})
        data = make.speedscope(period_ns=2)
        data["profiles"][0]["unit"] = unit
        _, sink = make.read(tmp_path / "x", data)
        assert make.threads(sink)[0]["weight"] == 160 * scale
    data["profiles"][0]["unit"] = "bytes"
    with pytest.raises(InputError, match="a speedscope profile of bytes, not of time"):
        make.read(tmp_path / "x", data)


def test_events_of_perf_that_count_no_time_are_left_out(tmp_path):
    text = make.perf_script()
    other = "python   100/100   [003] 5.000000001:          1 sched:sched_switch: \n\t  1 f+0x1 (/x)\n\n"
    _, sink = make.read(tmp_path / "x", text + other * 200)
    assert make.threads(sink)[0]["weight"] == 80 * PERIOD
    ((code, _, message, count),) = sink.notes
    assert (code, count) == ("TRC001", 200) and "other events" in message


@pytest.mark.parametrize(
    "count, kind, unit", [("alloc_objects", "alloc_space", "bytes"), ("contentions", "delay", "nanoseconds")]
)
def test_other_profiles_of_pprof_are_refused(tmp_path, count, kind, unit):
    with pytest.raises(InputError, match=f"a pprof profile of {count}, {kind}, not of the CPU's time"):
        make.read(tmp_path / "x", make.pprof(count=count, kind=kind, unit=unit))
