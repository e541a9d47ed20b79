"""The ranges of one host thread as a call stack over time, and the names that stretches of time get from it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from traceanalyzer.columns.frames import NULL
from traceanalyzer.columns.in_blocks import alike, are_alike
from traceanalyzer.derive.host.levels import by_level, depths, enclosing
from traceanalyzer.derive.host.ranges import Reaching, heaviest, mostly
from traceanalyzer.intervals import EMPTY, Array, flatten, overlaps, union
from traceanalyzer.records import dataclass

Bools = npt.NDArray[np.bool_]
# What a range is. Internal operators are steps inside those that people call.
OTHER, OPERATOR, INTERNAL, ANNOTATION, FRAME, USER_FRAME = range(6)
_ANY_OPERATOR, _ANY_FRAME = (OPERATOR, INTERNAL), (FRAME, USER_FRAME)

_IS_OF = np.eye(USER_FRAME + 1, dtype=bool)

PlaceOf = Callable[[Array, Array, Array, int, Array], Array]
"""(what ran, the user's frame around it, the annotation around it), as names or `NULL` -> the name of the place. Last come the number
of the question, of which an interval gets several, and the position of each row's interval."""
QUESTIONS = 3
"""How many of them `Stretches.names` asks."""


@dataclass(frozen=True)
class Names:
    """Names of some intervals, as indices into the host's list of names, `NULL` where there is none.

    `range` is the innermost range of any kind that holds more than any other. The others hold half of the interval at least: `phase` is
    the outermost annotation, `source` the innermost frame of the user's own code. `place` is what a person would name, and
    `place_length` how many ns of the interval lie in it.
    """

    range: Array
    operator: Array
    annotation: Array
    frame: Array
    source: Array
    phase: Array
    place: Array
    place_length: Array


class Stack:
    """Named ranges of one thread, sorted by (start, -end), each of one of the kinds above."""

    def __init__(self, start: Array, end: Array, name: Array, kind: Array) -> None:
        self._start, self._end, self._name, self._kind = start, end, name, kind
        self._reaching = Reaching(start, end)

    def __len__(self) -> int:
        return len(self._start)

    def within(self, start: Array, end: Array) -> Stretches:
        """The stack during these intervals, which may overlap and come in any order. Ranges outside cost nothing more."""
        low, high = union(start, end) if len(self) else EMPTY
        rows = self._reaching.rows(int(low[0]), int(high[-1])) if len(low) else EMPTY[0]
        first = np.searchsorted(high, self._start[rows], side="right")
        touched = rows[first < np.searchsorted(low, self._end[rows], side="left")]
        return Stretches(*(column[touched] for column in (self._start, self._end, self._name, self._kind)))


class Stretches:
    """A part of a stack, cut into stretches during which nothing changes."""

    def __init__(self, start: Array, end: Array, name: Array, kind: Array) -> None:
        self._name, self._kind = name, kind
        depth, parent, (self._low, self._high, self._owner) = flatten(start, end)
        self._parent = enclosing(parent, end)
        self._levels = by_level(depth if (self._parent == parent).all() else depths(self._parent))

    def names(self, start: Array, end: Array, place_of: PlaceOf) -> Names:
        """The names that hold most of each interval."""
        if not len(self._low):
            unnamed, no_length = alike(NULL, len(start)), alike(0, len(start))
            return Names(unnamed, unnamed, unnamed, unnamed, unnamed, unnamed, unnamed, no_length)
        row, stretch, first, last = overlaps(start, end, (self._low, self._high))
        owner = self._owner[stretch]
        length, count = last - first, len(start)

        def around(*kinds: int, outermost: bool = False) -> Array:
            return self._around(owner, kinds, outermost)

        range_name, range_length = heaviest(row, self._names(owner), length, count)

        known = [(owner, mostly(range_name, range_length, end - start))]

        def most(at: Array) -> Array:
            # Several kinds of ranges are often the same ones.
            for before, found in known:
                if np.array_equal(at, before):
                    return found
            known.append((at, mostly(*heaviest(row, self._names(at), length, count), end - start)))
            return known[-1][1]

        operator, annotation, frame, source = (
            around(*kinds) for kinds in (_ANY_OPERATOR, (ANNOTATION,), _ANY_FRAME, (USER_FRAME,))
        )
        # Ranges are numbered from the outside in, so the largest number is the innermost.
        called = around(OPERATOR)
        what = np.maximum(np.maximum(np.where(called >= 0, called, operator), frame), annotation)
        source_name, annotation_name = self._names(source), self._names(annotation)
        places = place_of(self._names(what), source_name, annotation_name, 0, row)
        place, place_length = heaviest(row, places, length, count)
        # Where one thing does not take most of the time, say in what operator they all were, or else where in the program.
        outer = around(*_ANY_OPERATOR, outermost=True)
        nearest = np.where(source >= 0, source_name, annotation_name)
        wider_places = (
            (self._names(outer), *(np.where(at < outer, self._names(at), NULL) for at in (source, annotation))),
            (nearest, nearest, nearest),
        )
        for question, (name, by, within) in enumerate(wider_places, 1):
            scattered = 2 * place_length < end - start
            some = scattered[row]
            places = place_of(name[some], by[some], within[some], question, row[some])
            wider, wider_length = heaviest(row[some], places, length[some], count)
            better = wider_length > place_length
            place, place_length = np.where(better, wider, place), np.where(better, wider_length, place_length)
        return Names(
            range=range_name,
            operator=most(operator),
            annotation=most(annotation),
            frame=most(frame),
            source=most(source),
            phase=most(around(ANNOTATION, outermost=True)),
            place=place,
            place_length=place_length,
        )

    def phases(self, start: int, end: int) -> tuple[Array, Array]:
        """What one interval was spent on, and for how many ns each: the outermost annotation of each moment, else the innermost frame
        of the user's own code, else the outermost operator."""
        _, stretch, first, last = overlaps(np.array([start]), np.array([end]), (self._low, self._high))
        owner = self._owner[stretch]
        phase = self._around(owner, (ANNOTATION,), True)
        source = self._around(owner, (USER_FRAME,), False)
        operator = self._around(owner, _ANY_OPERATOR, True)
        name = self._names(np.where(phase >= 0, phase, np.where(source >= 0, source, operator)))
        names, at = np.unique(name, return_inverse=True)
        ns = np.zeros(len(names), np.int64)
        np.add.at(ns, at, last - first)
        return names[names != NULL], ns[names != NULL]

    def outermost_operator(self, time: Array) -> Array:
        """For each time the name of the outermost operator around it, `NULL` where there is none."""
        result = np.full(len(time), NULL, np.int64)
        if not len(self._low):
            return result
        row, stretch, _, _ = overlaps(time, time + 1, (self._low, self._high))
        result[row] = self._names(self._around(self._owner[stretch], _ANY_OPERATOR, True))
        return result

    def _names(self, at: Array) -> Array:
        """The names of ranges, `NULL` for those that are -1."""
        if are_alike(at) and len(at) and at[0] < 0:
            return alike(NULL, len(at))
        return np.where(at >= 0, self._name[at], NULL) if len(self._name) else np.full(len(at), NULL, np.int64)

    def _around(self, owner: Array, kinds: tuple[int, ...], outermost: bool) -> Array:
        """The innermost (or outermost) range of these kinds around stretches of these owners, -1 where there is none."""
        mine: Bools = np.logical_or.reduce(_IS_OF[list(kinds)])[self._kind]
        return self._nearest(mine, outermost)[owner] if mine.any() else alike(-1, len(owner))

    def _nearest(self, mine: Bools, outermost: bool) -> Array:
        """For each range the innermost (or outermost) of `mine` among itself and those around it, -1 where there is none."""
        # One more at the end, so that the parent -1 of the ranges at the top finds nothing.
        result = np.full(len(mine) + 1, -1, np.int64)
        for here in self._levels:
            above, own = result[self._parent[here]], np.where(mine[here], here, -1)
            result[here] = np.where((above >= 0) & (outermost | (own < 0)), above, own)
        return result[:-1]
