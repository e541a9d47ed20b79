"""Jobs of MPI programs made up as exports of Nsight Systems, one file a rank, as a clock per rank that runs through its calls."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.nsys.nsys_export import STRINGS, Row, Tables, global_id, kernel, make_export, memcpy, nvtx, runtime

US, MS = 1_000, 1_000_000
FUNCTIONS = (
    *("MPI_Init", "MPI_Allreduce", "MPI_Barrier", "MPI_Bcast", "MPI_Reduce", "MPI_Send", "MPI_Recv"),
    *("MPI_Isend", "MPI_Irecv", "MPI_Waitall", "MPI_Alltoallv"),
)
NAMES = STRINGS | {100 + at: name for at, name in enumerate(FUNCTIONS)}
IDS = {name: key for key, name in NAMES.items()}
BYTES = 1 << 16
WORLD, OTHER = 7001, 7002
MEETING = 20 * US
TAIL = 10 * US


class Process:
    """One rank: `now` is its time on the true clock; what is written is on its own, which is `ahead` of that."""

    def __init__(self, rank: int, ahead: int = 0, begun: bool = True) -> None:
        self.rank, self.ahead, self.now, self.calls = rank, ahead, 10 * MS, 0
        self.tables: Tables = {name: [] for name in ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME")}
        self.tables["MPI_RANKS"] = [{"globalPid": global_id(7), "rank": rank}]
        self.tables["TARGET_INFO_SESSION_START_TIME"] = [{"utcEpochNs": 1_700_000_000_000_000_000}]
        if begun:
            self.add("MPI_OTHER_EVENTS", "MPI_Init", self.now - 5 * MS, self.now - 4 * MS)

    def compute(self, duration: int) -> None:
        """Launch a kernel and wait for it."""
        self.calls += 2
        start = self.now + self.ahead
        rows = self.tables
        rows["CUPTI_ACTIVITY_KIND_RUNTIME"].append(runtime(start, start + 5 * US, correlation=self.calls))
        rows["CUPTI_ACTIVITY_KIND_KERNEL"].append(
            kernel(start + 6 * US, start + 6 * US + duration, correlation=self.calls)
        )
        end = start + 6 * US + duration + 4 * US
        rows["CUPTI_ACTIVITY_KIND_RUNTIME"].append(runtime(start + 5 * US, end, correlation=self.calls + 1, name=6))
        self.now = end - self.ahead

    def host(self, duration: int, name: str) -> None:
        """Work on the host in a range."""
        own = self.now + self.ahead
        self.tables.setdefault("NVTX_EVENTS", []).append(nvtx(own, own + duration, name))
        self.now += duration

    def copy(self, down: bool, size: int, takes: int) -> None:
        """A copy whose call returns when it is done."""
        self.calls += 1
        own = self.now + self.ahead
        self.tables["CUPTI_ACTIVITY_KIND_RUNTIME"].append(
            runtime(own, own + takes + 6 * US, correlation=self.calls, name=4)
        )
        sides = {"kind": 2, "src": 2, "dst": 1} if down else {"kind": 1, "src": 1, "dst": 2}
        self.tables.setdefault("CUPTI_ACTIVITY_KIND_MEMCPY", []).append(
            memcpy(own + 3 * US, own + 3 * US + takes, **sides) | {"bytes": size, "correlationId": self.calls}
        )
        self.now += takes + 6 * US

    def add(self, table: str, name: str, start: int, end: int, **arguments: Any) -> None:
        row: Row = {"start": start + self.ahead, "end": end + self.ahead, "globalTid": global_id(7, 8)}
        self.tables.setdefault(table, []).append(row | {"textId": IDS[name]} | arguments)

    def call(self, table: str, name: str, end: int, **arguments: Any) -> None:
        """A call from now on until `end`."""
        self.add(table, name, self.now, end, **arguments)
        self.now = end


def meet(ranks: Sequence[Process], name: str = "MPI_Allreduce", takes: int = MEETING, comm: int | None = WORLD) -> None:
    """A collective that nobody leaves before all have come."""
    end = max(one.now for one in ranks) + takes
    for one in ranks:
        one.call("MPI_COLLECTIVES_EVENTS", name, end, commHandle=comm, size=8, recvSize=8)


def describe(ranks: Sequence[Process], handle: int = WORLD, number: int = 0) -> None:
    """A communicator of these ranks, as the files describe it. Each process has its own handle for it."""
    members = [one.rank for one in ranks]
    for place, one in enumerate(ranks):
        one.tables.setdefault("MPI_COMMUNICATORS", []).append(
            {"rank": one.rank, "timestamp": 0, "commHandle": handle, "parentHandle": None, "localRank": place}
            | {"localSize": len(ranks), "groupRoot": members[0], "groupRootUid": number, "members": str(members)}
        )


def files(ranks: Sequence[Process], folder: Path) -> list[Path]:
    """One export a rank."""
    for one in ranks:
        one.compute(TAIL)
    return [make_export(folder / f"report.{one.rank}.sqlite", one.tables, NAMES) for one in ranks]
