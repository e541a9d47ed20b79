"""JSON text of whole columns at once. A fragment is an Arrow array of strings, one a row."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Array = npt.NDArray[np.int64]


def join_fragments(*parts: pa.Array | str) -> pa.Array:
    """The fragments of each row one after another; null where one of them is."""
    return pc.binary_join_element_wise(*parts, "")


def member(key: str, value: pa.Array) -> pa.Array:
    """`,"key":value`; nothing where the value is null."""
    return pc.fill_null(join_fragments(f',"{key}":', value), "")


def micros(ns: Array) -> pa.Array:
    """Whole nanoseconds as decimal microseconds.

    Perfetto multiplies the parsed number by 1,000 and cuts off what is behind the point; where rounding would make that one nanosecond
    less, a fourth decimal of 0.1 ns keeps it from happening. Whoever rounds to nanoseconds gets the exact time either way.
    """
    cut = (ns / 1000.0 * 1000.0).astype(np.int64) < ns
    return join_fragments(pa.array(ns // 1000).cast(pa.string()), _decimals().take(pa.array(ns % 1000 + 1000 * cut)))


@cache
def _decimals() -> pa.Array:
    """What follows the whole microseconds, by the nanoseconds left over; 1,000 further with the fourth decimal."""
    return pa.array([f".{n:03}" if n else "" for n in range(1000)] + [f".{n:03}1" for n in range(1000)])


def integers_text(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Integers as text."""
    return _one(column).cast(pa.string())


def quote_texts(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Texts as JSON strings. Each distinct one is escaped once."""
    return _mapped(column, lambda text: json.dumps(text, ensure_ascii=False))


def as_json(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Texts that hold JSON as they are; others as JSON strings."""
    return _mapped(column, _valid)


def decimals(values: npt.NDArray[np.float64]) -> pa.Array:
    """Finite numbers as text."""
    return pa.array(values).cast(pa.string())


def text_of(fragments: pa.Array) -> memoryview:
    """All rows as UTF-8, one after another."""
    if not len(fragments):
        return memoryview(b"")
    _, offsets, data = fragments.buffers()
    ends = np.frombuffer(offsets, np.int32)[[fragments.offset, fragments.offset + len(fragments)]]
    return memoryview(data)[int(ends[0]) : int(ends[1])]


def _one(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    if not isinstance(column, pa.ChunkedArray):
        return column
    joined_chunks = column.combine_chunks()
    if isinstance(joined_chunks, pa.ChunkedArray):  # an empty column stays chunked in some releases of Arrow
        return joined_chunks.chunk(0) if joined_chunks.num_chunks else pa.array([], column.type)
    return joined_chunks


def _valid(text: str) -> str:
    try:
        return json.dumps(json.loads(text), ensure_ascii=False, allow_nan=False)
    except ValueError:
        return json.dumps(text, ensure_ascii=False)


def _mapped(column: pa.Array | pa.ChunkedArray, change: Callable[[str], str]) -> pa.Array:
    array = _one(column)
    if not pa.types.is_dictionary(array.type):
        array = pc.dictionary_encode(array)
    # Of a long list of names a batch uses few.
    used, index = np.unique(array.indices.fill_null(-1).to_numpy(zero_copy_only=False), return_inverse=True)
    names = [None if code < 0 else array.dictionary[code].as_py() for code in used.tolist()]
    return pa.array([None if name is None else change(name) for name in names], pa.string()).take(pa.array(index))
