"""Trees of calls: their roots are lines of the ledger, to the nanosecond, and their paths are what the host did."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import traceanalyzer as ta
from tests.support.kineto import AUTOGRAD, MAIN, PROCESS, KinetoTrace
from tests.support.places import CORPUS, FIXTURES, needs_corpus
from traceanalyzer.catalog.catalog import Catalog
from traceanalyzer.derive.trees.call_tree import Nodes, tree
from traceanalyzer.derive.trees.paths import KIND, KINDS, TOP, Names, Paths
from traceanalyzer.derive.trees.shares import shares
from traceanalyzer.intervals import subtract, total, union
from traceanalyzer.model.schema import EVENT_TABLES
from traceanalyzer.vocabulary.lines import IDLE_CAUSES

LINES = {
    "idle": "idle",
    "gpu": "compute",
    "communication": "exposed_communication",
    "copies": "exposed_memcpy",
}
CAPTURES = sorted(
    path
    for folder in ("kineto", "nsys", "captured", "multirank")
    for path in (FIXTURES / folder).iterdir()
    if path.suffix in {".gz", ".xz", ".sqlite"} or path.is_dir()
)


def trees_of(catalog: Catalog) -> dict[tuple, list[dict]]:
    """The nodes of each tree by (rank, device, tree)."""
    found: dict[tuple, list[dict]] = {}
    for row in catalog.table("call_trees").to_pylist():
        found.setdefault((row["rank"], row["device"], row["tree"]), []).append(row)
    return found


def checked(catalog: Catalog) -> dict[tuple, list[dict]]:
    """The trees, once all of them are what they should be."""
    trees = trees_of(catalog)
    for nodes in trees.values():
        below = [0] * len(nodes)
        around: list[int] = []
        for at, node in enumerate(nodes):
            assert node["node"] == at
            assert node["kind"] in KINDS
            assert node["self_ns"] >= 0
            # In preorder what is around a node is the last one or around that.
            while around and around[-1] != node["parent"]:
                around.pop()
            assert around or (at, node["parent"]) == (0, -1)
            around.append(at)
            if node["parent"] >= 0:
                below[node["parent"]] += node["total_ns"]
        assert all(node["total_ns"] == node["self_ns"] + inner for node, inner in zip(nodes, below, strict=True))
        siblings = [(node["parent"], node["name"], node["kind"]) for node in nodes]
        assert len(set(siblings)) == len(siblings)
    for row in catalog.table("ledger").to_pylist():
        key = (row["rank"], row["device"])
        for name, line in LINES.items():
            nodes = trees.get((*key, name))
            assert (nodes[0]["total_ns"] if nodes else 0) == row[line]
        causes = {node["name"]: node["total_ns"] for node in trees.get((*key, "idle"), []) if node["kind"] == "cause"}
        assert causes == {cause: row[f"idle_{cause}"] for cause in IDLE_CAUSES if row[f"idle_{cause}"]}
    for rank in pc.unique(catalog.table("ledger")["rank"]).to_pylist():
        windows = [row for row in catalog.table("ledger").to_pylist() if row["rank"] == rank]
        span = max(row["end_ns"] for row in windows) - min(row["start_ns"] for row in windows)
        threads = {
            (row["process"], row["thread"]) for row in catalog.table("launches").to_pylist() if row["rank"] == rank
        }
        nodes = trees.get((rank, None, "host"))
        assert (nodes[0]["total_ns"] if nodes else 0) == span * len(threads)
        assert all(node["total_ns"] == span for node in nodes or () if node["kind"] == "thread")
    return trees


def loaded(trace: KinetoTrace, samples: list[tuple[int, int, str]] = ()) -> Catalog:
    """The tables of a made-up trace, with CPU samples given as (thread, us, stack)."""
    with tempfile.TemporaryDirectory() as folder:
        made = ta.load(trace.write(Path(folder) / "trace.json"))
    if samples:
        rows = [
            {"rank": 0, "process": PROCESS, "thread": thread, "time_ns": int(time * 1000), "stack": stack}
            for thread, time, stack in samples
        ]
        table = pa.Table.from_pylist(rows, schema=EVENT_TABLES["cpu_samples"].schema)
        made = replace(made, tables={**made.tables, "cpu_samples": table})
    return Catalog(made)


def paths(nodes: list[dict], attribute: str = "self_ns") -> dict[str, int]:
    """The time of nodes by path, in us, without the root."""
    found, result = [], {}
    for node in nodes:
        path = found[node["parent"]] + [node["name"]] if node["parent"] >= 0 else []
        found.append(path)
        if node[attribute]:
            result[" > ".join(path)] = node[attribute] // 1000
    return result


def two_ops(launch: tuple[float, float] | None = (90, 95), **second: object) -> KinetoTrace:
    trace = KinetoTrace().op(0, 10, launch=(-5, -2))
    return trace.op(100, 110, launch=launch, name="late", **second)


def idle(trace: KinetoTrace, samples=(), attribute="self_ns") -> dict[str, int]:
    return paths(checked(loaded(trace, samples))[0, 0, "idle"], attribute)


class TestIdle:
    def test_time_is_cut_at_the_borders_of_ranges(self):
        trace = two_ops().range("outer", 20, 60, category="cpu_op").range("aten::sort", 30, 45, category="cpu_op")
        assert idle(trace) == {
            "host_untraced > (not recorded)": 40,
            "host_work > outer": 25,
            "host_work > outer > aten::sort": 15,
            "launch_latency > cudaLaunchKernel": 10,
        }

    def test_the_same_path_is_one_node(self):
        trace = two_ops()
        for start in (20, 40):
            trace.range("load", start, start + 10).range("read", start + 2, start + 5)
        found = idle(trace)
        assert found["host_work > load"] == 14
        assert found["host_work > load > read"] == 6

    def test_what_another_thread_did_is_not_told(self):
        trace = two_ops().range("elsewhere", 20, 60, thread=AUTOGRAD)
        assert idle(trace) == {"host_untraced > (not recorded)": 80, "launch_latency > cudaLaunchKernel": 10}

    def test_ranges_that_mark_steps_are_not_part_of_a_path(self):
        trace = two_ops().range("ProfilerStep#1", -10, 200).range("log_metrics", 20, 60)
        assert "host_work > log_metrics" in idle(trace)

    def test_where_the_host_is_not_at_fault_what_was_launched_counts(self):
        trace = two_ops((2, 5)).range("aten::mm", 1, 6, category="cpu_op").range("aten::innocent", 20, 90)
        assert idle(trace) == {"queued > aten::mm > cudaLaunchKernel": 90}

    def test_without_a_launch_nothing_is_told(self):
        assert idle(two_ops(None).range("aten::innocent", 20, 90)) == {"unattributed > (not recorded)": 90}

    def test_the_profilers_own_time_is_nobodys(self):
        trace = two_ops().range("load", 15, 80)
        trace.add(cat="overhead", name="Activity Buffer Request", pid=-1, tid=0, ts=20, dur=30)
        found = idle(trace)
        assert found["profiler"] == 30
        assert found["host_work > load"] == 35

    def test_ranges_that_cross(self):
        found = idle(two_ops().range("first", 20, 50).range("second", 40, 70))
        assert found["host_work > first"] == 20
        assert found["host_work > second"] == 30

    def test_a_deep_recursion(self):
        trace = two_ops((90, 95))
        for level in range(1000):
            trace.range("walk", 20 + level / 100, 60 - level / 100, category="python_function")
        nodes = checked(loaded(trace))[0, 0, "idle"]
        assert sum(node["name"] == "walk" for node in nodes) == 1000
        assert max(node["total_ns"] for node in nodes if node["name"] == "walk") == 40_000


class TestSamples:
    def test_each_stands_for_the_time_up_to_half_way_to_its_neighbours(self):
        found = idle(two_ops(), [(MAIN, 20, "main;read"), (MAIN, 40, "main;parse"), (MAIN, 80, "main;read")])
        # 10 to 30 and 60 to 90 are one path.
        assert found == {
            "host_untraced > main > read": 50,
            "host_untraced > main > parse": 30,
            "launch_latency > cudaLaunchKernel": 10,
        }

    def test_they_tell_nothing_where_something_is_recorded(self):
        found = idle(
            two_ops().range("work", 30, 60, category="cpu_op"),
            [(MAIN, 20, "a"), (MAIN, 35, "b"), (MAIN, 50, "b"), (MAIN, 70, "c")],
        )
        # A sample in the range does not tell of the time around the range.
        assert found == {
            "host_untraced > a": 15,
            "host_work > work": 30,
            "host_untraced > c": 20,
            "host_untraced > (not recorded)": 15,
            "launch_latency > cudaLaunchKernel": 10,
        }

    def test_where_the_thread_did_not_run_they_tell_nothing(self):
        samples = [(MAIN, time, "a") for time in (11, 12, 13, 14)] + [(MAIN, 86, "b"), (MAIN, 87, "b")]
        found = idle(two_ops(), samples)
        assert found["host_untraced > a"] < 12
        assert found["host_untraced > b"] < 12
        assert found["host_untraced > (not recorded)"] > 60

    def test_those_of_other_threads_and_a_single_one_tell_nothing(self):
        untold = {"host_untraced > (not recorded)": 80, "launch_latency > cudaLaunchKernel": 10}
        assert idle(two_ops(), [(AUTOGRAD, 20, "a"), (AUTOGRAD, 40, "a")]) == untold
        assert idle(two_ops(), [(MAIN, 20, "a")]) == untold


class TestGpu:
    def test_under_the_stack_that_launched_it(self):
        trace = KinetoTrace().op(0, 10, launch=(-5, -2), name="gemm")
        trace.range("train.py(4): step", -20, 50, category="python_function").range(
            "aten::mm", -8, -1, category="cpu_op"
        )
        assert paths(checked(loaded(trace))[0, 0, "gpu"]) == {"train.py:4 (step) > aten::mm > gemm": 10}

    def test_what_launched_a_graph_is_told(self):
        trace = KinetoTrace().op(0, 10, launch=(-5, -2), api="cudaGraphLaunch")
        assert paths(checked(loaded(trace))[0, 0, "gpu"]) == {"cudaGraphLaunch > gemm": 10}

    def test_without_a_launch(self):
        assert paths(checked(loaded(KinetoTrace().op(0, 10)))[0, 0, "gpu"]) == {"(launch not recorded) > gemm": 10}

    def test_those_that_run_at_once_share_the_time(self):
        trace = KinetoTrace().op(0, 10, launch=(-5, -4), name="one")
        trace.op(4, 10, launch=(-3, -2), name="two", stream=8)
        assert paths(checked(loaded(trace))[0, 0, "gpu"]) == {"one": 7, "two": 3}

    def test_backward_operators_are_inside_of_forward_ones(self):
        assert self.backward() == {
            "aten::linear > gemm": 10,
            "aten::linear > aten::addmm > autograd::engine::evaluate_function: AddmmBackward0 (backward) > aten::mm > gemm_t": 20,
        }

    def test_a_number_of_two_threads_tells_nothing(self):
        found = self.backward(lambda trace: operator(trace, "aten::other", 4, 5, sequence=7, thread=102))
        assert "autograd::engine::evaluate_function: AddmmBackward0 > aten::mm > gemm_t" in found

    def backward(self, more=lambda trace: trace) -> dict[str, int]:
        trace = KinetoTrace()
        operator(trace, "aten::linear", 0, 20, sequence=7)
        operator(trace, "aten::addmm", 10, 20, sequence=7)
        operator(trace, "aten::later", 21, 22, sequence=8)
        trace.op(10, 20, launch=(5, 6), name="gemm")
        operator(trace, "autograd::engine::evaluate_function: AddmmBackward0", 40, 60, sequence=7, thread=AUTOGRAD)
        operator(trace, "aten::mm", 42, 58, thread=AUTOGRAD)
        trace.op(50, 70, launch=(43, 44), thread=AUTOGRAD, name="gemm_t")
        return paths(checked(loaded(more(trace)))[0, 0, "gpu"])

    def test_communication_and_copies(self):
        trace = KinetoTrace().op(0, 10, launch=(-9, -8))
        name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
        trace.op(5, 25, launch=(-7, -6), name=name, stream=8).range("c10d::allreduce_", -8, -5, category="cpu_op")
        trace.op(20, 40, launch=(-4, -3), api="cudaMemcpyAsync", name="Memcpy HtoD", category="gpu_memcpy", stream=9)
        trees = checked(loaded(trace))
        assert paths(trees[0, 0, "communication"]) == {f"c10d::allreduce_ > {name}": 15}
        assert paths(trees[0, 0, "copies"]) == {"cudaMemcpyAsync > Memcpy HtoD": 15}


def operator(trace: KinetoTrace, name: str, start: float, end: float, sequence: int | None = None, thread: int = MAIN):
    args = {} if sequence is None else {"Sequence number": sequence}
    return trace.add(cat="cpu_op", name=name, tid=thread, ts=start, dur=end - start, args=args)


def test_host_threads_with_their_names():
    trace = two_ops().op(120, 130, launch=(115, 116), thread=AUTOGRAD).range("work", 20, 60)
    trace.add(ph="M", name="thread_name", args={"name": "python3"})
    nodes = checked(loaded(trace))[0, None, "host"]
    assert {node["name"]: node["total_ns"] for node in nodes if node["kind"] == "thread"} == {
        f"python3 (thread {MAIN})": 130_000,
        f"thread {AUTOGRAD}": 130_000,
    }
    assert paths(nodes)[f"python3 (thread {MAIN}) > work"] == 40


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.name)
def test_on_captures(path):
    checked(Catalog(ta.load(path)))


@needs_corpus
@pytest.mark.parametrize("path", sorted((CORPUS / "reports").glob("*.xz")), ids=lambda path: path.name)
def test_on_captures_of_others(path):
    checked(Catalog(ta.load(path)))


def test_a_planted_log_metrics_is_the_widest_box():
    trees = checked(Catalog(ta.load(FIXTURES / "captured" / "log_metrics.json.gz")))
    nodes = trees[0, 0, "idle"]
    widest = next(node for node in nodes if "(log_metrics)" in node["name"])
    assert widest["total_ns"] > 0.75 * nodes[0]["total_ns"]
    # Wider are only what it was called from, and the cause.
    wider = {node["node"] for node in nodes if node["total_ns"] > widest["total_ns"]}
    around, at = set(), widest["parent"]
    while at >= 0:
        around.add(at)
        at = nodes[at]["parent"]
    assert wider == around


def test_backward_kernels_of_a_capture_are_inside_of_their_modules():
    trees = trees_of(Catalog(ta.load(FIXTURES / "captured" / "log_metrics.json.gz")))
    backward = [path for path in paths(trees[0, 0, "gpu"]) if "Backward0" in path]
    assert backward
    assert all(" (backward) > " in path for path in backward)
    assert sum("nn.Module: Linear" in path for path in backward) >= 6


times = st.tuples(st.integers(-20, 300), st.integers(0, 80))
operations = st.lists(
    st.tuples(
        times,
        st.sampled_from(["gemm", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "copy"]),
        st.sampled_from([7, 8, 9]),
        st.none() | st.tuples(times, st.sampled_from([MAIN, AUTOGRAD])),
    ),
    min_size=1,
    max_size=12,
)
ranges = st.lists(
    st.tuples(
        times,
        st.sampled_from(["aten::add", "f.py(1): f", "MPI_Wait", "data_loading", "cudaMalloc", "cudaStreamSynchronize"]),
        st.sampled_from([MAIN, AUTOGRAD]),
        st.none() | st.integers(0, 4),
    ),
    max_size=25,
)
samples = st.lists(
    st.tuples(st.sampled_from([MAIN, AUTOGRAD]), st.integers(-20, 300), st.sampled_from(["", "a", "a;b", "b;a;a"])),
    max_size=10,
)


@given(operations, ranges, samples)
def test_on_made_up_traces(operations, ranges, samples):
    trace = KinetoTrace()
    for (start, length), name, stream, launch in operations:
        call = None if launch is None else (launch[0][0], sum(launch[0]))
        thread = MAIN if launch is None else launch[1]
        category = "gpu_memcpy" if name == "copy" else "kernel"
        trace.op(start, start + length, launch=call, name=name, stream=stream, thread=thread, category=category)
    for (start, length), name, thread, sequence in ranges:
        if name.startswith("cuda"):
            trace.call(name, start, start + length, thread=thread)
        elif name.startswith("aten") and sequence is not None:
            backward = "autograd::engine::evaluate_function: AddBackward0" if thread == AUTOGRAD else name
            operator(trace, backward, start, start + length, sequence, thread)
        else:
            trace.range(
                name,
                start,
                start + length,
                thread=thread,
                category="python_function" if "(" in name else "user_annotation",
            )
    checked(loaded(trace, samples))


@given(st.lists(times, max_size=20), st.lists(times, max_size=8))
def test_shares_are_all_of_the_time(operations, above):
    start, length = np.array(operations, np.int64).reshape(-1, 2).T
    spans = union(start, start + length)
    for hide, more in above:
        spans = subtract(spans, union(np.array([hide]), np.array([hide + more])))
    found = shares(start, start + length, spans)
    assert int(found.sum()) == total(spans)
    assert (found >= 0).all()
    assert (found <= length).all()


class TestLimit:
    def made(self, most: int) -> Nodes:
        paths = Paths(Names())
        name = np.array([paths.names.code(f"f{n}") for n in range(100)])
        kind = np.full(100, KIND["python"])
        outer = paths.within(np.full(100, TOP), name, kind)
        inner = paths.within(np.repeat(outer, 100), np.tile(name, 100), np.repeat(kind, 100))
        return tree("root", paths, inner, np.arange(1, len(inner) + 1), most=most)

    def test_no_tree_is_larger_and_its_totals_stay(self):
        whole, small = self.made(100_000), self.made(200)
        assert len(whole.parent) == 1 + 100 + 100 * 100
        assert len(small.parent) <= 200
        assert whole.total[0] == small.total[0] == 10_000 * 10_001 // 2
        below = np.zeros(len(small.parent), np.int64)
        np.add.at(below, small.parent[1:], small.total[1:])
        assert (small.total == small.own + below).all()
        assert (np.diff(small.parent[small.parent >= 0]) != 0).any()
        assert (small.kind == KIND["other"]).any()

    def test_the_smallest_are_put_together(self):
        small = self.made(200)
        other = small.kind == KIND["other"]
        assert small.total[~other].min() >= 100 * 51
