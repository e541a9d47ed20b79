"""Rows by group, in numpy: what the rows of each group come to, and that put back on each row."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
import numpy.typing as npt

from traceanalyzer.columns import Ints as Array

Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Names = npt.NDArray[np.object_]


class Groups:
    """Rows with a number each; those with the same number are a group.

    What is asked of a group comes in ascending order of the numbers, `keys`; `first` is the first row of each group, `of` the place of
    each row's group. `x[of]` has what a group came to on each of its rows.
    """

    def __init__(self, number: Array) -> None:
        self.keys, self.first, of = np.unique(number, return_index=True, return_inverse=True)
        self.of: Array = of.ravel()

    def __len__(self) -> int:
        return len(self.keys)

    @cached_property
    def order(self) -> Array:
        """The rows group by group, in each as they stand."""
        return np.argsort(self.of, kind="stable")

    def rows(self) -> Iterator[Array]:
        """The rows of each group, as they stand."""
        return iter(np.split(self.order, self._starts[1:]) if len(self) else ())

    @cached_property
    def _starts(self) -> Array:
        return np.searchsorted(self.of[self.order], np.arange(len(self.keys)))

    @cached_property
    def size(self) -> Array:
        return np.bincount(self.of, minlength=len(self.keys))

    def sum(self, values: Array) -> Array:
        return self._reduced(np.add, values)

    def max(self, values: Array) -> Array:
        return self._reduced(np.maximum, values)

    def min(self, values: Array) -> Array:
        return self._reduced(np.minimum, values)

    def count(self, which: Flags) -> Array:
        """How many of its rows are of `which`."""
        return np.bincount(self.of[which], minlength=len(self.keys))

    def any(self, which: Flags) -> Flags:
        found: Flags = self.count(which) > 0
        return found

    def all(self, which: Flags) -> Flags:
        found: Flags = self.count(which) == self.size
        return found

    def distinct(self, values: Array, which: Flags | None = None) -> Array:
        """How many different values its rows have, all of them or those of `which`."""
        of, values = (self.of, values) if which is None else (self.of[which], values[which])
        order = np.lexsort((values, of))
        new = np.append(True, (np.diff(of[order]) != 0) | (np.diff(values[order]) != 0))[: len(order)]
        return np.bincount(of[order[new]], minlength=len(self.keys))

    def position(self) -> Array:
        """For each row, how many of its group stand before it."""
        place = np.empty(len(self.of), np.int64)
        place[self.order] = np.arange(len(self.of)) - np.repeat(self._starts, self.size)
        return place

    def quantile(self, values: Floats, share: float) -> Floats:
        """The quantile of its values that are no NaN, between two of them in proportion; NaN without any."""
        rows = np.flatnonzero(~np.isnan(values))
        ordered = values[rows[np.lexsort((values[rows], self.of[rows]))]]
        count = np.bincount(self.of[rows], minlength=len(self.keys))
        start = np.cumsum(count) - count
        at = share * (count - 1)
        low = np.floor(at).astype(np.int64)
        found = np.full(len(self.keys), np.nan)
        some = count > 0
        below = ordered[(start + low)[some]]
        above = ordered[(start + np.minimum(low + 1, count - 1))[some]]
        found[some] = below + (above - below) * (at - low)[some]
        return found

    def median(self, values: Floats) -> Floats:
        return self.quantile(values, 0.5)

    def find(self, number: Array) -> Array:
        """The place of the group of each number, -1 where there is none."""
        if not len(self.keys):
            return np.full(len(number), -1, np.int64)
        at = np.minimum(np.searchsorted(self.keys, number), len(self.keys) - 1)
        return np.where(self.keys[at] == number, at, -1)

    def _reduced(self, by: np.ufunc, values: Array) -> Array:
        if not len(self.keys):
            return values[:0]
        found: Array = by.reduceat(values[self.order], self._starts)
        return found


def text_codes(values: Names) -> tuple[Array, list[str]]:
    """Texts as (index of each, the distinct ones in the order in which they come); -1 for None."""
    place: dict[str, int] = {}
    codes = [-1 if value is None else place.setdefault(value, len(place)) for value in values.tolist()]
    return np.array(codes, np.int64), list(place)


def known(values: Names) -> Flags:
    """Which texts are there."""
    return np.fromiter((value is not None for value in values.tolist()), bool, len(values))
