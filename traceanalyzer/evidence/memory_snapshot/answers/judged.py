"""One GPU's history with its steps and owners, which all answers are made from."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.evidence.memory_snapshot.answers.history import BEFORE, History, histories
from traceanalyzer.evidence.memory_snapshot.answers.owners import Owners, Stacks, owners, stacks_by_rank
from traceanalyzer.evidence.memory_snapshot.answers.periods import Periods, periods
from traceanalyzer.intervals import Array
from traceanalyzer.records import dataclass

SETTLED_STEPS = 3
"""So many steps after the first, which may still warm up, are the least that tell of what every step does."""
NEGLIGIBLE = 0.01
"""Levels that differ by less than this share of the peak are the same."""


@dataclass(frozen=True)
class Judged:
    """What is known of one GPU. `stacks` is None where none were recorded."""

    history: History
    periods: Periods
    owners: Owners
    stacks: Stacks | None

    @property
    def settled(self) -> Array:
        """The bounds of the steps that are judged: all but the first, which may still warm up; of steps that were found because they
        are alike, all."""
        bounds = self.periods.bounds
        return bounds if self.periods.method == "repetition" else bounds[1:]

    @cached_property
    def levels(self) -> Array:
        """What is in use at these bounds."""
        return self.history.allocated.before(self.settled)

    @cached_property
    def reserves(self) -> Array:
        """What is taken from the driver at these bounds."""
        return self.history.reserved.before(self.settled)

    @property
    def knows_steps(self) -> bool:
        return len(self.settled) > SETTLED_STEPS

    @property
    def rising(self) -> bool:
        """Whether more is in use after every settled step."""
        return self.knows_steps and bool((np.diff(self.levels) > 0).all())

    @property
    def flat(self) -> bool:
        """Whether as much is in use after each settled step."""
        least = NEGLIGIBLE * self.history.allocated.peak
        return self.knows_steps and int(self.levels.max() - self.levels.min()) <= least

    @property
    def growing(self) -> bool:
        """Whether each settled step takes more from the driver, though the level between them is flat and no step needs that much more.

        A peak that rises explains what is reserved, as far as it rises.
        """
        if not self.flat:
            return False
        more = np.diff(self.reserves)
        risen = int(self.peaks[-1] - self.peaks[0]) if len(self.peaks) else 0
        return bool((more > 0).all()) and int(more.sum()) >= 2 * max(risen, 1)

    @cached_property
    def peaks(self) -> Array:
        """The most in use within each settled step."""
        curve, bounds = self.history.allocated, self.settled
        if len(bounds) < 2:
            return np.empty(0, np.int64)
        at = np.searchsorted(curve.entry, bounds, side="left")
        begin = np.maximum(at - 1, 0)
        return np.array(
            [curve.level[a:b].max() for a, b in zip(begin[:-1], np.maximum(at[1:], begin[:-1] + 1), strict=True)]
        )

    @property
    def peak_entry(self) -> int:
        """The entry with which most is in use; of several the last."""
        return int(self.history.allocated.entry[self.history.allocated.peak_at])

    @property
    def whole(self) -> bool:
        """Whether the history has the beginning of the program."""
        lost = self.history.totals.get("lost_beginning")
        return lost is not True and not bool((self.history.born == BEFORE).any())


def judged_histories(
    snapshot_blocks: pa.Table,
    snapshot_events: pa.Table,
    snapshot_totals: pa.Table,
    snapshot_frames: pa.Table,
    snapshot_annotations: pa.Table,
    steps: pa.Table,
) -> list[Judged]:
    """One for each GPU of the snapshots."""
    stacks = stacks_by_rank(snapshot_frames)
    found = []
    for history in histories(snapshot_blocks, snapshot_events, snapshot_totals):
        mine = stacks.get(history.key[0])
        steps_found = periods(history, snapshot_annotations, steps)
        found.append(Judged(history, steps_found, owners(history, steps_found, mine), mine))
    return found


def capacities(devices: pa.Table) -> dict[frames.Key, int | None]:
    """The memory of each GPU in bytes, None when not recorded."""
    return {(row["rank"], row["device"]): row["memory"] for row in devices.to_pylist()}
