"""From entries to lives of blocks and to levels over time, anchored at the snapshot, so that they are right from the first entry on."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from traceanalyzer.evidence.memory_snapshot.reading.columns import NO_ADDRESS, NONE, Addresses, Ints, filled
from traceanalyzer.evidence.memory_snapshot.reading.entries import (
    ALLOC,
    FREE_COMPLETED,
    FREE_REQUESTED,
    SEGMENT_ALLOC,
    SEGMENT_FREE,
    SEGMENT_MAP,
    SEGMENT_UNMAP,
    History,
)
from traceanalyzer.records import dataclass

BEFORE = -1
"""Stands for an entry before the recorded history."""
NEVER = NONE
"""Stands for an entry that there is not: what it would tell had not happened at the snapshot."""
_LAST = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Lives:
    """Blocks of one device from when they were handed out to when they could be used again; places in the history, BEFORE or NEVER.

    `requested` is what was asked for, `size` what it took; `held` is the row of the blocks at the snapshot, -1 for a freed one.
    """

    address: Addresses
    requested: Ints
    size: Ints
    stream: Ints
    stack: npt.NDArray[np.int32]
    start: Ints
    given_up: Ints
    end: Ints
    held: Ints

    def __len__(self) -> int:
        return len(self.address)

    def of(self, rows: npt.NDArray[Any]) -> Lives:
        """These alone."""
        return Lives(**{name: column[rows] for name, column in vars(self).items()})


@dataclass(frozen=True)
class Contradictions:
    """Where the history cannot be: addresses handed out again without a release, and releases of what was free."""

    reused: int
    strays: int


def lives_of(history: History) -> tuple[Lives, Contradictions]:
    """The lives that the history tells of, by address and then in time; `size` is still what was asked for."""
    entries = history.of(ALLOC, FREE_REQUESTED, FREE_COMPLETED)
    entries = entries[history.address[entries] != NO_ADDRESS]
    if not len(entries):
        return nothing(), Contradictions(0, 0)
    entries = entries[np.argsort(history.address[entries], kind="stable")]
    address, action = history.address[entries], history.action[entries]
    other = np.concatenate(([True], address[1:] != address[:-1]))
    after_end = np.concatenate(([False], action[:-1] == FREE_COMPLETED)) & ~other
    allocs = action == ALLOC
    first = np.flatnonzero(allocs | other | after_end)
    stray = (after_end & ~allocs)[first]
    given_up = _first_of(entries, action == FREE_REQUESTED, first)
    end = _first_of(entries, action == FREE_COMPLETED, first)
    follows = np.concatenate((~other[first][1:], [False]))
    next_entry = np.concatenate((entries[first][1:], [NEVER]))
    reused = (end == NEVER) & follows
    end = np.where(reused, next_entry, end)
    # Given up before the history where only the end of that is in it.
    given_up = np.where((given_up == NEVER) & (end != NEVER), np.where(reused, end, BEFORE), given_up)
    given_up = np.where((given_up == BEFORE) & allocs[first], end, given_up)
    at = entries[first]
    lives = Lives(
        address=address[first],
        requested=history.size[at],
        size=filled(history.size[at]),
        stream=history.stream[at],
        stack=np.where(allocs[first], history.stack[at], -1).astype(np.int32),
        start=np.where(allocs[first], at, BEFORE),
        given_up=given_up,
        end=end,
        held=np.full(len(first), -1),
    )
    return lives.of(~stray), Contradictions(int(reused.sum()), int(stray.sum()))


def _first_of(entries: Ints, which: npt.NDArray[np.bool_], first: Ints) -> Ints:
    """The first such entry of each stretch that starts at `first`; NEVER without one."""
    found = np.minimum.reduceat(np.where(which, entries, _LAST), first)
    return np.where(found == _LAST, NEVER, found)


def nothing() -> Lives:
    """No lives."""
    none = np.zeros(0, np.int64)
    return Lives(none.astype(np.uint64), none, none, none, none.astype(np.int32), none, none, none, none)


def joined(first: Lives, second: Lives) -> Lives:
    """Both, one after the other."""
    return Lives(**{name: np.concatenate((column, vars(second)[name])) for name, column in vars(first).items()})


def levels(lives: Lives, weight: Ints, entries: int, until: Ints) -> tuple[int, Ints]:
    """The sum of `weight` over the lives that last, before the first entry and after each; a life lasts until its entry in `until`."""
    before = (lives.start == BEFORE) & (until != BEFORE)
    change = np.zeros(entries, np.int64)
    begun = lives.start >= 0
    np.add.at(change, lives.start[begun], weight[begun])
    over = (until >= 0) & (begun | before)
    np.subtract.at(change, until[over], weight[over])
    start = int(weight[before].sum())
    return start, start + np.cumsum(change)


def reserved_levels(history: History, held: int) -> tuple[int, Ints]:
    """Memory got from the driver before the first entry and after each, so that it ends at `held`."""
    size = filled(history.size)
    gained = np.isin(history.action, (SEGMENT_ALLOC, SEGMENT_MAP))
    lost = np.isin(history.action, (SEGMENT_FREE, SEGMENT_UNMAP))
    level = np.cumsum(np.where(gained, size, 0) - np.where(lost, size, 0))
    start = held - (int(level[-1]) if len(level) else 0)
    return start, start + level


def peak(start: int, level: Ints) -> tuple[int, int]:
    """The most, and the first entry after which it stood; BEFORE when it was so at the start."""
    if not len(level) or level.max() <= start:
        return start, BEFORE
    return int(level.max()), int(level.argmax())
