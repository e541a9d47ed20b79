"""GPU work under a category that nobody knows: the track decides whether it is the GPU's, its neighbours whether it is work."""

from __future__ import annotations

import random
from typing import Any

import pytest

import traceanalyzer as ta
from tests.support.kineto import PROCESS, KinetoTrace
from traceanalyzer.doctor import diagnose
from traceanalyzer.ingest.formats.kineto.text import splitter
from traceanalyzer.result.gate import exit_code

ON_GPU = {"device": 0, "stream": 7}
LABEL = {"ph": "M", "name": "process_labels", "pid": 0, "tid": 0, "args": {"labels": "GPU 0"}}
COUNT = 40


def kernels(count: int = COUNT) -> KinetoTrace:
    """Kernels of 10 us, one every 100 us, each launched 20 us before."""
    trace = KinetoTrace()
    for n in range(count):
        trace.op(100 * n, 100 * n + 10, launch=(100 * n - 20, 100 * n - 16))
    return trace


def unknown(
    trace: KinetoTrace, category: str, start: float = 30, length: float = 40, *, count: int = COUNT, **event: Any
) -> KinetoTrace:
    """Events of a category, one after each kernel."""
    for n in range(count):
        said = {"name": "a", "pid": 0, "tid": 7, "args": dict(ON_GPU), **event}
        trace.add(cat=category, ts=100 * n + start, dur=length, **said)
    return trace


class Read:
    def __init__(self, trace: KinetoTrace, tmp_path: Any) -> None:
        self.path = trace.write(tmp_path / "t.json")
        self.trace = ta.load(self.path)
        self.result = ta.analyze(self.trace)

    @property
    def kinds(self) -> dict[str, int]:
        found = self.trace.table("gpu_ops")["kind"].to_pylist()
        return {kind: found.count(kind) for kind in sorted(set(found))}

    @property
    def busy_us(self) -> float:
        return self.result.devices[0].busy_ns / 1000

    @property
    def said(self) -> list[tuple[str, str, int]]:
        notes = self.trace.table("health").to_pylist()
        return [(n["severity"], n["message"], n["count"]) for n in notes if "categor" in n["message"]]


def said_of(category: str, what: str, severity: str, count: int = COUNT) -> list[tuple[str, str, int]]:
    return [(severity, f'events of the unknown category "{category}" on streams of a GPU {what}', count)]


AROUND = "were left out: they lie around or inside of other work"
PLACE = "were taken as kernels, and only their place says so: the GPU may be idle where it looks busy"
MIXED = "were left out, as some lie around other work: the GPU may be busy where it looks idle"
WAITS = "were left out: by their names or their calls they are waits, marks or ranges"


@pytest.mark.parametrize(
    ("category", "event", "kind"),
    [
        ("gpu_memcpy_p2p", {"name": "Memcpy PtoP"}, "memcpy"),
        ("gpu_dma", {}, "memcpy"),
        ("gpu_thing", {"name": "MemcpyH2D"}, "memcpy"),
        ("gpu_thing", {"args": {**ON_GPU, "bytes": 64}}, "memcpy"),
        ("gpu_memset_2d", {}, "memset"),
        ("graph_kernel", {}, "kernel"),
    ],
)
def test_work_is_told_by_its_words(tmp_path, category, event, kind):
    read = Read(unknown(kernels(), category, **event), tmp_path)
    assert read.kinds == ({"kernel": 2 * COUNT} if kind == "kernel" else {"kernel": COUNT, kind: COUNT})
    assert read.busy_us == COUNT * 50
    plural = {"memcpy": "copies", "memset": "memsets", "kernel": "kernels"}[kind]
    assert read.said == said_of(category, f"were taken as {plural}, by their names or their calls", "low")
    assert exit_code(read.result, "high") in (0, 1)
    (recording,) = diagnose([read.path]).recordings
    assert read.said[0][1] in [note.message for note in recording.health]


@pytest.mark.parametrize("spelling", ["GPU_MEMCPY", "Gpu_Memcpy", "Memcpy"])
def test_another_spelling_is_known(tmp_path, spelling):
    read = Read(unknown(kernels(), spelling), tmp_path)
    assert (read.kinds, read.said) == ({"kernel": COUNT, "memcpy": COUNT}, [])


class TestWhoseTrackItIs:
    """A kernel-like category on tracks that are told in one way each."""

    def on_gpu(self, tmp_path: Any, trace: KinetoTrace) -> bool:
        read = Read(trace, tmp_path)
        assert read.kinds["kernel"] in (COUNT, 2 * COUNT)
        return read.kinds["kernel"] == 2 * COUNT

    def test_known_operations_on_it(self, tmp_path):
        trace = unknown(kernels(), "x_kernel", args={})
        random.Random(1).shuffle(trace.events)
        assert self.on_gpu(tmp_path, trace)

    def test_another_track_of_a_process_with_known_operations(self, tmp_path):
        assert self.on_gpu(tmp_path, unknown(kernels(), "x_kernel", args={}, tid=21))

    def test_the_label_of_its_process_behind_the_events(self, tmp_path):
        trace = unknown(kernels(), "x_kernel", args={}, pid=77, tid=3)
        trace.events.append({**LABEL, "pid": 77})
        read = Read(trace, tmp_path)
        assert read.kinds == {"kernel": 2 * COUNT}
        assert set(read.trace.table("gpu_ops")["device"].to_pylist()) == {0}

    def test_what_has_no_category_makes_no_host_of_its_process(self, tmp_path):
        trace = KinetoTrace()
        for name in ("a", "cudaLaunchKernel"):
            trace.add(name=name, pid=77, tid=5, ts=1, dur=1)
        trace.events += unknown(kernels(), "x_kernel", args={}, pid=77, tid=3).events
        trace.events.append({**LABEL, "pid": 77})
        assert self.on_gpu(tmp_path, trace)

    def test_the_name_of_its_thread_beside_threads_of_the_host(self, tmp_path):
        """As in a container, where the program may have the number of a GPU."""
        trace = unknown(kernels(), "x_kernel", args={}, tid=21)
        trace.add(cat="cpu_op", name="aten::mm", pid=0, tid=5, ts=0, dur=5)
        assert not self.on_gpu(tmp_path, trace)
        trace.events.append({"ph": "M", "name": "thread_name", "pid": 0, "tid": 21, "args": {"name": "stream 21 "}})
        assert self.on_gpu(tmp_path, trace)

    def test_arguments_of_a_thread_of_the_host_say_what_it_works_for(self, tmp_path):
        trace = unknown(kernels(), "x_kernel", pid=PROCESS, tid=PROCESS)
        assert not self.on_gpu(tmp_path, trace)

    def test_the_name_that_stands_for_the_number_of_its_thread(self, tmp_path):
        trace = unknown(kernels(), "x_kernel", args={}, tid="stream 21")
        trace.add(cat="cpu_op", name="aten::mm", pid=0, tid=5, ts=0, dur=5)
        read = Read(trace, tmp_path)
        assert read.kinds == {"kernel": 2 * COUNT}
        assert set(read.trace.table("gpu_ops")["stream"].to_pylist()) == {7, 21}

    def test_ranges_of_no_thread(self, tmp_path):
        trace = kernels()
        for n in range(COUNT):
            for phase, ts in (("b", 100 * n + 30), ("e", 100 * n + 40)):
                trace.events.append({"ph": phase, "cat": "x_kernel", "name": "a", "pid": 0, "id": n, "ts": ts})
        read = Read(trace, tmp_path)
        assert read.kinds == {"kernel": 2 * COUNT}
        assert set(read.trace.table("gpu_ops")["stream"].to_pylist()) == {7, None}

    def test_arguments_alone(self, tmp_path):
        assert self.on_gpu(tmp_path, unknown(kernels(), "x_kernel", pid=55, tid=55))
        for event in (trace := unknown(kernels(), "x", pid=55, tid=55)).events:
            if event["cat"] == "x":
                del event["cat"]
        assert self.on_gpu(tmp_path, trace)

    @pytest.mark.parametrize("chunk_bytes", [64, 1 << 20])
    @pytest.mark.parametrize("also", [0, "0"])
    def test_a_track_of_several_gpus_whatever_is_read_at_once(self, tmp_path, monkeypatch, chunk_bytes, also):
        monkeypatch.setattr(splitter, "CHUNK_BYTES", chunk_bytes)
        trace = unknown(KinetoTrace(), "x_kernel", args={})
        for n in range(COUNT):
            args = {"device": n % 2, "stream": 7}
            trace.add(cat="kernel", name="k", pid=0 if n % 2 else also, tid=7, ts=100 * n, dur=10, args=args)
        ops = Read(trace, tmp_path).trace.table("gpu_ops").to_pylist()
        assert {(op["device"], op["stream"]) for op in ops if op["name"] == "a"} == {(None, 7)}

    def test_the_host(self, tmp_path):
        read = Read(unknown(kernels(), "app", pid=PROCESS, tid=PROCESS, args={}), tmp_path)
        assert read.kinds == {"kernel": COUNT}
        message = "events of categories that are not known, on no track of a GPU, were read as ranges of the host"
        assert read.said == [("info", message, COUNT)]


class TestRangesAroundWork:
    @pytest.mark.parametrize("args", [{}, ON_GPU, {**ON_GPU, "bytes": 5}])
    @pytest.mark.parametrize(("start", "length"), [(-1, 220), (0, 10), (2, 3)], ids=["around", "same", "inside"])
    def test_on_the_stream_of_the_work(self, tmp_path, args, start, length):
        plain = Read(kernels(), tmp_path)
        read = Read(unknown(kernels(), "gpu_scoped_thing", start, length, args=args), tmp_path)
        assert (read.kinds, read.busy_us) == (plain.kinds, plain.busy_us)
        assert read.said == said_of("gpu_scoped_thing", AROUND, "low" if "bytes" in args else "info")

    def test_on_a_track_of_their_own(self, tmp_path):
        trace = unknown(kernels(), "gpu_phase", 0, 110, tid=1000, args={"device": 0, "stream": 1000}, count=COUNT - 1)
        read = Read(trace, tmp_path)
        assert (read.kinds, read.busy_us) == ({"kernel": COUNT}, COUNT * 10)
        assert read.said == said_of("gpu_phase", AROUND, "info", COUNT - 1)

    @pytest.mark.parametrize("category", ["gpu_phase", "a_phase"])
    def test_around_other_unknown_work(self, tmp_path, category):
        trace = KinetoTrace()
        for n in range(COUNT):
            trace.op(100 * n, 100 * n + 10, launch=(100 * n - 20, 100 * n - 16), category="gpu_op")
        trace.add(cat=category, name="p", pid=0, tid=7, ts=0, dur=100 * COUNT, args=ON_GPU)
        read = Read(trace, tmp_path)
        assert (read.kinds, read.busy_us) == ({"kernel": COUNT}, COUNT * 10)
        assert {message.split()[-1] for _, message, _ in read.said} == {"calls", "work"}

    def test_words(self, tmp_path):
        read = Read(unknown(kernels(), "gpu_stream_wait"), tmp_path)
        assert read.kinds == {"kernel": COUNT}
        assert read.said == said_of("gpu_stream_wait", WAITS, "low")

    def test_a_stream_may_overlap_itself_for_a_moment(self, tmp_path):
        read = Read(unknown(kernels(), "x_kernel", 9, 40), tmp_path)
        assert read.kinds == {"kernel": 2 * COUNT}


class TestCalls:
    def launched(self, tmp_path: Any, call: str) -> Read:
        trace = kernels()
        for n in range(COUNT):
            trace.add(
                cat="gpu_x", name="a", pid=0, tid=7, ts=100 * n + 30, dur=40, args={**ON_GPU, "correlation": 900 + n}
            )
            trace.call(call, 100 * n + 20, 100 * n + 25, correlation=900 + n)
        return Read(trace, tmp_path)

    def test_launches_make_work(self, tmp_path):
        read = self.launched(tmp_path, "cudaLaunchKernelExC")
        assert (read.kinds, read.busy_us) == ({"kernel": 2 * COUNT}, COUNT * 50)
        assert read.said == said_of("gpu_x", "were taken as kernels, by their names or their calls", "low")

    @pytest.mark.parametrize("call", ["cudaStreamSynchronize", "cudaStreamWaitEvent", "cudaEventRecord"])
    def test_waits_make_none(self, tmp_path, call):
        read = self.launched(tmp_path, call)
        assert (read.kinds, read.said) == ({"kernel": COUNT}, said_of("gpu_x", WAITS, "low"))


class TestWhatCannotBeTold:
    def test_little_of_it_is_judged_and_passes_no_gate(self, tmp_path):
        read = Read(unknown(kernels(), "gpu_x", length=4), tmp_path)
        assert (read.kinds, read.said) == ({"kernel": 2 * COUNT}, said_of("gpu_x", PLACE, "medium"))
        assert read.result.judged and exit_code(read.result, "high") != 0

    def test_much_of_it_is_not_judged(self, tmp_path):
        read = Read(unknown(kernels(), "gpu_x"), tmp_path)
        assert read.said == said_of("gpu_x", PLACE, "high") and not read.result.judged

    def test_some_around_work_and_some_not(self, tmp_path):
        trace = unknown(unknown(kernels(), "gpu_x", length=1), "gpu_x", -1, 12, count=10)
        read = Read(trace, tmp_path)
        assert (read.kinds, read.said) == ({"kernel": COUNT}, said_of("gpu_x", MIXED, "medium", COUNT + 10))


def test_categories_without_end_and_names_of_any_kind(tmp_path):
    trace = kernels()
    for n in range(200):
        trace.add(cat=f"\x1b[31m{n}" * 50, name="a", pid=0, tid=7, ts=100 * n + 30, dur=1, args=ON_GPU)
    read = Read(trace, tmp_path)
    assert len(read.said) == 32 and sum(count for *_, count in read.said) == 200
    assert all(message.isprintable() and len(message) < 250 for _, message, _ in read.said)


def test_a_category_that_is_called_like_the_rare_ones_together(tmp_path):
    trace = unknown(kernels(), "others", length=1)
    for n in range(100):
        trace.add(cat=f"c{n}", name="a", pid=0, tid=7, ts=100 * n + 40, dur=1, args=ON_GPU)
    read = Read(trace, tmp_path)
    assert len(read.said) == 32 and sum(count for *_, count in read.said) == COUNT + 100
    assert read.kinds == {"kernel": 2 * COUNT + 100}


def test_work_without_a_process_belongs_to_the_one_that_launched_it(tmp_path):
    trace = unknown(kernels(), "gpu_dma", pid=3, tid=9, args={"device": 0, "stream": 9, "correlation": 5000})
    trace.add(
        cat="cuda_runtime", name="cudaMemcpyPeerAsync", pid=PROCESS + 1, tid=1, ts=5, dur=1, args={"correlation": 5000}
    )
    read = Read(trace, tmp_path)
    owners = zip(
        read.trace.table("gpu_ops")["kind"].to_pylist(), read.trace.table("gpu_ops")["process"].to_pylist(), strict=True
    )
    assert set(owners) == {("kernel", PROCESS), ("memcpy", PROCESS + 1)}


def test_work_belongs_to_a_process_where_all_of_it_is_unknown(tmp_path):
    trace = unknown(KinetoTrace(), "x_kernel", pid=3, tid=9, args={"device": 0, "stream": 9, "correlation": 50})
    for pid, correlation in ((PROCESS, 1), (PROCESS, 2), (PROCESS + 1, 50)):
        call = {"name": "cudaLaunchKernel", "args": {"correlation": correlation}}
        trace.add(cat="cuda_runtime", pid=pid, tid=1, ts=5, dur=1, **call)
    assert set(Read(trace, tmp_path).trace.table("gpu_ops")["process"].to_pylist()) == {PROCESS + 1}


def test_correlation_zero_names_no_call(tmp_path):
    trace = unknown(kernels(), "x_kernel", args={**ON_GPU, "correlation": 0})
    ops = Read(trace, tmp_path).trace.table("gpu_ops").to_pylist()
    assert {op["correlation"] for op in ops if op["name"] == "a"} == {None}
