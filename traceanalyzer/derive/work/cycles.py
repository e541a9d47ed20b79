"""The period of a sequence of kernels: how many there are until the sequence begins again.

Unlike a step (`repetition`), a period need not mean anything to the program: it is the least work that comes again and again, by which
two captures of the same kernels can be compared.
"""

from __future__ import annotations

import numpy as np

from traceanalyzer.derive.steps.repetition import RUNS, runs
from traceanalyzer.intervals import Array

REPEATS = 2
"""The sequence must be there as often as this."""
SAME = 0.9
"""The share of kernels that must be the same one period later; streams that run side by side swap neighbours."""
AS_GOOD = 0.005
"""A shorter period does if it misses no more than this share of kernels more. One layer of many repeats nearly as well as a step."""
CANDIDATES = 256
"""Distances that are tried, those at which most kernels come again."""


def period(symbol: Array) -> int | None:
    """The period of a sequence of small non-negative integers; None where it does not repeat."""
    longest = (len(symbol) - 1) // REPEATS
    found = np.unique(np.concatenate([_distances(runs(symbol, length)) for length in RUNS]))
    tried: list[int] = found[found <= longest].tolist()
    same = [float((symbol[p:] == symbol[:-p]).mean()) for p in tried]
    best = max(same, default=0.0)
    if best < SAME:
        return None
    return min(p for p, share in zip(tried, same, strict=True) if share >= best - AS_GOOD)


def _distances(symbol: Array) -> Array:
    """Median distances at which symbols come again, those of most symbols first; of equals the smallest."""
    order = np.argsort(symbol, kind="stable")
    distance, owner = np.diff(order), symbol[order][1:]
    within = symbol[order][1:] == symbol[order][:-1]
    distance, owner = distance[within], owner[within]
    if not len(distance):
        return np.zeros(0, np.int64)
    ranked = np.lexsort((distance, owner))
    begin = np.flatnonzero(np.diff(owner[ranked], prepend=-1))
    size = np.diff(np.append(begin, len(ranked)))
    median = distance[ranked][begin + (size - 1) // 2]
    values, votes = np.unique(median, return_counts=True)
    first: Array = values[np.lexsort((values, -votes))][:CANDIDATES]
    return first
