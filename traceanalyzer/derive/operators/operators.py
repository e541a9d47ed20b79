"""The operators of one host thread in order, and what each started on the GPU."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import Flags
from traceanalyzer.derive.host.callers import Callers
from traceanalyzer.intervals import Array
from traceanalyzer.records import dataclass


@dataclass(frozen=True)
class GpuWork:
    """The GPU operations that one thread launched, by the time of the call; the running sums begin with 0."""

    call: Array
    device: Array
    time_before: Array
    inbound_before: Array

    @classmethod
    def of(cls, launches: pa.Table, inbound: Flags) -> GpuWork:
        """From launches of one thread; `inbound` marks copies from the host to the GPU."""
        call, device, start, end = (
            frames.ints(launches, c) for c in ("start_ns", "device", "op_start_ns", "op_end_ns")
        )
        time = end - start
        if (call[1:] < call[:-1]).any():
            order = np.argsort(call, kind="stable")
            call, device, time, inbound = call[order], device[order], time[order], inbound[order]
        return cls(
            call, device, *(np.concatenate(([0], np.cumsum(values, dtype=np.int64))) for values in (time, inbound))
        )

    def count(self, start: Array, end: Array) -> Array:
        """How many operations were launched in each interval."""
        return np.searchsorted(self.call, end) - np.searchsorted(self.call, start)

    def time(self, start: Array, end: Array) -> Array:
        """How long the operations launched in each interval ran on the GPU, in ns."""
        return self.time_before[np.searchsorted(self.call, end)] - self.time_before[np.searchsorted(self.call, start)]

    def inbound(self, start: Array, end: Array) -> Array:
        """How many copies from the host were launched in each interval."""
        before = self.inbound_before
        return before[np.searchsorted(self.call, end)] - before[np.searchsorted(self.call, start)]

    def first_device(self, start: Array) -> Array:
        """The GPU of the first operation launched from each time on, `NULL` where there is none."""
        return np.append(self.device, frames.NULL)[np.searchsorted(self.call, start)]


class Operators:
    """The operators among the ranges of one thread, sorted by (start, -end).

    `name` indexes the names of host_ranges, `role` is what the caller made of them, `row` the row in host_ranges, and `parent` the row
    of the innermost range around that is no Python frame, -1 at the top.
    """

    def __init__(self, callers: Callers, rows: slice, name: Array, role: Array, gpu: GpuWork) -> None:
        """`rows` are the thread's rows of host_ranges; `name` and `role` have one entry for each of them."""
        own = callers.operator[rows]
        self.callers, self.gpu = callers, gpu
        self.row = np.arange(rows.start, rows.stop)[own]
        self.start, self.end = callers.start[rows][own], callers.end[rows][own]
        self.name, self.role = name[own], role[own]
        self.parent = callers.outside_frames(self.row)
        self._ranges = (callers.start[rows], callers.end[rows], role)

    def where(self, role: int) -> Array:
        """Positions of the operators with this role."""
        return np.flatnonzero(self.role == role)

    def ranges(self, role: int) -> tuple[Array, Array]:
        """Start and end of the outermost ranges of any kind with this role."""
        start, end, roles = self._ranges
        here = np.flatnonzero(roles == role)
        here = here[_top(start[here], end[here])]
        return start[here], end[here]

    def outermost(self, at: Array) -> Array:
        """Of these positions, in order, those that lie in no other of them."""
        return at[_top(self.start[at], self.end[at])]

    def after(self, at: Array) -> Array:
        """For each position that of the first operator that starts when it is over; the number of operators where there is none."""
        return np.searchsorted(self.start, self.end[at])

    def shapes(self, at: Array) -> list[str]:
        """The input shapes recorded at these positions (JSON), "" where there are none."""
        return self.callers.texts("shapes", self.row[at])

    def dtypes(self, at: Array) -> list[str]:
        """The input types recorded at these positions (JSON), "" where there are none."""
        return self.callers.texts("dtypes", self.row[at])


def _top(start: Array, end: Array) -> Flags:
    """Which of these ranges, sorted by (start, -end), lie in no other of them."""
    return np.concatenate((np.ones(len(start[:1]), bool), start[1:] >= np.maximum.accumulate(end)[:-1]))
