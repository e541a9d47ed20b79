"""How far the records of a file reach, and which times cannot be."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from traceanalyzer.ingest.nsys import tables
from traceanalyzer.ingest.nsys.database import Database
from traceanalyzer.ingest.nsys.lookups import Ints
from traceanalyzer.ingest.nsys.tables import Table

_SECOND = 1_000_000_000
_WEEK = 7 * 86_400 * _SECOND


@dataclass(frozen=True)
class Extents:
    """First and last times of the file's records, in ns.

    `first_op` is the start of the earliest sound GPU operation, `last_host` the end of the host's records (None without
    any), `last` the end of all records, `session` a bound on how long anything can have lasted. `only_process` is the
    process of all rows that name one, else 0: the owner of rows that name none.
    """

    first_op: int
    last_host: int | None
    last: int
    session: int
    only_process: int

    @classmethod
    def read(cls, database: Database) -> Extents:
        """From the events and the file's own session length. Reads a few columns of each table once, within SQLite."""
        # Marks and domain names may lie long before the recording.
        host = _measure(database, [tables.RUNTIME, tables.NVTX], f"type is null or type in {tables.NVTX_RANGES}")
        sql = tables.select(database, tables.ANALYSIS, "duration > 0")
        durations = database.table(sql) if sql else None
        known = [pc.max(durations["duration"]).as_py()] if durations else []
        if host.first is not None and host.last is not None:
            known.append(host.last - host.first)
        # A second of grace, because the host's and the GPU's records need not stop together.
        session = max(known) + _SECOND if known else _WEEK
        gpu = _measure(database, list(tables.GPU_WORK), f'start > 0 and "end" between start and start + {session}')
        processes = host.processes | gpu.processes
        return cls(
            first_op=gpu.first or 0,
            last_host=host.last,
            last=max(host.last or 0, gpu.last or 0),
            session=session,
            only_process=processes.pop() if len(processes) == 1 else 0,
        )

    def impossible(self, start: Ints, end: Ints) -> npt.NDArray[np.bool_]:
        """GPU work whose times cannot be: reversed, never recorded, longer than the session or far outside it.

        Generous: work that began before the recording, even at a negative time, is sound.
        """
        flags = (end < start) | ((start == 0) & (end == 0)) | (end - start > self.session)
        flags |= (start <= 0) & (start < self.first_op - self.session)
        if self.last_host is not None:
            flags |= start > self.last_host + self.session
        return np.asarray(flags)


@dataclass(frozen=True)
class _Range:
    """Extremes of some tables; `processes` holds the lowest and the highest."""

    first: int | None
    last: int | None
    processes: set[int]


def _measure(database: Database, parts: list[Table], where: str) -> _Range:
    sql = tables.union(database, parts, f"start is not null and ({where})")
    found = (
        database.table(
            'select min(start) as first, max(coalesce("end", start)) as last, '
            "min(process) as low, max(process) as high "
            f"from ({sql})"
        )
        if sql
        else None
    )
    if found is None:
        return _Range(None, None, set())
    row = found.to_pylist()[0]
    return _Range(row["first"], row["last"], {row[name] for name in ("low", "high") if row[name] is not None})
