"""Columns that are made one block of rows after the other. Where all rows are alike one value is in memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceanalyzer.columns import NULL
from traceanalyzer.columns.lean import repeated
from traceanalyzer.columns.spill import Growing, forget

_BLOCK = 1 << 16
"""So many rows are looked at at once."""
_OFTEN = 4
"""After so many blocks what was read for them is let go."""
T = TypeVar("T", bound=np.generic)
Values = npt.NDArray[T]
Times = npt.NDArray[np.int32]


def in_blocks(count: int) -> Iterator[slice]:
    """The rows of a table of so many, as many at once as stay in the processor's cache with what is made of them."""
    for first in range(0, count, _BLOCK):
        yield slice(first, min(first + _BLOCK, count))


def computed(count: int, values: Callable[[slice], Values[T]]) -> Values[T]:
    """So many values, made of one block of rows after the other; not to be written to. Where they are many they lie in a file."""
    found = Growing()
    for rows in in_blocks(count) if count else [slice(0, 0)]:
        found.add(values(rows))
    return found.array()


def alike(value: int, count: int) -> npt.NDArray[np.int64]:
    """So many times the same value; not to be written to."""
    return np.broadcast_to(np.int64(value), count)


def are_alike(values: npt.NDArray[Any]) -> bool:
    """Whether it is an array as `alike` makes them."""
    return values.strides[0] == 0


def says_nothing(values: npt.NDArray[np.int64]) -> bool:
    """Whether all are `NULL`, as `alike` makes them."""
    return are_alike(values) and len(values) > 0 and bool(values[0] == NULL)


def in_a_row(rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64] | slice:
    """Rows that ascend, as a slice if they follow one another."""
    return slice(int(rows[0]), int(rows[-1]) + 1) if len(rows) and rows[-1] - rows[0] == len(rows) - 1 else rows


def taken(values: Values[T], rows: npt.NDArray[np.int64]) -> Values[T]:
    """The values at some rows."""
    return np.broadcast_to(values[0], len(rows)) if len(values) and are_alike(values) else values.take(rows)


def each(values: Values[T], times: Times) -> Values[T]:
    """Each value so many times."""
    return np.broadcast_to(values[0], int(times.sum())) if len(values) and are_alike(values) else values.repeat(times)


def joined(blocks: Sequence[Values[T]]) -> Values[T]:
    """One block after the other; there is at least one."""
    some = [block for block in blocks if len(block)] or [blocks[0]]
    if all(len(block) and are_alike(block) and block[0] == some[0][0] for block in some):
        return np.broadcast_to(some[0][0], sum(map(len, some)))
    return np.concatenate(some) if len(some) > 1 else some[0]


class InBlocks:
    """What is made of some columns. They are written where they stay, and what a block was made of is used again for the next."""

    def __init__(self) -> None:
        self._columns: dict[str, _Column] = defaultdict(_Column)
        self._added = 0

    def __contains__(self, name: str) -> bool:
        return name in self._columns

    def add(self, columns: Mapping[str, npt.NDArray[Any]]) -> None:
        """The same number of rows of each column, at least one."""
        for name, values in columns.items():
            self._columns[name].add(values)
        self._added += 1
        if self._added % _OFTEN == 0:
            forget()

    def take(self, name: str) -> npt.NDArray[Any]:
        """All rows of a column, which is held here no longer."""
        return self._columns.pop(name).rows()

    def numbers(self, name: str, kind: pa.DataType) -> pa.Array | pa.ChunkedArray:
        """As `take`, in Arrow, null where they are `NULL`."""
        column = self._columns.pop(name)
        rows = column.rows()
        if are_alike(rows):
            return repeated(pa.array([None if rows[0] == NULL else rows[0]], kind), len(rows))
        return pa.array(rows, mask=rows == NULL if column.lowest == NULL else None)

    def names(
        self,
        name: str,
        values: Sequence[str | None],
        read: Callable[[str], str] | None = None,
        times: Times | None = None,
    ) -> pa.Array | pa.ChunkedArray:
        """As `numbers`, of a column of positions in `values`, -1 for null: the names there, as `read` tells them; each row so many
        `times`."""
        rows = self.take(name)
        count = len(rows) if times is None else int(times.sum())
        some = rows[:1] if are_alike(rows) else rows
        # One more at the end, for what is null.
        used = np.zeros(len(values) + 1, bool)
        for block in cut(some):
            if not used.take(block).all():  # most say nothing new
                used[block.astype(np.int64)] = True
        position: dict[str, int] = {}
        kept = np.full(len(used), -1, np.int32)
        for at in np.flatnonzero(used[:-1]).tolist():
            value = values[at]
            if value is not None:
                kept[at] = position.setdefault(read(value) if read else value, len(position))
        # Nearly always all of the values are used, each in its place.
        as_they_are = some.dtype == np.int32 and np.array_equal(kept[:-1], np.arange(len(values)))
        times = times if some is rows else None
        code = some if as_they_are and times is None else _grown(map(kept.take, cut(some)), times)
        index = pa.array(code, mask=code < 0 if (kept[used] < 0).any() else None)
        found = pa.DictionaryArray.from_arrays(index, pa.array(list(position), pa.string()), safe=False)
        return found if some is rows else repeated(found, count)


class _Column:
    """The rows of one column so far."""

    def __init__(self) -> None:
        self._unlike: Growing | None = None
        self._one: Any = None
        self._count = 0
        self.lowest: Any = None

    def rows(self) -> npt.NDArray[Any]:
        """All of them; nothing is added any more."""
        shape = (self._count, *np.shape(self._one))
        return np.broadcast_to(self._one, shape) if self._unlike is None else self._unlike.array().reshape(shape)

    def add(self, values: npt.NDArray[Any]) -> None:
        lowest = values.flat[0] if are_alike(values) else values.min()
        self.lowest = lowest if self.lowest is None else min(lowest, self.lowest)
        begin, self._count = self._count, self._count + len(values)
        if self._unlike is None:
            if not begin:
                self._one = values[0].copy()
            if np.array_equal(values[0], self._one) and (are_alike(values) or (values == self._one).all()):
                return
            self._unlike = Growing()
            for block in cut(np.broadcast_to(self._one, (begin, *np.shape(self._one)))):
                self._unlike.add(block)
        self._unlike.add(values)


def _grown(blocks: Iterable[Values[T]], times: Times | None) -> Values[T]:
    """The rows of some blocks, each so many times."""
    made, at = Growing(), 0
    for block in blocks:
        made.add(block if times is None else each(block, times[at : at + len(block)]))
        at += len(block)
    forget()
    return made.array()


def cut(values: npt.NDArray[Any]) -> Iterator[npt.NDArray[Any]]:
    """The values in blocks."""
    for first in range(0, len(values), _BLOCK):
        yield values[first : first + _BLOCK]
