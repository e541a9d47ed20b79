"""Stretches of a timeline between its events, as matrices of max-plus algebra.

Operations are added in blocks, in their order: of all of them nothing is kept but what a stretch needs.
"""

from __future__ import annotations

import numpy as np

from traceanalyzer.intervals import Array

NEVER = -(1 << 60)
"""The zero of max-plus algebra: what has no influence. The sum of two stays within int64."""
MET, FELT, CUT = range(3)
"""What happens between operations: a wait ends that was for what is before; the operations that follow were called after all waits that
were met; a stretch ends."""


class Stretches:
    """What the operations between two events come to.

    Of events in their order `place` says how many operations lie before, and `kind` what happens. A wait is met behind the operation
    that it waits for, and felt by the operations called after it.
    """

    def __init__(self, place: Array, kind: Array) -> None:
        self._place, self._kind = place, kind
        since = np.concatenate(([0], place[:-1]))
        self._some = place > since
        self._first = since[self._some]
        # Of each stretch of operations the latest of (arrival - all that comes before).
        self._latest = np.full(len(self._first), NEVER)
        self._done = np.zeros(len(place), np.int64)
        self._count = self._sum = 0

    def add(self, added: Array, arrival: Array) -> None:
        """The next operations, at least one: what each adds, and when it arrives. What comes after the last event is of no stretch."""
        begin, stop = self._count, self._count + len(added)
        done = np.cumsum(added)
        done += self._sum
        lead = arrival - done
        lead += added
        first, last = np.searchsorted(self._first, (begin, stop))
        cuts = self._first[first:last] - begin
        if first and not (len(cuts) and cuts[0] == 0):
            # The stretch that began before goes on.
            first, cuts = first - 1, np.concatenate(([0], cuts))
        latest = self._latest[first:last]
        np.maximum(latest, np.maximum.reduceat(lead, cuts) if len(cuts) else latest, out=latest)
        here = slice(*np.searchsorted(self._place, (begin, stop), side="right"))
        self._done[here] = done[self._place[here] - begin - 1]
        self._count, self._sum = stop, int(done[-1])

    def matrices(self, offset: Array) -> Array:
        """The matrices, (n, 3, 3), of the stretches that the events of kind `CUT` end, each applied to the state at the cut before.

        The state is (the host's delay, its delay behind the waits met so far, the GPU's reach). `offset` is of events: for a wait the
        host's own time.
        """
        place, kind, done = self._place, self._kind, self._done
        # The end of a stretch of operations if only its own arrivals counted: the latest of (arrival + all that follows).
        end = np.full(len(place), NEVER)
        end[self._some] = np.maximum(self._latest + done[self._some], NEVER)
        between = np.diff(done, prepend=0)

        steps = np.full((len(place), 3, 3), NEVER)
        steps[:, 0, 0], steps[:, 1, 1] = 0, 0
        steps[:, 2, 0], steps[:, 2, 2] = end, between
        met = kind == MET
        steps[met, 1, 0] = np.maximum(end[met] - offset[met], NEVER)
        steps[met, 1, 2] = between[met] - offset[met]
        steps[kind == FELT, 0, 0], steps[kind == FELT, 0, 1] = NEVER, 0
        cuts = np.flatnonzero(kind == CUT) + 1
        return _products(steps[: cuts[-1] if len(cuts) else 0], np.diff(cuts, prepend=0))


def stretches(added: Array, arrival: Array, place: Array, kind: Array, offset: Array) -> Array:
    """`Stretches.matrices` of operations that are all there."""
    made, stop = Stretches(place, kind), int(place[-1]) if len(place) else 0
    if stop:
        made.add(added[:stop], arrival[:stop])
    return made.matrices(offset)


def _products(steps: Array, lengths: Array) -> Array:
    """The max-plus products of runs of (n, 3, 3) matrices, the first of each applied first, by halving all runs at once."""
    run = np.repeat(np.arange(len(lengths)), lengths)
    while len(steps) > len(lengths):
        first = np.searchsorted(run, run)
        early = (np.arange(len(run)) - first) % 2 == 0
        paired = early & np.append(run[1:] == run[:-1], False)
        at = np.flatnonzero(paired)
        joined = np.maximum((steps[at + 1][:, :, :, None] + steps[at][:, None, :, :]).max(axis=2), NEVER)
        steps = steps.copy()
        steps[at] = joined
        steps, run = steps[early], run[early]
    return steps
