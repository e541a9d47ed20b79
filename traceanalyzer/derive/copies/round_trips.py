"""Copies that take data to the host only to bring it back: nobody had the time to change it in between.

Traces hold no addresses that last, so a round trip is told by what it looks like: so many bytes come down, the same number goes up
again next, and the time between, other copies aside, is far too short to read them.
"""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.columns import frames
from traceanalyzer.intervals import Array, coverage, union

LEAST_BYTES = 64 << 10
"""What is smaller is parameters and results, of which many have one size."""
TOUCHED = 0.25
"""A host that reads or changes data takes about as long as a copy of it does; in less than this share of both copies it did neither."""
_USED = re.compile(r"^MPI_(?!Wtime|Comm_|Init|Barrier)")
"""Calls that send or receive what the host has."""
_FILES = re.compile(
    r"^(?:f?write|f?read|p?writev?|p?readv?|pwrite64|pread64|f(?:data)?sync|send\w*|recv\w*|fputs|fgets|f?printf)$"
)
"""Calls of the operating system that write out or read in."""


def round_trips(copies: pa.Table, host_ranges: pa.Table) -> frames.Flags:
    """For each copy whether it is one half of a round trip."""
    marked = np.zeros(copies.num_rows, bool)
    if not {"htod", "dtoh"} <= {*pc.unique(copies["copy_kind"]).to_pylist()}:
        return marked
    down = frames.equals(copies, "copy_kind", "dtoh")
    size = frames.ints(copies, "bytes")
    wanted = np.flatnonzero((down | frames.equals(copies, "copy_kind", "htod")) & (size >= LEAST_BYTES))
    if not len(wanted):
        return marked
    start, end = frames.ints(copies, "start_ns"), frames.ints(copies, "end_ns")
    lane = frames.dense(*(frames.ints(copies, c)[wanted] for c in ("rank", "device", "process", "bytes")))
    rows = wanted[np.lexsort((start[wanted], lane))]
    lane = np.sort(lane)
    first, last = _pairs(lane, down[rows])
    first, last = rows[first], rows[last]
    between = np.maximum(start[last] - end[first], 0)
    busy = coverage(end[first], np.maximum(start[last], end[first]), union(start, end))
    quick = between - busy <= TOUCHED * (end[first] - start[first] + end[last] - start[last])
    used = frames.where(host_ranges, "name", lambda name: _USED.match(name) is not None)
    system = frames.equals(host_ranges, "category", "os")
    used |= system & frames.where(host_ranges, "name", lambda name: _FILES.match(name) is not None)
    when = np.sort(frames.ints(host_ranges, "start_ns")[used])
    quick &= np.searchsorted(when, start[last]) == np.searchsorted(when, start[first])
    marked[first[quick]] = marked[last[quick]] = True
    return marked


def _pairs(lane: Array, down: frames.Flags) -> tuple[Array, Array]:
    """Places of each copy down and of the copy up of its lane that brings it back: of a run of copies down and the run of copies up
    behind it, the first with the first and so on."""
    change = np.flatnonzero((np.diff(lane) != 0) | (np.diff(down.astype(np.int8)) != 0)) + 1
    begin = np.concatenate(([0], change))
    length = np.diff(np.concatenate((begin, [len(lane)])))
    down_run = np.flatnonzero(down[begin][:-1] & ~down[begin][1:] & (lane[begin][:-1] == lane[begin][1:]))
    pairs = np.minimum(length[down_run], length[down_run + 1])
    offset = np.arange(pairs.sum()) - np.repeat(np.cumsum(pairs) - pairs, pairs)
    return np.repeat(begin[down_run], pairs) + offset, np.repeat(begin[down_run + 1], pairs) + offset
