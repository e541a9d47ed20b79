"""Nested ranges and nodes of trees, given by the position of what is around each (-1 at the top), level by level."""

from __future__ import annotations

import numpy as np

from traceanalyzer.intervals import Array


def enclosing(parent: Array, end: Array) -> Array:
    """What is around each range, where of two that cross the one that ends first is not around the other: its own parent may be."""
    found = parent.copy()
    while len(crossing := np.flatnonzero((found >= 0) & (end[found] < end))):
        found[crossing] = found[found[crossing]]
    return found


def depths(parent: Array) -> Array:
    """How many are around each."""
    # Each round looks twice as far up. One more at the end, which is its own parent.
    top = len(parent)
    above = np.append(np.where(parent >= 0, parent, top), top)
    depth = (above < top).astype(np.int64)
    while (above < top).any():
        depth, above = depth + depth[above], above[above]
    return depth[:-1]


def by_level(depth: Array) -> list[Array]:
    """The positions level by level, so that each comes after its parent."""
    # Small numbers are sorted in linear time.
    small = depth.astype(np.uint16) if depth.max(initial=0) < 1 << 16 else depth
    order = np.argsort(small, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(depth[order])) + 1) if len(order) else []
