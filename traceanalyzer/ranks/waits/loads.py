"""Work that ranks share unequally: who was given more of it by the exchange before, and what an equal share would save."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL
from traceanalyzer.columns.grouped import Floats, Groups
from traceanalyzer.intervals import Array
from traceanalyzer.ranks.collectives.collectives import chains, lanes

ALL_TO_ALL = "all-to-all"
UNEVEN = 1.2
"""A rank that is given a fifth more than the mean has more to do; less is what happens."""


def loads(communication: pa.Table) -> Floats:
    """For each part of a collective how many times the mean its last rank was given by the all-to-all before it in the same group.

    NaN where the collective before was none, or does not say how much came out on each rank.
    """
    instance = frames.ints(communication, "instance")
    out = frames.ints(communication, "out_bytes")
    told = (instance != NULL) & (out != NULL) & frames.equals(communication, "kind", ALL_TO_ALL)
    given = np.full(len(instance), np.nan)
    if not told.any():
        return given
    of = Groups(instance)
    mean = of.sum(np.where(told, out, 0)) / np.maximum(of.count(told), 1)
    given[told] = (out / np.maximum(mean[of.of], 1))[told]
    # What a rank was given before, by group.
    rows = np.flatnonzero(instance != NULL)
    lane = frames.dense(lanes(communication)[rows], chains(communication)[rows])
    order = rows[np.lexsort((frames.ints(communication, "start_ns")[rows], lane))]
    place = np.empty(len(instance), np.int64)
    place[rows] = lane
    same = np.diff(place[order], prepend=-1) == 0
    before = np.full(len(instance), np.nan)
    before[order] = np.where(same, np.append(np.nan, given[order])[:-1], np.nan)
    last = (instance != NULL) & np.all(
        [frames.ints(communication, c) == frames.ints(communication, f"late_{c}") for c in ("rank", "device")], axis=0
    )
    found = np.full(len(of), np.nan)
    found[of.of[last]] = before[last]
    return np.where(instance != NULL, found[of.of], np.nan)


def even_waits(communication: pa.Table) -> Array:
    """For each part of a collective what would be gone of the job's time if its ranks had come at their mean: the exposed waits in it
    over its ranks, ns. 0 for what has no counterpart."""
    instance, wait = frames.ints(communication, "instance"), frames.ints(communication, "exposed_wait")
    of = Groups(instance)
    known = (instance != NULL) & (wait != NULL)
    mean = of.sum(np.where(known, wait, 0)) // np.maximum(of.size, 1)
    return np.where(known, mean[of.of], 0)
