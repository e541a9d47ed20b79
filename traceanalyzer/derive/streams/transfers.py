"""What copies and communication kernels have in common: the time that nothing hides, and whether their stream could hide it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.intervals import Array, Spans, coverage


def first_coverage(start: Array, end: Array) -> tuple[Array, Array]:
    """The intervals, sorted by start, without what an earlier one covers: what they have in common belongs to the first."""
    reach = np.maximum.accumulate(end)
    first = np.concatenate((start[:1], np.maximum(start[1:], reach[:-1])))
    return np.minimum(first, end), end


def exposed_time(start: Array, end: Array, cover: Spans) -> Array:
    """For each interval, how many ns of it `cover` leaves."""
    return end - start - coverage(start, end, cover)


def computes(ops: pa.Table) -> frames.Flags:
    """Where an operation is a compute kernel or a graph-level execution."""
    return frames.equals(ops, "class", "compute") & frames.equals(ops, "kind", "kernel", "graph")


def on_compute_stream(ops: pa.Table) -> frames.Flags:
    """For each operation, whether compute kernels run on its stream too."""
    stream = frames.streams(ops)
    compute = np.zeros(stream.max(initial=-1) + 1, bool)
    compute[stream[computes(ops)]] = True
    return compute[stream]
