"""How fast the GPUs of one capture are at the same work."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.support.places import FIXTURES
from traceanalyzer.analysis.captures import opened_run
from traceanalyzer.config import Config
from traceanalyzer.derive.kernels.tables import KERNEL_TIMES
from traceanalyzer.history.adding import labelled
from traceanalyzer.history.paces import paces_of
from traceanalyzer.ingest.how import How
from traceanalyzer.result.history.entry import Pace
from traceanalyzer.result.job import Job, Parallelism, StepMatrix

H100, A100 = "NVIDIA H100", "NVIDIA A100"


def job(*collectives: str) -> Job:
    together = [Parallelism("data parallel", 4, 1, list(collectives), None)]
    return Job(4, [0, 1, 2, 3], [], [], 4, None, together, [], StepMatrix([], []), [], [])


def row(rank: int, name: str = "gemm", count: int = 10, mean: int = 1000, **other: object) -> dict[str, object]:
    """One kernel on the GPU of a rank, which computes nothing else."""
    computing = other.pop("computing", count * mean)
    return {
        **{"rank": rank, "device": rank, "uuid": f"uuid-{rank}", "gpu": H100, "name": name, "blocks": 132},
        **{"threads": 256, "count": count, "time": count * mean, "computing": computing},
        **other,
    }


def ratios(*rows: dict[str, object], collectives: tuple[str, ...] = ("all-reduce",)) -> list[float | None]:
    table = pa.Table.from_pylist(list(rows), schema=KERNEL_TIMES.schema)
    return [one.ratio for one in paces_of(table, job(*collectives))]


def test_each_gpu_by_the_middle_one() -> None:
    times = (1000, 1050, 1000, 990)
    assert ratios(*(row(rank, mean=mean) for rank, mean in enumerate(times))) == [1.0, 1.05, 1.0, 0.99]


def test_a_gpu_that_runs_more_of_the_same_is_not_slower() -> None:
    assert ratios(row(0, count=100), row(1, count=105), row(2, count=101)) == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    "other",
    [
        row(1, "other", mean=2000),
        row(1, mean=2000, blocks=64),
        row(1, mean=2000, threads=128),
        row(1, mean=2000, gpu=A100),
        row(1, count=30, mean=2000),
        row(1, mean=2000, computing=1_000_000),
    ],
    ids=["kernel", "grid", "block", "model", "times", "part"],
)
def test_other_work_is_not_compared(other: dict[str, object]) -> None:
    """Whatever else GPU 1 does, nothing is said of it."""
    found = ratios(row(0), other, row(2), row(3))
    assert found == [1.0, None, 1.0, 1.0]


@pytest.mark.parametrize("collectives", [(), ("send", "recv"), ("all-reduce", "all-to-all"), ("unknown",)])
def test_ranks_with_unequal_parts_are_not_compared(collectives: tuple[str, ...]) -> None:
    assert ratios(row(0), row(1, mean=2000), collectives=collectives) == [None, None]


def test_gpus_of_one_number_are_not_told_apart_by_it() -> None:
    rows = [row(0, device=0), row(1, device=0), row(2, device=0, uuid=None)]
    table = pa.Table.from_pylist(rows, schema=KERNEL_TIMES.schema)
    assert paces_of(table, None) == [
        Pace("uuid-0", None, None),
        Pace("uuid-1", None, None),
        Pace(None, None, None),
    ]
    assert paces_of(None, None) == []


@pytest.mark.parametrize(
    ("name", "told"), [("slow_link.slow", True), ("gpu_straggler.slow", True), ("pipeline_bubble.slow", False)]
)
def test_captures_of_four_gpus(name: str, told: bool) -> None:
    """Where GPU 2 is disturbed by kernels beside its own, nothing is said of it; nor of the stages of a pipeline."""
    with opened_run(FIXTURES / "multirank" / name, Config(), How(jobs=1)) as run:
        ((entry, _),) = labelled(run, ["host=node1"])
    assert [one.device for one in entry.paces] == [0, 1, 2, 3]
    found = [one.ratio for one in entry.paces if one.ratio is not None]
    assert len(found) == (0 if not told else 3 if name.startswith("gpu_straggler") else 4)
    assert found == pytest.approx([1.0] * len(found), abs=0.02)
