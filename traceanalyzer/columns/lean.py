"""Columns in which all rows are alike, held once. Many columns of large tables say one thing, or nothing, of every row.

Such a column is one block of rows again and again, all of which lie in the same memory. To Arrow it is a column like any other.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

BLOCKS, MOST = 16, 1 << 17
"""A column that is held once is cut in so many blocks, as Arrow's kernels do not like many more; each has at most so many rows."""
WORTH = 1 << 16
"""Rows from which on a column is worth a look."""


def lean(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """The column, held once where all of its rows are null or equal. One of fewer than `WORTH` rows stays as it is."""
    count = len(column)
    if count < WORTH or repeats(column) or not _alike(column):
        return column
    first = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
    return repeated(first.take(pa.array([0])), count)


def lean_table(table: pa.Table) -> pa.Table:
    """The table with each column `lean`."""
    if table.num_rows < WORTH:
        return table
    return pa.Table.from_arrays([lean(column) for column in table.columns], schema=table.schema)


def repeated(one: pa.Array, count: int) -> pa.ChunkedArray:
    """A column of so many rows, all of which are the one that is given."""
    rows = min(-(-count // BLOCKS), MOST) if count >= WORTH else count
    # Most are numbers or names, of which Arrow makes as many as one likes at once.
    block = one.take(pa.array(np.zeros(rows, np.int64))) if pa.types.is_nested(one.type) else pa.repeat(one[0], rows)
    whole, rest = divmod(count, max(rows, 1))
    return pa.chunked_array([block] * whole + [block[:rest]] * bool(rest), one.type)


def repeats(column: pa.Array | pa.ChunkedArray) -> bool:
    """Whether it is a column as `repeated` makes one, of more than one block."""
    if not isinstance(column, pa.ChunkedArray) or column.num_chunks < 2 or not len(column):
        return False
    first, *others = column.chunks
    place = _place(first)
    # A table behind itself has blocks in one place too.
    same = (chunk.offset == first.offset and len(chunk) <= len(first) and _place(chunk) == place for chunk in others)
    return all(same) and _alike(first)


def spread(column: pa.ChunkedArray, null: int) -> npt.NDArray[np.int64]:
    """Integers that `repeats` as numpy has them: so many rows, one number in memory. `null` stands for no value."""
    one = column[0].as_py()
    return np.broadcast_to(np.int64(null if one is None else one), len(column))


def pieced(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column in one piece, or as it is where it `repeats`."""
    return column if column.num_chunks == 1 or repeats(column) else pa.chunked_array([column.combine_chunks()])


def in_one(column: pa.ChunkedArray) -> pa.Array:
    """The column as one array, which is a copy only where it has several pieces: Arrow copies a single one too."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _place(chunk: pa.Array) -> list[int]:
    return [0 if buffer is None else buffer.address for buffer in chunk.buffers()]


def _alike(column: pa.Array | pa.ChunkedArray) -> bool:
    """Whether all rows are null, or all the same number, name or triple of numbers; of other kinds nobody asks."""
    if column.null_count:
        return bool(column.null_count == len(column))
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    kind = column.type
    if pa.types.is_dictionary(kind):
        # Of several dictionaries each has its own numbers.
        return len(chunks) == 1 and _equal(chunks[0].indices, 1)
    if pa.types.is_fixed_size_list(kind):
        return len(chunks) == 1 and _equal(chunks[0].flatten(), kind.list_size)
    if not pa.types.is_integer(kind) and not pa.types.is_boolean(kind):
        return False
    return column[0] == column[-1] and all(chunk[0] == column[0] and _equal(chunk, 1) for chunk in chunks if len(chunk))


def _equal(values: pa.Array, width: int) -> bool:
    """Whether some numbers are the first `width` of them again and again."""
    if values[:width] != values[-width:]:
        return False
    if pa.types.is_boolean(values.type):
        return pc.count_distinct(values).as_py() == 1  # type: ignore[no-any-return]
    numbers = values.to_numpy().reshape(-1, width)
    blocks = (numbers[first : first + WORTH] for first in range(0, len(numbers), WORTH))
    return all((block == numbers[0]).all() for block in blocks)
