"""Collectives matched across ranks: which kernels of different ranks are parts of the same one.

Ranks of a group run its collectives in one order, so the parts match by sequence number where the trace carries one, else by their
order, counted from the windows' ends because captures begin apart. No rank can leave a synchronizing collective before the last one has
arrived, so the ends of its parts agree but for the clocks; their differences give each rank's clock offset, and what remains of them
tells a right match from a wrong one. Then

    transfer = shortest duration over the ranks        wait = duration - transfer

A send and the receive on its other side form one of two ranks. A send may end before its receive begins, for NCCL has buffers; then
neither waited. A collective with a root may let ranks go as well. So these tell nothing of the clocks: they match on those that the
synchronizing ones give, or as recorded, and where their parts end together they are like one of these.

Where a rank of the group is missing, nothing is told, because waiting for it looks like transfer; in a trace that does not say how
large its groups are, the wait is a lower bound. Kernels that hold several sends and receives do not say with whom: they are left alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from traceanalyzer.derive import frames
from traceanalyzer.derive.alignment import Line, by_order, by_sequence
from traceanalyzer.derive.collective_names import ROOTED, SAME_SIZE, SYNCHRONIZING
from traceanalyzer.derive.frames import NULL
from traceanalyzer.derive.lane_clocks import LaneClocks
from traceanalyzer.derive.peers import RECEIVE, SEND, ends_of
from traceanalyzer.derive.process_groups import groups
from traceanalyzer.intervals import Array
from traceanalyzer.model.trace import Input

ENDS_NS, ENDS_SHARE = 100_000, 0.25
"""How far apart the ends of one collective may lie: what polling explains, and the share of the transfer that a slow link adds."""
EPOCH_NS = 10**18
"""Times beyond this (2001) are absolute even if the file names no clock base."""
AGREE_ROOTED, AGREE_RECORDED = 0.25, 0.5
"""How many of what need not end together must do so all the same to tell the order of collectives with a root, and to believe clocks as
recorded. Sends on known clocks need hardly any: no receive ends before its send, so that the order is all but told."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Matches:
    """One value a communication kernel, `NULL` (NaN) where it has no counterpart.

    `late` is the row of the part that arrived last, and `transfer` the shortest duration; a send that was buffered and its receive have
    each its own. `skew`: the most bytes that come out on one rank over their mean. `end`: the end on
    the clock that the parts share. Of the kernel's lane: `clock`, its offset in ns against the median of those with the same `domain`,
    and `apart`, how far in ns its ends lie from other ranks' where they fit worst (`NULL` where there was nothing to compare).
    """

    instance: Array
    ranks: Array
    transfer: Array
    spread: Array
    late: Array
    certain: frames.Flags
    skew: Floats
    end: Array
    clock: Array
    domain: Array
    apart: Array


def lanes(kernels: pa.Table) -> Array:
    """A number for each (rank, process, device): who takes part in a collective once."""
    return frames.dense(*(frames.ints(kernels, c) for c in ("rank", "process", "device")))


def chains(kernels: pa.Table) -> Array:
    """A number for each run of collectives that ranks go through in one order.

    That is kind and group or, where no group is told, stream; for sends and receives, the group and who sends to whom.
    """
    kind, _ = frames.codes(kernels, "kind")
    group = groups(kernels, lanes(kernels))
    paired, sender, receiver = ends_of(kernels)
    stream = np.where((group == NULL) & ~paired, frames.ints(kernels, "stream"), NULL)
    columns = (np.where(paired, -1, kind), group, sender, receiver, stream)
    return frames.dense(*(np.where(column == NULL, -2, column) for column in columns))


def match(kernels: pa.Table, inputs: Sequence[Input]) -> Matches:
    """Match the rows of `communication_kernels`. Ranks without a common clock are matched within their own files only."""
    paired = ends_of(kernels)[0]
    ends, own = absolute_ends(kernels, inputs)
    lane, size = lanes(kernels), frames.ints(kernels, "bytes")
    synchronizing = frames.equals(kernels, "kind", *SYNCHRONIZING)
    frame = pd.DataFrame(
        {
            "chain": frames.dense(chains(kernels), own),
            "lane": lane,
            "start": frames.ints(kernels, "start_ns"),
            "end": ends - (ends.min() if len(ends) else 0),
            "duration": frames.duration(kernels),
            "bytes": size,
            "out": frames.ints(kernels, "out_bytes"),
            "size": np.where(paired, 2, frames.ints(kernels, "group_size")),
            "sequence": np.where(paired, NULL, frames.ints(kernels, "sequence")),
            "same_size": frames.equals(kernels, "kind", *SAME_SIZE) | paired,
            "together": synchronizing,
            "sends": frames.equals(kernels, "kind", SEND) & paired,
            "receives": frames.equals(kernels, "kind", RECEIVE) & paired,
        }
    )[synchronizing | paired | frames.equals(kernels, "kind", *ROOTED)].sort_values(
        ["chain", "lane", "start"], kind="stable"
    )
    matching = _Matching(frame, int(lane.max(initial=-1)) + 1)
    matching.run()
    frame["place"], frame["end"] = matching.place, matching.end
    clock = matching.clocks.offsets()[lane]
    domain, apart = matching.clocks.component[lane], matching.apart[lane]
    return _instances(frame[matching.place != NULL].copy(), clock, domain, apart)


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
    """Gives each row of a frame, sorted by chain, lane and start, its place within its chain, and its end on a common clock."""

    def __init__(self, frame: pd.DataFrame, count: int) -> None:
        self.clocks = LaneClocks(count)
        self.apart = np.full(count, NULL)
        self.place, self.end = np.full(len(frame), NULL), frame["end"].to_numpy().copy()
        self._recorded = frame["end"].to_numpy()
        columns = ("lane", "sequence", "duration", "together", "receives")
        self._lane, self._sequence, self._duration, self._together, self._receives = (
            frame[c].to_numpy() for c in columns
        )
        self._chains = list(_groups(frame))

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
        reference = max(parts, key=lambda rows: (rows.stop - rows.start, -int(self._recorded[rows.start])))
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
        there, ends = self._recorded[reference], self._recorded[rows] - told.at(self._recorded[rows])
        allowed = ENDS_NS + ENDS_SHARE * min(float(np.median(self._duration[r])) for r in (reference, rows))
        if numbered:
            fit = by_sequence((self._sequence[reference], there), (self._sequence[rows], ends), allowed, not together)
        else:
            shift = _shift(self._sequence[reference], self._sequence[rows])
            later = int(self._receives[rows.start]) - int(self._receives[reference.start])
            fit = by_order(there, ends, allowed, known=known is not None, pinned=not together, later=later, shift=shift)
        if fit is None:
            return True
        if together and (fit.scatter > allowed or (known and abs(fit.clock.offset) > allowed)):
            apart = max(fit.scatter, abs(fit.clock.offset) if known else 0.0)
            self.apart[ours] = max(int(self.apart[ours]), round(apart))
            return True
        sends = self._receives[rows.start] != self._receives[reference.start]
        if not together and fit.agree <= (AGREE_RECORDED if known is None else 0.0 if sends else AGREE_ROOTED):
            return last or known is not None
        if not fit.sure:
            return last
        clock = told + fit.clock
        if known is None:
            self.clocks.join(theirs, ours, clock)
        self.end[rows] = self._recorded[rows] - clock.at(self._recorded[rows])
        back = np.arange(rows.stop - rows.start - 1, -1, -1)
        self.place[rows] = -self._sequence[rows] if numbered else back + fit.shift
        return True


def _groups(frame: pd.DataFrame) -> Iterator[list[slice]]:
    """For each chain that several lanes share, the rows of each lane. A group of n ranks with more than n lanes is not one group."""
    chain, lane, size = (frame[c].to_numpy() for c in ("chain", "lane", "size"))
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


_SIDES = (("sends", "end"), ("receives", "end"), ("receives", "begun"))


def _instances(frame: pd.DataFrame, clock: Array, domain: Array, apart: Array) -> Matches:
    """Collectives in which every rank took part that should, and whose ends, and sizes where they must, agree."""
    count = len(clock)
    instance, ranks, transfer, spread, late, end = (np.full(count, NULL, np.int64) for _ in range(6))
    certain, skew = np.zeros(count, bool), np.full(count, np.nan)
    result = Matches(instance, ranks, transfer, spread, late, certain, skew, end, clock, domain, apart)
    if not len(frame):
        return result
    # By instance, the shortest part first.
    code = frames.dense(frame["chain"].to_numpy(), frame["place"].to_numpy())
    order = np.lexsort((frame.index.to_numpy(), frame["duration"].to_numpy(), code))
    frame, code = frame.iloc[order], code[order]
    first = np.flatnonzero(np.diff(code, prepend=-1))
    number = np.cumsum(np.diff(code, prepend=-1) != 0) - 1
    column = {str(c): frame[c].to_numpy() for c in frame}
    column["begun"] = column["end"] - column["duration"]
    ranks = np.diff(first, append=len(code))
    chain, transfer = column["chain"][first], column["duration"][first]
    width = pd.Series(column["lane"]).groupby(column["chain"]).transform("nunique").to_numpy()[first]
    spread = np.maximum.reduceat(column["end"], first) - np.minimum.reduceat(column["end"], first)
    size, largest = (np.maximum.reduceat(column[c], first) for c in ("size", "bytes"))
    smallest = np.minimum.reduceat(np.where(column["bytes"] == NULL, np.iinfo(np.int64).max, column["bytes"]), first)
    sized = np.add.reduceat((column["bytes"] != NULL).astype(np.int64), first)
    alike = column["same_size"][first]
    # Without the trace of one of its ranks, what a collective takes cannot be told from waiting for that rank.
    whole = (ranks == width) & ((size == NULL) | (size == ranks)) & (ranks > 1)
    allowed = ENDS_NS + ENDS_SHARE * transfer
    sent, taken, begun = (np.maximum.reduceat(np.where(column[side], column[at], NULL), first) for side, at in _SIDES)
    buffered = (sent != NULL) & (taken - allowed > sent) & (begun > sent - ENDS_NS)
    agree = whole & ((spread <= allowed) | buffered) & ~(alike & (sized > 0) & (smallest != largest))
    # Where most do not agree, those that do agree by chance. What need not end together may well do so in a few.
    bound = column["together"][first]
    per_chain = pd.DataFrame({"agree": agree, "checked": agree & alike & (sized > 1), "whole": whole}).groupby(chain)
    share = per_chain["agree"].transform("sum") / per_chain["whole"].transform("sum").clip(lower=1)
    kept = agree & ((share.to_numpy() > 0.5) | ~bound)
    out = np.where(column["out"] == NULL, np.nan, column["out"].astype(float))
    mean = np.add.reduceat(out, first) / ranks
    skew = np.where(mean > 0, np.maximum.reduceat(out, first) / np.where(mean > 0, mean, 1.0), np.nan)
    per_instance = {
        "ranks": ranks,
        "spread": spread,
        "late": frame.index.to_numpy()[first],
        "certain": per_chain["checked"].transform("any").to_numpy(),
        "skew": skew,
    }
    # Of a send that was buffered nobody waited, and its receive came last.
    column["transfer"] = np.where(buffered[number], column["duration"], transfer[number])
    receives = np.flatnonzero(column["receives"] & buffered[number])
    per_instance["late"][number[receives]] = frame.index.to_numpy()[receives]
    shown = kept[number]
    rows = frame.index.to_numpy()[shown]
    for name, values in per_instance.items():
        getattr(result, name)[rows] = values[number[shown]]
    result.end[rows], result.transfer[rows] = column["end"][shown], column["transfer"][shown]
    by_row = np.argsort(rows, kind="stable")
    result.instance[rows[by_row]] = pd.factorize(number[shown][by_row])[0]
    return result
