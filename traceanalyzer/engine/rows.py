"""The rows of a table as expressions see them: decoded columns, the virtual `duration`, and the ledger of each row's GPU.

Rows are positions in a table whose columns are decoded once a run (`Columns`); a column of some rows is taken when it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.catalog.declarations import rule_tables
from traceanalyzer.columns.frames import together
from traceanalyzer.columns.grouped import Groups
from traceanalyzer.engine.language import compute
from traceanalyzer.engine.language.kinds import Kind, column_kind, number
from traceanalyzer.units import NS

Ints = npt.NDArray[np.int64]
GPU_KEYS = ("rank", "device")
# No column has this name.
_WINDOW = "window."


def table_kinds(name: str) -> dict[str, Kind]:
    """Every name that a row of the table offers to expressions. Raises KeyError for an unknown table."""
    kinds = {column.name: kind for column in rule_tables()[name].columns if (kind := column_kind(column))}
    if "start_ns" in kinds and "end_ns" in kinds:
        kinds.setdefault("duration", number(NS))
    return kinds


class Windows:
    """The ledger by GPU: one row a (rank, device)."""

    def __init__(self, ledger: pa.Table) -> None:
        self._columns = {name: compute.decode_column(ledger[name]) for name in table_kinds("ledger")}
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

    def column(self, name: str, rows: pa.Array) -> pa.Array:
        """A ledger column at the rows that `rows_of` gave."""
        return self._columns[name].take(rows)

    def rows_of(self, ranks: pa.Array, devices: pa.Array) -> pa.Array:
        """The ledger's row for each (rank, device) given; null for a GPU without a window."""
        rank, device = (pc.fill_null(keys, -1).to_numpy(zero_copy_only=False) for keys in (ranks, devices))
        rows = np.full(len(rank), -1, np.int64)
        for (one, other), here in together(rank, device):
            rows[here] = self._row.get((one, other), -1)
        return pa.array(rows, mask=rows < 0)


class Columns:
    """A table as expressions see it. What is made of its columns is made once, for all the rules that read them."""

    def __init__(self, table: pa.Table, windows: Windows) -> None:
        self.table = table
        self.windows = windows
        self._made: dict[str, pa.Array] = {}
        self._groups: dict[tuple[str, ...], Ints] = {}

    def __contains__(self, name: str) -> bool:
        return name in self.table.column_names

    def column(self, name: str) -> pa.Array:
        """The column, decoded; `duration` also where the table has only start and end."""
        if name not in self._made:
            if name == "duration" and name not in self:
                self._made[name] = pc.subtract(self.column("end_ns"), self.column("start_ns"))
            else:
                self._made[name] = compute.decode_column(self.table[name])
        return self._made[name]

    def window_rows(self) -> pa.Array:
        """The ledger's row for each row."""
        if _WINDOW not in self._made:
            self._made[_WINDOW] = self.windows.rows_of(*(self.column(key) for key in GPU_KEYS))
        return self._made[_WINDOW]

    def groups(self, keys: tuple[str, ...]) -> Ints:
        """For each row the number of its group among the values of `keys`, in the order of the values, null last."""
        if keys not in self._groups:
            code = np.zeros(len(self.table), np.int64)
            for key in keys:
                place, places = _places(self.column(key))
                code = np.unique(code * places + place, return_inverse=True)[1] if code.any() else place
            self._groups[keys] = code
        return self._groups[keys]


class TableRows:
    """Some rows of one table, and the values that hold for all of them."""

    def __init__(
        self,
        source: Columns | pa.Table,
        windows: Windows,
        values: Mapping[str, pa.Scalar],
        at: Ints | None = None,
    ) -> None:
        """`at` are the positions of the rows in `source`; None stands for all."""
        self.source = Columns(source, windows) if isinstance(source, pa.Table) else source
        self.windows = windows
        self.values: dict[str, pa.Scalar] = dict(values)
        self._at = at
        self._columns: dict[str, pa.Array] = {}

    @property
    def count(self) -> int:
        return len(self.source.table) if self._at is None else len(self._at)

    def column(self, name: str) -> pa.Array:
        if name not in self._columns:
            self._columns[name] = self._here(self.source.column(name))
        return self._columns[name]

    def add_column(self, name: str, values: pa.Array) -> None:
        """Give the rows one more column; it does not travel with `filter` or `take`."""
        self._columns[name] = values

    def has_column(self, name: str) -> bool:
        return name in self._columns or name in self.source

    def window(self, name: str) -> pa.Array:
        return self.windows.column(name, self._here(self.source.window_rows()))

    def spans(self) -> pa.Table:
        """The columns rank, device, start_ns and end_ns of the rows."""
        return pa.table({name: self.column(name) for name in (*GPU_KEYS, "start_ns", "end_ns")})

    def records(self, rows: pa.Array) -> list[dict[str, Any]]:
        """The whole rows at these positions, for the few that are shown."""
        places = rows if self._at is None else pa.array(self._at).take(rows)
        return self.source.table.take(places).to_pylist()  # type: ignore[no-any-return]

    def filter(self, mask: pa.Array) -> TableRows:
        return self._taken(np.flatnonzero(mask.to_numpy(zero_copy_only=False)))

    def groups(self, keys: tuple[str, ...]) -> Iterator[tuple[dict[str, pa.Scalar], TableRows]]:
        """The rows by the values of `keys`, in the order of the values (null last); no keys make one group of all rows."""
        if not keys:
            yield {}, self
            return
        number = self.source.groups(keys)
        groups = Groups(number if self._at is None else number[self._at])
        if len(groups) == 1:
            yield self._keys(keys, 0), self
            return
        for rows in groups.rows():
            yield self._keys(keys, int(rows[0])), self._taken(rows)

    def _keys(self, keys: tuple[str, ...], row: int) -> dict[str, pa.Scalar]:
        row = row if self._at is None else int(self._at[row])
        return {key: _scalar(self.source.column(key)[row]) for key in keys}

    def _here(self, column: pa.Array) -> pa.Array:
        return column if self._at is None else column.take(pa.array(self._at))

    def _taken(self, rows: Ints) -> TableRows:
        return TableRows(self.source, self.windows, self.values, rows if self._at is None else self._at[rows])


def _places(column: pa.Array) -> tuple[Ints, int]:
    """For each row the place of its value among the distinct ones in their order, null last; and how many places there are."""
    names = column.dictionary_encode()
    order = pc.sort_indices(names.dictionary).to_numpy()
    place = np.empty(len(order) + 1, np.int64)
    place[order] = np.arange(len(order))
    place[-1] = len(order)
    codes = pc.fill_null(names.indices.cast(pa.int64()), len(order))
    return place[codes.to_numpy(zero_copy_only=False)], len(order) + 1


def _scalar(value: pa.Scalar) -> pa.Scalar:
    # A name is a text to expressions.
    return pa.scalar(value.as_py(), value.type.value_type) if isinstance(value, pa.DictionaryScalar) else value
