"""The places of what a host thread did: what ran, and the user's frame or else the annotation around it, as numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count

import numpy as np

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL
from traceanalyzer.derive.host.stack import PlaceOf
from traceanalyzer.intervals import Array

Key = tuple[int, int, bool]
"""(what ran, the name around it, whether that is a frame), names as positions in a list of them or `NULL`."""


def distinct_places(what: Array, source: Array, annotation: Array) -> tuple[list[Key], Array, Array]:
    """The places in the order in which they come, the row at which each comes first, and of each row the number of its place."""
    if not len(what):
        return [], what, what
    by_frame = source != NULL
    around = np.where(by_frame, source, annotation)
    # One key of all three: positions in a list of names are small.
    outer = np.maximum(around, -1) + 1
    group = frames.dense((np.maximum(what, -1) + 1) * (2 * int(outer.max()) + 2) + 2 * outer + by_frame)
    # The groups are numbered as they come.
    first = np.flatnonzero(np.diff(np.maximum.accumulate(group), prepend=-1))
    return list(zip(*(column[first].tolist() for column in (what, around, by_frame)), strict=True)), first, group


class PlacesInBlocks:
    """Numbers for the places of what is asked for in blocks, until all blocks are done and the list of `names` has them.

    There they come as if all was asked for at once: for one thread after the other, one question after the other. `add` puts a place
    into the list, where it is not there yet, and tells its position.
    """

    def __init__(self, names: Sequence[str | None], add: Callable[[Key], int]) -> None:
        self._names, self._add, self._base = names, add, len(names)
        self._number: dict[Key, int] = {}
        self._keys: list[Key] = []
        self._asked: dict[tuple[int, ...], dict[Key, tuple[int, int, int]]] = {}
        self._count = count()

    def of(self, thread: tuple[int, ...], group: Array) -> PlaceOf:
        """The places of a block of intervals of one thread. `group` ascends; of all blocks those of a lower one are asked for first."""
        asked = self._asked.setdefault(thread, {})

        def place(what: Array, source: Array, annotation: Array, question: int, row: Array) -> Array:
            keys, first, of_row = distinct_places(what, source, annotation)
            numbers = np.full(len(keys), NULL)
            for at, (key, of) in enumerate(zip(keys, group[row[first]].tolist(), strict=True)):
                if key[0] != NULL and self._names[key[0]] is not None:
                    if key not in self._number:
                        self._number[key] = self._base + len(self._keys)
                        self._keys.append(key)
                    numbers[at] = self._number[key]
                    if key not in asked or (question, of) < asked[key][:2]:
                        asked[key] = question, of, next(self._count)
            return numbers[of_row] if len(keys) else of_row

        return place

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def threads(self) -> list[tuple[int, ...]]:
        """Those that were asked for, in that order."""
        return list(self._asked)

    def settle(self, thread: tuple[int, ...]) -> None:
        """Bring the places of one thread into the list of names. All blocks are done, and so are the threads before it."""
        asked = self._asked[thread]
        for key in sorted(asked, key=asked.__getitem__):
            self._add(key)

    def final(self, numbers: Array) -> Array:
        """Names, as positions in the list, of the numbers that were given for those of threads that are settled."""
        given = np.flatnonzero(numbers >= self._base)
        if not len(given):
            return numbers
        own, seen = numbers.take(given) - self._base, np.zeros(len(self._keys), bool)
        seen[own] = True
        place = np.empty(len(seen), np.int64)
        for used in np.flatnonzero(seen).tolist():
            place[used] = self._add(self._keys[used])
        final = numbers.copy()
        final[given] = place.take(own)
        return final
