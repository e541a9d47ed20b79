"""From places within chains to collectives: whose parts make a whole one, how long its transfer took, and who came last."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL, Flags
from traceanalyzer.columns.grouped import Floats, Groups
from traceanalyzer.intervals import Array
from traceanalyzer.ranks.collectives.alignment import WAIT_SHARE
from traceanalyzer.records import dataclass

ENDS_NS, ENDS_SHARE = 100_000, 0.25
"""How far apart the ends of one collective may lie: what polling explains, and the share of the transfer that a slow link adds."""


@dataclass(frozen=True)
class Parts:
    """One value a part of what may be a collective: its kernel's `row`, its `chain` and its `place` in it (`NULL` without one), its
    lane, times and sizes. `together`: of what ends together on all ranks; `same_size`: of what has one size on all of them."""

    row: Array
    chain: Array
    place: Array
    lane: Array
    end: Array
    duration: Array
    bytes: Array
    out: Array
    size: Array
    sequence: Array
    same_size: Flags
    together: Flags
    sends: Flags
    receives: Flags

    def __len__(self) -> int:
        return len(self.row)

    def take(self, rows: Array) -> Parts:
        return Parts(*(getattr(self, one.name)[rows] for one in fields(self)))


@dataclass(frozen=True)
class Matches:
    """One value a communication kernel, `NULL` (NaN) where it has no counterpart.

    `missing`: ranks of the group of which nothing was recorded; with any, `late` and `transfer` are of those that are here, so that the
    transfer is at most that long. `late` is the row of the part that arrived last, and `transfer` the shortest duration; a send that
    was buffered and its receive have each its own, and no `spread`. `outside`: without counterpart, because another rank of the group
    did not record then, or not at all. `skew`: the most bytes that come out on one rank over their mean. `end`: the end on
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
    missing: Array
    outside: Flags


def instances(given: Parts, clock: Array, domain: Array, apart: Array, *, incomplete: bool = False) -> Matches:
    """Collectives in which every rank took part that should, and whose ends, and sizes where they must, agree.

    `incomplete`: also those of groups of which ranks were not recorded at all. The other arguments have a value a kernel.
    """
    count = len(clock)
    instance, ranks, transfer, spread, late, end, missing = (np.full(count, NULL, np.int64) for _ in range(7))
    certain, skew, outside = np.zeros(count, bool), np.full(count, np.nan), np.zeros(count, bool)
    result = Matches(
        instance, ranks, transfer, spread, late, certain, skew, end, clock, domain, apart, missing, outside
    )
    parts = np.bincount(given.row, minlength=count)
    part = given.take(np.flatnonzero(given.place != NULL))
    if not len(part):
        return result
    # By instance, the shortest part first.
    code = frames.dense(part.chain, part.place)
    order = np.lexsort((part.row, part.duration, code))
    part, code = part.take(order), code[order]
    first = np.flatnonzero(np.diff(code, prepend=-1))
    number = np.cumsum(np.diff(code, prepend=-1) != 0) - 1
    start = part.end - part.duration
    ranks = np.diff(first, append=len(code))
    transfer = part.duration[first]
    of_chain = Groups(part.chain)
    width = of_chain.distinct(part.lane)[of_chain.of][first]
    spread = np.maximum.reduceat(part.end, first) - np.minimum.reduceat(part.end, first)
    size, largest = (np.maximum.reduceat(values, first) for values in (part.size, part.bytes))
    smallest = np.minimum.reduceat(np.where(part.bytes == NULL, np.iinfo(np.int64).max, part.bytes), first)
    sized = np.add.reduceat((part.bytes != NULL).astype(np.int64), first)
    alike = part.same_size[first]
    missing = np.where(size == NULL, 0, size - ranks)
    whole = (ranks == width) & (missing == 0) & (ranks > 1)
    if incomplete:
        whole |= _all_that_are_here(given, part.chain[first], ranks) & (missing > 0) & (ranks > 1)
    allowed = allowed_apart(transfer, np.maximum.reduceat(part.duration, first), part.together[first])
    sides = ((part.sends, part.end), (part.receives, part.end), (part.receives, start))
    sent, taken, begun = (np.maximum.reduceat(np.where(side, at, NULL), first) for side, at in sides)
    buffered = (sent != NULL) & (taken - allowed > sent) & (begun > sent - ENDS_NS)
    agree = whole & ((spread <= allowed) | buffered) & ~(alike & (sized > 0) & (smallest != largest))
    # Where most do not agree, those that do agree by chance. What need not end together may well do so in a few.
    bound = part.together[first]
    chain = Groups(part.chain[first])
    share = chain.count(agree) / np.maximum(chain.count(whole), 1)
    kept = agree & ((share[chain.of] > 0.5) | ~bound)
    out = np.where(part.out == NULL, np.nan, part.out.astype(float))
    mean = np.add.reduceat(out, first) / ranks
    skew = np.where(mean > 0, np.maximum.reduceat(out, first) / np.where(mean > 0, mean, 1.0), np.nan)
    per_instance = {
        "ranks": ranks,
        "missing": missing,
        # A send that was buffered ends before its receive, whatever the clocks.
        "spread": np.where(buffered, NULL, spread),
        "late": part.row[first],
        "certain": chain.any(agree & alike & (sized > 1))[chain.of],
        "skew": skew,
    }
    # Of a send that was buffered nobody waited, and its receive came last.
    own_transfer = np.where(buffered[number], part.duration, transfer[number])
    receives = np.flatnonzero(part.receives & buffered[number])
    per_instance["late"][number[receives]] = part.row[receives]
    shown = _longest(part.row, part.duration - own_transfer, kept[number], parts)
    rows = part.row[shown]
    for name, values in per_instance.items():
        getattr(result, name)[rows] = values[number[shown]]
    result.end[rows], result.transfer[rows] = part.end[shown], own_transfer[shown]
    by_row = np.argsort(rows, kind="stable")
    result.instance[rows[by_row]] = _numbered(number[shown][by_row])
    return result


def _all_that_are_here(given: Parts, chain: Array, ranks: Array) -> Flags:
    """Whether a collective of so many ranks has parts of all lanes of its chain: only of ranks of which nothing was recorded it is not
    known when they came to it."""
    chains = Groups(given.chain)
    found: Flags = ranks == chains.distinct(given.lane)[chains.find(chain)]
    return found


def allowed_apart(shortest: Array, longest: Array, together: Flags) -> Floats:
    """How far apart the ends of parts of one collective may lie that take so long, ns."""
    wait = np.where(together, longest - shortest, 0)
    allowed: Floats = ENDS_NS + ENDS_SHARE * shortest.astype(np.float64) + WAIT_SHARE * wait.astype(np.float64)
    return allowed


def _numbered(values: Array) -> Array:
    """The same values told apart, numbered in the order in which they come."""
    own = Groups(values)
    place = np.empty(len(own), np.int64)
    place[np.argsort(own.first)] = np.arange(len(own))
    return place[own.of]


def _longest(row: Array, wait: Array, kept: frames.Flags, parts: Array) -> Array:
    """The places of those that stand for their kernels: where all `parts` of one are `kept`, the one with the longest wait."""
    some = np.flatnonzero(kept)
    some = some[np.bincount(row[some], minlength=len(parts))[row[some]] == parts[row[some]]]
    order = some[np.lexsort((wait[some], row[some]))]
    last = np.flatnonzero(np.diff(row[order], append=-1))
    return np.asarray(order[last])
