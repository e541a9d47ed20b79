"""Traces of a job whose ranks exchange tokens before and after what each computes for them, as mixtures of experts do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.support.kineto import KinetoTrace

EXCHANGE = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
BASE_NS = 1_700_000_000_000_000_000
TOKENS = 1 << 20


def write_experts(
    folder: Path, shares: Sequence[float], *, layers: int = 4, steps: int = 4, rotating: bool = False, wait: float = 0.0
) -> tuple[Path, float]:
    """Traces of as many ranks as `shares`, which say how much each has to do: 2 ms for 1. `rotating`: each layer another rank has most.

    The last rank waits `wait` us in the first exchange. Returns the folder, and how much faster a step were with equal work on all.
    """
    world, dense, transfer, unit = len(shares), 300.0, 200.0, 2_000.0
    traces = [KinetoTrace() for _ in shares]
    for rank, trace in enumerate(traces):
        trace.metadata |= {
            "baseTimeNanoseconds": BASE_NS,
            "distributedInfo": {"rank": rank, "world_size": world},
        }

    launched = [800.0 + (wait if rank < world - 1 else 0.0) for rank in range(world)]

    def call(rank: int) -> tuple[float, float]:
        """Hosts run far ahead of their GPUs."""
        launched[rank] += 5
        return launched[rank], launched[rank] + 4

    def exchange(rank: int, start: float, end: float, out: float) -> None:
        told = {"Collective name": "all_to_allv", "In msg nelems": TOKENS, "Out msg nelems": int(out), "dtype": "Float"}
        group = {"Group size": world, "Process Group Name": "1", "Process Group Ranks": str([*range(world)])}
        traces[rank].op(start, end, launch=call(rank), name=EXCHANGE, stream=20, device=rank, **told, **group)

    now, mean = 1_000.0 + wait, sum(shares) / world
    for step in range(steps):
        begun = launched[:]
        for layer in range(layers):
            turn = (layer + step) % world if rotating else 0
            own = [*shares[turn:], *shares[:turn]]
            first = wait if step == layer == 0 else 0.0
            for rank, trace in enumerate(traces):
                early = first if rank == world - 1 else 0.0
                trace.op(now - early, now - early + dense, launch=call(rank), device=rank)
                arrived = now - early + dense + 3
                exchange(rank, arrived, now + dense + transfer, TOKENS * own[rank] / mean)
                start = now + dense + transfer + 5
                done = start + unit * own[rank]
                trace.op(start, done, launch=call(rank), device=rank, name="grouped_gemm")
                exchange(rank, done + 3, start + unit * max(own) + transfer, TOKENS)
            now += dense + transfer + 5 + unit * max(own) + transfer + 5
        for trace, first, last in zip(traces, begun, launched, strict=True):
            trace.range(f"ProfilerStep#{step}", first + 4.5, last + 4.4)
    folder.mkdir(exist_ok=True)
    for rank, trace in enumerate(traces):
        trace.write(folder / f"r{rank}.json")
    length = dense + 2 * transfer + 10
    return folder, (length + unit * max(shares)) / (length + unit * mean)
