"""What the launching thread did in a gap, by name: operators, frames, annotations, calls, places and activities."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import traceanalyzer as ta
from tests.support.kineto import KinetoTrace
from traceanalyzer.catalog.catalog import Catalog
from traceanalyzer.columns.frames import NULL
from traceanalyzer.derive.host.activities import ACTIVITIES, Matcher
from traceanalyzer.derive.host.ranges import heaviest
from traceanalyzer.places import frame_text, is_user_frame


def two_ops(launch=(90, 95), **second) -> KinetoTrace:
    """Two operations with a gap from 10 to 100 us."""
    return KinetoTrace().op(0, 10, launch=(-5, -2)).op(100, 110, launch=launch, name="late", **second)


def rows(trace: KinetoTrace, tmp_path) -> list[dict]:
    return Catalog(ta.load(trace.write(tmp_path / "trace.json"))).table("gaps").to_pylist()


def work(trace: KinetoTrace, tmp_path) -> dict:
    return max(
        (r for r in rows(trace, tmp_path) if r["cause"] == "host_work"), key=lambda r: r["end_ns"] - r["start_ns"]
    )


def python(trace: KinetoTrace, *frames: tuple[str, float, float]) -> KinetoTrace:
    for name, start, end in frames:
        trace.range(name, start, end, category="python_function")
    return trace


def test_an_operator_called_from_the_users_code(tmp_path):
    trace = python(two_ops(), ("train.py(41): train_step", 10, 90), ("torch/_tensor.py(9): sort", 20, 80))
    trace.range("aten::sort", 22, 80, category="cpu_op")
    row = work(trace, tmp_path)
    assert row["operator"] == "aten::sort"
    assert row["frame"] == "torch/_tensor.py(9): sort"
    assert row["source"] == "train.py:41 (train_step)"
    assert row["place"] == "aten::sort called from train.py:41 (train_step)"
    assert row["place_duration"] == 58_000


def test_what_people_call_rather_than_a_step_inside_it(tmp_path):
    trace = two_ops().range("aten::item", 10, 90, category="cpu_op")
    row = work(trace.range("aten::_local_scalar_dense", 12, 88, category="cpu_op"), tmp_path)
    assert (row["operator"], row["place"]) == ("aten::_local_scalar_dense", "aten::item")


def test_scattered_work_is_named_after_the_code_around_it(tmp_path):
    trace = python(two_ops(), ("post.py(7): rank", 10, 90))
    for start in range(10, 90, 8):
        python(trace, (f"<built-in method f{start} of list object at 0x7f3b>", start, start + 7))
    row = work(trace, tmp_path)
    assert (row["place"], row["place_duration"]) == ("post.py:7 (rank)", 80_000)
    assert row["frame"] is None


def test_scattered_operators_are_named_after_the_one_around_them(tmp_path):
    trace = two_ops().range("forward", 5, 95).range("aten::conv2d", 10, 90, category="cpu_op")
    for start in range(10, 90, 8):
        trace.range(f"aten::f{start}", start, start + 7, category="cpu_op")
    row = work(trace, tmp_path)
    assert (row["place"], row["place_duration"]) == ("aten::conv2d in forward", 80_000)
    # An annotation inside the operator is not around it.
    assert work(trace.range("inside", 11, 90), tmp_path)["place"] == "aten::conv2d"


def test_without_stacks_the_annotation_is_the_next_best(tmp_path):
    trace = two_ops().range("ProfilerStep#1", 0, 99).range("step", 0, 99).range("backward", 5, 95)
    row = work(trace.range("aten::mm", 15, 85, category="cpu_op"), tmp_path)
    assert (row["annotation"], row["phase"], row["place"]) == ("backward", "backward", "aten::mm in backward")


def test_a_name_that_holds_less_than_half_is_no_name_of_the_part(tmp_path):
    trace = two_ops().range("forward", 10, 30).range("backward", 30, 55).range("aten::mm", 12, 30, category="cpu_op")
    trace.range("rest", 55, 90).range("aten::add", 55, 60, category="cpu_op")
    row = work(trace, tmp_path)
    assert (row["operator"], row["annotation"], row["phase"]) == (None, None, None)
    assert (row["place"], row["place_duration"]) == ("rest", 35_000)


def test_a_call_outside_all_ranges(tmp_path):
    row = work(two_ops().call("cudaDeviceGetAttribute", 20, 80), tmp_path)
    assert (row["call_name"], row["place"], row["place_duration"]) == ("cudaDeviceGetAttribute",) * 2 + (60_000,)


def test_a_wait_is_named_after_what_asked_for_it(tmp_path):
    trace = python(two_ops(), ("train.py(41): step", -20, 13), ("log.py(3): write", 13, 90))
    trace.range("aten::item", -2, 12, category="cpu_op").call("cudaStreamSynchronize", -1, 12)
    row = next(r for r in rows(trace, tmp_path) if r["cause"] == "synchronization")
    assert (row["wait_name"], row["place"]) == ("cudaStreamSynchronize", "aten::item called from train.py:41 (step)")
    assert row["place_duration"] == row["end_ns"] - row["start_ns"]


def test_the_outermost_operator_around_the_launch(tmp_path):
    trace = two_ops().range("aten::linear", 80, 99, category="cpu_op").range("aten::addmm", 85, 98, category="cpu_op")
    assert {r["launching_operator"] for r in rows(trace, tmp_path)} == {"aten::linear"}


def test_steps_are_counted_on_the_host(tmp_path):
    trace = two_ops().range("ProfilerStep#7", -5, 40).range("ProfilerStep#8", 40, 99)
    trace.range("aten::sort", 10, 50, category="cpu_op").range("aten::topk", 50, 90, category="cpu_op")
    found = [(r["cause"], r["step"]) for r in rows(trace, tmp_path)]
    assert found == [("launch_latency", 0), ("host_work", 0), ("launch_latency", 1)]


def test_ranges_that_cross_do_not_name_what_lies_behind_them(tmp_path):
    trace = two_ops().range("A", 0, 20).range("B", 15, 90).range("aten::mm", 30, 88, category="cpu_op")
    assert work(trace, tmp_path)["phase"] == "B"


@pytest.mark.parametrize(
    ("name", "category", "activity"),
    [
        ("<built-in function collect>", "python_function", "garbage_collection"),
        ("gc.collect", "user_annotation", "garbage_collection"),
        ("Optimizer.step#AdamW.step", "user_annotation", "optimizer"),
        ("## optimizer ##", "user_annotation", "optimizer"),
        ("torch/optim/sgd.py(340): _single_tensor_sgd", "python_function", "optimizer"),
        ("_compile.compile_inner (dynamo_timed)", "cpu_op", "compilation"),
        ("torch/_dynamo/convert_frame.py(1100): compile_inner", "python_function", "compilation"),
        ("torch/serialization.py(800): save", "python_function", "checkpoint"),
        ("save_checkpoint", "user_annotation", "checkpoint"),
        ("validation", "user_annotation", "evaluation"),
        ("train.py(90): evaluate", "python_function", "evaluation"),
        ("Optimizer.zero_grad#AdamW.zero_grad", "user_annotation", None),
        ("Torch-Compiled Region: 0/0", "cpu_op", None),
        ("## Call CompiledFxGraph abc ##", "user_annotation", None),
        ("torch/_dynamo/eval_frame.py(800): compile_wrapper", "python_function", None),
        ("autograd::engine::evaluate_function: AddBackward0", "cpu_op", None),
        ("aten::_cudnn_attention_forward", "cpu_op", None),
        ("nccl:all_gather", "user_annotation", None),
        ("torch/nn/modules/module.py(2800): eval", "python_function", None),
    ],
)
def test_activities(tmp_path, name, category, activity):
    found = rows(two_ops().range(name, 30, 60, category=category), tmp_path)
    assert {r["activity"] for r in found if (r["start_ns"], r["end_ns"]) == (30_000, 60_000)} == {activity}


def test_parts_are_cut_where_the_activity_changes_and_still_tile_the_gap(tmp_path):
    trace = two_ops().range("main", 0, 99).range("optimizer", 30, 70).range("gc", 40, 50)
    found = [(r["cause"], r["activity"], r["start_ns"] // 1000, r["end_ns"] // 1000) for r in rows(trace, tmp_path)]
    assert found == [
        ("host_work", None, 10, 30),
        ("host_work", "optimizer", 30, 40),
        ("host_work", "garbage_collection", 40, 50),
        ("host_work", "optimizer", 50, 70),
        ("host_work", None, 70, 90),
        ("launch_latency", None, 90, 100),
    ]


def cold_start(name: str = "late") -> KinetoTrace:
    """A kernel's first launch takes 35 ms of a window of 50 ms; later launches of it are quick."""
    trace = KinetoTrace().op(0, 100, launch=(-5, -2)).op(35_100, 35_110, launch=(110, 35_095), name=name)
    for start in range(36_000, 50_000, 1000):
        trace.op(start, start + 990, launch=(start - 20, start - 15), name=name)
    return trace


def test_a_first_launch_that_loads_code_is_no_launch_storm(tmp_path):
    path = cold_start().write(tmp_path / "trace.json")
    found = [r["activity"] for r in Catalog(ta.load(path)).table("gaps").to_pylist() if r["gap_duration"] > 30_000_000]
    assert "first_use" in found
    result = ta.analyze(ta.load(path))
    assert (result.findings[0].rule, result.findings[0].severity) == ("REC002", "low")
    assert "paid once" in result.findings[0].message
    assert result.verdict.headline.startswith(
        "35 ms of the 50 ms judged are start-up, which is paid once; in the 15 ms left, GPU 0 is idle 6.9% of the time"
    )
    assert result.verdict.bound_by == "compute"


def test_a_slow_launch_of_what_ran_before_is_not_a_first_use(tmp_path):
    assert not [r for r in rows(cold_start(name="gemm"), tmp_path) if r["activity"]]


def test_the_first_call_of_an_operator_that_sets_something_up_is_start_up(tmp_path):
    trace = KinetoTrace().op(0, 100, launch=(-5, -2))
    at = 100
    for length in (40_000, 120, 110, 130):
        trace.range("aten::addmm", at + 10, at + length, category="cpu_op")
        trace.op(at + length, at + length + 50, launch=(at + length - 9, at + length - 5))
        at += length + 60
    found = [r for r in rows(trace, tmp_path) if r["operator"] == "aten::addmm"]
    assert {r["activity"] for r in found if r["start_ns"] < 40_000_000} == {"first_use"}
    assert {r["activity"] for r in found if r["start_ns"] > 40_100_000} == {None}


def test_a_synchronous_memset_that_drains_the_gpu_is_a_wait(tmp_path):
    trace = KinetoTrace().op(0, 10, launch=(-5, 12), api="cudaMemset", category="gpu_memset", name="Memset (Device)")
    first = rows(trace.op(100, 110, launch=(90, 95)), tmp_path)[0]
    assert (first["cause"], first["wait_name"]) == ("synchronization", "cudaMemset")


@pytest.mark.parametrize(
    ("frame", "mine", "text"),
    [
        ("train.py(41): train_step", True, "train.py:41 (train_step)"),
        ("my/models/net.py(3): forward", True, "net.py:3 (forward)"),
        ("/tmp/ipykernel_7/12.py(1): <module>", True, "12.py:1 (<module>)"),
        ("torch/nn/modules/module.py(1783): _call_impl", False, "module.py:1783 (_call_impl)"),
        ("/usr/lib/python3.11/site-packages/thing/a.py(1): f", False, "a.py:1 (f)"),
        ("logging/__init__.py(1776): getEffectiveLevel", False, "__init__.py:1776 (getEffectiveLevel)"),
        ("<frozen os>(680): __getitem__", False, "<frozen os>:680 (__getitem__)"),
        ("<built-in method add_ of Tensor object at 0x7f3bb4>", False, "<built-in method add_ of Tensor object>"),
        ("<built-in method linear of type object at 0x7f3bb4>", False, "<built-in method linear>"),
        ("nn.Module: Linear_0", False, "nn.Module: Linear_0"),
    ],
)
def test_frames(frame, mine, text):
    assert (is_user_frame(frame), frame_text(frame)) == (mine, text)


@pytest.mark.parametrize("kind", ["named", "operators", "frames", "overheads", "calls", "long_calls"])
def test_every_pattern_is_sound_and_matches_no_ordinary_name(kind):
    matcher = Matcher(kind)
    ordinary = (
        "forward",
        "aten::mm",
        "train.py(41): train_step",
        "cudaLaunchKernel",
        "Activity Buffer Request",
        "nccl:all_reduce",
    )
    assert [name for name in ordinary if matcher(name) is not None] == []
    assert len({activity.name for activity in ACTIVITIES}) == len(ACTIVITIES)


pieces = st.lists(st.tuples(st.integers(0, 4), st.integers(-1, 3), st.integers(1, 5)), max_size=20)


@given(pieces)
def test_the_heaviest_name_of_each_row(found):
    found = sorted(found, key=lambda piece: piece[0])
    row, name, weight = (np.array([piece[at] for piece in found], np.int64) for at in range(3))
    names, weights = heaviest(row, np.where(name < 0, NULL, name), weight, 5)
    for one in range(5):
        sums: dict[int, int] = {}
        for r, n, w in found:
            if r == one and n >= 0:
                sums[n] = sums.get(n, 0) + w
        # A dict keeps the order in which names were met, and max takes the first of equals.
        best = max(sums, key=lambda n: sums[n]) if sums else None
        assert (names[one], weights[one]) == ((NULL, 0) if best is None else (best, sums[best]))


def stalled(api: str, **op) -> KinetoTrace:
    """Ten kernels of 1 ms; before each the host spends 500 us in a call."""
    trace = KinetoTrace()
    for start in range(0, 15_000, 1500):
        trace.call(api, start - 490, start - 20) if not op else trace.op(
            start - 500, start - 495, launch=(start - 600, start - 494), api=api, **op
        )
        trace.op(start, start + 1000 - 100 * bool(op), launch=(start - 10, start - 5))
    return trace


def fired(trace: KinetoTrace, tmp_path) -> set[str]:
    return {finding.rule for finding in ta.analyze(ta.load(trace.write(tmp_path / "trace.json"))).findings}


@pytest.mark.parametrize(
    ("api", "rule"),
    [("cudaHostAlloc", "MEM002"), ("hipHostFree", "MEM002"), ("cudaMalloc", "MEM001"), ("hipFree", "MEM001")],
)
def test_pinned_and_device_memory_are_told_apart(tmp_path, api, rule):
    assert fired(stalled(api), tmp_path) & {"MEM001", "MEM002"} == {rule}


def test_synchronous_copies(tmp_path):
    trace = stalled("cudaMemcpy", category="gpu_memcpy", name="Memcpy HtoD (Pinned -> Device)", bytes=4096)
    assert fired(trace, tmp_path) & {"SYN001", "SYN002"} == {"SYN002"}
