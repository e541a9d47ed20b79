"""The rows of a table as expressions see them: decoded columns, the virtual `duration`, and the ledger of each row's GPU.

Rows are positions in a table. Where there are many, they are read in blocks, and nothing is made that is as long as the table.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.catalog.declarations import rule_tables
from traceanalyzer.columns import distinct
from traceanalyzer.columns.frames import together
from traceanalyzer.columns.grouped import Groups
from traceanalyzer.columns.spill import Growing, forget
from traceanalyzer.engine.columns import AT_ONCE, Columns, Places
from traceanalyzer.engine.columns import GPU_KEYS as GPU_KEYS  # noqa: PLC0414
from traceanalyzer.engine.language import compute
from traceanalyzer.engine.language.kinds import Kind, column_kind, number
from traceanalyzer.engine.language.names import Aggregate
from traceanalyzer.units import NS

Ints = npt.NDArray[np.int64]


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


class TableRows:
    """Some rows of one table, and the values that hold for all of them."""

    def __init__(
        self,
        source: Columns | pa.Table,
        windows: Windows,
        values: Mapping[str, pa.Scalar],
        at: Places | None = None,
    ) -> None:
        """`at` are the positions of the rows in `source`; None stands for all."""
        self.source = Columns(source) if isinstance(source, pa.Table) else source
        self.windows = windows
        self.values: dict[str, pa.Scalar] = dict(values)
        self._at = range(len(self.source.table)) if at is None else at
        self._columns: dict[str, pa.Array] = {}
        self._added: dict[str, pa.Array] = {}
        self._summed: dict[Aggregate, compute.Value] = {}
        self._once: dict[Hashable, compute.Value] = {}

    @property
    def count(self) -> int:
        return len(self._at)

    @property
    def many(self) -> bool:
        """Whether they are read in blocks."""
        return self.count > self.source.block

    @property
    def in_turn(self) -> bool:
        """Whether they are rows of one GPU whose times follow one another."""
        if not self.count or not self.source.apart:
            return False
        return any(run.start <= self._at[0] and self._at[-1] < run.stop for _, run in self.source.gpus or ())

    @property
    def at(self) -> slice | npt.NDArray[np.integer]:
        """Where they are in the source, for what has one value a row of it."""
        return slice(self._at.start, self._at.stop) if isinstance(self._at, range) else self._at

    def column(self, name: str) -> pa.Array:
        if name not in self._columns:
            own = self._added.get(name)
            if own is None:
                own = self.source.column(name, self._at)
            elif pa.types.is_int32(own.type):  # kept in few bits
                own = own.cast(pa.int64())
            self._columns[name] = own
        return self._columns[name]

    def add_column(self, name: str, values: pa.Array) -> None:
        """Give the rows one more column; it does not travel with `filter` or `groups`."""
        self._columns.pop(name, None)
        self._added[name] = values
        self._once.clear()

    def has_column(self, name: str) -> bool:
        return name in self._added or name in self.source

    def window(self, name: str) -> pa.Array:
        return self.windows.column(name, self.windows.rows_of(*(self.column(key) for key in GPU_KEYS)))

    def spans(self) -> pa.Table:
        """The columns rank, device, start_ns and end_ns of the rows."""
        return pa.table({name: self.column(name) for name in (*GPU_KEYS, "start_ns", "end_ns")})

    def records(self, rows: Ints) -> list[dict[str, Any]]:
        """The whole rows at these positions, for the few that are shown."""
        table = self.source.table
        if self.source.small:
            return table.take(pa.array(self._places(rows))).to_pylist()  # type: ignore[no-any-return]
        return [table.slice(at, 1).to_pylist()[0] for at in self._places(rows).tolist()]

    def some(self, rows: Ints) -> TableRows:
        """Those at these positions."""
        return self._taken(self._places(rows))

    def blocks(self) -> Iterator[TableRows]:
        """The rows, so many at once as are worked on quickly; what is read of them goes soon after."""
        if not self.many:
            yield self
            return
        for done, start in enumerate(range(0, self.count, self.source.block), 1):
            block = self._taken(self._at[start : start + self.source.block])
            block.values = self.values
            block._added = {name: own.slice(start, self.source.block) for name, own in self._added.items()}
            yield block
            if done % AT_ONCE == 0:
                forget()

    def once(self, key: Hashable, run: Callable[[], compute.Value]) -> compute.Value:
        if key not in self._once:
            self._once[key] = run()
        return self._once[key]

    def summed(self, aggregate: Aggregate) -> compute.Value:
        if aggregate not in self._summed:
            self.sum_up([aggregate])
        return self._summed[aggregate]

    def sum_up(self, aggregates: Iterable[Aggregate]) -> None:
        """Work out several aggregates, in one pass over the rows."""
        new = [one for one in aggregates if one not in self._summed]
        parts = {one.alike: one.gather() for one in new}
        makers = {one.alike: one for one in new}
        for block in self.blocks() if new else ():
            for alike, one in makers.items():
                parts[alike].append(one.part(block))
        for alike in makers:
            found = parts.pop(alike)
            self._summed |= {one: one.whole(found) for one in new if one.alike == alike}

    def filter(self, condition: Callable[[TableRows], pa.Array]) -> TableRows:
        """The rows for which the condition, asked of a block of them, holds."""
        found, count = Growing(), 0
        for block in self.blocks():
            held = condition(block)
            if held.true_count:
                found.add(block._places(np.flatnonzero(held.to_numpy(zero_copy_only=False))))
                count += held.true_count
        if count == self.count:
            return self
        return self._taken(found.array() if count else range(0))

    def groups(self, keys: tuple[str, ...]) -> Iterator[tuple[dict[str, pa.Scalar], TableRows]]:
        """The rows by the values of `keys`, in the order of the values (null last); no keys make one group of all rows."""
        if not keys:
            yield {}, self
        elif keys == GPU_KEYS and (gpus := self.source.gpus) is not None:
            for _, run in gpus:
                rows = self._within(run)
                if rows.count:
                    yield self._keys(keys, run.start), rows
        else:
            for at in Groups(_numbered([self.column(key) for key in keys])).rows():
                rows = self.some(at)
                yield rows._keys(keys, int(rows._at[0])), rows

    def _keys(self, keys: tuple[str, ...], row: int) -> dict[str, pa.Scalar]:
        return {key: _scalar(self.source.column(key, range(row, row + 1))[0]) for key in keys}

    def _within(self, run: range) -> TableRows:
        if isinstance(self._at, range):
            return self._taken(range(max(run.start, self._at.start), min(run.stop, self._at.stop)))
        # Of the same type, else all positions are copied into another one.
        low, high = np.searchsorted(self._at, np.array((run.start, run.stop), self._at.dtype))
        return self._taken(self._at[low:high])

    def _places(self, rows: Ints) -> npt.NDArray[np.integer]:
        """Where in the source these of the rows are."""
        if not isinstance(self._at, range):
            return self._at[rows]
        return (rows + self._at.start).astype(np.int32 if self._at.stop < 1 << 31 else np.int64)

    def _taken(self, at: Places) -> TableRows:
        return TableRows(self.source, self.windows, self.values, at)


def _numbered(columns: Sequence[pa.Array]) -> Ints:
    """For each row the number of its group among the values of the columns, in the order of the values, null last."""
    code, count = np.zeros(len(columns[0]), np.int64), 1
    for column in columns:
        place, places = _ordered(column)
        used, code = distinct(code * places + place, count * places)
        count = len(used)
    return code


def _ordered(column: pa.Array) -> tuple[Ints, int]:
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
