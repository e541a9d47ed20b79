"""Collectives matched across ranks: which kernels of different ranks are parts of the same one.

Ranks of a group run its collectives in one order, so the parts match by sequence number where the trace carries one, else by their
order, counted from the windows' ends because captures begin apart. No rank can leave a synchronizing collective before the last one has
arrived, so the ends of its parts agree but for the clocks; their differences give each rank's clock offset, and what remains of them
tells a right match from a wrong one. Then

    transfer = shortest duration over the ranks        wait = duration - transfer

Where a rank of the group is missing, nothing is told, because waiting for it looks like transfer; in a trace that does not say how
large its groups are, the wait is a lower bound. Sends and receives do not pair by order and are left alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa

from traceanalyzer.derive import frames
from traceanalyzer.derive.collective_names import SAME_SIZE, SYNCHRONIZING
from traceanalyzer.derive.frames import NULL
from traceanalyzer.intervals import Array
from traceanalyzer.model.trace import Input

MOST_APART_NS = 1_000_000_000
"""Hosts keep their clocks within milliseconds of each other; a second and more is another run, or no clock at all."""
ENDS_NS, ENDS_SHARE = 100_000, 0.25
"""How far apart the ends of one collective may lie: what polling explains, and the share of the transfer that a slow link adds."""
EPOCH_NS = 10**18
"""Times beyond this (2001) are absolute even if the file names no clock base."""
TAIL, REACH = 256, 64
"""How many collectives are compared to find the shift between two ranks, and how far it may go."""


@dataclass(frozen=True)
class Matches:
    """One value a communication kernel, `NULL` where it has no counterpart; `late` is the row of the part that arrived last."""

    instance: Array
    ranks: Array
    transfer: Array
    spread: Array
    late: Array
    certain: frames.Flags


def lanes(kernels: pa.Table) -> Array:
    """A number for each (rank, process, device): who takes part in a collective once."""
    return frames.dense(*(frames.ints(kernels, c) for c in ("rank", "process", "device")))


def chains(kernels: pa.Table) -> Array:
    """A number for each run of collectives that ranks go through in one order: kind and group or, where no group is told, stream."""
    kind, group, ranks = (frames.codes(kernels, c)[0] for c in ("kind", "group", "group_ranks"))
    unknown = kernels["group"].is_null().to_numpy()
    return frames.dense(kind, group, ranks, np.where(unknown, frames.ints(kernels, "stream"), NULL))


def match(kernels: pa.Table, inputs: Sequence[Input]) -> Matches:
    """Match the rows of `communication_kernels`. Ranks without a common clock are matched within their own files only."""
    count = kernels.num_rows
    ends, domain = _absolute(kernels, inputs)
    usable = frames.equals(kernels, "kind", *SYNCHRONIZING)
    frame = pd.DataFrame(
        {
            "chain": frames.dense(chains(kernels), domain),
            "lane": lanes(kernels),
            "start": frames.ints(kernels, "start_ns"),
            "end": ends,
            "duration": frames.duration(kernels),
            "bytes": frames.ints(kernels, "bytes"),
            "size": frames.ints(kernels, "group_size"),
            "sequence": frames.ints(kernels, "sequence"),
            "same_size": frames.equals(kernels, "kind", *SAME_SIZE),
        }
    )[usable].sort_values(["chain", "lane", "start"], kind="stable")
    place, offset = np.full(len(frame), NULL), np.zeros(len(frame), np.int64)
    for parts in _groups(frame):
        for which, (shift, apart) in _aligned([frame.iloc[rows] for rows in parts]):
            rows = parts[which]
            place[rows] = np.arange(rows.stop - rows.start - 1, -1, -1) + shift
            offset[rows] = apart
    frame["place"], frame["end"] = place, frame["end"] - offset
    return _instances(frame[place != NULL].copy(), count)


def _absolute(kernels: pa.Table, inputs: Sequence[Input]) -> tuple[Array, Array]:
    """Ends on the absolute clock, and the clock they are on: 0 for the common one, a number of its own for a file that has none."""
    rank, end = frames.ints(kernels, "rank"), frames.ints(kernels, "end_ns")
    bases = {i.ordinal: i.clock_base_ns for i in inputs}
    domain = np.zeros(len(rank), np.int64)
    end = end.copy()
    for (one,), rows in frames.together(rank):
        base = bases.get(one)
        if base is not None:
            end[rows] += base
        elif end[rows].min() < EPOCH_NS:
            domain[rows] = one + 1
    return end, domain


def _groups(frame: pd.DataFrame) -> Iterator[list[slice]]:
    """For each chain that several lanes share, the rows of each lane. A group of n ranks with more than n lanes is not one group."""
    chain, lane, size = (frame[c].to_numpy() for c in ("chain", "lane", "size"))
    if not len(chain):
        return
    bounds = np.flatnonzero((np.diff(chain) != 0) | (np.diff(lane) != 0)) + 1
    parts = [slice(a, b) for a, b in pairwise([0, *bounds.tolist(), len(chain)])]
    firsts = chain[[p.start for p in parts]]
    for one in np.unique(firsts).tolist():
        mine = [parts[i] for i in np.flatnonzero(firsts == one)]
        most = size[mine[0].start : mine[-1].stop].max()
        if len(mine) > 1 and (most == NULL or len(mine) <= most):
            yield mine


def _aligned(parts: list[pd.DataFrame]) -> list[tuple[int, tuple[int, int]]]:
    """(which lane, (shift, clock offset)) of each lane whose collectives fit those of the lane that has most of them."""
    reference = max(range(len(parts)), key=lambda i: len(parts[i]))
    found = [(reference, (0, 0))]
    for i, part in enumerate(parts):
        if i != reference and (fit := _fit(parts[reference], part)):
            found.append((i, fit))
    return found if len(found) > 1 else []


def _fit(reference: pd.DataFrame, part: pd.DataFrame) -> tuple[int, int] | None:
    """By how many places a lane ends before the reference, and its clock's offset in ns; None where none fits."""
    short = min(reference["duration"].median(), part["duration"].median())
    allowed = ENDS_NS + ENDS_SHARE * short
    known = _by_sequence(reference, part)
    ours, theirs = part["end"].to_numpy()[-TAIL:], reference["end"].to_numpy()[-TAIL - REACH :]
    fits = [_apart(theirs, ours, known or 0)]
    if known is None and max(fits[0][:2]) > allowed:
        least = max(3, min(len(ours), len(theirs)) // 2)
        fits += [
            _apart(theirs, ours, shift)
            for shift in range(-REACH, REACH + 1)
            if min(len(theirs) - max(shift, 0), len(ours) + min(shift, 0)) >= least
        ]
    # Steps repeat, so a shift by a whole step fits nearly as well as the right one: the clocks, however roughly, tell which it is.
    best = min(scatter for scatter, *_ in fits)
    scatter, apart, shift, offset = min((f for f in fits if f[0] <= max(2 * best, allowed)), key=lambda f: f[1])
    return (shift, offset) if scatter <= allowed and apart <= MOST_APART_NS else None


def _by_sequence(reference: pd.DataFrame, part: pd.DataFrame) -> int | None:
    places = []
    for one in (reference, part):
        sequence = one["sequence"].to_numpy()
        back = np.arange(len(sequence) - 1, -1, -1)
        places.append(pd.Series(back, sequence)[sequence != NULL])
    both = pd.concat([p[~p.index.duplicated()] for p in places], axis=1, join="inner").to_numpy()
    return int(np.median(both[:, 0] - both[:, 1])) if len(both) else None


def _apart(reference: Array, ends: Array, shift: int) -> tuple[float, float, int, int]:
    """How the ends differ when the lane's last is the reference's last but `shift`: (scatter, |offset|, shift, offset)."""
    a = reference[: len(reference) - shift] if shift > 0 else reference
    b = ends[: len(ends) + shift] if shift < 0 else ends
    common = min(len(a), len(b))
    if common <= 0:
        return np.inf, np.inf, shift, 0
    difference = b[-common:] - a[-common:]
    offset = np.median(difference)
    return float(np.median(np.abs(difference - offset))), float(abs(offset)), shift, round(offset)


def _instances(frame: pd.DataFrame, count: int) -> Matches:
    """Collectives in which every rank took part that should, and whose ends, and sizes where they must, agree."""
    none = np.full(count, NULL, np.int64)
    result = Matches(none, none.copy(), none.copy(), none.copy(), none.copy(), np.zeros(count, bool))
    if not len(frame):
        return result
    frame["lanes"] = frame.groupby("chain")["lane"].transform("nunique")
    frame["instance"] = frames.dense(frame["chain"].to_numpy(), frame["place"].to_numpy())
    frame["told"] = frame["bytes"].where(frame["bytes"] != NULL)
    by = frame.groupby("instance", sort=False)
    table = by.agg(
        chain=("chain", "first"),
        lanes=("lanes", "first"),
        ranks=("lane", "size"),
        transfer=("duration", "min"),
        first=("end", "min"),
        last=("end", "max"),
        late=("duration", "idxmin"),
        smallest=("told", "min"),
        largest=("told", "max"),
        sized=("told", "count"),
        same_size=("same_size", "first"),
        size=("size", "max"),
    )
    table["spread"] = table["last"] - table["first"]
    # Without the trace of one of its ranks, what a collective takes cannot be told from waiting for that rank.
    whole = (table["ranks"] == table["lanes"]) & ((table["size"] == NULL) | (table["size"] == table["ranks"]))
    agree = whole & (table["spread"] <= ENDS_NS + ENDS_SHARE * table["transfer"])
    agree &= ~(table["same_size"] & (table["smallest"] != table["largest"]) & (table["sized"] > 0))
    checked = agree & table["same_size"] & (table["sized"] > 1)
    # Where most do not agree, those that do agree by chance.
    share = agree[whole].groupby(table["chain"][whole]).mean().reindex(table["chain"]).fillna(0).to_numpy()
    table = table.assign(certain=checked.groupby(table["chain"]).transform("any"))[agree & (share > 0.5)]
    frame = frame[frame["instance"].isin(table.index)]
    rows, own = frame.index.to_numpy(), table.loc[frame["instance"]]
    instance = pd.factorize(frame["instance"].sort_index())[0]
    result.instance[np.sort(rows)] = instance
    for column in ("ranks", "transfer", "spread", "late", "certain"):
        getattr(result, column)[rows] = own[column].to_numpy()
    return result
