"""Tables as numpy columns and back: names as numbers, rows by group, and a declared table of what was computed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.columns import MISSING, compact, distinct, wide
from traceanalyzer.columns import NULL as NULL  # noqa: PLC0414  Derived tables ask here for it.
from traceanalyzer.columns import ints as ints  # noqa: PLC0414
from traceanalyzer.columns.lean import WORTH, in_one, lean, pieced, repeated, repeats
from traceanalyzer.columns.numbering import dense as dense  # noqa: PLC0414
from traceanalyzer.columns.numbering import firsts as firsts  # noqa: PLC0414
from traceanalyzer.columns.numbering import packed as packed  # noqa: PLC0414
from traceanalyzer.columns.numbering import parts, runs
from traceanalyzer.columns.numbering import together as together  # noqa: PLC0414
from traceanalyzer.columns.spill import spilled_column

_FEW = 3
_AT_ONCE = 1 << 16

K = TypeVar("K")
Array = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.int32]
Key = tuple[int, int]
"""(rank, device)."""
ThreadKey = tuple[int, int, int]
"""(rank, process, thread)."""


def ints_at(table: pa.Table, name: str, rows: Array) -> Array:
    """An integer column at these rows, `NULL` for -1."""
    return np.append(ints(table, name), NULL)[rows]


def duration(table: pa.Table) -> Array:
    """The length of each row in ns."""
    return ints(table, "end_ns") - ints(table, "start_ns")


def codes(table: pa.Table, name: str) -> tuple[Array, list[str | None]]:
    """A dictionary column as (index into values, values); a null is an index to a None at the end."""
    index, values = short_codes(table, name)
    some = index[:1] if index.strides == (0,) else index
    return np.broadcast_to(some.astype(np.int64), len(index)) if some is not index else index.astype(np.int64), values


def short_codes(table: pa.Table, name: str) -> tuple[Codes, list[str | None]]:
    """As `codes`, in 32 bits: where none is null, as they lie in the column. Not to be written to."""
    whole = table[name]
    column = _own(whole.chunk(0)[:1] if repeats(whole) else in_one(whole))
    values: list[str | None] = [*column.dictionary.to_pylist(), None]
    indices = column.indices.fill_null(len(values) - 1) if column.indices.null_count else column.indices
    index = indices.to_numpy().astype(np.int32, copy=False)
    return np.broadcast_to(index, len(whole)) if len(index) < len(whole) else index, values


def equals(table: pa.Table, name: str, *wanted: str) -> Flags:
    """Where a dictionary column has one of these values."""
    return passing(*short_codes(table, name), lambda value: value in wanted)


def where(table: pa.Table, name: str, test: Callable[[str], bool | None]) -> Flags:
    """Where the value of a dictionary column passes the test; nulls do not."""
    return passing(*short_codes(table, name), test)


def passing(
    index: Array | Codes, values: list[str | None], test: Callable[[str], bool | None], rows: Flags | None = None
) -> Flags:
    """As `where`, for a column as `codes` or `short_codes` gives it. Each value is tested once, and only those that `rows` use."""
    if rows is None:
        some = [code for code, value in enumerate(values) if value is not None and test(value)]
    else:
        used = np.zeros(len(values), bool)
        used[index[rows]] = True
        some = [code for code in np.flatnonzero(used).tolist() if (value := values[code]) is not None and test(value)]
    if len(index) and index.strides == (0,):
        return np.full(len(index), index[0] in some)
    found = np.zeros(len(index), bool)
    if len(some) > _FEW:
        told = np.zeros(len(values), bool)
        told[some] = True
    for first in range(0, len(index) if some else 0, _AT_ONCE):
        near, own = index[first : first + _AT_ONCE], found[first : first + _AT_ONCE]
        if len(some) > _FEW:
            own[:] = told.take(near)
        else:  # Comparing is much quicker than looking up.
            for code in some:
                own |= near == code
    return found


def codes_of(table: pa.Table, name: str, rows: slice) -> tuple[Array, list[str | None]]:
    """As `codes`, of some rows in one piece; the values are those of all rows."""
    whole = table[name]
    if whole.num_chunks != 1 or len(whole) < len(whole.chunk(0).dictionary):
        index, values = codes(table, name)
        return index[rows], values
    column = whole.chunk(0)
    values = [*column.dictionary.to_pylist(), None]
    return wide(column.indices[rows.start : rows.stop], len(values) - 1), values


def numbers(values: Array) -> pa.Array:
    """int64 values as Arrow, null where they are `NULL`."""
    return pa.array(values, mask=values == NULL)


def flags(table: pa.Table, column: str) -> Flags:
    """A column of truth values; a null is false."""
    found: Flags = pc.fill_null(table[column], False).to_numpy()
    return found


def names(
    index: Array | Codes, values: Sequence[str | None], read: Callable[[str], str] | None = None
) -> pa.DictionaryArray:
    """The reverse of `codes`; what is below 0 is a null too. `values` may repeat; the dictionary holds each used value once, as `read`
    tells."""
    count = len(values)
    places: Array = np.where(index < 0, count, index)
    used, at = distinct(places, count + 1)
    position: dict[str, int] = {}
    kept = np.full(len(used), -1, np.int32)
    for place, i in enumerate(used.tolist()):
        value = values[i] if i < count else None
        if value is not None:
            kept[place] = position.setdefault(read(value) if read else value, len(position))
    code = kept[at]
    mask = code < 0 if (kept < 0).any() else None
    return pa.DictionaryArray.from_arrays(pa.array(code, mask=mask), pa.array(list(position), pa.string()))


def _own(names: pa.DictionaryArray) -> pa.DictionaryArray:
    """Without what no row has, where that is the most: a part of a table keeps the names of all of it."""
    return compact(names) if len(names) < len(names.dictionary) else names


def groups(table: pa.Table, first: str = "rank", second: str = "device") -> Iterator[tuple[Key, slice]]:
    """The (first, second) groups of a table and their rows; rows of one group are contiguous."""
    left, right = as_it_lies(table[first]), as_it_lies(table[second])
    for rows in runs(left, right):
        yield (int(left[rows.start]), int(right[rows.start])), rows


def threads(table: pa.Table) -> Iterator[tuple[ThreadKey, slice]]:
    """Each (rank, process, thread) and its rows, which the table keeps contiguous."""
    rank, process, thread = (as_it_lies(table[c]) for c in ("rank", "process", "thread"))
    for rows in runs(rank, process, thread):
        at = rows.start
        yield (int(rank[at]), int(process[at]), int(thread[at])), rows


def as_it_lies(column: pa.ChunkedArray, null: int = NULL) -> Array:
    """As `wide`; one without nulls in as many bits as it has."""
    short = column.num_chunks == 1 and not column.null_count and pa.types.is_integer(column.type)
    return column.chunk(0).to_numpy() if short else wide(column, null)


def rows_by(table: pa.Table, *names: str) -> dict[tuple[int, ...], Array | slice]:
    """As `together`, of columns of a table; rows that are found to stand in a row are a slice."""
    return dict(parts(*(ints(table, name) for name in names)))


def counts(*columns: Array) -> list[tuple[tuple[int, ...], int]]:
    """The combinations of values in some columns, in the order in which they first occur, and how many rows have each."""
    code = dense(*columns)
    count = np.bincount(code).tolist()
    return [
        (tuple(int(column[row]) for column in columns), rows)
        for row, rows in zip(firsts(code).tolist(), count, strict=True)
    ]


def row_groups(table: pa.Table, columns: Sequence[str]) -> Iterator[tuple[tuple[int, ...], Array]]:
    """The distinct keys over integer columns in ascending order, nulls (`MISSING`) first, each with its row numbers in table order."""
    for key, rows in row_parts(table, columns):
        yield key, np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows


def row_parts(table: pa.Table, columns: Sequence[str]) -> Iterator[tuple[tuple[int, ...], Array | slice]]:
    """The same, with a slice of rows that stand in a row."""
    found = parts(*(as_it_lies(table[column], MISSING) for column in columns)) if table.num_rows else ()
    yield from sorted(found, key=lambda one: one[0])


def split(table: pa.Table, first: str = "rank", second: str = "device") -> Iterator[tuple[Key, pa.Table]]:
    """As `groups`, the rows as tables."""
    for key, rows in groups(table, first, second):
        yield key, table.slice(rows.start, rows.stop - rows.start)


def filtered(table: pa.Table, which: Flags) -> pa.Table:
    """The rows that are so. Columns in one piece stay so, and so do those that are held once."""
    if which.all():
        return table
    mask, count = pa.array(which), int(np.count_nonzero(which))
    columns = [one.slice(0, count) if repeats(one) else one.filter(mask) for one in table.columns]
    return pa.Table.from_arrays(columns, schema=table.schema)


def taken(table: pa.Table, rows: Array) -> pa.Table:
    """The table at some rows; columns that are held once stay so."""
    index = pa.array(rows)
    columns = [repeated(one.chunk(0)[:1], len(rows)) if repeats(one) else one.take(index) for one in table.columns]
    return pa.Table.from_arrays(columns, schema=table.schema)


def sorted_by(table: pa.Table, *columns: str) -> pa.Table:
    """The rows in ascending order of integer columns, nulls first, of equals as they stand. Most tables are so already."""
    keys = [ints(table, column) for column in columns]
    level, sound = np.True_, True
    for key in keys:
        if key.strides == (0,):
            continue
        sound &= not (level & (key[1:] < key[:-1])).any()
        level = level & (key[1:] == key[:-1])
    return table if sound else table.take(pa.array(np.lexsort(keys[::-1])))


def by_device(table: pa.Table) -> dict[Key, pa.Table]:
    """The part of each (rank, device), whose rows are contiguous; asked for any other, an empty table."""
    return _Parts(split(table), table.slice(0, 0))


def by_rank(table: pa.Table) -> dict[int, pa.Table]:
    """As `by_device`, for each rank."""
    rank = as_it_lies(table["rank"])
    ranks = ((int(rank[r.start]), table.slice(r.start, r.stop - r.start)) for r in runs(rank))
    return _Parts(ranks, table.slice(0, 0))


class _Parts(dict[K, pa.Table], Generic[K]):
    def __init__(self, parts: Iterable[tuple[K, pa.Table]], none: pa.Table) -> None:
        super().__init__(parts)
        self._none = none

    def __missing__(self, key: K) -> pa.Table:
        return self._none


class Declared(Protocol):
    """The declaration of a table (model.schema)."""

    @property
    def schema(self) -> pa.Schema: ...

    def empty(self) -> pa.Table: ...


def build(spec: Declared, columns: dict[str, pa.Array | pa.ChunkedArray | Array]) -> pa.Table:
    """A table of the declared columns and types. Raises KeyError when one is missing."""
    arrays = []
    for field in spec.schema:
        values = columns[field.name]
        array = pa.array(values) if isinstance(values, np.ndarray) else values
        array = array if array.type == field.type else array.cast(field.type)
        arrays.append(lean(_own(array) if isinstance(array, pa.DictionaryArray) else array))
    return pa.Table.from_arrays(arrays, schema=spec.schema)


def stack(spec: Declared, tables: list[pa.Table]) -> pa.Table:
    """Tables of the same spec one after another, with one dictionary per column."""
    return concatenated(tables) if tables else spec.empty()


def concatenated(tables: Sequence[pa.Table]) -> pa.Table:
    """The rows of tables of one schema, one after another, with one dictionary of names; there is at least one table."""
    joined = pa.concat_tables(tables).unify_dictionaries()
    if joined.num_rows < WORTH:
        return joined.combine_chunks()
    # One after the other: all of them together would be there twice.
    columns = [spilled_column(lean(pieced(column))) for column in joined.columns]
    return pa.Table.from_arrays(columns, schema=joined.schema)


class OfThreads:
    """Rows by the (rank, process, thread) that they belong to. One without a process or thread belongs to all of its rank."""

    def __init__(self, rank: Array, process: Array, thread: Array) -> None:
        self._rows = dict(together(rank, process, thread))

    def rows(self, rank: int, process: int, thread: int) -> Array:
        """Those of one thread, in no particular order."""
        keys = {(rank, p, t) for p in (process, NULL) for t in (thread, NULL)}
        return np.concatenate([np.empty(0, np.int64), *(self._rows[key] for key in sorted(keys) if key in self._rows)])


def among(values: Array, others: Array) -> Flags:
    """Which values occur among the others; much faster than np.isin where these are many and nearly in order."""
    if np.array_equal(values, others):
        return np.ones(len(values), bool)
    if (others[1:] < others[:-1]).any():
        others = np.sort(others, kind="stable")
    found: Flags = np.append(others, NULL)[np.searchsorted(others, values)] == values
    return found


def streams(ops: pa.Table) -> Array:
    """A number for each operation that tells apart the streams of all GPUs; not to be written to."""
    return told_apart(ops, "rank", "device", "process", "context", "stream")


def told_apart(table: pa.Table, *columns: str) -> Array:
    """As `dense`, of integer columns of a table; where all rows are alike one number is in memory. Not to be written to."""
    values = [ints(table, column) for column in columns]
    once = all(one.strides == (0,) for one in values)
    return np.broadcast_to(np.int64(0), table.num_rows) if once else dense(*values)


def latest_before(group: Array, ends: Array) -> Array:
    """For each row the latest end among the rows of its group before it, `NULL` for the first of a group."""
    count, before = len(ends), np.full(len(ends), NULL)
    # Sorted by group, the latest end so far of every group in one pass: a later group outranks all of an earlier one.
    # As narrow as they are, groups are put in order digit by digit.
    narrow = group.astype(np.min_scalar_type(int(group.max(initial=0))))
    rows, by_end = np.argsort(narrow, kind="stable"), np.argsort(ends, kind="stable")
    place = np.empty(count, np.int64)
    place[by_end] = np.arange(count)
    latest = np.maximum.accumulate(group[rows] * count + place[rows]) % max(count, 1)
    follows = np.flatnonzero(group[rows][1:] == group[rows][:-1]) + 1
    before[rows[follows]] = ends[by_end[latest[follows - 1]]]
    return before
