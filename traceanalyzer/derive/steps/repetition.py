"""Steps that nobody marked, found by the repetition of the sequence of launches.

A run of launches that comes back at an even distance is an anchor, and what lies from one anchor to the next may be a step. It may
also be a layer, or ten steps and a line of log. So a step must repeat at least three times, tile most of the recording, look alike each
time, leave nothing over that belongs to a larger whole, and hold what a layer does not: an update of the weights, a backward pass or
input from the host. Gaps in time play no part. Where this is not so there are no steps: none is better than wrong ones.
"""

from __future__ import annotations

import re
from functools import cached_property

import numpy as np
import numpy.typing as npt

from traceanalyzer.columns import frames
from traceanalyzer.intervals import Array
from traceanalyzer.records import dataclass

MIN_STEPS = 3
"""Two of anything may be chance, and no distance between two can be even."""
MIN_LAUNCHES = 8
"""A shorter unit is a loop inside something, such as one cell of a recurrent network."""
RUNS = (1, 8)
"""Anchors are runs of so many launches: one that occurs once a step, or a place told by its surroundings."""
EVEN = 0.25
"""By what part of the median the distance between neighbours may differ: steps of changing shapes, and logging, differ a little."""
MOSTLY = 0.8
"""The share of distances, of launches or of steps that must be as they should be; the rest is start-up, evaluation and the like."""
SUPPORT = 0.01
"""The share of a unit's places that must be anchors. Among many names some come three times at even distances by chance."""
FOREIGN = 0.1
"""The share of kernel names outside the typical unit from which the units are parts of something larger: its first and last layers."""
DECORATED = 0.02
"""A unit inside a larger one is the step if the larger one adds less than this to its repetitions, such as a line of log."""
SAMPLE = 256
"""How many units are compared; more say nothing new."""

UPDATE = re.compile(
    r"multi_?tensor|adam|adagrad|rmsprop|(?<![a-z])(?:lamb|lion|sgd)(?![a-z])|optimizer|triton_for_", re.IGNORECASE
)
BACKWARD = re.compile(r"backward|[_:]bwd|bwd_|dgrad|wgrad", re.IGNORECASE)
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Launches:
    """The launches of one device in order: `symbol` tells apart what they start, below `count`.

    Three flags for each symbol: `kernel` (or a graph), `update` (weights), `material` (input from the host, or a backward pass).
    """

    symbol: Array
    count: int
    kernel: Bools
    update: Bools
    material: Bools


@dataclass(frozen=True)
class Units:
    """A cut of launches into units [start, end), given by positions. Figures are of at most `SAMPLE` of them, evenly chosen."""

    launches: Launches
    start: Array
    end: Array

    @cached_property
    def _counts(self) -> Array:
        """Occurrences by (unit, symbol)."""
        chosen = np.unique(np.linspace(0, len(self.start) - 1, SAMPLE).astype(np.int64))
        size, width = len(chosen), self.launches.count
        length = (self.end - self.start)[chosen]
        unit = np.repeat(np.arange(size), length)
        place = np.arange(length.sum()) + (self.start[chosen] - np.cumsum(length) + length)[unit]
        counts: Array = np.bincount(unit * width + self.launches.symbol[place], minlength=size * width).reshape(
            size, width
        )
        return counts

    @cached_property
    def typical(self) -> Array:
        """How often each symbol occurs in the median unit."""
        middle: Array = np.median(self._counts, axis=0).astype(np.int64)
        return middle

    @cached_property
    def likeness(self) -> npt.NDArray[np.float64]:
        """For each unit how much it has in common with the typical one, 0 to 1."""
        common = np.minimum(self._counts, self.typical).sum(axis=1)
        share: npt.NDArray[np.float64] = common / np.maximum(self._counts, self.typical).sum(axis=1)
        return share

    @cached_property
    def rank(self) -> int:
        """2 when a unit updates weights, 1 when it holds something else that a layer does not, else 0."""
        held = self.typical > 0
        return 2 if (held & self.launches.update).any() else int((held & self.launches.material).any())

    def are_alike(self) -> bool:
        """Whether there are enough of them, of some length, that tile the launches, look alike and may be steps by their rank."""
        length = self.end - self.start
        if len(length) < MIN_STEPS or np.median(length) < MIN_LAUNCHES or not self.rank:
            return False
        tile = length.sum() >= MOSTLY * len(self.launches.symbol)
        return bool(tile and (self.likeness >= MOSTLY).mean() >= MOSTLY)

    def with_updates(self) -> Units:
        """Those that update weights; one that does not, such as an evaluation, belongs to the one before it."""
        updates = np.concatenate(([0], np.cumsum(self.launches.update[self.launches.symbol])))
        start = self.start[updates[self.end] > updates[self.start]]
        return Units(self.launches, start, np.append(start[1:], self.end[-1]))

    def are_parts(self) -> bool:
        """Whether kernels that the typical unit lacks show something larger around it. A start-up longer than a unit does not count."""
        first, length = int(self.start[0]), int(np.median(self.end - self.start))
        rest = self.launches.symbol[first if first >= length else 0 :]
        seen = np.bincount(rest, minlength=self.launches.count) > 0
        own, kernel = self.typical > 0, self.launches.kernel
        return bool((seen & kernel & ~own).sum() > FOREIGN * (kernel & own).sum())


def find(launches: Launches) -> Units | None:
    """The steps among the launches; None when there are none that can be told."""
    found = [units for units in _candidates(launches) if units.are_alike()]
    rank = max((units.rank for units in found), default=0)
    found = [units for units in found if units.rank == rank]
    if rank == 2:
        # Weights are updated once a step, so the smallest unit that does it is the step.
        found = [found[-1].with_updates()]
    while len(found) > 1 and found[1].likeness.mean() > 1 - DECORATED:
        found = found[1:]
    return found[0] if len(found) == 1 and not found[0].are_parts() else None


def _candidates(launches: Launches) -> list[Units]:
    """Cuts at the anchors of each period, the largest period first."""
    parts = [_anchors(runs(launches.symbol, length)) for length in RUNS]
    position, size, period, even = (np.concatenate(column) for column in zip(*parts, strict=True))
    begin = np.cumsum(size) - size
    result = []
    left = np.flatnonzero(period >= MIN_LAUNCHES)
    while len(left):
        near = period[left] > (1 - EVEN) * period[left].max()
        same, left = left[near], left[~near]
        if len(same) < SUPPORT * period[same].min():
            continue
        # The anchor that misses fewest units and has fewest to spare; of equals the one that is met first.
        best = same[np.lexsort((position[begin[same]], size[same] - 2 * even[same]))[0]]
        result.append(_cut(launches, position[begin[best] : begin[best] + size[best]]))
    return result


def runs(symbol: Array, length: int) -> Array:
    """For each position a number that tells apart the runs of `length` (a power of two) launches that begin there."""
    run, reach = symbol, 1
    while reach < length and len(run) > reach:
        run, reach = frames.dense(run[:-reach], run[reach:]), 2 * reach
    return run


def _anchors(run: Array) -> tuple[Array, Array, Array, Array]:
    """The runs that come back evenly: their positions, and of each how many, the median distance and the number of even distances."""
    order = np.argsort(run, kind="stable")
    size = np.bincount(run)
    often = size >= MIN_STEPS
    order, size = order[np.repeat(often, size)], size[often]
    begin = np.cumsum(size) - size
    owner = np.repeat(np.arange(len(size)), size)[1:]
    distance = np.diff(order)
    within = np.ones(len(distance), bool)
    within[begin[1:] - 1] = False
    distance, owner = distance[within], owner[within]
    ranked = distance[np.lexsort((distance, owner))]
    period = ranked[begin - np.arange(len(size)) + (size - 1) // 2]
    even = np.abs(distance - period[owner]) <= EVEN * period[owner]
    evens = np.bincount(owner, weights=even, minlength=len(size)).astype(np.int64)
    tiled = np.bincount(owner, weights=even * distance, minlength=len(size)) + period
    keep = (evens >= MOSTLY * (size - 1)) & (tiled >= MOSTLY * len(run))
    return order[np.repeat(keep, size)], size[keep], period[keep], evens[keep]


def _cut(launches: Launches, anchor: Array) -> Units:
    """Units from anchor to anchor, begun as early as what precedes the anchors is the same."""
    symbol = launches.symbol
    length = int(np.median(np.diff(anchor)))
    back = np.arange(1, min(int(anchor[0]), length - 1) + 1)
    same = symbol[anchor[1:, None] - back] == symbol[anchor[0] - back]
    differs = np.flatnonzero(same.mean(axis=0) < 0.5)
    start = anchor - (int(differs[0]) if len(differs) else len(back))
    if len(symbol) - start[-1] < (1 - EVEN) * length:
        return Units(launches, start[:-1], start[1:])
    return Units(launches, start, np.append(start[1:], min(int(start[-1]) + length, len(symbol))))
