"""A timeline that is played again, and the places that leave a GPU idle: what rules ask of them, and what they are told."""

from __future__ import annotations

from typing import Protocol

from traceanalyzer.columns.frames import Key
from traceanalyzer.model.claimed import Claimed
from traceanalyzer.records import dataclass

MOST_WRONG = 0.03
"""A timeline that is played again with nothing taken out must last as long as it did, within this share."""
MOSTLY = 0.5
"""A place that holds less of the time, or a piece of idle time of which less lies in the place, is not what causes it."""


@dataclass(frozen=True)
class Prediction:
    """A step as it is and as it would be, in ns: the mean from one step's end to the next's; else the window, without two steps.

    `claimed` is what of the claim lies in it, `work` how much GPU time goes beyond the claim. `start` and `end` are of the whole of the
    time that is told of, `steps` how many steps it holds. `unprofiled` is as `then`, without what recording cost; None where that is
    not known, or no step is told of.
    """

    now: int
    then: int
    claimed: int
    work: int
    start: int
    end: int
    steps: int
    per_step: bool
    unprofiled: int | None

    @property
    def further(self) -> int:
        """What it gives beyond the claim."""
        return self.now - self.then - self.claimed


@dataclass(frozen=True)
class JobPrediction:
    """A step of the whole job as it is and as it would be, in ns: that of the rank that takes longest, the mean from one step's end
    to the next's; without two steps (not `per_step`) the longest window."""

    now: int
    then: int
    per_step: bool


@dataclass(frozen=True)
class Place:
    """`ns` of idle time lie in `name`; `claimed` are the pieces of the claim that lie there, by ledger line."""

    name: str
    ns: int
    claimed: Claimed


@dataclass(frozen=True)
class Beside:
    """Idle time beyond a claim: the one `place` in which at least half of it lies, else the largest `causes` that hold nearly all."""

    place: str | None
    causes: tuple[str, ...]


class WhatIf(Protocol):
    """The steps of all GPUs, played again without some of the time that they take."""

    def without(self, key: Key, claimed: Claimed, keep: float) -> Prediction | None:
        """How long a step takes without what is claimed by ledger line, of whose GPU time the share `keep` stays; None where the
        timeline cannot be replayed."""


class IdlePlaces(Protocol):
    """The idle time of all GPUs by where the host was."""

    def of(self, key: Key, claimed: Claimed) -> Place | None:
        """The place that causes most of what is claimed, where there is one."""

    def beside(self, key: Key, claimed: Claimed, start: int, end: int, ns: int) -> Beside:
        """Where `ns` of idle time from start to end lie beyond the claim."""


class JobReplay(Protocol):
    """The steps of a job, all ranks played again together; None where they cannot be."""

    def without(self, gpu: Key) -> JobPrediction | None:
        """Had nobody ever waited for this GPU."""

    def balanced(self) -> JobPrediction | None:
        """Had the ranks of each group equal work between their collectives."""
