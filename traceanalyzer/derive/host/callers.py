"""Who made a call: the operator that the program called, and the line of the program that called it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.columns.spill import stored
from traceanalyzer.intervals import Array
from traceanalyzer.places import frame_text, is_user_frame


class Callers:
    """The host ranges as trees, one a thread. Rows are those of the table, which is sorted by (rank, process, thread, start, -end).

    `parent` is the row of the innermost range around each, -1 at the top.
    """

    def __init__(self, host_ranges: pa.Table) -> None:
        self._table = host_ranges
        self.threads = dict(frames.threads(host_ranges))
        self.start, self.end = frames.ints(host_ranges, "start_ns"), frames.ints(host_ranges, "end_ns")
        # Counted from the first row of the rank.
        rank = frames.ints(host_ranges, "rank")
        first = np.maximum.accumulate(np.where(np.diff(rank, prepend=rank[:1] - 1) != 0, np.arange(len(rank)), 0))
        parent = frames.ints(host_ranges, "parent")
        self.parent = stored(np.where(parent == frames.NULL, -1, parent + first))
        self.operator = frames.equals(host_ranges, "category", "operator")
        self._frame = frames.equals(host_ranges, "category", "python")

    def around(
        self, rank: Array, process: Array, thread: Array, time: Array, *, wanted: frames.Flags | None = None
    ) -> Array:
        """For each time on a thread the row of the innermost range around it, -1 where there is none; only of those that are `wanted`,
        if that is told."""
        row = np.full(len(time), -1, np.int64)
        for (one, other, another), at in frames.together(rank, process, thread):
            mine = self.threads.get((one, other, another), slice(0, 0))
            index = np.searchsorted(self.start[mine], time[at], side="right") - 1
            row[at] = np.where(index >= 0, mine.start + index, -1)
        if wanted is None:
            return self._up(row, lambda row, at: self.end[row] <= time[at])
        return self._up(row, lambda row, at: (self.end[row] <= time[at]) | ~wanted[row])

    def those_around(self, row: Array) -> frames.Flags:
        """Which of all ranges are around at least one of these rows, these among them; -1 is no row."""
        found = np.zeros(len(self.parent), bool)
        row = np.unique(row[row >= 0])
        while len(row := row[~found[row]]):
            found[row] = True
            row = np.unique(self.parent[row])
            row = row[row >= 0]
        return found

    def nearest(self, row: Array, wanted: frames.Flags) -> Array:
        """The innermost of some ranges around each row, itself among them; -1 where there is none."""
        return self._up(row, lambda row, _: ~wanted[row])

    def outermost_operator(self, row: Array) -> Array:
        """The outermost operator around each row, with no range of another kind in between; -1 where the row is in no operator."""
        row = self._up(row, lambda row, _: ~self.operator[row])
        above = np.append(self.operator, False)
        return self._up(row, lambda row, _: above[self.parent[row]])

    def outside_frames(self, row: Array) -> Array:
        """The innermost range around each row that is no Python frame, -1 where there is none."""
        return self._up(self.parent[row], lambda row, _: self._frame[row])

    @cached_property
    def _names(self) -> tuple[Array, list[str | None]]:
        return frames.codes(self._table, "name")

    @cached_property
    def _user_frame(self) -> frames.Flags:
        return self._frame & frames.passing(*self._names, is_user_frame, self._frame)

    def names(self, row: Array) -> pa.Array:
        """The names of rows, null for -1."""
        return self._table["name"].take(pa.array(row, mask=row < 0)).combine_chunks()

    def sources(self, row: Array) -> pa.Array:
        """The line of the program's own code that each row was called from, null where no Python frames were recorded."""
        name, names = self._names
        at = self._up(row, lambda row, _: ~self._user_frame[row])
        return frames.names(np.append(name, frames.NULL)[at], names, frame_text)

    def texts(self, column: str, row: Array) -> list[str]:
        """A column of texts at these rows, "" for nulls."""
        return [text or "" for text in self._table[column].take(pa.array(row)).to_pylist()]

    def _up(self, row: Array, leave: Callable[[Array, Array], frames.Flags]) -> Array:
        """Go up from each row as long as `leave(rows, their positions)` holds; -1 is above the top."""
        row, at = row.copy(), np.arange(len(row))
        while len(at := at[row[at] >= 0]) and len(at := at[leave(row[at], at)]):
            row[at] = self.parent[row[at]]
        return row
