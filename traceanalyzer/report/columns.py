"""From Arrow columns to the numpy arrays the timeline is made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Ints = NDArray[np.int64]
NAME_LIMIT = 400
MISSING = -1


def integers(table: pa.Table, column: str) -> Ints:
    """A column as int64; nulls become -1."""
    values = pc.fill_null(table[column].cast(pa.int64()), MISSING)
    array: Ints = values.to_numpy().astype(np.int64, copy=False)
    return array


def encoded(table: pa.Table, column: str) -> tuple[Ints, list[str]]:
    """A name column as (index of each row, the distinct names); the index of a null is -1."""
    values = table[column]
    if not pa.types.is_dictionary(values.type):
        values = pc.dictionary_encode(values)
    whole = values.unify_dictionaries().combine_chunks()
    if isinstance(whole, pa.ChunkedArray):  # an empty column stays chunked in some releases of Arrow
        whole = whole.chunk(0) if whole.num_chunks else pa.array([], values.type)
    index: Ints = pc.fill_null(whole.indices.cast(pa.int64()), MISSING).to_numpy(zero_copy_only=False)
    return index, ["" if name is None else str(name) for name in whole.dictionary.to_pylist()]


def lookup(names: list[str], keys: Mapping[str, int], default: int) -> NDArray[np.uint8]:
    """For each distinct name its code, `default` where `keys` has none; one more at the end for nulls (index -1)."""
    return np.array([*(keys.get(name, default) for name in names), default], dtype=np.uint8)


def row_groups(table: pa.Table, columns: tuple[str, ...]) -> Iterator[tuple[tuple[int, ...], Ints]]:
    """The distinct keys over integer columns, in ascending order, each with its row numbers in table order."""
    if table.num_rows == 0:
        return
    code = np.zeros(table.num_rows, dtype=np.int64)
    parts = []
    for column in columns:
        values = integers(table, column)
        distinct = np.sort(pc.unique(pa.array(values)).to_numpy())
        parts.append(distinct)
        code = code * len(distinct) + np.searchsorted(distinct, values)
    order = np.argsort(code, kind="stable")
    found, first = np.unique(code[order], return_index=True)
    for number, rows in zip(found.tolist(), np.split(order, first[1:]), strict=True):
        key, rest = [], number
        for distinct in reversed(parts):
            rest, position = divmod(rest, len(distinct))
            key.append(int(distinct[position]))
        yield tuple(reversed(key)), rows


class Names:
    """The one string table of a timeline: every name once, by number."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}

    def id(self, name: str) -> int:
        """The number of a name, new or known. Template-heavy kernel names can be very long: cut at 400 characters."""
        short = name if len(name) <= NAME_LIMIT else name[: NAME_LIMIT - 1] + "…"
        return self._ids.setdefault(short, len(self._ids))

    def all(self) -> list[str]:
        return list(self._ids)

    def column(self, table: pa.Table, column: str) -> NDArray[np.uint32]:
        """The number of every row's name; a null is "(unnamed)"."""
        index, names = encoded(table, column)
        ids = np.array([*(self.id(name) for name in names), self.id("(unnamed)")], dtype=np.uint32)
        taken: NDArray[np.uint32] = ids[index]
        return taken

    def compact(self, used: NDArray[Any]) -> tuple[list[str], NDArray[np.uint32]]:
        """The names behind the numbers in `used`, and for each old number its new one."""
        kept = np.unique(used).astype(np.int64)
        renumber = np.zeros(max(len(self._ids), 1), dtype=np.uint32)
        renumber[kept] = np.arange(len(kept), dtype=np.uint32)
        every = list(self._ids)
        return [every[i] for i in kept.tolist()], renumber
