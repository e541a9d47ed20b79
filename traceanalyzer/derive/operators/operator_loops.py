"""Loops over the elements of a tensor: the same few operators, one after another, again and again."""

from __future__ import annotations

import numpy as np

from traceanalyzer.columns.frames import Flags
from traceanalyzer.derive.operators.operators import Operators
from traceanalyzer.intervals import Array

LEAST_ROUNDS = 10
"""Fewer rounds are an unrolled computation (the three parts of an attention projection) rather than a loop over data."""
LONGEST_BODY = 8
"""Operators in a round. A loop that does more with each element is a model of its own, which indexing does not slow down."""
_NEAR = 40
"""Operators, inner ones included, between the indexing of two rounds: eight with a few each inside."""


def loops(operators: Operators, indexing: Array, heavy: Flags) -> tuple[Array, Array, Array]:
    """Positions of the first and the last operator of each loop, and how many rounds it has.

    `indexing` are the positions of the operators that take an element, `heavy` marks what must not lie in a loop.
    """
    nothing = np.empty(0, np.int64)
    if len(indexing) < LEAST_ROUNDS:
        return nothing, nothing, nothing
    inside = _near(indexing, len(operators.start))
    # Siblings one after another: operators in the same range, in order of start.
    at = np.flatnonzero(inside)
    at = at[np.argsort(operators.parent[at], kind="stable")]
    name, parent = operators.name[at], operators.parent[at]
    takes, weighs = np.isin(at, indexing), heavy[at]
    taken = np.zeros(len(at), bool)
    found = []
    for period in range(1, LONGEST_BODY + 1):
        same = (name[period:] == name[:-period]) & (parent[period:] == parent[:-period])
        edge = np.diff(np.concatenate(([0], same.astype(np.int64), [0])))
        first, stop = np.flatnonzero(edge > 0), np.flatnonzero(edge < 0)
        long_enough = stop - first >= period * (LEAST_ROUNDS - 1)
        first, last = first[long_enough], stop[long_enough] + period - 1
        good = (_sums(takes, first, last) > 0) & (_sums(weighs, first, last) == 0) & (_sums(taken, first, last) == 0)
        for low, high in zip(first[good].tolist(), last[good].tolist(), strict=True):
            taken[low : high + 1] = True
            found.append((int(at[low]), int(at[high]), (high - low + 1) // period))
    if not found:
        return nothing, nothing, nothing
    first, last, rounds = np.array(sorted(found), np.int64).T
    return first, last, rounds


def _near(indexing: Array, count: int) -> Flags:
    """The operators of those stretches in which one indexing operator follows the other closely, often enough for a loop."""
    apart = np.flatnonzero(np.diff(indexing) > _NEAR) + 1
    low, high = np.concatenate(([0], apart)), np.concatenate((apart, [len(indexing)])) - 1
    often = high - low + 1 >= LEAST_ROUNDS
    change = np.zeros(count + 1, np.int64)
    np.add.at(change, indexing[low[often]], 1)
    # The last round goes on behind its indexing.
    np.add.at(change, np.minimum(indexing[high[often]] + _NEAR, count), -1)
    return np.cumsum(change[:-1]) > 0


def _sums(flags: Flags, first: Array, last: Array) -> Array:
    before = np.concatenate(([0], np.cumsum(flags)))
    return before[last + 1] - before[first]
