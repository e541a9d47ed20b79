"""The paths of a tree of calls that hold most of its time, no time twice."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.derive.host.levels import by_level, depths
from traceanalyzer.intervals import Array


def heavy_paths(tree: pa.Table, least: float) -> list[tuple[list[int], int]]:
    """The paths that have at least this share of the root's time, the heaviest first: (rows from the root's child on, ns).

    A path has what lies at and below its end and in no other of these paths: the hierarchical heavy hitters of Cormode, Korn,
    Muthukrishnan and Srivastava (VLDB 2003). `tree` is the rows of one tree in `call_trees`.
    """
    parent, left = frames.ints(tree, "parent"), frames.ints(tree, "self_ns").copy()
    heavy = np.zeros(len(parent), bool)
    total = int(frames.ints(tree, "total_ns")[0])
    for level in reversed(by_level(depths(parent))[1:]):
        heavy[level] = left[level] >= max(least * total, 1)
        light = level[~heavy[level]]
        np.add.at(left, parent[light], left[light])
    found = np.flatnonzero(heavy)
    order = found[np.argsort(-left[found], kind="stable")]
    return [(_way(parent, at), int(left[at])) for at in order.tolist()]


def _way(parent: Array, at: int) -> list[int]:
    rows = []
    while at > 0:
        rows.append(at)
        at = int(parent[at])
    return rows[::-1]
