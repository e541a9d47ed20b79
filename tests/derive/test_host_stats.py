"""Host time by name: what is an operator's own, what it starts on the GPU, and what waiting for the GPU costs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import traceanalyzer as ta
from tests.support.kineto import AUTOGRAD, MAIN, KinetoTrace
from traceanalyzer.catalog.catalog import Catalog
from traceanalyzer.derive.launches.tables import LAUNCHES
from traceanalyzer.derive.operators.host_stats import operator_stats
from traceanalyzer.intervals import total, union
from traceanalyzer.model.schema import API_CALLS, HOST_RANGES, TableSpec

FIXTURES = Path(__file__).parents[1] / "fixtures"
REAL = (
    "kineto/item_sync.slow.pt.trace.json.gz",
    "kineto/gc_stack.slow.pt.trace.json.gz",
    "nsys/nvtx_dataloader.slow.sqlite",
)


@pytest.fixture
def stats(tmp_path):
    """The rows of one table of a trace, by name."""

    def of(trace: KinetoTrace, table: str = "operator_stats") -> dict[str, dict[str, Any]]:
        rows = Catalog(ta.load(trace.write(tmp_path / "t.json"))).table(table).to_pylist()
        return {row["name"]: row for row in rows}

    return of


def rows_of(spec: TableSpec, rows: list[dict[str, Any]]) -> pa.Table:
    plain = pa.schema([(c.name, c.type.value_type if pa.types.is_dictionary(c.type) else c.type) for c in spec.columns])
    return pa.Table.from_pylist(rows, plain).cast(spec.schema)


def nested() -> KinetoTrace:
    """aten::linear calls aten::addmm, which launches 20 us of GPU work; then a copy of its own."""
    trace = KinetoTrace().op(60, 80, launch=(30, 34)).op(90, 95, launch=(50, 53), name="own")
    return trace.range("aten::linear", 10, 60, category="cpu_op").range("aten::addmm", 20, 45, category="cpu_op")


def test_own_time_and_time_in_calls(stats):
    found = stats(nested())
    linear, addmm = found["aten::linear"], found["aten::addmm"]
    assert (linear["total"], linear["self"], linear["self_calls"]) == (50_000, 25_000, 3_000)
    assert (addmm["total"], addmm["self"], addmm["self_calls"]) == (25_000, 25_000, 4_000)


def test_gpu_time_goes_to_the_operator_that_launched_and_to_those_around_it(stats):
    found = stats(nested())
    assert (found["aten::linear"]["gpu_time"], found["aten::linear"]["self_gpu_time"]) == (25_000, 5_000)
    assert (found["aten::addmm"]["gpu_time"], found["aten::addmm"]["self_gpu_time"]) == (20_000, 20_000)


def test_what_calls_itself_is_counted_once(stats):
    trace = KinetoTrace().op(60, 80, launch=(30, 34))
    for start, end in ((0, 50), (10, 40), (20, 38)):
        trace.range("aten::pad", start, end, category="cpu_op")
    found = stats(trace)["aten::pad"]
    assert (found["count"], found["total"], found["self"]) == (3, 50_000, 50_000)
    assert (found["gpu_time"], found["self_gpu_time"]) == (20_000, 20_000)


def test_threads_are_apart(stats):
    trace = KinetoTrace().op(100, 110)
    for thread in (MAIN, AUTOGRAD):
        trace.range("aten::mul", 0, 50, category="cpu_op", thread=thread)
    trace.range("aten::add", 10, 20, category="cpu_op", thread=AUTOGRAD)
    found = stats(trace)
    assert (found["aten::mul"]["total"], found["aten::mul"]["self"]) == (100_000, 90_000)


def test_python_frames_belong_to_the_operator_around_them(stats):
    trace = KinetoTrace().op(100, 110).range("aten::mul", 0, 50, category="cpu_op")
    trace.range("train.py(3): helper", 10, 40, category="python_function")
    found = stats(trace)
    assert list(found) == ["aten::mul"]
    assert found["aten::mul"]["self"] == 50_000


def test_the_commonest_shapes():
    shapes = ["[[2]]", "[[8, 3]]", None, "[[8, 3]]", "[[2]]", "[[8, 3]]"]
    ranges = [
        {
            "rank": 0,
            "process": 1,
            "thread": 1,
            "start_ns": 10 * n,
            "end_ns": 10 * n + 5,
            "name": "a",
            "category": "operator",
            "shapes": one,
        }
        for n, one in enumerate(shapes)
    ]
    ranges.append({**ranges[0], "start_ns": 99, "end_ns": 100, "name": "b", "shapes": None})
    found = operator_stats(rows_of(HOST_RANGES, ranges), API_CALLS.empty(), LAUNCHES.empty()).to_pylist()
    assert [(r["name"], r["shapes"], r["shapes_count"], r["distinct_shapes"]) for r in found] == [
        ("a", "[[8, 3]]", 3, 2),
        ("b", None, 0, 0),
    ]


spans = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 40), st.integers(0, 20), st.integers(0, 3)), max_size=30)


@given(spans)
def test_own_times_add_up_to_the_union_of_the_ranges(spans):
    """Also for ranges that cross, lie on each other or are empty."""
    rows = sorted((thread, start, -(start + length), name) for thread, start, length, name in spans)
    table = rows_of(
        HOST_RANGES,
        [
            {
                "rank": 0,
                "process": 1,
                "thread": thread,
                "start_ns": start,
                "end_ns": -end,
                "name": f"op{name}",
                "category": "operator",
            }
            for thread, start, end, name in rows
        ],
    )
    found = operator_stats(table, API_CALLS.empty(), LAUNCHES.empty())
    times = np.array([(t, s, -e) for t, s, e, _ in rows], np.int64).reshape(-1, 3).T
    union_of_all = sum(total(union(*times[1:, times[0] == thread])) for thread in range(3))
    assert sum(found["self"].to_pylist()) == union_of_all
    for row in found.to_pylist():
        mine = [(t, s, -e) for t, s, e, name in rows if f"op{name}" == row["name"]]
        covered = {(t, at) for t, s, e in mine for at in range(s, e)}
        assert (row["count"], row["total"]) == (len(mine), len(covered))
        assert row["self"] <= row["total"]


@pytest.mark.parametrize("name", REAL)
def test_as_the_profiler_counts_on_real_traces(name):
    """PyTorch's self CPU time: an event's duration without that of the events in it, calls of the CUDA API among them."""
    catalog = Catalog(ta.load(FIXTURES / name))
    events: dict[tuple[int, int], list[tuple[int, int, str | None]]] = {}
    ranges = catalog.table("host_ranges")
    ranges = ranges.filter(pc.not_equal(ranges["category"].cast(pa.string()), "python"))
    for row in ranges.select(["process", "thread", "start_ns", "end_ns", "name"]).to_pylist():
        events.setdefault((row["process"], row["thread"]), []).append((row["start_ns"], -row["end_ns"], row["name"]))
    for row in catalog.table("api_calls").select(["process", "thread", "start_ns", "end_ns"]).to_pylist():
        events.setdefault((row["process"], row["thread"]), []).append((row["start_ns"], -row["end_ns"], None))
    expected: Counter[str] = Counter()
    for thread in events.values():
        around: list[tuple[int, str | None]] = []
        for start, end, label in sorted(thread, key=lambda event: (event[0], event[1], event[2] is None)):
            while around and around[-1][0] <= start:
                around.pop()
            if label is not None:
                expected[label] += -end - start
            if around and around[-1][1] is not None:
                expected[around[-1][1]] -= -end - start
            around.append((-end, label))
    found = catalog.table("operator_stats").to_pylist()
    own: Counter[str] = Counter()
    for row in found:
        own[row["name"]] += row["self"] - row["self_calls"]
    assert own == expected
    launches = catalog.table("launches")
    assert (
        sum(row["self_gpu_time"] for row in found)
        <= pc.sum(pc.subtract(launches["op_end_ns"], launches["op_start_ns"])).as_py()
    )


@pytest.mark.parametrize("name", REAL[:2])
def test_idle_time_of_waits_is_that_of_the_ledger(name):
    catalog = Catalog(ta.load(FIXTURES / name))
    assert (
        pc.sum(catalog.table("sync_stats")["idle"]).as_py()
        == pc.sum(catalog.table("ledger")["idle_synchronization"]).as_py()
    )


def test_a_wait_and_the_idle_time_that_it_causes(stats):
    """The call returns at 40 us, the next kernel is launched 30 us later."""
    trace = KinetoTrace().op(0, 38, launch=(-5, -2)).op(80, 90, launch=(70, 75))
    trace.call("cudaStreamSynchronize", 5, 40).call("cuStreamSynchronize", 6, 39)
    found = stats(trace, "sync_stats")
    assert list(found) == ["cudaStreamSynchronize"]
    wait = found["cudaStreamSynchronize"]
    assert (wait["count"], wait["total"], wait["longest"], wait["idle"]) == (1, 35_000, 35_000, 32_000)
