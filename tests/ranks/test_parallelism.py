"""Which kind of parallelism communication serves: told by descriptions, ranges, kernels and patterns; never by one weak sign."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import traceanalyzer as ta
from tests.support.kineto import AUTOGRAD, MAIN, KinetoTrace
from tests.support.places import CORPUS, needs_corpus
from traceanalyzer.catalog.catalog import Catalog
from traceanalyzer.config import Config
from traceanalyzer.ranks.parallelism.parallel_groups import describe_job
from traceanalyzer.ranks.parallelism.parallelism_names import of_description, of_kernel
from traceanalyzer.ranks.parallelism.tables import PROCESS_GROUPS

KERNELS = {
    "allreduce": "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)",
    "_allgather_base": "ncclDevKernel_AllGather_RING_LL(x)",
    "_reduce_scatter_base": "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(x)",
    "broadcast": "ncclDevKernel_Broadcast_RING_LL(x)",
}
PASS = "autograd::engine::evaluate_function: MmBackward0"
HOOK = "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad"


class Program(KinetoTrace):
    """Two steps of one millisecond. `send` launches a collective at a time of every step, with ranges around the launch."""

    def __init__(self) -> None:
        super().__init__()
        for step in range(2):
            self.range(f"ProfilerStep#{step}", step * 1000, step * 1000 + 999)

    def within(self, at: float, length: float, name: str, thread: int = MAIN, category: str = "cpu_op") -> Program:
        for step in range(2):
            self.range(name, step * 1000 + at, step * 1000 + at + length, category=category, thread=thread)
        return self

    def send(self, at: float, kind: str, around: tuple[str, ...] = (), thread: int = MAIN, **args: Any) -> Program:
        told = {"Collective name": kind, "dtype": "Float", "Group size": 4, "Process Group Name": "0"}
        told |= {"In msg nelems": 1 << 20, "Out msg nelems": 1 << 20, "Process Group Description": "default_pg"} | args
        for depth, name in enumerate(around):
            self.within(at - 4 + depth / 2, 8 - depth, name, thread)
        for step in range(2):
            start = step * 1000 + at
            name = KERNELS.get(kind, "ncclDevKernel_SendRecv(x)")
            self.op(start + 20, start + 24, launch=(start, start + 1), thread=thread, name=name, stream=20, **told)
        return self

    def products(self, first: float, last: float, every: float = 10) -> Program:
        at = first
        while at < last:
            self.within(at, 4, "aten::mm")
            at += every
        return self


def served(trace: KinetoTrace, tmp_path: Path) -> list[str | None]:
    """What the kernels of the first step serve, in order."""
    rows = table(trace, tmp_path, "communication").to_pylist()
    return [row["parallelism"] for row in rows if row["start_ns"] < 1_000_000]


def table(trace: KinetoTrace, tmp_path: Path, name: str) -> pa.Table:
    return Catalog(ta.load(trace.write(tmp_path / "t.json"))).table(name)


@pytest.mark.parametrize(
    ("description", "kind", "label"),
    [
        ("default_pg", "all-reduce", None),
        ("mesh_dp", "all-reduce", "data parallel"),
        ("mesh_dp", "all-gather", "sharded data parallel"),
        ("mesh_dp_shard_cp", "reduce-scatter", "sharded data parallel"),
        ("mesh_dp_shard", "all-reduce", None),
        ("mesh_dp_replicate", "all-reduce", "data parallel"),
        ("DATA_PARALLEL_GROUP_WITH_CP", "all-reduce", "data parallel"),
        ("EXPERT_DATA_PARALLEL_GROUP", "reduce-scatter", "sharded data parallel"),
        ("mesh_tp", "all-reduce", "tensor parallel"),
        ("TENSOR_MODEL_PARALLEL_GROUP", "reduce-scatter", "tensor parallel"),
        ("TENSOR_AND_DATA_PARALLEL_GROUP", "all-reduce", None),
        ("MODEL_PARALLEL_GROUP", "all-reduce", None),
        ("PIPELINE_MODEL_PARALLEL_GROUP", "send", "pipeline parallel"),
        ("mesh_pp", "all-reduce", None),
        ("mesh_ep", "all-to-all", "expert parallel"),
        ("mesh_cp", "send-receive", "context parallel"),
        ("mesh_0", "all-gather", None),
    ],
)
def test_descriptions_of_process_groups(description, kind, label):
    assert of_description(description, kind) == label


def test_kernels_written_for_one_purpose():
    assert of_kernel("void vllm::cross_device_reduce_1stage<__half, 8>(int)") == "tensor parallel"
    assert of_kernel("void deep_ep::internode_ll::combine<true>(void*)") == "expert parallel"
    assert of_kernel("ncclSymDevKernel_AllReduce_RSxLD_AGxST_sum_bf16(x)") is None


def test_the_description_goes_before_ranges(tmp_path):
    program = Program().send(100, "allreduce", (HOOK,), **{"Process Group Description": "mesh_tp"})
    assert served(program, tmp_path) == ["tensor parallel"]


def test_gradients_in_hooks_and_a_loss(tmp_path):
    program = Program().send(100, "allreduce", (HOOK,), AUTOGRAD)
    # The last bucket is as small as the loss, which is told from it by its place.
    program.send(200, "allreduce", (HOOK,), AUTOGRAD, **{"In msg nelems": 2, "Out msg nelems": 2})
    program.send(300, "allreduce", **{"In msg nelems": 1, "Out msg nelems": 1})
    program.send(400, "broadcast", ("DistributedDataParallel.forward",)).send(500, "barrier")
    assert served(program, tmp_path) == [*["data parallel"] * 2, "synchronization", "data parallel", "synchronization"]


def test_one_flat_all_reduce_after_the_backward_pass(tmp_path):
    program = Program().products(10, 100).within(110, 90, PASS, AUTOGRAD).send(300, "allreduce")
    program.op(-50, -20, name=KERNELS["allreduce"], stream=20)
    assert table(program, tmp_path, "communication")["parallelism"].to_pylist() == ["data parallel"] * 3


@pytest.mark.parametrize(
    "program",
    [
        Program().send(300, "allreduce"),
        Program().within(110, 90, PASS, AUTOGRAD).within(250, 4, "aten::mm").send(300, "allreduce"),
        Program().within(110, 300, PASS, AUTOGRAD).send(300, "allreduce"),
        Program().within(110, 90, PASS, AUTOGRAD).send(300, "allreduce", **{"In msg nelems": 99, "Out msg nelems": 99}),
        Program().within(110, 90, PASS, AUTOGRAD).send(300, "allreduce", ("SyncBatchNorm",)),
    ],
    ids=["no backward pass", "a product since", "within it", "too small for gradients", "statistics of a norm"],
)
def test_no_guess_about_a_lone_all_reduce(tmp_path, program):
    assert served(program, tmp_path) == [None]


def test_a_gather_after_the_backward_pass_shards_nothing_by_itself(tmp_path):
    """Figures of all ranks, as large as a bucket of gradients."""
    program = Program().products(10, 100).within(110, 90, PASS, AUTOGRAD)
    assert served(program.send(300, "_allgather_base"), tmp_path) == [None]
    both = Program().products(10, 100).within(110, 90, PASS, AUTOGRAD)
    both.send(300, "_reduce_scatter_base").send(350, "_allgather_base")
    assert served(both, tmp_path) == ["sharded data parallel"] * 2


def test_shards_and_their_replicas(tmp_path):
    program = Program().send(100, "_allgather_base", ("FSDP::all_gather (layers.0)",))
    program.send(200, "_reduce_scatter_base", ("FSDP::post_backward_reduce",), AUTOGRAD)
    program.send(300, "allreduce", ("FSDP::post_backward_reduce",), AUTOGRAD, **{"Process Group Name": "7"})
    program.send(400, "_allgather_base", ("FullyShardedDataParallel._pre_forward",))
    program.send(500, "_allgather_base")
    expected = ["sharded data parallel", "sharded data parallel", "data parallel", "sharded data parallel", None]
    assert served(program, tmp_path) == expected


def _layers(kind: str, count: int, products: bool = True) -> Program:
    program = Program()
    for n in range(count):
        if products:
            program.within(50 * n + 10, 4, "aten::addmm")
        program.send(50 * n + 30, kind)
    return program


def test_all_reduces_between_the_products_of_a_forward_pass(tmp_path):
    program = _layers("allreduce", 4).send(400, "allreduce", (PASS,), AUTOGRAD)
    assert served(program, tmp_path) == ["tensor parallel"] * 5


@pytest.mark.parametrize(("count", "products"), [(2, True), (8, False)], ids=["two a step", "no products between"])
def test_few_or_idle_all_reduces_are_no_layers(tmp_path, count, products):
    assert set(served(_layers("allreduce", count, products), tmp_path)) == {None}


def test_sequence_parallel_layers_gather_and_scatter(tmp_path):
    program = _layers("_allgather_base", 2)
    for n in range(2):
        program.within(200 + 50 * n, 4, "aten::mm").send(220 + 50 * n, "_reduce_scatter_base")
    assert served(program, tmp_path) == ["tensor parallel"] * 4
    assert set(served(_layers("_allgather_base", 4), tmp_path)) == {None}


def test_sends_between_neighbours(tmp_path):
    program = Program().send(100, "recv", ("nccl:recv 1<-0",)).send(200, "send", ("nccl:send 1->2",))
    assert served(program, tmp_path) == ["pipeline parallel"] * 2
    program = Program().send(100, "send", ("nccl:send 0->3",)).send(200, "send", ("nccl:send 0->2",))
    assert served(program, tmp_path) == [None, None]
    program = Program().send(100, "send", ("ring_attention", "nccl:send 1->2"))
    assert served(program, tmp_path) == ["context parallel"]


def test_coalesced_sends_around_backward_passes(tmp_path):
    def program(thread: int, around: tuple[str, ...]) -> Program:
        trace = Program().within(200, 90, PASS, AUTOGRAD)
        for at in (100, 220, 400):
            trace.send(at, "coalesced", (*around, "nccl:coalesced"), thread)
        return trace

    assert served(program(MAIN, ()), tmp_path) == ["pipeline parallel"] * 3
    assert served(program(AUTOGRAD, (PASS,)), tmp_path) == [None] * 3


def test_exchanges_are_told_by_names_alone(tmp_path):
    program = Program().send(100, "all_to_allv", ("moe_layer",)).send(200, "all_to_allv", (PASS,), AUTOGRAD)
    assert served(program, tmp_path) == ["expert parallel"] * 2
    program = Program().send(100, "all_to_allv", ("## all2all_data:kjt splits ##",)).send(200, "all_to_allv")
    assert served(program, tmp_path) == ["embedding exchange", None]


def test_process_groups_of_one_rank(tmp_path):
    program = Program().send(100, "allreduce", (HOOK,), AUTOGRAD).send(200, "allreduce", (HOOK,), AUTOGRAD)
    program.send(300, "allreduce", **{"In msg nelems": 1, "Out msg nelems": 1})
    first, second = table(program, tmp_path, "process_groups").to_pylist()
    assert (first["parallelism"], first["kinds"], first["collectives"], first["steps"]) == (
        *("data parallel", "all-reduce", 4, 2),
    )
    assert (first["per_step"], first["bytes_per_step"], first["exposed"]) == (2.0, 8 << 20, 16_000)
    assert (second["parallelism"], second["bytes_per_step"]) == ("synchronization", 4)


def _groups(*rows: tuple[int, str | None, str | None, int | None]) -> pa.Table:
    told = {"device": 0, "group": "0", "kinds": "all-reduce", "collectives": 4, "steps": 2, "per_step": 2.0}
    told |= {"bytes_per_step": 100, "time": 9, "exposed": 5, "exposed_wait": None}
    columns = ("rank", "parallelism", "group_ranks", "group_size")
    return pa.Table.from_pylist(
        [told | dict(zip(columns, row, strict=True)) for row in rows], schema=PROCESS_GROUPS.schema
    )


def test_a_job_of_two_dimensions():
    tensor, data = ("[0, 1]", "[2, 3]"), ("[0, 2]", "[1, 3]")
    rows = [(rank, "tensor parallel", tensor[rank // 2], 2) for rank in range(4)]
    rows += [(rank, "data parallel", data[rank % 2], 2) for rank in range(4)]
    job = describe_job(_groups(*rows))
    assert {row["parallelism"]: (row["groups"], row["gpus"]) for row in job} == {
        "tensor parallel": (2, 4),
        "data parallel": (2, 4),
    }
    assert {(row["per_step"], row["bytes_per_step"], row["exposed"], row["exposed_wait"]) for row in job} == {
        (2.0, 100.0, 20, None)
    }


def test_a_job_of_which_little_is_told():
    job = describe_job(_groups((0, None, None, None), (1, "synchronization", None, 4)))
    assert [(row["parallelism"], row["groups"]) for row in job] == [(None, 1), ("synchronization", 1)]
    assert describe_job(PROCESS_GROUPS.empty()) == []


def test_kernels_of_a_library_of_our_own(tmp_path):
    trace = KinetoTrace().op(0, 100).op(200, 300, name="void ours::my_ring_step<int>(int)", stream=20)
    loaded = ta.load(trace.write(tmp_path / "t.json"))
    ours = ta.analyze(loaded, Config(communication_patterns=("*My_Ring*",)))
    assert ta.analyze(loaded).devices[0].communication_ns == 0
    assert ours.devices[0].communication_ns == 100_000


@needs_corpus
@pytest.mark.parametrize(
    ("trace", "expected"),
    [
        ("multirank/clean_ddp.slow/rank1.pt.trace.json.gz", {"data parallel"}),
        ("multirank/comm_not_overlapped.slow/rank1.pt.trace.json.gz", {"data parallel"}),
        ("multirank/fsdp_one_unit.slow/rank1.pt.trace.json.gz", {"sharded data parallel"}),
        ("multirank/pipeline_bubble.slow/rank1.pt.trace.json.gz", {"pipeline parallel", "synchronization"}),
        ("nsys/comm_not_overlapped.slow.4gpu.sqlite", {None}),
    ],
)
def test_real_programs(trace, expected):
    found = Counter(Catalog(ta.load(CORPUS / trace)).table("communication")["parallelism"].to_pylist())
    assert set(found) == expected
