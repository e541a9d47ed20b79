"""Stretches of a timeline between its events, as matrices of max-plus algebra.

Operations are added in blocks, in their order: of all of them nothing is kept but what a stretch needs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from traceanalyzer.intervals import Array

NEVER = -(1 << 60)
"""The zero of max-plus algebra: what has no influence. The sum of two stays within int64."""
MET, FELT, CUT = range(3)
"""What happens between operations: a wait ends that was for what is before; the operations that follow were called after all waits that
were met; a stretch ends."""


class Stretches:
    """What the operations between two events come to, as each of several hosts launches them.

    Of events in their order `place` says how many operations lie before, and `kind` what happens. A wait is met behind the operation
    that it waits for, and felt by the operations called after it.
    """

    def __init__(self, place: Array, kind: Array, hosts: int = 1) -> None:
        self._place, self._kind = place, kind
        since = np.concatenate(([0], place[:-1]))
        self._some = place > since
        self._first = since[self._some]
        # Of each stretch of operations the latest of (arrival - all that comes before), of each host.
        self._latest = np.full((hosts, len(self._first)), NEVER)
        self._done = np.zeros(len(place), np.int64)
        self._count = self._sum = 0

    def add(self, done: Array, since: int, ahead: Sequence[Array]) -> None:
        """The next operations, at least one: what each and all before it have added, which was `since` before the first of them; and of
        each host by how much it arrives later than what was added before. What comes after the last event is of no stretch."""
        begin, stop, shift = self._count, self._count + len(done), self._sum - since
        first, last = np.searchsorted(self._first, (begin, stop))
        cuts = self._first[first:last] - begin
        if first and not (len(cuts) and cuts[0] == 0):
            # The stretch that began before goes on.
            first, cuts = first - 1, np.concatenate(([0], cuts))
        if len(cuts):
            for latest, one in zip(self._latest[:, first:last], ahead, strict=True):
                np.maximum(latest, np.maximum.reduceat(one, cuts) - shift, out=latest)
        here = slice(*np.searchsorted(self._place, (begin, stop), side="right"))
        self._done[here] = done[self._place[here] - begin - 1] + shift
        self._count, self._sum = stop, int(done[-1]) + shift

    def matrices(self, offset: Array, host: int = 0) -> Array:
        """The matrices, (n, 3, 3), of the stretches that the events of kind `CUT` end, each applied to the state at the cut before.

        The state is (the host's delay, its delay behind the waits met so far, the GPU's reach). `offset` is of events: for a wait the
        host's own time.
        """
        place, kind, done = self._place, self._kind, self._done
        # The end of a stretch of operations if only its own arrivals counted: the latest of (arrival + all that follows).
        end = np.full(len(place), NEVER)
        end[self._some] = np.maximum(self._latest[host] + done[self._some], NEVER)
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
        done = np.cumsum(added[:stop])
        made.add(done, 0, [arrival[:stop] - done + added[:stop]])
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
