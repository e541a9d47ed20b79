"""One clock for a job: each lane's against the others', as far as lanes are joined by collectives that end together."""

from __future__ import annotations

import numpy as np

from traceanalyzer.intervals import Array
from traceanalyzer.ranks.collectives.alignment import Line


class LaneClocks:
    """Collects what pairs of lanes tell. Every lane begins as a clock of its own, and joined ones count as one clock."""

    def __init__(self, lanes: int) -> None:
        self.component: Array = np.arange(lanes)
        self._offset, self._slope, self._blur = np.zeros(lanes), np.zeros(lanes), np.zeros(lanes)

    def between(self, reference: int, lane: int) -> Line | None:
        """What to take from the lane's times to read the reference's clock; None when nothing joins them."""
        if self.component[reference] != self.component[lane]:
            return None
        return Line(*(float(v[lane] - v[reference]) for v in (self._offset, self._slope)))

    def blur(self, reference: int, lane: int) -> float:
        """How well that is known, in ns."""
        return float(self._blur[lane] + self._blur[reference])

    def join(self, reference: int, lane: int, clock: Line, blur: float = 0.0) -> None:
        """Add what two lanes that nothing joins yet tell of each other, and how well it is known."""
        mine, theirs = self.component[lane], self.component[reference]
        if mine == theirs:
            return
        moved = self.component == mine
        self._offset[moved] += clock.offset + self._offset[reference] - self._offset[lane]
        self._slope[moved] += clock.slope + self._slope[reference] - self._slope[lane]
        self._blur[moved] += blur
        self.component[moved] = theirs

    def offsets(self) -> Array:
        """Each lane's clock in ns against the median of those joined with it."""
        offsets = np.zeros(len(self._offset), np.int64)
        for one in np.unique(self.component):
            rows = self.component == one
            offsets[rows] = np.rint(self._offset[rows] - np.median(self._offset[rows]))
        return offsets

    def read(self, lane: Array, time: Array) -> Array:
        """Times of these lanes' clocks on the median clock of those joined with each."""
        level, slope = np.zeros(len(self._offset)), np.zeros(len(self._offset))
        for one in np.unique(self.component):
            rows = self.component == one
            level[rows] = self._offset[rows] - np.median(self._offset[rows])
            slope[rows] = self._slope[rows] - np.median(self._slope[rows])
        read: Array = time - np.rint(level[lane] + slope[lane] * time).astype(np.int64)
        return read
