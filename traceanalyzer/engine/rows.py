"""The rows of a table as expressions see them: decoded columns, the virtual `duration`, and the ledger of each row's GPU."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.derive.tables import DERIVED_TABLES, LEDGER
from traceanalyzer.engine import compute
from traceanalyzer.engine.kinds import Kind, column_kind, number
from traceanalyzer.model.schema import EVENT_TABLES
from traceanalyzer.units import NS

TABLES = {**EVENT_TABLES, **DERIVED_TABLES}
GPU_KEYS = ("rank", "device")


def table_kinds(name: str) -> dict[str, Kind]:
    """Every name that a row of the table offers to expressions. Raises KeyError for an unknown table."""
    kinds = {column.name: kind for column in TABLES[name].columns if (kind := column_kind(column))}
    if "start_ns" in kinds and "end_ns" in kinds:
        kinds.setdefault("duration", number(NS))
    return kinds


class Windows:
    """The ledger by GPU: one row a (rank, device)."""

    def __init__(self, ledger: pa.Table) -> None:
        self._columns = {name: compute.decoded(ledger[name]) for name in table_kinds(LEDGER.name)}
        keys = zip(*(self._columns[key].to_pylist() for key in GPU_KEYS), strict=True)
        self._row: dict[tuple[int, int], int] = {key: row for row, key in enumerate(keys)}

    @property
    def gpus(self) -> list[tuple[int, int]]:
        return sorted(self._row)

    def duration(self, rank: int, device: int) -> int:
        """Length of a GPU's window in ns; 0 for a GPU without one."""
        return int(self.value(rank, device, "duration").as_py() or 0)

    def value(self, rank: int, device: int, name: str) -> pa.Scalar:
        column = self._columns[name]
        row = self._row.get((rank, device))
        return pa.scalar(None, column.type) if row is None else column[row]

    def values(self, rank: int, device: int) -> dict[str, pa.Scalar]:
        """The GPU's ledger row as `window.x` values."""
        return {f"window.{name}": self.value(rank, device, name) for name in self._columns}

    def column(self, name: str, ranks: pa.Array, devices: pa.Array) -> pa.Array:
        """A ledger column for each (rank, device) given; null for a GPU without a window."""
        rank, device = (pc.fill_null(keys, -1).to_numpy(zero_copy_only=False) for keys in (ranks, devices))
        rows = np.full(len(rank), -1, np.int64)
        for (gpu_rank, gpu_device), row in self._row.items():
            rows[(rank == gpu_rank) & (device == gpu_device)] = row
        return self._columns[name].take(pa.array(rows, mask=rows < 0))


class TableRows:
    """Some rows of one table, and the values that hold for all of them."""

    def __init__(self, table: pa.Table, windows: Windows, values: Mapping[str, pa.Scalar]) -> None:
        self.table = table
        self.windows = windows
        self.values: dict[str, pa.Scalar] = dict(values)
        self._decoded: dict[str, pa.Array] = {}

    @property
    def count(self) -> int:
        return len(self.table)

    def column(self, name: str) -> pa.Array:
        if name not in self._decoded:
            if name == "duration" and name not in self.table.column_names:
                self._decoded[name] = pc.subtract(self.column("end_ns"), self.column("start_ns"))
            else:
                self._decoded[name] = compute.decoded(self.table[name])
        return self._decoded[name]

    def add_column(self, name: str, values: pa.Array) -> None:
        """Give the rows one more column; it does not travel with `filter` or `take`."""
        self._decoded[name] = values

    def has_column(self, name: str) -> bool:
        return name in self._decoded or name in self.table.column_names

    def window(self, name: str) -> pa.Array:
        return self.windows.column(name, *(self.column(key) for key in GPU_KEYS))

    def filter(self, mask: pa.Array) -> TableRows:
        return TableRows(self.table.filter(mask), self.windows, self.values)

    def take(self, rows: Any) -> TableRows:
        return TableRows(self.table.take(rows), self.windows, self.values)

    def groups(self, keys: tuple[str, ...]) -> Iterator[tuple[dict[str, pa.Scalar], TableRows]]:
        """The rows by the values of `keys`, in the order of the values (null last); no keys make one group of all rows."""
        if not keys:
            yield {}, self
            return
        code = np.zeros(self.count, np.int64)
        for key in keys:
            values = self.column(key)
            distinct = values.unique().drop_null()
            distinct = distinct.take(pc.sort_indices(distinct))
            # Codes in the order of the values, so that the groups come out the same whatever the order of the rows.
            place = pc.fill_null(pc.index_in(values, value_set=distinct), len(distinct)).to_numpy(zero_copy_only=False)
            code = np.unique(code * (len(distinct) + 1) + place, return_inverse=True)[1]
        order = np.argsort(code, kind="stable")
        starts = np.flatnonzero(np.diff(code[order], prepend=-1))
        for rows in np.split(order, starts[1:]) if len(starts) else []:
            first = int(rows[0])
            yield {key: self.column(key)[first] for key in keys}, self.take(pa.array(rows))
