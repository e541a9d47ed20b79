"""A column of a Parquet file, read some rows at a time into the place where it stays, so that little of it is in memory at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceanalyzer.columns.in_blocks import InBlocks, are_alike
from traceanalyzer.columns.lean import repeated

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_ROWS = 1 << 18
"""From so many rows on a stretch is long enough."""
_MOST_NAMES = 1 << 12
"""With more names than these Arrow is quicker at telling them apart, of all rows at once."""

Values = npt.NDArray[Any]


def in_stretches(file: pq.ParquetFile, name: str, kind: pa.DataType) -> pa.Array | pa.ChunkedArray | None:
    """A column of numbers, names or sizes, as `kind` has it, held once where it says the same of every row; None for what is better
    read at once.

    Raises pa.ArrowException and OSError for a file that is damaged.
    """
    names = _Names()
    read = names.read if pa.types.is_dictionary(kind) else _sizes if pa.types.is_fixed_size_list(kind) else _numbers
    made, count = InBlocks(), file.metadata.num_rows
    for groups in _stretches(file.metadata):
        for chunk in file.read_row_groups(groups, [name], use_threads=False)[name].cast(kind).chunks:
            if not len(chunk):
                continue
            found = read(chunk)
            if found is None:
                return None
            made.add({"values": found, "valid": _valid(chunk)})
    values, valid = made.take("values"), made.take("valid")
    if are_alike(valid) and not valid[0]:
        return repeated(pa.nulls(1, kind), count)
    mask = None if are_alike(valid) else ~valid
    once = mask is None and values.strides[0] == 0
    values = np.ascontiguousarray(values[:1] if once else values)
    if pa.types.is_dictionary(kind):
        column = pa.DictionaryArray.from_arrays(
            pa.array(values, kind.index_type, mask=mask), pa.array(names.all, kind.value_type)
        )
    elif pa.types.is_fixed_size_list(kind):
        rows = pa.array(values.ravel(), kind.value_type)
        column = pa.FixedSizeListArray.from_arrays(rows, type=kind, mask=None if mask is None else pa.array(mask))
    else:
        column = pa.array(values, kind, mask=mask)
    return repeated(column, count) if once else column


def _stretches(metadata: pq.FileMetaData) -> Iterator[list[int]]:
    """The groups of rows, some at a time."""
    groups: list[int] = []
    rows = 0
    for group in range(metadata.num_row_groups):
        groups.append(group)
        rows += metadata.row_group(group).num_rows
        if rows >= _ROWS:
            yield groups
            groups, rows = [], 0
    if groups:
        yield groups


def _valid(chunk: pa.Array) -> Values:
    if chunk.null_count in (0, len(chunk)):
        return np.broadcast_to(np.bool_(not chunk.null_count), len(chunk))
    return chunk.is_valid().to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def _numbers(chunk: pa.Array) -> Values | None:
    """Numbers, 0 where they are null."""
    kind = chunk.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return None
    if chunk.null_count == len(chunk):
        return np.broadcast_to(np.zeros((), kind.to_pandas_dtype()), len(chunk))
    values: Values = (chunk.fill_null(0) if chunk.null_count else chunk).to_numpy()
    return values


def _sizes(chunk: pa.FixedSizeListArray) -> Values | None:
    """Numbers by (row, axis), anything where they are null."""
    width = chunk.type.list_size
    if chunk.null_count == len(chunk):
        return np.broadcast_to(np.zeros(width, chunk.type.value_type.to_pandas_dtype()), (len(chunk), width))
    axes = chunk.values.slice(chunk.offset * width, len(chunk) * width)
    if axes.null_count:
        return None
    values: Values = axes.to_numpy().reshape(-1, width)
    return values


class _Names:
    """Names as positions in `all`, which has them in the order in which they come."""

    def __init__(self) -> None:
        self._place: dict[str, int] = {}

    @property
    def all(self) -> list[str]:
        return list(self._place)

    def read(self, chunk: pa.DictionaryArray) -> Values | None:
        if len(self._place) + len(chunk.dictionary) > _MOST_NAMES:
            return None
        own = [self._place.setdefault(name, len(self._place)) for name in chunk.dictionary.to_pylist()]
        codes = chunk.indices.fill_null(0) if chunk.indices.null_count else chunk.indices
        values: Values = np.array(own or [0], np.int32).take(codes.to_numpy())
        return values
