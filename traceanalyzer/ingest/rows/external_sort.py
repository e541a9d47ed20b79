"""Rows on their way into order: an external merge sort over Arrow tables, in memory that does not grow with their number.

Rows come in batches of any size and order. Every `RUN_ROWS` of them, or as many as take `RUN_BYTES`, are sorted and written to a file
(a run), in blocks. At the end the blocks are merged; each is read when its first row is due, so runs that do not overlap are read one
by one. A table that is smaller than a run never touches the disk.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import accumulate, takewhile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.columns import SMALL_BYTES, compacted
from traceanalyzer.errors import InputError
from traceanalyzer.ingest.rows.order import LANES, Ints, Key, key_columns, only, sorted_order
from traceanalyzer.model.schema import TableSpec
from traceanalyzer.records import dataclass

RUN_ROWS = 1 << 15
RUN_BYTES = 8 << 20
"""Reached before `RUN_ROWS` only where names or shapes are very long."""
BLOCK_ROWS = 1 << 13
MOST_OPEN = 32
"""Blocks that may be merged at once; runs that overlap more are first merged into longer ones."""

Position = tuple[int, ...]
"""A row's value of each key: positions compare as the rows do."""

_FILES_OPEN = 4
_ARRIVAL = "arrival"
"""A column of the runs alone: the row's number in the order of arrival, which decides between equal rows."""


class Spool:
    """Takes the rows of one table and gives them back sorted. `folder` is a private one for its files.

    Keys that name threads or GPUs at its begin, of which there are few, are its lanes; without `lanes` they are any numbers.
    """

    def __init__(self, spec: TableSpec, keys: tuple[Key, ...], folder: Path, lanes: bool = True) -> None:
        self._lanes = lanes
        self._spec, self._keys, self._folder = spec, (*keys, Key(_ARRIVAL)), folder
        self._waiting: list[pa.Table] = []
        self._waiting_rows = self._waiting_bytes = self._arrived = self._files = 0
        self._runs: list[list[_Block]] = []
        self._files_open: dict[tuple[Path, frozenset[str] | None], pa.RecordBatchFileReader] = {}

    def add(self, rows: pa.Table) -> None:
        """Take rows with some of the table's columns; the others are null. Raises ValueError for a column that it does not have."""
        unknown = set(rows.column_names) - set(self._spec.schema.names)
        if unknown:
            raise ValueError(f"{self._spec.name} has no column {', '.join(sorted(unknown))}")
        if not rows.num_rows:
            return
        arrival = np.arange(self._arrived, self._arrived + rows.num_rows, dtype=np.int64)
        self._arrived += rows.num_rows
        self._waiting.append(rows.append_column(_ARRIVAL, pa.array(arrival)))
        self._waiting_rows += rows.num_rows
        self._waiting_bytes += rows.nbytes
        while self._waiting_rows >= RUN_ROWS or self._waiting_bytes >= RUN_BYTES:
            self._runs.append(self._store(self._next_run()))

    def blocks(self, columns: tuple[str, ...] = ()) -> Iterator[pa.Table]:
        """All rows in order, in tables as `_even` cuts them; with `columns` alone, where any are given."""
        if self._waiting_rows:
            self._runs.append([self._in_memory(self._next_run())])
        if not self._runs:
            return
        while _most_overlapping(self._blocks()) > MOST_OPEN:
            some, self._runs = self._runs[:MOST_OPEN], self._runs[MOST_OPEN:]
            merged = _even(self._merged([block for run in some for block in run]), self._keys)
            self._runs.append([block for table in merged for block in self._store(table)])
        schema = pa.schema([field for field in self._spec.schema if not columns or field.name in columns])
        needed = frozenset((*columns, *(key.column for key in self._keys))) if columns else None
        yield from (conform(table, schema) for table in _even(self._merged(self._blocks(), needed), self._keys))
        self._files_open.clear()

    def _blocks(self) -> list[_Block]:
        return [block for run in self._runs for block in run]

    def _next_run(self) -> pa.Table:
        """The rows that have waited longest, as many as make a run, sorted."""
        rows = pa.concat_tables(self._waiting, promote_options="permissive")
        run, rest = rows.slice(0, RUN_ROWS), rows.slice(RUN_ROWS)
        self._waiting = [rest] if rest.num_rows else []
        self._waiting_rows, self._waiting_bytes = rest.num_rows, sum(table.nbytes for table in self._waiting)
        return _in_order([_present(run, self._spec.schema)], self._keys)

    def _in_memory(self, rows: pa.Table) -> _Block:
        """Sorted rows as one block: what is in memory need not be cut."""
        ends = key_columns(only(rows, np.array([0, len(rows) - 1]), self._keys), self._keys)
        return _Block(_place(ends, 0), _place(ends, 1), rows, range(len(rows)), _has_many_names(rows))

    def _store(self, rows: pa.Table) -> list[_Block]:
        """Write sorted rows to a file; return its blocks."""
        path = self._folder / f"{self._spec.name}-{self._files}"
        self._files += 1
        cuts, names = self._cuts(rows), _has_many_names(rows)
        _write(path, rows, [at for _, _, at in cuts])
        return [_Block(first, last, path, range(n, n + 1), names) for n, (first, last, _) in enumerate(cuts)]

    def _cuts(self, rows: pa.Table) -> list[tuple[Position, Position, range]]:
        """Where to cut sorted rows into blocks: (first place, last place, rows). A block is of one thread or GPU.

        Else one that ends a thread and begins another would stay open while all other runs catch up.
        """
        changes = np.zeros(rows.num_rows, bool)
        changes[::BLOCK_ROWS] = True
        lanes = tuple(takewhile(lambda key: key.column in LANES, self._keys)) if self._lanes else ()
        for column in key_columns(rows, lanes):
            changes[1:] |= column[1:] != column[:-1]
        starts = np.flatnonzero(changes)
        stops = np.append(starts[1:], rows.num_rows)
        ends = np.stack((starts, stops - 1), axis=1).ravel()
        columns = key_columns(only(rows, ends, self._keys), self._keys)
        return [
            (_place(columns, 2 * number), _place(columns, 2 * number + 1), range(start, stop))
            for number, (start, stop) in enumerate(zip(starts.tolist(), stops.tolist(), strict=True))
        ]

    def _open(self, block: _Block, columns: frozenset[str] | None) -> _Reading:
        """Begin to read a block, with `columns` alone where they are given."""
        if isinstance(block.source, pa.Table):
            rows = block.source.slice(block.at.start, len(block.at))
            held = [name for name in rows.column_names if columns is None or name in columns]
            return _Reading(block, rows.select(held), self._keys)
        # The blocks of a file are mostly read one after the other, in turn with those of the few files that overlap it.
        opened = (block.source, columns)
        if opened not in self._files_open:
            while len(self._files_open) >= _FILES_OPEN:
                del self._files_open[next(iter(self._files_open))]
            self._files_open[opened] = _open_file(block.source, columns)
        rows = pa.Table.from_batches([self._files_open[opened].get_batch(block.at.start)])
        return _Reading(block, rows, self._keys)

    def _merged(self, blocks: list[_Block], columns: frozenset[str] | None = None) -> Iterator[list[_Piece]]:
        """The rows of all blocks, with `columns` alone where they are given: pieces that have to be merged with one another."""
        waiting = sorted(blocks, key=lambda block: block.first, reverse=True)
        reading: list[_Reading] = []
        while waiting or reading:
            if not reading:
                reading.append(self._open(waiting.pop(), columns))
            while waiting and waiting[-1].first <= min(block.last for block in reading):
                reading.append(self._open(waiting.pop(), columns))
            bound = min(block.last for block in reading)
            pieces = [block.take(bound) for block in reading]
            reading = [block for block in reading if block.left]
            yield pieces


@dataclass(frozen=True)
class _Block:
    """Sorted rows: the places of the first and the last, and where they lie (rows of a table, or a batch of a file).

    `many_names` says that they come with the names of many others.
    """

    first: Position
    last: Position
    source: pa.Table | Path
    at: range
    many_names: bool


@dataclass(frozen=True)
class _Piece:
    """Sorted rows, and about how many bytes they take."""

    rows: pa.Table
    bytes: int


class _Reading:
    """A block that is being merged."""

    def __init__(self, block: _Block, rows: pa.Table, keys: tuple[Key, ...]) -> None:
        self.last, self._many_names = block.last, block.many_names
        self._rows, self._keys, self._position = rows, keys, 0
        self._columns: dict[Key, Ints] = {}
        self._row_bytes = rows.get_total_buffer_size() // max(len(rows), 1)

    @property
    def left(self) -> bool:
        return self._position < len(self._rows)

    def take(self, bound: Position) -> _Piece:
        """The next rows, those up to `bound`."""
        start, self._position = self._position, len(self._rows)
        if self.last > bound:
            self._position = self._after(bound, start)
        rows = self._rows.slice(start, self._position - start)
        if self._many_names:
            rows = compacted(rows, SMALL_BYTES)
            return _Piece(rows, rows.nbytes)
        return _Piece(rows, self._row_bytes * len(rows))

    def _after(self, bound: Position, start: int) -> int:
        """The first row from `start` on that comes after `bound`. The first keys mostly tell, so the others are not looked at."""
        low, high = start, len(self._rows)
        for key, value in zip(self._keys, bound, strict=True):
            if key not in self._columns:
                self._columns[key] = key.values(self._rows)
            column = self._columns[key][low:high]
            low, high = low + int(np.searchsorted(column, value)), low + int(np.searchsorted(column, value, "right"))
            if low == high:
                break
        return high


def _open_file(path: Path, columns: frozenset[str] | None) -> pa.RecordBatchFileReader:
    # Read, not mapped: mapped pages would count as memory of the process.
    reader = pa.ipc.open_file(pa.OSFile(os.fsencode(path), "rb"))
    if columns is None:
        return reader
    wanted = [index for index, name in enumerate(reader.schema.names) if name in columns]
    return pa.ipc.open_file(pa.OSFile(os.fsencode(path), "rb"), options=pa.ipc.IpcReadOptions(included_fields=wanted))


def _write(path: Path, table: pa.Table, cuts: list[range]) -> None:
    try:
        with pa.OSFile(os.fsencode(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            for at in cuts:
                writer.write_table(table.slice(at.start, len(at)))
    except OSError as error:
        raise InputError(
            f"{path.parent}: temporary files cannot be written ({error.strerror or error}); make room, or set TMPDIR to another place"
        ) from error


def _most_overlapping(blocks: list[_Block]) -> int:
    """How many blocks a merge has open at once."""
    ends = sorted(
        [(block.first, 1) for block in blocks] + [(block.last, -1) for block in blocks], key=lambda e: (e[0], -e[1])
    )
    return max(accumulate(step for _, step in ends), default=0)


def _even(merging: Iterable[list[_Piece]], keys: tuple[Key, ...]) -> Iterator[pa.Table]:
    """All rows in order, in tables of `RUN_ROWS`, fewer where their texts take more than `RUN_BYTES`, and a last one of what is left.

    Where they are cut depends on the rows alone, and not on how they came. Pieces are merged when there are enough for a table, all
    at once.
    """
    held: list[pa.Table] = []
    rows = fresh = 0
    mixed = False
    for pieces in merging:
        held += [piece.rows for piece in pieces]
        rows, fresh = rows + sum(len(piece.rows) for piece in pieces), fresh + sum(piece.bytes for piece in pieces)
        mixed |= len(pieces) > 1
        if rows >= RUN_ROWS or fresh >= RUN_BYTES:
            *full, rest = _cut(_in_order(held, keys) if mixed else _in_one(held))
            yield from full
            held, rows, fresh, mixed = [rest], rest.num_rows, 0, False
    if rows:
        yield from (table for table in _cut(_in_order(held, keys) if mixed else _in_one(held)) if len(table))


def _cut(rows: pa.Table) -> Iterator[pa.Table]:
    """Full tables, and what is left, which may be nothing."""
    while count := _full(rows):
        yield compacted(rows.slice(0, count))
        rows = rows.slice(count)
    yield compacted(rows)


def _full(rows: pa.Table) -> int:
    """How many of the first rows make a full table; 0 when there are too few."""
    most = min(rows.num_rows, RUN_ROWS)
    if rows.nbytes > RUN_BYTES:
        taken = np.cumsum(_text_bytes(rows.slice(0, most)))
        fitting = int(np.searchsorted(taken, RUN_BYTES, side="right"))
        if fitting < most:
            return max(fitting, 1)
    return most if most == RUN_ROWS else 0


def _text_bytes(rows: pa.Table) -> Ints:
    """How many bytes the texts of each row take; a name counts where it first occurs."""
    size = np.zeros(rows.num_rows, np.int64)
    for column in rows.columns:
        texts = column.combine_chunks()
        if pa.types.is_string(texts.type):
            size += pc.fill_null(pc.binary_length(texts), 0).to_numpy()
        elif pa.types.is_dictionary(texts.type):
            length = pc.binary_length(texts.dictionary).to_numpy()
            code, first = np.unique(pc.fill_null(texts.indices, -1).to_numpy(), return_index=True)
            size[first] += np.append(length, 0)[code]
    return size


def _in_order(tables: list[pa.Table], keys: tuple[Key, ...]) -> pa.Table:
    rows = _in_one(tables)
    order = sorted_order(rows, keys)
    return rows if order is None else pc.take(rows, pa.array(order), boundscheck=False)


def _in_one(tables: list[pa.Table]) -> pa.Table:
    """Their rows one after the other: one chunk a column, one dictionary for all of it."""
    return pa.concat_tables(tables, promote_options="default").unify_dictionaries().combine_chunks()


def _present(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The columns that hold something, in the types of `schema`."""
    held = [name for name in rows.column_names if rows[name].null_count < rows.num_rows]
    types = [schema.field(name) if name in schema.names else rows.schema.field(name) for name in held]
    return pa.Table.from_arrays([_as(rows[field.name], field.type) for field in types], schema=pa.schema(types))


def conform(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The columns of `schema` in their order and types; absent ones are null."""
    held = set(rows.column_names)
    columns = [
        _as(rows[field.name], field.type) if field.name in held else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _as(column: pa.ChunkedArray, of: pa.DataType) -> pa.ChunkedArray:
    return column if column.type == of else column.cast(of)


def _has_many_names(rows: pa.Table) -> bool:
    """Whether a block of the rows would be much smaller with its own names alone."""
    columns = (column for column in rows.columns if pa.types.is_dictionary(column.type))
    return any(chunk.dictionary.nbytes >= SMALL_BYTES for column in columns for chunk in column.chunks)


def _place(columns: list[Ints], row: int) -> Position:
    return tuple(int(column[row]) for column in columns)
