"""Paths of calls: what ran inside of what, each path once, as a number."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import Flags
from traceanalyzer.columns.uniques import unique_first
from traceanalyzer.intervals import Array

TOP = -1
"""The path of what nothing is around."""
MOST_LEVELS = 4096
"""What lies deeper has the path of what is around it. Python gives up at a thousand frames."""
KINDS = (
    *("root", "cause", "thread", "python", "annotation", "operator", "call", "mpi", "os"),
    *("sample", "kernel", "copy", "unrecorded", "other"),
)
KIND = {kind: index for index, kind in enumerate(KINDS)}


class Names:
    """One list of names for all tables that a tree is made of."""

    def __init__(self) -> None:
        self.values: list[str] = []
        self._at: dict[str, int] = {}

    def code(self, text: str) -> int:
        """The number of a name, a new one where it is new."""
        found = self._at.setdefault(text, len(self.values))
        if found == len(self.values):
            self.values.append(text)
        return found

    def codes(self, index: Array, values: Sequence[str | None], read: Callable[[str], str] | None = None) -> Array:
        """The numbers of a column as `frames.codes` gives it; a null is called `(no name)`. `read` is asked once a value."""
        return self.of(index, values, read)[index]

    def of(self, index: NDArray[Any], values: Sequence[str | None], read: Callable[[str], str] | None = None) -> Array:
        """The same for each of the values that is used, -1 for others."""
        used = np.zeros(len(values), bool)
        used[index] = True
        place = np.full(len(values), -1)
        for at in np.flatnonzero(used).tolist():
            value = values[at]
            place[at] = self.code("(no name)" if value is None else read(value) if read else value)
        return place


class Paths:
    """All paths that were asked for: a number for each, which comes after that of the path around it."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self._columns = np.empty((4, 1024), np.int64)
        self._count = 0

    @property
    def parent(self) -> Array:
        """The path around each, `TOP` where there is none."""
        return self._column(0)

    @property
    def name(self) -> Array:
        """The number of the name in `names`."""
        return self._column(1)

    @property
    def kind(self) -> Array:
        """The position of the kind in `KINDS`."""
        return self._column(2)

    @property
    def depth(self) -> Array:
        """How many paths are around it."""
        return self._column(3)

    def within(self, parent: Array, name: Array, kind: Array) -> Array:
        """The paths of these names and kinds inside of these paths. Every call makes new ones, one a combination."""
        _, first, at = unique_first(frames.packed(parent, name, kind))
        base, count = self._count, self._count + len(first)
        if count > self._columns.shape[1]:
            grown = np.empty((4, 2 * count), np.int64)
            grown[:, :base] = self._columns[:, :base]
            self._columns = grown
        around = parent[first]
        depth = np.where(around >= 0, self._columns[3][around] + 1, 0)
        self._columns[:, base:count] = around, name[first], kind[first], depth
        self._count = count
        return at + base

    def one(self, name: str, kind: str) -> int:
        """A new path at the top."""
        return int(self.within(np.array([TOP]), np.array([self.names.code(name)]), np.array([KIND[kind]]))[0])

    def nested(self, levels: Iterable[Array], parent: Array, name: Array, kind: Array, path: Array) -> Array:
        """The paths of ranges: those that `path` has, but of all in `levels` new ones, inside of the paths of the ranges around them.

        `levels` are positions, the outermost first; `parent` is the position of the range around each, -1 at the top.
        """
        found = np.append(path, TOP)
        for number, here in enumerate(levels):
            above = found[parent[here]]
            found[here] = self.within(above, name[here], kind[here]) if number < MOST_LEVELS else above
        return found[:-1]

    def stacks(self, texts: Sequence[str], kind: str, read: Callable[[str], str]) -> Array:
        """The paths of stacks written from the outermost to the innermost with `;` between them; of an empty one `TOP`. `read` makes
        the name of a function as a person reads it."""
        lists = [[read(one) for one in text.split(";") if one][:MOST_LEVELS] for text in texts]
        name = np.array([self.names.code(one) for names in lists for one in names], np.int64)
        length = np.array([len(names) for names in lists], np.int64)
        offset = np.cumsum(length) - length
        path = np.full(len(texts), TOP)
        for level in range(int(length.max(initial=0))):
            here = np.flatnonzero(length > level)
            path[here] = self.within(path[here], name[offset[here] + level], np.full(len(here), KIND[kind]))
        return path

    def up(self, path: Array, leave: Flags) -> Array:
        """The nearest path around each, itself among them, that is not to be left; `TOP` is above all."""
        path = path.copy()
        while len(rows := np.flatnonzero((path >= 0) & np.append(leave, False)[path])):
            path[rows] = self.parent[path[rows]]
        return path

    def _column(self, at: int) -> Array:
        return self._columns[at, : self._count]
