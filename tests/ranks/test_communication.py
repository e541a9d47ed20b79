"""Collectives: what a trace says about them, which kernels of different ranks belong together, and who waited for whom."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import traceanalyzer as ta
from tests.analysis.test_truth_findings import check_slow, recovered, truth
from tests.support.kineto import KinetoTrace
from tests.support.places import CORPUS, needs_corpus
from tests.support.results import result_of
from traceanalyzer.analysis import analyze
from traceanalyzer.catalog.catalog import Catalog
from traceanalyzer.ranks.collectives.collective_names import bus_factor, in_one_machine, kind_of, message_bytes, nvlink

ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
STEP, TRANSFER = 10_000.0, 400.0


def collective(kind: str = "allreduce", elements: int = 1 << 22, ranks: int = 4, **args: Any) -> dict[str, Any]:
    told = {"Collective name": kind, "In msg nelems": elements, "Out msg nelems": elements, "dtype": "Float"}
    return {**told, "Group size": ranks, "Process Group Name": "0", "Process Group Ranks": str([*range(ranks)]), **args}


def rank_trace(rank: int, arrivals: list[float], ends: list[float], first: int = 0, world: int = 4, **told: Any):
    """One rank: in each step it computes until it arrives at an all-reduce on another stream, whose end all ranks share."""
    trace = KinetoTrace()
    trace.metadata |= {
        "baseTimeNanoseconds": 1_700_000_000_000_000_000,
        "distributedInfo": {"rank": rank, "world_size": world},
    }
    for n in range(first, len(ends)):
        start = ends[n - 1] + 20 if n else 0.0
        trace.op(start, arrivals[n], launch=(start - 15, start - 10), device=rank)
        args = collective(ranks=world) | told if n > first else {}
        trace.op(
            arrivals[n] + 5, ends[n], launch=(start - 9, start - 5), name=ALL_REDUCE, stream=20, device=rank, **args
        )
        trace.range(f"ProfilerStep#{n}", start - 18, start + 2)
    return trace


def write_job(
    folder: Path, late: int | None = 2, world: int = 4, steps: int = 12, extra: float = 4_000.0, **changes: Any
):
    """Ranks of which one computes longer. `first` are the steps with which each rank's window begins, `clock` its offset in us."""
    first, clock = changes.get("first", [0] * world), changes.get("clock", [0.0] * world)
    slowest = extra if late is not None else 0.0
    ends = [n * STEP + 5_000 + slowest + TRANSFER for n in range(steps)]
    for rank in range(world):
        delay = extra if rank == late else 0.0
        # Some jitter, so that a step is not like any other.
        arrivals = [n * STEP + 4_900 + delay + 7 * ((5 * n + 3 * rank) % 11) for n in range(steps)]
        mine = [a + clock[rank] for a in arrivals], [e + clock[rank] + 7 * (n % 5) for n, e in enumerate(ends)]
        rank_trace(rank, *mine, first=first[rank], world=world).write(folder / f"r{rank}.json")
    return folder


def waits(folder: Path) -> list[dict[str, Any]]:
    return Catalog(ta.load(folder)).table("collective_waits").to_pylist()


def outcomes(folder: Path) -> dict[str, tuple[str, str | None]]:
    return {o.rule: (o.outcome, o.reason) for o in analyze(ta.load(folder)).rules}


def test_three_ranks_wait_for_the_fourth(tmp_path):
    every = waits(write_job(tmp_path))
    rows = [row for row in every if row["wait"] is not None]
    assert {row["late"] for row in rows} == {"rank 2"}
    assert {row["ranks"] for row in rows} == {4}
    # Nobody knows what came before the first of the twelve.
    assert len({row["instance"] for row in rows}) == 11
    first = {rank: min(row["start_ns"] for row in every if row["rank"] == rank) for rank in range(4)}
    assert {row["rank"]: row["start_ns"] for row in every if row["wait"] is None} == first
    for row in rows:
        assert row["end_ns"] - row["start_ns"] == row["wait"]
        assert row["wait"] == pytest.approx(0 if row["rank"] == 2 else 4e6, abs=1e5)
    assert {row["certainty"] for row in rows} == {"medium"}
    assert {row["late_line"] for row in rows if row["wait"] > 1e6} == {"compute"}
    assert min(row["score"] for row in rows) > 3.5
    assert sum(row["imbalance"] for row in rows) == pytest.approx(sum(row["wait"] for row in rows), rel=0.2)


def test_the_finding_names_the_late_rank_and_shows_both_sides(tmp_path):
    result = analyze(ta.load(write_job(tmp_path)))
    by_rule = {f.rule: f for f in result.findings}
    assert "for rank 2, which computes 4 ms more a step than the median rank" in by_rule["COM005"].message
    assert "for rank 2 to come, which computes 4 ms more" in by_rule["COM002"].message
    assert {by_rule[rule].scope.rank for rule in ("COM002", "COM005")} == {2}
    assert by_rule["COM005"].saving.recoverable_ns > 0
    labels = [(e.label.split(":")[0], e.rank) for e in by_rule["COM005"].evidence]
    assert labels[0] == ("late", 2)
    assert {rank for label, rank in labels if label == "waiting"} == {0, 1, 3}


def test_windows_that_begin_apart_and_clocks_that_differ(tmp_path):
    folder = write_job(tmp_path, first=[0, 3, 1, 5], clock=[0.0, 900.0, -1_700.0, 300.0])
    rows = waits(folder)
    assert {row["late"] for row in rows if row["wait"] is not None} == {"rank 2"}
    # The rank that begins last has seven collectives, no other has a counterpart to more, and nothing is told of the first.
    assert len({row["instance"] for row in rows if row["wait"] is not None}) == 6
    assert max(row["spread"] for row in rows if row["wait"] is not None) < 100_000


def test_a_window_that_ends_one_step_earlier(tmp_path):
    write_job(tmp_path)
    trace = rank_trace(1, [n * STEP + 4_900 + 7 * ((5 * n + 3) % 11) for n in range(12)][:11], _ends(11))
    trace.write(tmp_path / "r1.json")
    rows = waits(tmp_path)
    assert len({row["instance"] for row in rows if row["wait"] is not None}) == 10
    assert {row["late"] for row in rows if row["wait"] is not None} == {"rank 2"}


def test_who_is_late_to_the_first_collective_may_only_have_begun_to_record_late(tmp_path):
    write_job(tmp_path, late=None)
    arrivals = [n * STEP + 4_900 + 7 * ((5 * n + 9) % 11) for n in range(12)]
    ends = [n * STEP + 5_000 + TRANSFER + 7 * (n % 5) for n in range(12)]
    arrivals[0] = ends[0] - TRANSFER
    for rank in range(3):
        early = [n * STEP + 100.0 if n == 0 else n * STEP + 4_900 + 7 * ((5 * n + 3 * rank) % 11) for n in range(12)]
        rank_trace(rank, early, ends).write(tmp_path / f"r{rank}.json")
    rank_trace(3, arrivals, ends).write(tmp_path / "r3.json")
    assert max(row["wait"] for row in waits(tmp_path) if row["wait"] is not None) < 100_000
    assert outcomes(tmp_path)["COM002"][0] == "clean"


def _ends(steps: int) -> list[float]:
    return [n * STEP + 5_000 + 4_000 + TRANSFER + 7 * (n % 5) for n in range(steps)]


def test_order_of_files_changes_nothing(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    write_job(tmp_path / "a")
    for rank, name in enumerate("zxwy"):
        (tmp_path / "b" / f"{name}.json").write_bytes((tmp_path / "a" / f"r{rank}.json").read_bytes())
    assert waits(tmp_path / "a") == waits(tmp_path / "b")


def test_one_rank_alone_cannot_be_judged(tmp_path):
    rank_trace(0, [4_900.0 + n * STEP for n in range(12)], _ends(12)).write(tmp_path / "r0.json")
    found = outcomes(tmp_path)
    assert found["COM002"][0] == found["COM005"][0] == "could_not_judge"
    assert "all ranks" in found["COM002"][1]
    assert {found[rule][0] for rule in ("COM001", "COM003", "COM006")} <= {"fired", "clean"}


def test_ranks_of_different_runs_do_not_match(tmp_path):
    write_job(tmp_path, world=2, late=1)
    other = rank_trace(1, [4_000.0 + n * 7_000 for n in range(12)], [6_000.0 + 7_000 * n for n in range(12)], world=2)
    other.metadata["baseTimeNanoseconds"] += 3_600_000_000_000
    other.write(tmp_path / "r1.json")
    assert {row["instance"] for row in waits(tmp_path)} == {None}
    assert outcomes(tmp_path)["COM002"][0] == "could_not_judge"


def test_sizes_that_differ_are_no_match(tmp_path):
    write_job(tmp_path, world=2, late=1)
    arrivals = [n * STEP + 8_900.0 for n in range(12)]
    rank_trace(1, arrivals, _ends(12), world=2, **{"In msg nelems": 5, "Out msg nelems": 5}).write(tmp_path / "r1.json")
    assert {row["instance"] for row in waits(tmp_path)} == {None}


def test_sends_do_not_pair_by_order(tmp_path):
    for rank in range(2):
        trace = KinetoTrace()
        trace.metadata |= {"distributedInfo": {"rank": rank, "world_size": 2}, "baseTimeNanoseconds": 10**18}
        for n in range(6):
            trace.op(
                n * 1000, n * 1000 + 500, name="ncclDevKernel_SendRecv(x)", stream=20, **collective("send", ranks=2)
            )
        trace.write(tmp_path / f"r{rank}.json")
    catalog = Catalog(ta.load(tmp_path))
    assert set(catalog.table("communication")["instance"].to_pylist()) == {None}
    assert set(catalog.table("collective_waits")["wait"].to_pylist()) == {None}
    assert outcomes(tmp_path)["COM002"][0] == "could_not_judge"


def communication(trace: KinetoTrace, tmp_path: Path) -> list[dict[str, Any]]:
    return Catalog(ta.load(trace.write(tmp_path / "t.json"))).table("communication").to_pylist()


def test_arguments_of_the_kernel(tmp_path):
    trace = KinetoTrace().op(0, 100).op(0, 200, name=ALL_REDUCE, stream=20, **collective(elements=1000, ranks=2))
    trace.op(300, 400, name=ALL_REDUCE, stream=20)
    first, second = communication(trace, tmp_path)
    assert (first["kind"], first["group"], first["group_size"], first["bytes"]) == ("all-reduce", "0", 2, 4000)
    assert first["bus_bandwidth"] == pytest.approx(1.0 * 4000 / 200_000)
    # Queued before the capture: what it belongs to is told by its like, how large it was by nobody.
    assert (second["kind"], second["group"], second["group_size"], second["bytes"]) == ("all-reduce", "0", 2, None)


def test_operators_around_the_launch(tmp_path):
    trace = KinetoTrace().op(100, 300, name="ncclKernel_SendRecv_RING_SIMPLE(x)", stream=20, launch=(20, 30))
    trace.range("nccl:all_to_all", 10, 40)
    args = {"Input Dims": [[1000], []], "Input type": ["float", ""], "External id": 77}
    trace.add(cat="cpu_op", name="record_param_comms", ts=5, dur=40, args=args)
    (row,) = communication(trace, tmp_path)
    assert (row["kind"], row["bytes"]) == ("all-to-all", 4000)


def test_kernels_that_only_their_operator_gives_away(tmp_path):
    trace = KinetoTrace().add(cat="cpu_op", name="record_param_comms", ts=5, dur=40, args={"External id": 77})
    trace.op(100, 200, name="my_library_exchange_v7", stream=20, **{"External id": 77})
    trace.op(200, 220, name="void at::native::vectorized_elementwise_kernel<4>(int)", stream=20, **{"External id": 77})
    trace.op(300, 400, name="gemm", **{"External id": 78})
    catalog = Catalog(ta.load(trace.write(tmp_path / "t.json")))
    assert catalog.table("gpu_ops")["class"].to_pylist() == ["communication", "compute", "compute"]
    assert catalog.table("ledger")["exposed_communication"].to_pylist() == [100_000]


def test_correlations_in_the_place_of_operators(tmp_path):
    trace = KinetoTrace().add(cat="cpu_op", name="record_param_comms", ts=5, dur=40, args={"External id": 1})
    trace.op(100, 200, name="gemm", **{"External id": 1})
    catalog = Catalog(ta.load(trace.write(tmp_path / "t.json")))
    assert catalog.table("gpu_ops")["class"].to_pylist() == ["compute"]


def test_streams_and_events(tmp_path):
    trace = KinetoTrace().op(0, 1000).op(1005, 1500, name=ALL_REDUCE, stream=20).op(1505, 2500)
    trace.op(2000, 2600, name=ALL_REDUCE, stream=20)
    trace.op(2605, 3000, name=ALL_REDUCE, stream=7).op(3005, 4000)
    # A few microseconds of compute, such as filling a buffer, make no compute stream of it.
    trace.op(4005, 4010, name="chunk_cat", stream=21).op(4200, 4300, name=ALL_REDUCE, stream=21)
    rows = communication(trace, tmp_path)
    assert [row["serialized"] for row in rows] == [True, False, False, False]
    assert [row["compute_stream"] for row in rows] == [False, False, True, False]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("allreduce", "all-reduce"),
        ("_allgather_base", "all-gather"),
        ("reduce_scatter_tensor_coalesced", "reduce-scatter"),
        ("nccl:all_reduce_barrier", "barrier"),
        ("ncclAllReduce", "all-reduce"),
        ("void vllm::cross_device_reduce_1stage<half>(int)", "all-reduce"),
        ("nccl:recv 1<-0", "receive"),
        ("ncclDevKernel_Generic_1(x)", None),
    ],
)
def test_kinds(name, kind):
    assert kind_of(name) == kind


def test_sizes_and_links():
    assert [bus_factor(kind, 4) for kind in ("all-reduce", "all-gather", "broadcast", "send")] == [1.5, 0.75, 1.0, None]
    assert bus_factor("all-reduce", 1) is None
    assert message_bytes("[[[8, 2], [4]], []]", '["c10::BFloat16", ""]') == 40
    assert message_bytes("[[], []]", '["", ""]') is None
    assert [nvlink(n) for n in ("NVIDIA H100 80GB HBM3", "NVIDIA H100 PCIe", "NVIDIA L40S", None)] == [
        450,
        None,
        None,
        None,
    ]
    assert [in_one_machine(g, 8) for g in ("[0, 7]", "[0, 8, 16]", "", None)] == [True, False, None, None]


@needs_corpus
@pytest.mark.parametrize("name", truth("multirank"))
def test_planted(name):
    entry = truth("multirank")[name]
    result = result_of(CORPUS / "multirank" / f"{name}.slow")
    check_slow(result, entry["slow_find"])
    if rank := entry["slow_find"].get("names_rank"):
        assert f"ank {rank}" in result.findings[0].message
    if "fixed_never" in entry:
        fixed = result_of(CORPUS / "multirank" / f"{name}.fixed")
        assert not [f for f in fixed.findings if f.rule in entry["fixed_never"] and recovered(f) > 0]
