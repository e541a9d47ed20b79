"""The columns of a table as expressions see them, at any of its rows."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.columns.frames import Key, ints
from traceanalyzer.columns.lean import repeats
from traceanalyzer.columns.spill import forget
from traceanalyzer.engine.language import compute
from traceanalyzer.intervals import Spans

AT_ONCE = 4
"""After so many blocks what was read of them leaves the memory: to say so costs as much as to read a column."""
Places = range | npt.NDArray[np.integer]
"""Positions of rows, ascending."""
GPU_KEYS = ("rank", "device")


class Columns:
    """A table, for all the rules that read it. Nothing is made that is as long as a table of many rows."""

    block = 1 << 16
    """So many rows are worked on at once: their columns fit into the cache of a core."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table
        self.small = len(table) <= self.block
        self._made: dict[str, pa.Array | pa.ChunkedArray] = {}
        self._alike: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self.table.column_names

    def column(self, name: str, rows: Places) -> pa.Array:
        """The column at some rows, decoded; `duration` also where the table has only start and end."""
        if name == "duration" and name not in self:
            return pc.subtract(self.column("end_ns", rows), self.column("start_ns", rows))
        column = self._column(name)
        if name in self._alike:
            whole, rest = divmod(len(rows), len(column))
            return pa.concat_arrays([column] * whole + [column[:rest]]) if whole else column[:rest]
        if isinstance(column, pa.ChunkedArray):
            return compute.decoded(_taken(column, rows))
        if isinstance(rows, range):
            return column if len(rows) == len(column) else column.slice(rows.start, len(rows))
        return _at(column, rows)

    def _column(self, name: str) -> pa.Array | pa.ChunkedArray:
        """What is small is decoded once; else names have one dictionary, and the rest is as it is."""
        if name not in self._made:
            column = compute.distinct_names(self.table[name])
            if repeats(column):
                # All rows are alike: any block of them is this one.
                self._alike.add(name)
                column = column.slice(0, self.block)
            self._made[name] = compute.decoded(column) if self.small or name in self._alike else column
        return self._made[name]

    def times(self, rows: range) -> Iterator[Spans]:
        """The start and end of these rows, a block at a time."""
        for number, start in enumerate(range(rows.start, rows.stop, self.block), 1):
            some = range(start, min(start + self.block, rows.stop))
            yield self.column("start_ns", some).to_numpy(), self.column("end_ns", some).to_numpy()
            if number % AT_ONCE == 0:
                forget()

    @cached_property
    def gpus(self) -> list[tuple[Key, range]] | None:
        """The rows of each (rank, device) in the order of these keys, null last; None where they do not stand together."""
        starts = [0] if len(self.table) else []
        for at in range(0, len(self.table), self.block):
            before = max(at - 1, 0)
            piece = self.table.select(GPU_KEYS).slice(before, at + self.block - before)
            rank, device = (ints(piece, key) for key in GPU_KEYS)
            starts += (np.flatnonzero((np.diff(rank) != 0) | (np.diff(device) != 0)) + before + 1).tolist()
            if len(starts) > self.block:
                return None
        runs = [range(*ends) for ends in pairwise([*starts, len(self.table)])]
        keys = [tuple(self.table[key][run.start].as_py() for key in GPU_KEYS) for run in runs]
        if len(set(keys)) < len(keys):
            return None
        return sorted(zip(keys, runs, strict=True), key=lambda one: [(key is None, key or 0) for key in one[0]])

    @cached_property
    def apart(self) -> bool:
        """Whether the rows of each GPU stand together, and none of them starts before the one before it ends."""
        if self.gpus is None or any(self.table[name].null_count for name in ("start_ns", "end_ns")):
            return False
        for _, run in self.gpus:
            last = None
            for start, end in self.times(run):
                if (start >= end).any() or (start[1:] < end[:-1]).any() or (last is not None and start[0] < last):
                    return False
                last = end[-1]
        return True


def _taken(column: pa.ChunkedArray, rows: Places) -> pa.ChunkedArray:
    """A column at some rows. Only the chunks that have any of them are touched."""
    if isinstance(rows, range):
        return column.slice(rows.start, len(rows))
    if column.num_chunks == 1:
        return pa.chunked_array([_at(column.chunk(0), rows)])
    found, start = [], 0
    for chunk in column.chunks:
        low, high = np.searchsorted(rows, np.array((start, start + len(chunk)), rows.dtype))
        if low < high:
            found.append(_at(chunk, rows[low:high] - start))
        start += len(chunk)
    return pa.chunked_array(found, column.type)


def _at(column: pa.Array, rows: npt.NDArray[np.integer]) -> pa.Array:
    if not len(rows):
        return column.slice(0, 0)
    first = int(rows[0])
    near = column.slice(first, int(rows[-1]) - first + 1)
    if len(near) == len(rows):  # one after the other, as where a condition leaves nearly all
        return near
    if column.null_count and not near.null_count and (plain := _without_nulls(column)) is not None:
        column = plain
    # They are rows of the column, and to check that takes as long as to take them.
    return pc.take(column, pa.array(rows), boundscheck=False)


def _without_nulls(column: pa.Array) -> pa.Array | None:
    """The same numbers, none of which is marked as null: of such ones Arrow takes some seven times as fast. None for what has more
    than numbers."""
    if pa.types.is_dictionary(column.type):
        codes = _without_nulls(column.indices)
        return pa.DictionaryArray.from_arrays(codes, column.dictionary, safe=False)
    if not pa.types.is_primitive(column.type):
        return None
    return pa.Array.from_buffers(column.type, len(column), [None, column.buffers()[1]], 0, column.offset)
