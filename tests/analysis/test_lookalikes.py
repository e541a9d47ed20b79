"""Work of a GPU that cannot be judged is named: rows in an unknown form, devices that are not read, files that end before it."""

from __future__ import annotations

import json
from collections import Counter

import pytest

import traceanalyzer as ta
from tests.support.kineto import KinetoTrace
from traceanalyzer.analysis import analyze
from traceanalyzer.render.text import render_text

SIGNATURE = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)"


@pytest.fixture
def judged(tmp_path):
    """The result of some events."""

    def judge(events):
        (tmp_path / "t.json").write_text(json.dumps({"traceEvents": events}))
        return analyze(ta.load(tmp_path / "t.json"))

    return judge


def rows(*names, **more):
    return [
        {"ph": "X", "name": name, "pid": 1, "tid": 7, "ts": 10 * n, "dur": 5, **more} for n, name in enumerate(names)
    ]


def named(what, name, pid=1, tid=0):
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": {"name": name}}


@pytest.mark.parametrize(
    "events",
    [
        rows("[MEMCPY] HtoD", SIGNATURE, "[MEMCPY] DtoH"),
        rows("Memcpy HtoD", "a", "b"),
        rows("ampere_sgemm_128x64_tn"),
        rows("my_stencil_kernel(float*, int)"),
        rows("a", "b", cat="gpu_activity"),
        rows("a", "b", cat="my_kernel"),
        [named("process_name", "CUDA Device 0"), *rows("a")],
        [named("process_name", "app"), named("thread_name", "Stream 7", tid=7), *rows("a")],
        [{**event, "ph": phase} for event in rows(SIGNATURE) for phase in "BE"],
    ],
)
def test_rows_that_look_like_work_of_a_gpu(judged, events):
    found = judged(events)
    assert not found.judged
    assert found.verdict.headline.startswith(
        "Could not judge: rows that look like work of a GPU are in a form that is not"
    )
    assert events[-1]["name"][:20] in found.verdict.headline


@pytest.mark.parametrize(
    "events",
    [
        rows("train", "launch_kernel", "step 1"),
        rows("load_kernel (kernel.py:12)"),
        rows("cudaMemcpyAsync"),
        [named("process_name", "python gpu_worker.py"), *rows("main")],
        rows("f", cat="gpu_api"),
    ],
)
def test_ranges_of_the_host_do_not(judged, events):
    assert "look like" not in judged(events).verdict.headline


def test_beside_work_that_is_read_they_are_no_matter(tmp_path):
    trace = KinetoTrace().op(0, 2000, launch=(-20, -15))
    trace.events += rows(SIGNATURE)
    found = analyze(ta.load(trace.write(tmp_path / "t.json")))
    assert found.judged
    assert not any("look like" in note.message for note in found.health)


def unread_device(device: str, launches: int = 6) -> list[dict]:
    return rows(*["launch"] * launches, cat=f"{device}_runtime") + rows(*["gemm_kernel"] * launches, cat="kernel")


@pytest.mark.parametrize("device", ["xpu", "mtia", "hpu", "privateuse1"])
def test_nothing_stands_twice_in_the_report_of_a_device_that_is_not_read(judged, device):
    found = judged(unread_device(device))
    assert not found.judged
    assert {note.code for note in found.health if note.severity != "info"} == {"TRC002"}
    said = render_text(found).partition("Rules: ")[0]
    lines = Counter(line.strip() for line in said.splitlines() if len(line.strip()) > 25)
    assert lines.most_common(1)[0][1] == 1


def cut(trace: KinetoTrace, before: str) -> str:
    text = trace.text()
    return text[: text.index(before)]


def test_a_file_that_ends_before_the_gpu_begins(tmp_path):
    trace = KinetoTrace()
    for n in range(9):
        trace.call("cudaLaunchKernel", n * 10, n * 10 + 5, correlation=n + 1)
    trace.op(100, 200, name="the first kernel")
    (tmp_path / "t.json").write_text(cut(trace, "the first kernel"))
    found = analyze(ta.load(tmp_path / "t.json"))
    assert not found.judged
    assert found.verdict.headline.startswith(
        "Could not judge: the file ends in the middle of its events; no work of a GPU"
    )


def test_a_file_that_ends_after_the_gpu_began(tmp_path):
    trace = KinetoTrace().op(0, 900, launch=(-5, -1)).op(1000, 2000, launch=(995, 999), name="the last")
    (tmp_path / "t.json").write_text(cut(trace, "the last"))
    found = analyze(ta.load(tmp_path / "t.json"))
    assert [note.severity for note in found.health if note.code == "TRC001"] == ["medium"]
