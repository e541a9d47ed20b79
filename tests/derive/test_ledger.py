"""The ledger's identities on random traces, and its invariance under what cannot matter."""

from __future__ import annotations

import random
import tempfile
from itertools import pairwise
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

import traceanalyzer as ta
from tests.support.kineto import KinetoTrace
from traceanalyzer.catalog.catalog import Catalog
from traceanalyzer.vocabulary.lines import IDLE_CAUSES

KINDS = {
    "kernel": "gemm",
    "communication": "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
    "gpu_memcpy": "Memcpy HtoD (Pageable -> Device)",
    "gpu_memset": "Memset (Device)",
}
operation = st.tuples(
    st.integers(0, 300),
    st.integers(1, 60),
    st.sampled_from(sorted(KINDS)),
    st.sampled_from([7, 8]),
    st.none() | st.tuples(st.integers(-20, 300), st.integers(1, 30)),
)
host_event = st.tuples(
    st.integers(-20, 300),
    st.integers(1, 80),
    st.sampled_from(["op", "loader", "cudaMalloc", "cudaDeviceSynchronize", "overhead"]),
)


def build(operations, events) -> KinetoTrace:
    trace = KinetoTrace()
    for start, length, kind, stream, launch in operations:
        category = "kernel" if kind == "communication" else kind
        call = (launch[0], launch[0] + launch[1]) if launch else None
        trace.op(start, start + length, launch=call, name=KINDS[kind], category=category, stream=stream)
    for start, length, kind in events:
        if kind == "op":
            trace.range("aten::add", start, start + length, category="cpu_op")
        elif kind == "loader":
            trace.range("data_loading", start, start + length)
        elif kind == "overhead":
            trace.add(cat="overhead", name="Activity Buffer Request", pid=-1, tid=0, ts=start, dur=length)
        else:
            trace.call(kind, start, start + length)
    return trace


def tables(trace: KinetoTrace) -> Catalog:
    with tempfile.TemporaryDirectory() as folder:
        return Catalog(ta.load(trace.write(Path(folder) / "trace.json")))


@settings(max_examples=150, deadline=None)
@given(st.lists(operation, min_size=1, max_size=14), st.lists(host_event, max_size=8))
def test_every_nanosecond_is_on_exactly_one_line(operations, events):
    catalog = tables(build(operations, events))
    (row,) = catalog.table("ledger").to_pylist()
    lines = ("compute", "exposed_communication", "exposed_memcpy", "exposed_memset", "idle")
    assert sum(row[line] for line in lines) == row["duration"]
    assert sum(row[f"idle_{cause}"] for cause in IDLE_CAUSES) == row["idle"]
    assert row["busy"] + row["idle"] == row["duration"]
    assert row["exposed_communication"] <= row["communication"]
    assert row["exposed_memcpy"] <= row["memcpy"]
    assert row["gpu_op_count"] == len(operations)

    tiles = catalog.table("ledger_intervals").select(["start_ns", "end_ns"]).to_pylist()
    assert tiles[0]["start_ns"] == row["start_ns"]
    assert tiles[-1]["end_ns"] == row["end_ns"]
    assert all(a["end_ns"] == b["start_ns"] for a, b in pairwise(tiles))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(operation, min_size=1, max_size=10), st.lists(host_event, max_size=6), st.randoms(use_true_random=False)
)
def test_order_of_events_and_time_shift_change_nothing(operations, events, chance: random.Random):
    trace = build(operations, events)
    before = tables(trace).table("ledger").drop_columns(["start_ns", "end_ns"])
    chance.shuffle(trace.events)
    for event in trace.events:
        event["ts"] += 5_000_000_000
    assert tables(trace).table("ledger").drop_columns(["start_ns", "end_ns"]).equals(before)


def test_splitting_a_kernel_leaves_busy_unchanged():
    whole = tables(KinetoTrace().op(0, 10).op(20, 40)).table("ledger").to_pylist()[0]
    halves = tables(KinetoTrace().op(0, 10).op(20, 30).op(30, 40)).table("ledger").to_pylist()[0]
    assert (whole["busy"], whole["idle"]) == (halves["busy"], halves["idle"]) == (30_000, 10_000)


def test_compute_hides_communication_and_both_hide_copies():
    trace = (
        KinetoTrace()
        .op(0, 10)
        .op(5, 20, name=KINDS["communication"], stream=8)
        .op(15, 30, category="gpu_memcpy", name=KINDS["gpu_memcpy"], stream=9)
        .op(28, 33, category="gpu_memset", name="Memset (Device)", stream=9)
    )
    (row,) = tables(trace).table("ledger").to_pylist()
    assert (
        row["compute"],
        row["exposed_communication"],
        row["exposed_memcpy"],
        row["exposed_memset"],
        row["idle"],
    ) == (
        10_000,
        10_000,
        10_000,
        3_000,
        0,
    )
    assert (row["communication"], row["memcpy"]) == (15_000, 15_000)


def test_operations_without_duration_have_an_empty_ledger():
    (row,) = tables(KinetoTrace().op(5, 5)).table("ledger").to_pylist()
    assert (row["duration"], row["busy"], row["idle"], row["gpu_op_count"]) == (0, 0, 0, 1)


def test_steps_whose_operations_have_no_duration():
    catalog = tables(KinetoTrace().op(5, 5, launch=(1, 2)).range("ProfilerStep#1", 0, 8))
    (step,) = catalog.table("step_ledger").to_pylist()
    assert (step["start_ns"], step["end_ns"], step["compute"]) == (0, 8_000, 0)


def test_steps_at_negative_times():
    trace = KinetoTrace().op(-500, -490, launch=(-505, -503)).op(-300, -290, launch=(-305, -304))
    trace.range("ProfilerStep#1", -510, -400).range("ProfilerStep#2", -400, -200)
    found = tables(trace).table("step_stats").select(["start_ns", "end_ns"]).to_pylist()
    assert [(r["start_ns"], r["end_ns"]) for r in found] == [(-510_000, -400_000), (-400_000, -200_000)]
