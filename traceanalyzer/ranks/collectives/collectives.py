"""Collectives matched across ranks: which kernels of different ranks are parts of the same one.

Ranks of a group run its collectives in one order, so the parts match by sequence number where the trace carries one, else by their
order, counted from the windows' ends because captures begin apart. No rank can leave a synchronizing collective before the last one has
arrived, so the ends of its parts agree but for the clocks; their differences give each rank's clock offset, and what remains of them
tells a right match from a wrong one. Then

    transfer = shortest duration over the ranks        wait = duration - transfer

A send and the receive on its other side form one of two ranks. A send may end before its receive begins, for NCCL has buffers; then
neither waited. A collective with a root may let ranks go as well. So these tell nothing of the clocks: they match on those that the
synchronizing ones give, or as recorded, and where their parts end together they are like one of these.

A kernel that holds several sends and receives is part of several pairs, message by message; it counts as part of the one that it waits
longest in, and only where all of them are found.

Where a rank of the group was not recorded at all, waiting for it looks like transfer. The wait for the last of those that are here is a
lower bound then, as it is in a trace that does not say how large its groups are. A collective that lies outside the recording of a rank
that is there is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL
from traceanalyzer.intervals import Array
from traceanalyzer.model.trace import EPOCH_NS, Input
from traceanalyzer.ranks.collectives import recorded
from traceanalyzer.ranks.collectives.alignment import MOST, Fit, Line, by_order, by_sequence
from traceanalyzer.ranks.collectives.collective_names import ROOTED, SAME_SIZE, SYNCHRONIZING
from traceanalyzer.ranks.collectives.gapped import Series, common_clock, gapped
from traceanalyzer.ranks.collectives.instances import ENDS_NS, ENDS_SHARE, Matches, Parts, instances
from traceanalyzer.ranks.collectives.lane_clocks import LaneClocks
from traceanalyzer.ranks.groups.peers import Messages, messages
from traceanalyzer.ranks.groups.process_groups import groups
from traceanalyzer.ranks.parallelism.parallelism_names import POINT_TO_POINT

AGREE_ROOTED, AGREE_RECORDED = 0.25, 0.5
"""How many of what need not end together must do so all the same to tell the order of collectives with a root, and to believe clocks as
recorded. Sends on known clocks need hardly any: no receive ends before its send, so that the order is all but told."""


def lanes(kernels: pa.Table) -> Array:
    """A number for each (rank, process, device): who takes part in a collective once."""
    return frames.dense(*(frames.ints(kernels, c) for c in ("rank", "process", "device")))


def chains(kernels: pa.Table) -> Array:
    """A number for each run of collectives that ranks go through in one order.

    That is kind and group or, where no group is told, stream; for sends and receives, the group and the two ranks.
    """
    rank, peer = frames.ints(kernels, "rank"), frames.ints(kernels, "peer")
    pair = (peer != NULL) & frames.equals(kernels, "kind", *POINT_TO_POINT)
    lower, upper = np.minimum(rank, peer), np.maximum(rank, peer)
    return _chains(kernels, np.arange(kernels.num_rows), pair, lower, upper)


def _chains(kernels: pa.Table, row: Array, pair: frames.Flags, one: Array, other: Array) -> Array:
    """A number for each chain, of these rows; those of a `pair` are told apart by its two ranks."""
    kind, group = frames.codes(kernels, "kind")[0][row], groups(kernels, lanes(kernels))[row]
    stream = np.where((group == NULL) & ~pair, frames.ints(kernels, "stream")[row], NULL)
    columns = (np.where(pair, -1, kind), group, np.where(pair, one, NULL), np.where(pair, other, NULL), stream)
    return frames.dense(*(np.where(column == NULL, -2, column) for column in columns))


def match(
    kernels: pa.Table, inputs: Sequence[Input], windows: pa.Table | None = None, *, incomplete: bool = False
) -> Matches:
    """Match the rows of `communication_kernels`. Ranks without a common clock are matched within their own files only.

    `windows` as of that table bound what was recorded; without it the collectives do. `incomplete`: match those of groups of which
    ranks are missing as well.
    """
    ends, own = absolute_ends(kernels, inputs)
    lane, sent = lanes(kernels), messages(kernels)
    synchronizing = frames.equals(kernels, "kind", *SYNCHRONIZING)
    whole = np.flatnonzero(synchronizing | frames.equals(kernels, "kind", *ROOTED))
    row = np.concatenate((whole, sent.row))
    paired, sends, sender, receiver = (
        np.concatenate((np.full(len(whole), none), column))
        for none, column in (
            (False, np.ones(len(sent.row), bool)),
            (False, sent.sends),
            (NULL, sent.sender),
            (NULL, sent.receiver),
        )
    )
    parts = Parts(
        row=row,
        chain=frames.dense(_chains(kernels, row, paired, sender, receiver), own[row]),
        place=np.full(len(row), NULL),
        lane=lane[row],
        end=ends[row] - (ends.min() if len(ends) else 0),
        duration=frames.duration(kernels)[row],
        bytes=np.concatenate((frames.ints(kernels, "bytes")[whole], _sizes(kernels, sent))),
        out=frames.ints(kernels, "out_bytes")[row],
        size=np.where(paired, 2, frames.ints(kernels, "group_size")[row]),
        sequence=np.where(paired, NULL, frames.ints(kernels, "sequence")[row]),
        same_size=frames.equals(kernels, "kind", *SAME_SIZE)[row] | paired,
        together=synchronizing[row] & ~paired,
        sends=sends,
        receives=paired & ~sends,
    )
    order = np.lexsort((frames.ints(kernels, "start_ns")[row], parts.lane, parts.chain))
    parts, sender, receiver = parts.take(order), sender[order], receiver[order]
    matching = _Matching(parts, int(lane.max(initial=-1)) + 1)
    matching.run()
    parts = replace(parts, place=matching.place, end=matching.end)
    clock = matching.clocks.offsets()[lane]
    domain, apart = matching.clocks.component[lane], matching.apart[lane]
    found = instances(parts, clock, domain, apart, incomplete=incomplete)
    there = {one.ordinal for one in inputs} | {one.rank for one in inputs if one.rank is not None}
    gone = recorded.absent(kernels, parts, sender, receiver, there)
    # From a rank's clock to that of the parts.
    shift = ends - frames.ints(kernels, "end_ns") - (ends.min() if len(ends) else 0)
    own_clock = shift[np.unique(lane, return_index=True)[1]]
    low, high = (
        matching.clocks.read(np.arange(len(edge)), edge + own_clock) for edge in recorded.edges(kernels, windows, lane)
    )
    end = matching.clocks.read(parts.lane, matching.recorded)
    outside = np.full(len(lane), len(low) < 2)
    outside[parts.row[recorded.outside(parts, low, high, end, gone)]] = True
    return replace(found, outside=outside & (found.instance == NULL))


def _sizes(kernels: pa.Table, sent: Messages) -> Array:
    """The size of each message, `NULL` where its kernel holds several in the same direction."""
    sides = [frames.ints(kernels, column)[sent.row] for column in ("in_bytes", "out_bytes")]
    size = np.where(sent.sends, *sides)
    size = np.where(size == NULL, frames.ints(kernels, "bytes")[sent.row], size)
    several = np.bincount(2 * sent.row + sent.sends, minlength=2 * kernels.num_rows)[2 * sent.row + sent.sends] > 1
    return np.where(several, NULL, size)


def absolute_ends(kernels: pa.Table, inputs: Sequence[Input]) -> tuple[Array, Array]:
    """Ends on the absolute clock, and the clock they are on: 0 for the common one, a number of its own for a file that has none."""
    rank, end = frames.ints(kernels, "rank"), frames.ints(kernels, "end_ns")
    bases = {i.ordinal: i.clock_base_ns for i in inputs}
    own = np.zeros(len(rank), np.int64)
    end = end.copy()
    for (one,), rows in frames.together(rank):
        base = bases.get(one)
        if base is not None:
            end[rows] += base
        elif end[rows].min() < EPOCH_NS:
            own[rows] = one + 1
    return end, own


class _Matching:
    """Gives each of the parts, sorted by chain, lane and start, its place within its chain, and its end on a common clock."""

    def __init__(self, parts: Parts, count: int) -> None:
        self.clocks = LaneClocks(count)
        self.apart = np.full(count, NULL)
        self.place, self.end = np.full(len(parts), NULL), parts.end.copy()
        self.recorded = parts.end
        self._lane, self._sequence, self._duration = parts.lane, parts.sequence, parts.duration
        self._together, self._receives = parts.together, parts.receives
        self._bytes, self._same_size = parts.bytes, parts.same_size
        self._chains = list(_groups(parts))

    def run(self) -> None:
        # Those of many collectives say most about the clocks.
        chains = sorted(self._chains, key=lambda parts: parts[0].start - parts[-1].stop)
        for together in (True, False):
            turn = [parts for parts in chains if bool(self._together[parts[0].start]) is together]
            doubtful = [pair for parts in turn for pair in self._align(parts, together)]
            # By now other chains may have told the clocks.
            for reference, rows in doubtful:
                self._settle(reference, rows, together, last=True)

    def _align(self, parts: list[slice], together: bool) -> list[tuple[slice, slice]]:
        """Match the lanes of a chain with the one that has most of it; return those of which several shifts fit."""
        reference = max(parts, key=lambda rows: (rows.stop - rows.start, -int(self.recorded[rows.start])))
        numbered = all(_distinct(self._sequence[rows]) for rows in parts)
        self.place[reference] = (
            -self._sequence[reference] if numbered else np.arange(reference.stop - reference.start - 1, -1, -1)
        )
        others = [rows for rows in parts if rows != reference]
        return [(reference, r) for r in others if not self._settle(reference, r, together, numbered=numbered)]

    def _settle(
        self, reference: slice, rows: slice, together: bool, *, numbered: bool = False, last: bool = False
    ) -> bool:
        """Match one lane with the reference; False when it takes better clocks to do so."""
        ours, theirs = int(self._lane[rows.start]), int(self._lane[reference.start])
        known = self.clocks.between(theirs, ours)
        told = known or Line()
        there, ends = self.recorded[reference], self.recorded[rows] - told.at(self.recorded[rows])
        allowed = ENDS_NS + ENDS_SHARE * min(float(np.median(self._duration[r])) for r in (reference, rows))
        took = self._duration[reference], self._duration[rows]
        if numbered:
            series = (
                (self._sequence[r], at, d) for r, at, d in zip((reference, rows), (there, ends), took, strict=True)
            )
            fit = by_sequence(next(series), next(series), allowed, not together)
        else:
            shift = _shift(self._sequence[reference], self._sequence[rows])
            later = int(self._receives[rows.start]) - int(self._receives[reference.start])
            fit = by_order(
                *(there, ends, allowed),
                known=known is not None,
                pinned=not together,
                later=later,
                shift=shift,
                durations=took if together else None,
            )
        if together and not numbered and self._in_stretches(reference, rows, known, fit, allowed):
            return True
        if fit is None:
            return True
        blurred = allowed + (self.clocks.blur(theirs, ours) if known else 0.0) + fit.spare
        if together and (fit.scatter > allowed or (known and abs(fit.clock.offset) > blurred)):
            apart = max(fit.scatter, abs(fit.clock.offset) if known else 0.0)
            self.apart[ours] = max(int(self.apart[ours]), round(apart))
            return True
        sends = self._receives[rows.start] != self._receives[reference.start]
        if not together and fit.agree <= (AGREE_RECORDED if known is None else 0.0 if sends else AGREE_ROOTED):
            return last or known is not None
        if not fit.sure:
            return last
        # What a long wait explains is nothing that the clocks say.
        clock = told if known and abs(fit.clock.offset) > allowed else told + fit.clock
        if known is None:
            self.clocks.join(theirs, ours, clock, fit.blur if fit.blur > ENDS_NS else 0.0)
        self.end[rows] = self.recorded[rows] - clock.at(self.recorded[rows])
        back = np.arange(rows.stop - rows.start - 1, -1, -1)
        self.place[rows] = -self._sequence[rows] if numbered else back + fit.shift
        return True

    def _in_stretches(self, reference: slice, rows: slice, known: Line | None, fit: Fit | None, allowed: float) -> bool:
        """Where no one shift fits, match a lane with the reference stretch by stretch; False when that does no better."""
        ours, theirs = int(self._lane[rows.start]), int(self._lane[reference.start])
        one, other = (
            Series(*(c[r] for c in (self.recorded, self._duration, self._bytes, self._sequence)))
            for r in (reference, rows)
        )
        told = known or Line()
        read = other.later(-told.at(other.end))
        same_size = bool(self._same_size[rows.start])
        tries: list[tuple[Line, float, int | None]] = []
        if fit is not None and fit.sure and fit.scatter <= allowed:
            tries.append((fit.clock, fit.blur, fit.shift))
        if fit is None or not tries or fit.agree < MOST:
            # What most pairs say wherever they stand says more than a shift that fits badly.
            found = common_clock(one, read, known=known is not None)
            tries = [*([(*found, None)] if found else []), *tries]
        for clock, noise, shift in tries:
            at = gapped(one, read.later(-clock.at(read.end)), same_size=same_size, shift=shift, noise=noise)
            if at is not None:
                break
        else:
            return False
        if known is None:
            self.clocks.join(theirs, ours, clock)
        whole = told + clock
        self.end[rows] = self.recorded[rows] - whole.at(self.recorded[rows])
        self.place[rows] = np.where(at >= 0, len(one) - 1 - at, NULL)
        return True


def _groups(given: Parts) -> Iterator[list[slice]]:
    """For each chain that several lanes share, the rows of each lane. A group of n ranks with more than n lanes is not one group."""
    chain, lane, size = given.chain, given.lane, given.size
    if not len(chain):
        return
    bounds = np.flatnonzero((np.diff(chain) != 0) | (np.diff(lane) != 0)) + 1
    parts = [slice(a, b) for a, b in pairwise([0, *bounds.tolist(), len(chain)])]
    firsts = np.flatnonzero(np.diff(chain[[p.start for p in parts]], prepend=NULL))
    for first, after in pairwise([*firsts.tolist(), len(parts)]):
        mine = parts[first:after]
        most = size[mine[0].start : mine[-1].stop].max()
        if len(mine) > 1 and (most == NULL or len(mine) <= most):
            yield mine


def _distinct(sequence: Array) -> bool:
    return bool((sequence != NULL).all()) and len(np.unique(sequence)) == len(sequence)


def _shift(reference: Array, part: Array) -> int | None:
    """The shift that the sequence numbers tell that both have, where kernels without any lie between; None without such."""
    both, a, b = np.intersect1d(reference, part, return_indices=True)
    a, b = (rows[both != NULL] for rows in (a, b))
    return round(float(np.median((len(reference) - a) - (len(part) - b)))) if len(a) else None
