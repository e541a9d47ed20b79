"""Combinations of values in some columns: numbers for them, and the rows of each.

What is as long as a column and lives for a moment costs more than what is done with it: so most is done in blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceanalyzer.columns import Flags
from traceanalyzer.columns import Ints as Array

Numbers = npt.NDArray[np.integer[Any]]

_LARGEST = 1 << 62
_AT_ONCE = 1 << 15
_STEP = 1 << 12
_FEW_RUNS, _ROWS_A_RUN = 16, 1 << 10


def dense(*columns: Numbers) -> Array:
    """One small integer per row that tells apart the combinations of the given columns, numbered as they come."""
    code, size = _packed(columns)
    return _numbered(code, size)


def packed(*columns: Numbers) -> Array:
    """As `dense`, with numbers in no particular order, which are found sooner."""
    return _packed(columns)[0]


def firsts(code: Array) -> Array:
    """The row in which each number comes first, of numbers as `dense` gives them."""
    if code.strides == (0,):
        return np.arange(min(len(code), 1))
    found, last = [np.empty(0, np.int64)], -1
    for begin in range(0, len(code), _AT_ONCE):
        block = code[begin : begin + _AT_ONCE]
        if (most := int(block.max())) > last:  # as it is in the first few only where there are few numbers
            reach = np.maximum(np.maximum.accumulate(block), last)
            found.append(begin + np.flatnonzero(np.diff(reach, prepend=last)))
            last = most
    return np.concatenate(found)


def together(*columns: Array) -> Iterator[tuple[tuple[int, ...], Array]]:
    """The combinations of values in some columns, in the order in which they first occur, and the rows of each, ascending."""
    for key, rows in parts(*columns):
        yield key, np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows


def parts(*columns: Array) -> Iterator[tuple[tuple[int, ...], Array | slice]]:
    """The same, with a slice of rows that are found to stand in a row."""
    stretches = _few_runs(columns)
    if stretches is not None:  # as most tables are
        found: dict[tuple[int, ...], list[slice]] = {}
        for one in stretches:
            found.setdefault(tuple(int(column[one.start]) for column in columns), []).append(one)
        for key, own in found.items():
            yield key, own[0] if len(own) == 1 else np.concatenate([np.arange(p.start, p.stop) for p in own])
        return
    code = _numbered(*_packed(columns))
    counts = np.bincount(code)
    # As narrow as they are, they are put in order digit by digit.
    order = np.argsort(code.astype(np.min_scalar_type(len(counts))), kind="stable")
    for rows in np.split(order, np.cumsum(counts)[:-1]) if len(order) else ():
        yield tuple(int(column[rows[0]]) for column in columns), rows


def _few_runs(columns: Sequence[Array]) -> list[slice] | None:
    """The stretches of rows in which no column changes; None where looking at each of so many takes longer than sorting."""
    count = len(columns[0])
    bounds, most = [0], _FEW_RUNS + count // _ROWS_A_RUN
    unlike = [column for column in columns if column.strides != (0,)]
    for begin in range(0, count - 1 if unlike else 0, _AT_ONCE):
        stop = min(begin + _AT_ONCE, count - 1)
        bounds += (_changes(unlike, begin, stop) + 1).tolist()
        if len(bounds) > most:
            return None
    return [slice(*bound) for bound in pairwise([*bounds, count])] if count else []


def runs(*columns: Array) -> Iterator[slice]:
    """The stretches of rows of each combination, of columns in which each has one."""
    count = len(columns[0])
    if not count:
        return
    # Nothing changes between two rows that are alike.
    if all(column[0] == column[-1] for column in columns):
        yield slice(0, count)
        return
    unlike = [column for column in columns if column.strides != (0,)]
    seen = np.append(np.arange(0, count, _STEP), count - 1)
    starts = [0]
    for at in _changed([column[seen] for column in unlike], len(seen) - 1).nonzero()[0].tolist():
        starts += (_changes(unlike, int(seen[at]), int(seen[at + 1])) + 1).tolist()
    for start, stop in pairwise([*starts, count]):
        yield slice(start, stop)


def _changes(columns: Sequence[Array], begin: int, stop: int) -> Array:
    """The rows from `begin` to before `stop` whose next row is another combination."""
    return begin + np.flatnonzero(_changed([column[begin : stop + 1] for column in columns], stop - begin))


def _changed(columns: Sequence[Array], count: int) -> Flags:
    found = np.zeros(count, bool)
    for column in columns:
        found |= column[1:] != column[:-1]
    return found


def _packed(columns: Sequence[Numbers]) -> tuple[Array, int]:
    """One number from 0 to below the one returned for each combination."""
    code, size = np.zeros(len(columns[0]), np.int64), 1
    for values in columns if len(code) else ():
        if values.strides == (0,):
            continue
        column, low, high = values, int(values.min()), int(values.max())
        if low == high:
            continue
        span = high - low + 1
        if size * span > _LARGEST:
            code, column = _numbered(code, size), _numbered(column.astype(np.int64) - low, span)
            low, size, span = 0, int(code.max()) + 1, int(column.max()) + 1
        # In place and in blocks: what is as long as the table and lives for a moment costs more than this does.
        for begin in range(0, len(code), _AT_ONCE):
            block, own = code[begin : begin + _AT_ONCE], column[begin : begin + _AT_ONCE]
            if size > 1:
                block *= span
            block += own
            block -= low
        size *= span
    return code, size


def _numbered(code: Array, size: int) -> Array:
    """The values, all of them from 0 to below `size`, numbered as they come."""
    count = len(code)
    if size == 1:
        return code
    if size > 2 * count:
        return pa.array(code).dictionary_encode().indices.to_numpy().astype(np.int64)  # type: ignore[no-any-return]
    # So few values that a table of all of them is quicker than hashing: first where each occurs first, then its number.
    table = np.full(size, -1)
    for begin in reversed(range(0, count, _AT_ONCE)):
        block = code[begin : begin + _AT_ONCE]
        table[block[::-1]] = np.arange(begin + len(block) - 1, begin - 1, -1)
    used = np.flatnonzero(table >= 0)
    table[used[np.argsort(table[used], kind="stable")]] = np.arange(len(used))
    return table.take(code)
