"""From places within chains to collectives: whose parts make a whole one, how long its transfer took, and who came last."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL
from traceanalyzer.intervals import Array

ENDS_NS, ENDS_SHARE = 100_000, 0.25
"""How far apart the ends of one collective may lie: what polling explains, and the share of the transfer that a slow link adds."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Matches:
    """One value a communication kernel, `NULL` (NaN) where it has no counterpart.

    `late` is the row of the part that arrived last, and `transfer` the shortest duration; a send that was buffered and its receive have
    each its own, and no `spread`. `skew`: the most bytes that come out on one rank over their mean. `end`: the end on
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


_SIDES = (("sends", "end"), ("receives", "end"), ("receives", "begun"))


def instances(frame: pd.DataFrame, clock: Array, domain: Array, apart: Array) -> Matches:
    """Collectives in which every rank took part that should, and whose ends, and sizes where they must, agree.

    `frame` has a row a part, as `collectives.match` makes it, with its `place` in its chain; its index is the kernel. The other
    arguments have a value a kernel.
    """
    count = len(clock)
    instance, ranks, transfer, spread, late, end = (np.full(count, NULL, np.int64) for _ in range(6))
    certain, skew = np.zeros(count, bool), np.full(count, np.nan)
    result = Matches(instance, ranks, transfer, spread, late, certain, skew, end, clock, domain, apart)
    parts = np.bincount(frame.index, minlength=count)
    frame = frame[frame["place"] != NULL]
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
        # A send that was buffered ends before its receive, whatever the clocks.
        "spread": np.where(buffered, NULL, spread),
        "late": frame.index.to_numpy()[first],
        "certain": per_chain["checked"].transform("any").to_numpy(),
        "skew": skew,
    }
    # Of a send that was buffered nobody waited, and its receive came last.
    column["transfer"] = np.where(buffered[number], column["duration"], transfer[number])
    receives = np.flatnonzero(column["receives"] & buffered[number])
    per_instance["late"][number[receives]] = frame.index.to_numpy()[receives]
    shown = _longest(frame.index.to_numpy(), column["duration"] - column["transfer"], kept[number], parts)
    rows = frame.index.to_numpy()[shown]
    for name, values in per_instance.items():
        getattr(result, name)[rows] = values[number[shown]]
    result.end[rows], result.transfer[rows] = column["end"][shown], column["transfer"][shown]
    by_row = np.argsort(rows, kind="stable")
    result.instance[rows[by_row]] = pd.factorize(number[shown][by_row])[0]
    return result


def _longest(row: Array, wait: Array, kept: frames.Flags, parts: Array) -> Array:
    """The places of those that stand for their kernels: where all `parts` of one are `kept`, the one with the longest wait."""
    some = np.flatnonzero(kept)
    some = some[np.bincount(row[some], minlength=len(parts))[row[some]] == parts[row[some]]]
    order = some[np.lexsort((wait[some], row[some]))]
    last = np.flatnonzero(np.diff(row[order], append=-1))
    return np.asarray(order[last])
