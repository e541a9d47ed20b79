"""Process groups told apart across ranks.

PyTorch counts its groups in each process: the same name can be another group on another rank, and the same group have another name
there. Its ranks are the same everywhere, and several groups of the same ranks are made in the same order.
"""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL
from traceanalyzer.columns.grouped import Groups
from traceanalyzer.intervals import Array


def groups(kernels: pa.Table, lane: Array) -> Array:
    """A number for the group of each communication kernel, the same on all ranks; `NULL` where no group is told."""
    ranks, told = frames.codes(kernels, "group_ranks")
    name, names = frames.codes(kernels, "group")
    nameless, known = name == len(names) - 1, ranks != len(told) - 1
    label = np.where(nameless, -1, name)
    told_rows = np.flatnonzero(known & ~nameless)
    if len(told_rows):
        pair = frames.dense(ranks, lane, name)
        own = Groups(pair[told_rows])
        row = told_rows[own.first]
        begun = own.min(frames.ints(kernels, "start_ns")[told_rows])
        placed = _places(ranks[row], lane[row], name[row], begun, names)
        at = own.find(pair)
        label = np.where(at >= 0, placed[at], label)
    return np.where(nameless & ~known, NULL, frames.dense(np.where(known, ranks, -1), label))


def _places(ranks: Array, lane: Array, name: Array, start: Array, names: list[str | None]) -> Array:
    """For each (ranks, lane, name) its name, or its place among the groups of these ranks where lanes have different names for them."""
    number = np.array([int(n) if n and n.isdecimal() else NULL for n in names], object)[name].astype(np.int64)
    order = np.lexsort((name, start, number, lane, ranks))
    place = np.empty(len(order), np.int64)
    of_lane, of_ranks = Groups(frames.dense(ranks, lane)), Groups(ranks)
    place[order] = Groups(of_lane.of[order]).position()
    count = of_lane.size[of_lane.of]
    most = of_ranks.max(count)
    same_count, shared = of_ranks.min(count) == most, of_ranks.distinct(name) == most
    by_name = (shared | ~same_count)[of_ranks.of]
    return np.where(by_name, name, len(names) + place)


def members(group_ranks: str | None) -> list[int]:
    """The ranks of a group as recorded (JSON); empty when they are not told, or not all of them."""
    try:
        return [int(rank) for rank in json.loads(group_ranks or "[]")]
    except (ValueError, TypeError):
        return []
