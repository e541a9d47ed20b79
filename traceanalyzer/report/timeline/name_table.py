"""Names by number: the string table of the timeline, and codes of distinct names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from traceanalyzer.columns import short_encoded
from traceanalyzer.columns.in_blocks import computed

T = TypeVar("T", bound=np.generic)
NAME_LIMIT = 8_000
"""Longer names are cut on the timeline: each stays a name of its own, but only so much of it is shown and found."""


def looked_up(told: NDArray[T], index: NDArray[np.integer[Any]]) -> NDArray[T]:
    """What is told of each row, from what is of each distinct name and, at the end, of nulls; `index` as of `short_encoded`. Not to be
    written to."""
    if len(index) and index.strides == (0,):
        return np.broadcast_to(told[index[0]], len(index))
    return computed(len(index), lambda rows: told.take(index[rows]))


def lookup(names: list[str], keys: Mapping[str, int], default: int) -> NDArray[np.uint8]:
    """For each distinct name its code, `default` where `keys` has none; one more at the end for nulls (index -1)."""
    return np.array([*(keys.get(name, default) for name in names), default], dtype=np.uint8)


class Names:
    """The one string table of a timeline: every name once, by number."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._ids)

    def id(self, name: str) -> int:
        """The number of a name, new or known."""
        return self._ids.setdefault(name, len(self._ids))

    def all(self) -> list[str]:
        return list(self._ids)

    def column(self, table: pa.Table, column: str) -> NDArray[np.uint32]:
        """The number of every row's name; a null is "(unnamed)"."""
        index, names = short_encoded(table, column)
        return looked_up(np.array([*(self.id(name) for name in names), self.id("(unnamed)")], dtype=np.uint32), index)


def cut_name(name: str) -> str:
    """A name as the timeline carries it."""
    return name if len(name) <= NAME_LIMIT else f"{name[: NAME_LIMIT - 1]}…"
