"""Which operations were seen to wait for another stream or GPU: something there ended just before they began.

Without a partner nothing in the trace says why an operation that was launched in time did not run.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL
from traceanalyzer.derive.streams.handover import HANDOVER_NS
from traceanalyzer.intervals import Array


class Partners:
    """The ends of all operations, in their order."""

    def __init__(self, ops: pa.Table) -> None:
        file, device, stream = (frames.ints(ops, c) for c in ("rank", "device", "stream"))
        self._start, end = frames.ints(ops, "start_ns"), frames.ints(ops, "end_ns")
        self._known = stream != NULL
        gpu = frames.dense(file, device)
        # The clocks of other files are not held against each other.
        several = gpu.max(initial=0) > frames.dense(file).max(initial=0)
        self._gpus = _Ends(file, gpu, end, np.arange(len(end))) if several else None
        self._streams = _Ends(gpu, frames.streams(ops), end, np.flatnonzero(self._known))

    def of(self, op: Array) -> frames.Flags:
        """Whether shortly before each of some operations, given by their rows, one of another stream or GPU of its file ended.

        An operation of an unknown stream is only known not to be of another GPU.
        """
        begun = self._start[op]
        found = self._gpus.shortly_before(op, begun) if self._gpus else np.zeros(len(op), bool)
        own = self._known[op]
        found[own] |= self._streams.shortly_before(op[own], begun[own])
        return found


class _Ends:
    """The ends of some rows by group, in order of time. A group has parts, each of which lies in one group."""

    def __init__(self, group: Array, part: Array, end: Array, rows: Array) -> None:
        self._group, self._part = group, part
        self._of: dict[int, tuple[Array, Array, Array]] = {}
        for (key,), at in frames.together(group[rows]):
            mine = rows[at]
            if (part[mine] != part[mine[0]]).any():
                mine = mine[np.argsort(end[mine], kind="stable")]
                own = part[mine]
                # What lies before a stretch of one part is of another part.
                stretch = np.where(np.diff(own, prepend=-1) != 0, np.arange(len(own)), 0)
                self._of[key] = end[mine], own, np.maximum.accumulate(stretch)

    def shortly_before(self, op: Array, time: Array) -> frames.Flags:
        """For each of some rows whether at a time or shortly before it one of its group ended that is of another part of it."""
        found = np.zeros(len(op), bool)
        for (key,), asked in frames.together(self._group[op]):
            if key in self._of:
                end, part, stretch = self._of[key]
                at = np.searchsorted(end, time[asked], side="right") - 1
                at = np.where((at >= 0) & (part[at] == self._part[op[asked]]), stretch[at] - 1, at)
                found[asked] = (at >= 0) & (time[asked] - end[at] <= HANDOVER_NS)
        return found
