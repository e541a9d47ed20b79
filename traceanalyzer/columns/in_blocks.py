"""Columns that are made one block of rows after the other. Where all rows are alike one value is in memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceanalyzer.columns import NULL

T = TypeVar("T", bound=np.generic)
Values = npt.NDArray[T]


def alike(value: int, count: int) -> npt.NDArray[np.int64]:
    """So many times the same value; not to be written to."""
    return np.broadcast_to(np.int64(value), count)


def are_alike(values: npt.NDArray[Any]) -> bool:
    """Whether it is an array as `alike` makes them."""
    return values.strides == (0,)


def taken(values: Values[T], rows: npt.NDArray[np.int64]) -> Values[T]:
    """The values at some rows."""
    return np.broadcast_to(values[0], len(rows)) if len(values) and are_alike(values) else values[rows]


def joined(blocks: Sequence[Values[T]]) -> Values[T]:
    """One block after the other; there is at least one."""
    some = [block for block in blocks if len(block)] or [blocks[0]]
    if all(len(block) and are_alike(block) and block[0] == some[0][0] for block in some):
        return np.broadcast_to(some[0][0], sum(map(len, some)))
    return np.concatenate(some) if len(some) > 1 else some[0]


class InBlocks:
    """What is made of some columns."""

    def __init__(self) -> None:
        self._blocks: dict[str, list[npt.NDArray[Any]]] = defaultdict(list)

    def add(self, columns: Mapping[str, npt.NDArray[Any]]) -> None:
        """The same number of rows of each column, at least one."""
        for name, values in columns.items():
            same = are_alike(values) or (values[0] == values[-1] and (values == values[0]).all())
            self._blocks[name].append(np.broadcast_to(values[0].copy(), len(values)) if same else values)

    def take(self, name: str) -> npt.NDArray[Any]:
        """All rows of a column, which is held here no longer."""
        return joined(self._blocks.pop(name))

    def numbers(self, name: str) -> pa.Array:
        """As `take`, in Arrow, null where they are `NULL`."""
        values = self.take(name)
        missing = values == NULL if values.dtype == np.int64 else np.zeros(1, bool)
        return pa.array(values, mask=missing if missing.any() else None)

    def names(self, name: str, values: Sequence[str | None], read: Callable[[str], str] | None = None) -> pa.Array:
        """As `take`, of a column of positions in `values`, -1 for null: the names there, as `read` tells them."""
        blocks = self._blocks.pop(name)
        # One more at the end, for what is null.
        used = np.zeros(len(values) + 1, bool)
        for block in blocks:
            used[block[:1] if are_alike(block) else block] = True
        position: dict[str, int] = {}
        kept = np.full(len(used), -1, np.int32)
        for at in np.flatnonzero(used[:-1]).tolist():
            value = values[at]
            if value is not None:
                kept[at] = position.setdefault(read(value) if read else value, len(position))
        code = np.empty(sum(map(len, blocks)), np.int32)
        until = 0
        for block in blocks:
            begin, until = until, until + len(block)
            code[begin:until] = kept[block[0]] if are_alike(block) else kept[block]
        missing = code < 0
        index = pa.array(code, mask=missing if missing.any() else None)
        return pa.DictionaryArray.from_arrays(index, pa.array(list(position), pa.string()))
