"""The work of one unit: which units there are, what they take, and what they consist of."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import traceanalyzer as ta
from tests.support.kineto import KinetoTrace
from tests.support.places import FIXTURES
from traceanalyzer.catalog.catalog import Catalog
from traceanalyzer.derive.work import cycles
from traceanalyzer.names import comparable_name
from traceanalyzer.vocabulary.lines import LEDGER_LINES

STEP = ["embed", *["norm", "matmul", "gelu", "matmul"] * 3, "loss", "adam"]


def kernels(names: list[str], *, marks: int | None = None, launched: bool = True, length: int = 900) -> KinetoTrace:
    """One kernel a millisecond, each launched 10 us before its turn; a step is marked every `marks` kernels."""
    trace = KinetoTrace()
    for at, name in enumerate(names):
        time = at * 1000
        trace.op(time + 20, time + 20 + length, launch=(time + 10, time + 15) if launched else None, name=name)
    for step in range(0, len(names), marks) if marks else ():
        trace.range(f"ProfilerStep#{step // marks}", step * 1000, (step + marks) * 1000)
    return trace


def catalog(trace: KinetoTrace, tmp_path) -> Catalog:
    return Catalog(ta.load(trace.write(tmp_path / "trace.json")))


def units(trace: KinetoTrace, tmp_path) -> list[dict]:
    return catalog(trace, tmp_path).table("work_units").to_pylist()


def queued(count: int, after: int) -> KinetoTrace:
    """Steps of ten kernels that the host launches all at once; of `count` launches the kernels up to `after` have run."""
    trace = KinetoTrace()
    for at in range(count):
        if at < after:
            trace.op(2000 + at * 1000, 2900 + at * 1000, launch=(at * 10, at * 10 + 5), name=f"k{at % 10}")
        else:
            trace.call("cudaLaunchKernel", at * 10, at * 10 + 5, correlation=10_000 + at)
    for step in range(count // 10):
        trace.range(f"ProfilerStep#{step}", step * 100, step * 100 + 100)
    return trace.call("cudaDeviceGetAttribute", 1990 + after * 1000, 1995 + after * 1000)


def test_marked_steps_are_units(tmp_path):
    found = units(kernels(STEP * 4, marks=len(STEP)), tmp_path)
    assert [(unit["kind"], unit["method"], unit["timed"]) for unit in found] == [("step", "annotation", True)] * 4
    assert {unit["kernels"] for unit in found} == {len(STEP)}
    assert [unit["end_ns"] - unit["start_ns"] for unit in found[1:]] == [len(STEP) * 1_000_000] * 3


def test_without_steps_the_kernels_that_repeat_are_the_unit(tmp_path):
    # Neither weights nor input: for a step there is no sign, but the sequence comes again.
    layer = ["norm", "matmul", "gelu", "softmax"] * 2 + ["head"]
    found = units(kernels(layer * 5 + layer[:4], launched=False), tmp_path)
    assert [(unit["kind"], unit["kernels"]) for unit in found] == [("repetition", len(layer))] * 5
    assert {unit["end_ns"] - unit["start_ns"] for unit in found} == {len(layer) * 1_000_000}


def test_where_nothing_repeats_all_is_one_unit(tmp_path):
    (unit,) = units(kernels([f"kernel_{letter}" for letter in "abcdefghij"], launched=False), tmp_path)
    assert (unit["kind"], unit["kernels"], unit["end_ns"] - unit["start_ns"]) == ("capture", 10, 9_900_000)


def test_no_gpu_work_has_no_unit(tmp_path):
    assert units(KinetoTrace().range("aten::add", 0, 10, category="cpu_op"), tmp_path) == []


@pytest.mark.parametrize("file", ["kineto/item_sync.slow.pt.trace.json.gz", "nsys/launch_storm.slow.sqlite"])
def test_lines_add_up_to_each_unit_and_names_to_its_operations(file):
    tables = Catalog(ta.load(FIXTURES / file))
    found = tables.table("work_units").to_pylist()
    assert len(found) > 2
    for unit in found:
        assert sum(unit[line.replace(".", "_")] for line in LEDGER_LINES) == unit["end_ns"] - unit["start_ns"]
    names = tables.table("work_names").to_pandas()
    ops, members = tables.table("ledger_ops").to_pandas().set_index("row"), tables.table("work_ops").to_pandas()
    mine = ops.loc[members["op"]]
    steps = members["unit"].nunique()
    for group in ("kernel", "family"):
        own = names[names["group"] == group]
        assert own["count"].sum() == pytest.approx(len(mine) / steps)
        # Each name's mean is rounded down.
        assert 0 <= (mine["end_ns"] - mine["start_ns"]).sum() / steps - own["time"].sum() < len(own)


def test_a_kernels_time_and_its_deviation(tmp_path):
    trace = KinetoTrace()
    for step, length in enumerate((100, 100, 200, 600)):
        start = step * 1000
        trace.op(start + 20, start + 20 + length, launch=(start + 10, start + 15), name="gemm")
        trace.range(f"ProfilerStep#{step}", start, start + 1000)
    (row,) = [r for r in catalog(trace, tmp_path).table("work_names").to_pylist() if r["group"] == "kernel"]
    assert (row["name"], row["count"], row["time"]) == ("gemm", 1.0, 250_000)
    assert row["deviation"] == round(np.std([100_000, 100_000, 200_000, 600_000], ddof=1))


def test_a_step_that_the_recording_cut_off_is_not_timed(tmp_path):
    rows = catalog(queued(50, 34), tmp_path).table("step_stats").to_pylist()
    assert [(row["gpu_op_count"], row["complete"]) for row in rows] == [(10, True), (10, True), (10, True), (4, False)]
    (steps,) = ta.analyze(ta.load(tmp_path / "trace.json")).steps
    assert (steps.count, steps.median_ns, steps.p95_ns) == (4, 10_000_000, 11_710_000)


def test_a_kernel_from_before_that_runs_on_does_not_turn_the_first_step_around(tmp_path):
    trace = kernels(STEP * 2, marks=len(STEP))
    trace.op(-5_000, 90_000, name="persistent", stream=9)
    first, second = catalog(trace, tmp_path).table("step_stats").to_pylist()
    assert (first["start_ns"], first["end_ns"]) == (0, second["start_ns"])


@pytest.mark.parametrize("kind", ["kernel", "graph"])
def test_a_copy_that_is_launched_ahead_does_not_begin_the_first_step(kind, tmp_path):
    """The work of before the mark runs until 70; the copy for the step begins beside it, its kernel or graph waits for it."""
    trace = KinetoTrace().op(20, 70, launch=(10, 15), name="before").range("ProfilerStep#1", 30, 100)
    trace.op(40, 45, launch=(35, 36), name="copy", category="gpu_memcpy", stream=9).op(
        75, 90, launch=(50, 55), name="gemm"
    )
    loaded = ta.load(trace.write(tmp_path / "trace.json"))
    ops = loaded.table("gpu_ops")
    at = ops.schema.get_field_index("kind")
    name, was = (ops[column].cast(pa.string()) for column in ("name", "kind"))
    kinds = pc.if_else(pc.equal(name, "gemm"), kind, was).cast(ops.schema.field(at).type)
    ops = ops.set_column(at, ops.schema.field(at), kinds)
    (step,) = Catalog(replace(loaded, tables={**loaded.tables, "gpu_ops": ops})).table("step_stats").to_pylist()
    assert (step["start_ns"], step["end_ns"]) == (70_000, 100_000)


def test_what_waited_for_its_turn_at_the_end_is_not_lost(tmp_path):
    result = ta.analyze(ta.load(queued(50, 4).write(tmp_path / "queued.json")))
    assert "TRC002" not in {note.code for note in result.health}
    # Had the GPU stopped long before the recording did, the rest of its records would be lost.
    lost = queued(50, 4).call("cudaDeviceGetAttribute", 20_000, 20_005)
    (note,) = [n for n in ta.analyze(ta.load(lost.write(tmp_path / "lost.json"))).health if n.code == "TRC002"]
    assert (note.severity, note.count) == ("high", 46)


def graphs(count: int, kept: int) -> KinetoTrace:
    """Steps of one graph of ten kernels each, all launched at once; only the first `kept` kernels are there."""
    trace = KinetoTrace()
    for step in range(count):
        trace.range(f"ProfilerStep#{step}", step * 10, step * 10 + 9)
        trace.call("cudaGraphLaunch", step * 10 + 1, step * 10 + 5, correlation=step + 1)
        for n in range(10 * step, min(10 * step + 10, kept)):
            args = {"device": 0, "context": 1, "stream": 7, "correlation": step + 1}
            trace.add(cat="kernel", name=f"k{n % 10}", pid=0, tid=7, ts=100 + n * 100, dur=90, args=args)
    return trace


def test_a_graph_of_which_the_end_is_lost_is_no_whole_step(tmp_path):
    rows = catalog(graphs(4, 40), tmp_path).table("step_stats").to_pylist()
    assert [row["complete"] for row in rows] == [True, True, True, True]
    cut = graphs(4, 24)
    rows = catalog(cut, tmp_path).table("step_stats").to_pylist()
    assert [(row["gpu_op_count"], row["complete"]) for row in rows] == [(10, True), (10, True), (4, False)]


def test_what_a_wait_for_the_gpu_waited_for_has_run(tmp_path):
    cut = graphs(5, 24)
    assert "TRC002" not in {note.code for note in ta.analyze(ta.load(cut.write(tmp_path / "cut.json"))).health}
    cut.call("cudaDeviceSynchronize", 45, 4200)
    (note,) = [n for n in ta.analyze(ta.load(cut.write(tmp_path / "lost.json"))).health if n.code == "TRC002"]
    assert (note.severity, note.count) == ("medium", 2)


def test_a_launch_between_others_that_ran_is_lost(tmp_path):
    trace = KinetoTrace()
    for at in range(10):
        trace.op(at * 1000 + 20, at * 1000 + 1000, launch=(at * 1000, at * 1000 + 5))
        trace.call("cudaLaunchKernel", at * 1000 + 6, at * 1000 + 9, correlation=900 + at)
    calls = catalog(trace, tmp_path).table("launch_calls").to_pylist()
    assert sum(call["answered"] for call in calls) == 10
    # Only the last one comes after all that ran.
    assert [call["queued"] for call in calls if not call["answered"]] == [False] * 9 + [True]


def test_shapes_are_of_operators_with_weights(tmp_path):
    trace = kernels(STEP * 3, marks=len(STEP))
    for at in range(6):
        trace.range("aten::mm", at * 8000, at * 8000 + 1, category="cpu_op")
        trace.events[-1]["args"] = {"Input Dims": [[8, 16], [16, 4], [8, 4]]}
        trace.range("aten::add", at * 8000 + 2, at * 8000 + 3, category="cpu_op")
        trace.events[-1]["args"] = {"Input Dims": [[8, 16]]}
    (row,) = catalog(trace, tmp_path).table("work_shapes").to_pylist()
    assert (row["operator"], row["shapes"], row["count"]) == ("aten::mm", "[[8,16],[16,4]]", 2.0)


def numbers(names: list[str]) -> np.ndarray:
    return np.array([sorted(set(names)).index(name) for name in names], np.int64)


def test_a_period_is_the_whole_step_and_not_a_layer():
    assert cycles.period(numbers(STEP * 3)) == len(STEP)
    deep = ["embed", *["norm", "matmul", "gelu", "matmul"] * 48, "loss"]
    assert cycles.period(numbers(deep * 3)) == len(deep)


def test_a_period_needs_to_come_again():
    assert cycles.period(numbers(STEP * 2)) is None
    assert cycles.period(numbers([*STEP * 2, "embed"])) == len(STEP)
    shuffled = [f"k{n}" for n in random.Random(5).choices(range(20), k=400)]
    assert cycles.period(numbers(shuffled)) is None
    assert cycles.period(np.zeros(0, np.int64)) is None


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30), st.integers(3, 6), st.data())
def test_a_period_divides_what_is_repeated(unit, times, data):
    begin = data.draw(st.integers(0, len(unit) - 1))
    sequence = np.array((unit * (times + 1))[begin : begin + len(unit) * times + 1], np.int64)
    found = cycles.period(np.unique(sequence, return_inverse=True)[1].astype(np.int64))
    assert found is not None and found <= len(unit)
    # What is found may be shorter where a part repeats nearly as well.
    assert (sequence[found:] == sequence[:-found]).mean() >= cycles.SAME


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("triton_poi_fused_add_7", "triton_poi_fused_add_12"),
        ("void at::native::foo<4, float>(int)", "void at::native::foo<8, float>(int)"),
        ("nccl all_reduce seq=12 op_id=4", "nccl all_reduce seq=99 op_id=5"),
        ("thunk at 0x7f00deadbeef", "thunk at 0x7f00cafe0000"),
    ],
)
def test_names_that_change_from_run_to_run(one, other):
    assert comparable_name(one) == comparable_name(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("nvjet_sm90_tst_128x64_64x8_1x2_h_bz_NTT", "nvjet_sm90_tst_256x64_64x8_1x2_h_bz_NTT"),
        ("void foo<int8_t>(int)", "void foo<int16_t>(int)"),
        ("triton_poi_fused_add_7", "triton_poi_fused_mul_7"),
        ("sgemm_128x64_nn", "sgemm_64x64_nn"),
    ],
)
def test_names_of_other_kernels_stay_apart(one, other):
    assert comparable_name(one) != comparable_name(other)
