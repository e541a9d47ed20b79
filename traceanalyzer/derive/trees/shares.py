"""How operations that run at once share a line of the ledger."""

from __future__ import annotations

import numpy as np

from traceanalyzer.columns import ascending
from traceanalyzer.intervals import Array, Spans, coverage, total


def shares(start: Array, end: Array, spans: Spans) -> Array:
    """How many ns of `spans` each operation has. At each moment those that run have equal shares; all have all of it, exactly.

    Each moment of `spans` must be covered by an operation. Whole ns: where equal shares are none, they are off by one.
    """
    length, whole = end - start, total(spans)
    if int(length.sum()) == whole:  # none runs beside another, nor outside of them
        return length
    alone = coverage(start, end, spans)
    if int(alone.sum()) == whole:
        return alone
    times = ascending(np.concatenate((start, end, *spans)))
    at_start, at_end, low, high = (np.searchsorted(times, one) for one in (start, end, *spans))
    count = len(times)
    running = np.cumsum(np.bincount(at_start, minlength=count) - np.bincount(at_end, minlength=count))
    inside = np.cumsum(np.bincount(low, minlength=count) - np.bincount(high, minlength=count)) > 0
    each = np.where(inside & (running > 0), 1 / np.maximum(running, 1), 0.0)[:-1] * np.diff(times)
    before = np.concatenate(([0.0], np.cumsum(each)))
    result: Array = np.clip(np.rint(before[at_end] - before[at_start]).astype(np.int64), 0, alone)
    while (left := whole - int(result.sum())) != 0:
        rows = np.flatnonzero(result < alone if left > 0 else result > 0)
        most = rows[np.argsort(-result[rows], kind="stable")[: abs(left)]]
        result[most] += 1 if left > 0 else -1
    return result
