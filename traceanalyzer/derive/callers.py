"""Who made a call: the operator that the program called, and the line of the program that called it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceanalyzer.derive import frames
from traceanalyzer.derive.places import frame_text, is_user_frame
from traceanalyzer.intervals import Array

Flags = npt.NDArray[np.bool_]


class Callers:
    """The host ranges as trees, one a thread. Rows are those of the table, which is sorted by (rank, process, thread, start, -end).

    `parent` is the row of the innermost range around each, -1 at the top.
    """

    def __init__(self, host_ranges: pa.Table) -> None:
        self._table = host_ranges
        self._rank, self._process, self._thread = (frames.ints(host_ranges, c) for c in ("rank", "process", "thread"))
        self.start, self.end = frames.ints(host_ranges, "start_ns"), frames.ints(host_ranges, "end_ns")
        parent = frames.ints(host_ranges, "parent")
        # Counted from the first row of the rank.
        ranks, first, rank = np.unique(self._rank, return_index=True, return_inverse=True)
        self.parent = np.where(parent == frames.NULL, -1, parent + (first[rank] if len(ranks) > 1 else 0))
        self.operator = frames.equals(host_ranges, "category", "operator")
        self._frame = frames.equals(host_ranges, "category", "python")

    def around(self, rank: int, process: int, thread: int, time: Array) -> Array:
        """For each time the row of the innermost range of the thread around it, -1 where there is none."""
        mine = np.flatnonzero((self._rank == rank) & (self._process == process) & (self._thread == thread))
        if not len(mine):
            return np.full(len(time), -1, np.int64)
        index = np.searchsorted(self.start[mine], time, side="right") - 1
        return self._up(np.where(index >= 0, mine[np.maximum(index, 0)], -1), lambda row, at: self.end[row] <= time[at])

    def outermost_operator(self, row: Array) -> Array:
        """The outermost operator around each row, with no range of another kind in between; -1 where the row is in no operator."""
        row = self._up(row, lambda row, _: ~self.operator[row])
        above = np.append(self.operator, False)
        return self._up(row, lambda row, _: above[self.parent[row]])

    def outside_frames(self, row: Array) -> Array:
        """The innermost range around each row that is no Python frame, -1 where there is none."""
        return self._up(self.parent[row], lambda row, _: self._frame[row])

    def names(self, row: Array) -> pa.Array:
        """The names of rows, null for -1."""
        return self._table["name"].combine_chunks().take(pa.array(row, mask=row < 0))

    def sources(self, row: Array) -> pa.Array:
        """The line of the program's own code that each row was called from, null where no Python frames were recorded."""
        name, names = frames.codes(self._table, "name")
        own = np.array([value is not None and is_user_frame(value) for value in names])
        at = self._up(row, lambda row, _: ~(self._frame[row] & own[name[row]]))
        texts: list[str | None] = [None if value is None else frame_text(value) for value in names]
        return frames.names(np.append(name, len(names) - 1)[at], texts)

    def texts(self, column: str, row: Array) -> list[str]:
        """A column of texts at these rows, "" for nulls."""
        return [text or "" for text in self._table[column].take(pa.array(row)).to_pylist()]

    def _up(self, row: Array, leave: Callable[[Array, Array], Flags]) -> Array:
        """Go up from each row as long as `leave(rows, their positions)` holds; -1 is above the top."""
        row, at = row.copy(), np.arange(len(row))
        while len(at := at[row[at] >= 0]) and len(at := at[leave(row[at], at)]):
            row[at] = self.parent[row[at]]
        return row
