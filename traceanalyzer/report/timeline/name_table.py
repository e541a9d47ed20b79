"""Names by number: the string table of the timeline, and codes of distinct names."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from traceanalyzer.columns import encoded

NAME_LIMIT = 8_000
"""Longer names are cut on the timeline: each stays a name of its own, but only so much of it is shown and found."""


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
        index, names = encoded(table, column)
        ids = np.array([*(self.id(name) for name in names), self.id("(unnamed)")], dtype=np.uint32)
        taken: NDArray[np.uint32] = ids[index]
        return taken


def cut_name(name: str) -> str:
    """A name as the timeline carries it."""
    return name if len(name) <= NAME_LIMIT else f"{name[: NAME_LIMIT - 1]}…"
