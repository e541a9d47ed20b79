"""Made-up jobs as rows of `communication_kernels`, with what is true of them: who came last to each collective."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceanalyzer.model.trace import Input
from traceanalyzer.ranks.collectives.tables import COMMUNICATION

BASE_NS = 1_700_000_000_000_000_000
Floats = npt.NDArray[np.float64]


@dataclass
class Job:
    """Rows of all ranks, by rank and start. For each row its collective, and how long before the last rank its own arrived, ns."""

    kernels: pa.Table
    inputs: list[Input]
    collective: npt.NDArray[np.int64]
    early: npt.NDArray[np.int64]


def inputs_of(ranks: int, base: int | None = BASE_NS) -> list[Input]:
    return [Input(f"r{r}", "", 0, "kineto", "", r, ranks, r, base) for r in range(ranks)]


def kernels_of(columns: dict[str, npt.NDArray[np.int64] | list[str | None] | pa.Array]) -> pa.Table:
    """A table of communication kernels of which only these columns are told; device 0 and stream 20 unless they say otherwise."""
    count = len(columns["start_ns"])
    plain = {"rank": 0, "device": 0, "process": 0, "stream": 20}
    missing = {c.name: pa.nulls(count, c.type) for c in COMMUNICATION.columns}
    given = {name: np.full(count, value) for name, value in plain.items()} | columns
    arrays = [pa.array((missing | given)[f.name]).cast(f.type) for f in COMMUNICATION.schema]
    return pa.Table.from_arrays(arrays, schema=COMMUNICATION.schema)


def made_up(
    ranks: int,
    collectives: int,
    seed: int = 0,
    *,
    group: int | None = None,
    transfer_us: float = 200.0,
    work_us: float = 2_000.0,
    spread_us: float = 400.0,
    clock_us: float = 0.0,
    drift: float = 0.0,
    cut: int = 0,
    sequences: bool = False,
) -> Job:
    """All-reduces of all ranks (group "0") and, with `group`, others in between of so many neighbours each.

    Each rank works for about `work_us` before each one, the next begins when all have it behind them. Clocks differ by up to `clock_us`
    and drift by up to `drift`; up to `cut` collectives are missing at either end of each rank's window.
    """
    random = np.random.default_rng(seed)
    now = np.zeros(ranks)
    starts, ends, earlies, wide = [], [], [], []
    for n in range(collectives):
        start = now + work_us + spread_us * random.random(ranks) * random.random()
        all_ranks = group is None or n % 2 == 0
        blocks = start.reshape(1, -1) if all_ranks else start.reshape(-1, group)
        last = blocks.max(axis=1)
        done = last + transfer_us * (1 + random.random())
        earlies.append(np.repeat(last, blocks.shape[1]) - start)
        end = np.repeat(done, blocks.shape[1]) + 2 * random.random(ranks)
        starts.append(start)
        ends.append(end)
        wide.append(all_ranks)
        now = end
    start, end, early = np.array(starts), np.array(ends), np.array(earlies)
    clock = clock_us * (2 * random.random(ranks) - 1)
    rate = 1 + drift * (2 * random.random(ranks) - 1)
    rank, number = (m.ravel() for m in np.meshgrid(np.arange(ranks), np.arange(collectives), indexing="ij"))
    kept = (number >= random.integers(0, cut + 1, ranks)[rank]) & (
        number < collectives - random.integers(0, cut + 1, ranks)[rank]
    )
    rank, number = rank[kept], number[kept]
    of_all = np.array(wide)[number]
    neighbours = group or ranks
    first = np.where(of_all, 0, rank // neighbours * neighbours)
    texts = [str([*range(ranks)]), *(str([*range(f, f + neighbours)]) for f in range(0, ranks, neighbours))]
    told = pa.DictionaryArray.from_arrays(np.where(of_all, 0, 1 + first // neighbours).astype(np.int32), texts)
    columns = {
        "rank": rank,
        "start_ns": np.rint(1000 * (start[number, rank] * rate[rank] + clock[rank])).astype(np.int64),
        "end_ns": np.rint(1000 * (end[number, rank] * rate[rank] + clock[rank])).astype(np.int64),
        "kind": pa.DictionaryArray.from_arrays(np.zeros(len(rank), np.int32), ["all-reduce"]),
        "group": pa.array(np.where(of_all, "0", "1")),
        "group_ranks": told,
        "group_size": np.where(of_all, ranks, neighbours),
        "bytes": np.full(len(rank), 1 << 20),
        **({"sequence": number} if sequences else {}),
    }
    return Job(
        kernels_of(columns),
        inputs_of(ranks),
        number * ranks + first,
        np.rint(1000 * early[number, rank]).astype(np.int64),
    )
