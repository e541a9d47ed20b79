"""Small bridges between Arrow tables and numpy that every derived table uses."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.intervals import Array
from traceanalyzer.model.schema import TableSpec

NULL = np.iinfo(np.int64).min
"""What a null integer is in numpy; no real id or time has this value."""

Key = tuple[int, int]


def ints(table: pa.Table, name: str) -> Array:
    """An integer column as int64, `NULL` where it is null."""
    return pc.fill_null(table[name].cast(pa.int64()), NULL).to_numpy()  # type: ignore[no-any-return]


def duration(table: pa.Table) -> Array:
    """The length of each row in ns."""
    return ints(table, "end_ns") - ints(table, "start_ns")


def codes(table: pa.Table, name: str) -> tuple[Array, list[str | None]]:
    """A dictionary column as (index into values, values); a null is an index to a None at the end."""
    column = table[name].combine_chunks()
    values: list[str | None] = [*column.dictionary.to_pylist(), None]
    index = pc.fill_null(column.indices.cast(pa.int64()), len(values) - 1)
    return index.to_numpy(zero_copy_only=False), values


def equals(table: pa.Table, name: str, value: str) -> npt.NDArray[np.bool_]:
    """Where a dictionary column has `value`."""
    index, values = codes(table, name)
    wanted = np.array([v == value for v in values], bool)
    return wanted[index]


def numbers(values: Array) -> pa.Array:
    """int64 values as Arrow, null where they are `NULL`."""
    return pa.array(values, mask=values == NULL)


def names(index: Array, values: list[str | None]) -> pa.DictionaryArray:
    """The reverse of `codes`. `values` may repeat; the dictionary holds each used value once."""
    seen = np.zeros(len(values), bool)
    seen[index] = True
    position: dict[str, int] = {}
    kept = np.full(len(values), -1, np.int32)
    for i in np.flatnonzero(seen).tolist():
        if (value := values[i]) is not None:
            kept[i] = position.setdefault(value, len(position))
    code = kept[index]
    return pa.DictionaryArray.from_arrays(pa.array(code, mask=code < 0), pa.array(list(position), pa.string()))


def groups(table: pa.Table, first: str = "rank", second: str = "device") -> Iterator[tuple[Key, slice]]:
    """The (first, second) groups of a table and their rows; rows of one group are contiguous."""
    left, right = ints(table, first), ints(table, second)
    if not len(left):
        return
    change = np.flatnonzero((np.diff(left) != 0) | (np.diff(right) != 0)) + 1
    bounds = [0, *change.tolist(), len(left)]
    for start, stop in pairwise(bounds):
        yield (int(left[start]), int(right[start])), slice(start, stop)


def split(table: pa.Table) -> Iterator[tuple[Key, pa.Table]]:
    """The part of each (rank, device), whose rows are contiguous."""
    for key, rows in groups(table):
        yield key, table.slice(rows.start, rows.stop - rows.start)


def build(spec: TableSpec, columns: dict[str, pa.Array | pa.ChunkedArray | Array]) -> pa.Table:
    """A table of the declared columns and types. Raises KeyError when one is missing."""
    arrays = []
    for field in spec.schema:
        values = columns[field.name]
        array = pa.array(values) if isinstance(values, np.ndarray) else values
        arrays.append(array.cast(field.type))
    return pa.Table.from_arrays(arrays, schema=spec.schema)


def stack(spec: TableSpec, tables: list[pa.Table]) -> pa.Table:
    """Tables of the same spec one after another, with one dictionary per column."""
    return pa.concat_tables(tables).unify_dictionaries().combine_chunks() if tables else spec.empty()


def dense(*columns: Array) -> Array:
    """One small integer per row that tells apart the combinations of the given columns."""
    code = pd.factorize(columns[0])[0]
    for column in columns[1:]:
        inverse, values = pd.factorize(column)
        code = pd.factorize(code * len(values) + inverse)[0]
    return code


def latest_before(group: Array, ends: Array) -> Array:
    """For each row the latest end among the rows of its group before it, `NULL` for the first of a group."""
    reach = pd.Series(ends).groupby(group, sort=False).cummax()
    return reach.groupby(group, sort=False).shift(1, fill_value=NULL).to_numpy()
