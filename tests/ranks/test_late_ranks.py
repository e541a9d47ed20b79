"""Why a rank is late: what it does meanwhile, and whom the blame goes on to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.ranks.test_communication import ALL_REDUCE, TRANSFER, _ends, collective, waits, write_job
from tests.support.kineto import KinetoTrace
from tests.support.made_up_jobs import inputs_of, kernels_of
from traceanalyzer.columns import frames
from traceanalyzer.derive.ledger.tables import LEDGER_INTERVALS
from traceanalyzer.derive.steps.tables import STEP_LEDGER
from traceanalyzer.ranks.waits.pipelines import pipeline
from traceanalyzer.ranks.waits.rank_work import excess
from traceanalyzer.ranks.waits.side_by_side import late_ranks, step_matrix
from traceanalyzer.ranks.waits.tables import COLLECTIVE_WAITS, LATE_WORK
from traceanalyzer.ranks.waits.waits import late_rank_names
from traceanalyzer.ranks.waits.waits import roots as roots_of
from traceanalyzer.vocabulary.lines import LEDGER_LINES


def test_what_a_late_rank_computes_is_not_what_it_communicates_meanwhile(tmp_path):
    write_job(tmp_path)
    trace, ends = KinetoTrace(), _ends(12)
    trace.metadata |= {
        "baseTimeNanoseconds": 1_700_000_000_000_000_000,
        "distributedInfo": {"rank": 2, "world_size": 4},
    }
    for n, end in enumerate(ends):
        start, arrival = ends[n - 1] + 20 if n else 0.0, end - TRANSFER
        trace.op(start, arrival, launch=(start - 15, start - 10), device=2, name=("gemm", "softmax")[n % 3 == 0])
        # Another group's collective runs under all of it.
        trace.op(start + 1, arrival - 1, name="ncclDevKernel_Broadcast(x)", stream=21, device=2)
        args = collective() if n else {}
        trace.op(arrival + 5, end, launch=(start - 9, start - 5), name=ALL_REDUCE, stream=20, device=2, **args)
        trace.range(f"ProfilerStep#{n}", start - 18, start + 2)
    trace.write(tmp_path / "r2.json")
    rows = [row for row in waits(tmp_path) if row["wait"] is not None]
    assert {row["late"] for row in rows} == {"rank 2"}
    assert {row["late_doing"] for row in rows} == {"gemm"}


def roots(via: dict[int, int | None], *wanted: int) -> list[int]:
    """Where the blame for some collectives ends, when who was late to one waited itself in the one that `via` says."""
    columns = {"instance": pa.array(via), "via": pa.array(via.values(), pa.int64())}
    missing = {c.name: pa.nulls(len(via), c.type) for c in LATE_WORK.columns}
    return roots_of(np.array(wanted), frames.build(LATE_WORK, missing | columns)).tolist()


def test_blame_goes_on_to_where_a_chain_of_waits_began():
    chain = {n: n - 1 if n else None for n in range(40)}
    assert roots(chain, 39, 8, 0, frames.NULL) == [0, 0, 0, 40]


def test_waits_in_a_circle_have_no_beginning():
    assert roots({0: 1, 1: 2, 2: 0, 3: 2, 4: None}, 0, 1, 2, 3, 4) == [0, 1, 2, 3, 4]


def test_gpus_of_two_files_without_ranks_have_two_names():
    inputs = [replace(one, path=f"node{one.ordinal}.sqlite", rank=None) for one in inputs_of(2)]
    late = {"rank": pa.chunked_array([[0, 1, None]]), "device": pa.chunked_array([[3, 3, None]])}
    assert late_rank_names(late, inputs).to_pylist() == ["GPU 3 of node0.sqlite", "GPU 3 of node1.sqlite", None]
    assert late_rank_names(late, inputs[:1])[0].as_py() == "GPU 3"


@pytest.mark.parametrize(("size", "schedule"), [(4, "2 micro-batches a step in 4 stages"), (None, None)])
def test_how_many_stages_a_pipeline_has_is_told_by_its_group_alone(size, schedule):
    kernels = kernels_of(
        {
            "start_ns": np.arange(4),
            "end_ns": np.arange(4) + 1,
            "kind": ["receive"] * 4,
            "parallelism": ["pipeline parallel"] * 4,
            "step": np.array([0, 0, 1, 1]),
            "peer": np.ones(4, np.int64),
            "group_size": pa.array([size] * 4, pa.int64()),
        }
    )
    assert pipeline(kernels).schedule == schedule


def steps_of(rank: int, lengths: list[int], **lines: int) -> list[dict[str, Any]]:
    """Rows of `step_ledger`: steps of one GPU with the same amounts of some lines in each; the first has no beginning."""
    none = {c.name: 0 for c in STEP_LEDGER.columns if c.name in {line.replace(".", "_") for line in LEDGER_LINES}}
    ends = np.cumsum(lengths).tolist()
    return [
        none | {"rank": rank, "device": 0, "complete": at > 0, "start_ns": end - length, "end_ns": end, **lines}
        for at, (length, end) in enumerate(zip(lengths, ends, strict=True))
    ]


def excesses(*gpus: list[dict[str, Any]]) -> list[tuple[int, str, int]]:
    table = excess(pa.Table.from_pylist([row for rows in gpus for row in rows], schema=STEP_LEDGER.schema))
    return [(row["rank"], row["line"], row["time"]) for row in table.to_pylist()]


def test_of_two_ranks_the_one_with_more_stands_out_and_of_one_none():
    few, many = steps_of(0, [1000] * 3, compute=200), steps_of(1, [1000] * 7, compute=400, idle_input=100)
    assert excesses(few, many) == [(1, "compute", 200)]
    assert excesses(many) == excesses(few[:1], many) == excesses() == []


def test_steps_of_another_kind_are_not_compared():
    usual = [steps_of(rank, [1000] * 3, compute=200) for rank in range(3)]
    assert excesses(*usual, steps_of(3, [1000] * 3, compute=300)) == [(3, "compute", 100)]
    # What it calls a step is two of the others'.
    assert excesses(*usual, steps_of(3, [2000] * 3, compute=400)) == []


def test_steps_of_several_epochs_stand_in_order_of_time():
    names = ["epoch 1 step 9", "epoch 1 step 10", "epoch 2 step 1"]
    rows = [row | {"name": name} for row, name in zip(steps_of(0, [10, 20, 30]), names, strict=True)]
    others = [row | {"name": None} for row in steps_of(1, [10, 20, 30])]
    table = pa.Table.from_pylist(rows + others, schema=STEP_LEDGER.schema)
    found, cells, _ = step_matrix(table, LEDGER_INTERVALS.empty())
    assert [name for name in found if name in names] == names
    assert [name for name in found if name not in names] == ["last - 2", "last - 1", "last"]
    assert [row["step_ns"][found.index(names[2])] for row in cells] == [30, None]


def test_steps_named_after_their_rank_still_stand_beside_each_other():
    rows = [
        row | {"name": f"rank {rank} step {number}"}
        for rank in range(8)
        for number, row in enumerate(steps_of(rank, [10, 20, 30]))
    ]
    found, cells, _ = step_matrix(pa.Table.from_pylist(rows, schema=STEP_LEDGER.schema), LEDGER_INTERVALS.empty())
    assert found == ["last - 2", "last - 1", "last"]
    assert [row["step_ns"][-1] for row in cells] == [30] * 8


def test_how_late_a_rank_was_is_exact_beside_absolute_times() -> None:
    """Times since the epoch are larger than what a float64 holds to the nanosecond."""
    epoch = 1_700_000_000_123_456_789
    rows = {
        "instance": pa.array([0, 0, 1, None]),
        "exposed_wait": pa.array([None, 40, 7, 3]),
        "late_rank": pa.array([1, 1, 1, None], pa.int32()),
        "late_device": pa.array([0, 0, 0, None], pa.int32()),
        "late_start_ns": pa.array([epoch, epoch, epoch + 1000, None]),
        "late_end_ns": pa.array([epoch + 41, epoch + 41, epoch + 1003, None]),
        "late_cause": frames.names(np.array([0, 0, 1, 2]), ["compute", "idle.input", None]),
    }
    missing = {c.name: pa.nulls(4, c.type) for c in COLLECTIVE_WAITS.columns}
    (row,) = late_ranks(frames.build(COLLECTIVE_WAITS, missing | rows))
    assert (row["waited_ns"], row["late_count"], row["collective_count"]) == (47, 2, 2)
    assert (row["median_late_ns"], row["max_late_ns"], row["line"]) == (22, 41, "compute")
