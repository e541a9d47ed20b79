"""Arrow columns as numpy arrays: what stands for a null, and dictionaries of names that hold no more than is used."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from traceanalyzer.columns.lean import in_one, repeats, spread

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
MISSING = -1
"""No place: a null among what is never below 0, such as ids, rows, counts and sizes. What `integers` and `encoded` give."""
NULL = np.iinfo(np.int64).min
"""No value: a null among numbers that may be any, -1 too. What `ints` gives; no real id or time is this one."""

_NARROW = (pa.int64(), pa.int32(), pa.int16(), pa.int8())

# Where a dictionary is smaller than both, looking which of its names are used costs more than it saves.
_FEW_NAMES, _FEW_BYTES = 64, 16 << 10
SMALL_BYTES = 64 << 10
"""A dictionary that may be passed on as often as one likes."""


def integers(table: pa.Table, column: str) -> Ints:
    """A column that is never below 0, as int64, MISSING for nulls; `ints` where -1 may be a value."""
    return wide(table[column], MISSING)


def ints(table: pa.Table, name: str) -> Ints:
    """An integer column as int64, `NULL` where it is null."""
    return wide(table[name], NULL)


def wide(column: pa.Array | pa.ChunkedArray, null: int) -> Ints:
    """Integers as int64, `null` where there is none. Most tables are small and have no nulls: for these Arrow's kernels take ten times
    as long as numpy. Of a column that says the same of every row, one number is in memory."""
    if repeats(column):
        return spread(column, null)
    if column.null_count or column.type not in _NARROW:
        column = column.cast(pa.int64())
        return (pc.fill_null(column, null) if column.null_count else column).to_numpy()  # type: ignore[no-any-return]
    values: Ints = column.to_numpy().astype(np.int64, copy=False)
    return values


def encoded(table: pa.Table, column: str) -> tuple[Ints, list[str]]:
    """A name column as (index of each row, the distinct names); the index of a null is MISSING."""
    index, names = short_encoded(table, column)
    return index.astype(np.int64), names


def short_encoded(table: pa.Table, column: str) -> tuple[NDArray[np.int32], list[str]]:
    """The same in 32 bits: where none is null, as they lie in the column. Not to be written to."""
    values = table[column]
    if not pa.types.is_dictionary(values.type):
        values = pc.dictionary_encode(values)
    whole = values.chunk(0)[:1] if repeats(values) else in_one(values.unify_dictionaries())
    if isinstance(whole, pa.ChunkedArray):  # an empty column stays chunked in some releases of Arrow
        whole = whole.chunk(0) if whole.num_chunks else pa.array([], values.type)
    indices = whole.indices.fill_null(MISSING) if whole.indices.null_count else whole.indices
    index = indices.to_numpy().astype(np.int32, copy=False)
    names = ["" if name is None else str(name) for name in whole.dictionary.to_pylist()]
    return np.broadcast_to(index, len(values)) if len(index) < len(values) else index, names


def compact(names: pa.DictionaryArray) -> pa.DictionaryArray:
    """The same values, in a dictionary without what no row has: a slice or selection keeps that of all rows. A small one stays."""
    texts = names.dictionary
    if len(texts) <= _FEW_NAMES and texts.nbytes <= _FEW_BYTES:
        return names
    used, place = distinct(pc.fill_null(names.indices, len(texts)).to_numpy(), len(texts) + 1)
    used = used[used < len(texts)]
    if len(used) == len(texts):
        return names
    place = place.astype(np.int32)
    return pa.DictionaryArray.from_arrays(pa.array(place, mask=place == len(used)), texts.take(pa.array(used)))


def ascending(values: Ints) -> Ints:
    """The distinct of some numbers, ascending."""
    if not len(values) or (values == values[0]).all():  # as ids of processes and threads mostly are
        return values[:1].copy()
    ordered = np.sort(values, kind="stable")
    new: Flags = np.append(True, ordered[1:] != ordered[:-1])
    return ordered[new]


def distinct(index: Ints, size: int) -> tuple[Ints, Ints]:
    """The distinct of some numbers from 0 to below `size`, ascending, and the place of each among them; not to be written to."""
    if len(index) < size:
        return np.unique(index, return_inverse=True)
    seen = np.zeros(size, bool)
    seen[index] = True
    return np.flatnonzero(seen), index if seen.all() else (np.cumsum(seen) - 1)[index]


def compacted(table: pa.Table, least_bytes: int = 0) -> pa.Table:
    """The table with every chunk of its name columns `compact`, where its dictionary has at least so many bytes."""
    for index, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            chunks = table.column(index).chunks
            small = [compact(chunk) if chunk.dictionary.nbytes >= least_bytes else chunk for chunk in chunks]
            if any(new is not old for new, old in zip(small, chunks, strict=True)):
                table = table.set_column(index, field, pa.chunked_array(small, field.type))
    return table
