"""What all ranks together tell of each communication kernel: who came last to its collective, and how long the others waited.

The one derived table that looks at several ranks at once. It needs nothing but their communication kernels, so a job of any size is
joined from those; everything else about a rank is made where its trace is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL
from traceanalyzer.columns.grouped import Floats, Groups
from traceanalyzer.intervals import Array
from traceanalyzer.model.trace import Input
from traceanalyzer.ranks.collectives.calls import call_waits
from traceanalyzer.ranks.collectives.collectives import chains, lanes, match
from traceanalyzer.ranks.collectives.instances import Matches
from traceanalyzer.ranks.collectives.offsets import clock_health, clock_offsets, match_health
from traceanalyzer.ranks.collectives.recorded import LEAST_MATCHED, matched_share
from traceanalyzer.ranks.collectives.tables import LATE_WINDOWS, MATCHES
from traceanalyzer.records import dataclass
from traceanalyzer.vocabulary.levels import LOW, MEDIUM

JITTER = 0.01
"""Least spread of the ranks' compute, as a share of the median: below it they are alike, and a score of the rest means nothing."""
FEWEST = 3
"""Ranks that it takes to tell which one is unlike the others."""


@dataclass(frozen=True)
class Joined:
    """`matches` has a row a row of the kernels, `offsets` is as of `clock_offsets`, `health` has the schema of the event table."""

    matches: pa.Table
    offsets: pa.Table
    health: pa.Table


def matches(communication_kernels: pa.Table, windows: pa.Table, inputs: Sequence[Input]) -> pa.Table:
    """One row a row of `communication_kernels`, which holds those of all ranks."""
    return join_ranks(communication_kernels, inputs, windows).matches


def join_ranks(communication_kernels: pa.Table, inputs: Sequence[Input], windows: pa.Table | None = None) -> Joined:
    """What the kernels of all ranks, which are at least one, tell together. `windows` as of that table."""
    kernels = communication_kernels.combine_chunks()
    found = match(kernels, inputs, windows, incomplete=True)
    offsets = clock_offsets(kernels, found)
    health = [clock_health(kernels, found, offsets, inputs)]
    share = matched_share(frames.duration(kernels), found.instance != NULL, found.outside)
    believed = share is None or share >= LEAST_MATCHED
    if share is not None and not believed:
        health.append(match_health(found, share))
    return Joined(_table(kernels, found, believed), offsets, pa.concat_tables(health))


def _table(kernels: pa.Table, found: Matches, believed: bool) -> pa.Table:
    """Unless the matches are `believed` as a whole, nothing is told of waiting."""
    matched = found.instance != NULL
    known = matched & believed
    wait = np.where(known, frames.duration(kernels) - found.transfer, 0)
    late = np.where(known, found.late, np.arange(len(wait)))
    arrived = frames.ints(kernels, "start_ns")[late]
    longest = _longest(wait, found.instance)
    known &= ~_first_meeting(kernels, known)[late]
    wait = np.where(known, wait, 0)
    imbalance, score = _compute(kernels, wait, known, late)
    return frames.build(
        MATCHES,
        {c: kernels[c] for c in ("rank", "device")}
        | {
            c: frames.numbers(np.where(told, getattr(found, c), NULL))
            for told, columns in ((matched, ("instance", "ranks", "missing")), (known, ("transfer", "spread")))
            for c in columns
        }
        | {f"late_{c}": kernels[c].take(pa.array(late, mask=~known)) for c in ("rank", "device")}
        | {
            "certainty": frames.names(np.where(matched, found.certain, 2), [LOW, MEDIUM, None]),
            "outside": pa.array(found.outside),
            "wait": pa.array(wait, mask=~known),
            "call_wait": pa.array(call_waits(kernels, np.where(known, found.transfer, NULL), wait, late), mask=~known),
            "late_start_ns": pa.array(arrived - longest, mask=~known),
            "late_end_ns": pa.array(arrived, mask=~known),
            "imbalance": pa.array(imbalance, mask=~known),
            "score": pa.array(score, from_pandas=True),
            "skew": pa.array(found.skew, from_pandas=True),
            "late_exposed": pa.array(frames.ints(kernels, "exposed")[late], mask=~known),
        },
    )


def late_windows(matches: pa.Table) -> pa.Table:
    """The collectives for which others waited, one row each, under the rank that came last."""
    start, end = (frames.ints(matches, f"late_{c}") for c in ("start_ns", "end_ns"))
    waited = np.flatnonzero(end > start)
    rows = pa.array(waited[np.unique(frames.ints(matches, "instance")[waited], return_index=True)[1]])
    late = {c: matches[f"late_{c}"].take(rows) for c in ("rank", "device", "start_ns", "end_ns")}
    return frames.build(LATE_WINDOWS, {**late, "instance": matches["instance"].take(rows)})


def _first_meeting(kernels: pa.Table, known: frames.Flags) -> frames.Flags:
    """Which kernels are the first of their lane that has counterparts.

    Who comes late to that one may only have begun to record late, or be slow at beginning: there is no time before from which on all
    ranks had the same to do.
    """
    lane, start = lanes(kernels), frames.ints(kernels, "start_ns")
    rows = np.flatnonzero(known)
    rows = rows[np.lexsort((start[rows], lane[rows]))]
    first = np.zeros(len(lane), bool)
    first[rows[np.unique(lane[rows], return_index=True)[1]]] = True
    return first


def _longest(wait: Array, instance: Array) -> Array:
    """For each part the longest wait in its collective."""
    of = Groups(instance)
    return of.max(wait)[of.of]


def _compute(kernels: pa.Table, wait: Array, known: frames.Flags, late: Array) -> tuple[Array, Floats]:
    """Which part of each wait is the last rank's longer compute, and how unlike the others' its compute is.

    Compared is the compute from the end of the first to the end of the last collective of a chain, times that all ranks share. Single
    collectives cannot be compared: a rank computes on under some that it waits in, and what it had no time for comes before the next.

    Score: 0.6745 (x - median) / max(MAD, floor), at least `FEWEST` ranks. Source: Iglewicz and Hoaglin, How to Detect and Handle
    Outliers, 1993.
    """
    lane, chain = lanes(kernels), chains(kernels)
    last = lane[late]
    done = frames.ints(kernels, "computed")
    own, of_last = np.split(frames.dense(np.tile(chain, 2), np.concatenate((lane, last))), 2)
    by_lane = Groups(own[known])
    x = (by_lane.max(done[known]) - by_lane.min(done[known])).astype(np.float64)
    by_chain = Groups(chain[known][by_lane.first])
    median = by_chain.median(x)[by_chain.of]
    spread = by_chain.median(np.abs(x - median))[by_chain.of]
    score = 0.6745 * (x - median) / np.maximum(np.maximum(spread, JITTER * median), 1)
    score = np.where(by_chain.size[by_chain.of] >= FEWEST, score, np.nan)
    # The last value is for lanes that have nothing to compare.
    here, there = by_lane.find(own), by_lane.find(of_last)
    x, score = np.append(x, np.nan), np.append(score, np.nan)
    pair = Groups(frames.dense(lane, last))
    waited = pair.sum(np.where(known, wait, 0))[pair.of]
    imbalance = wait * np.clip(np.nan_to_num(np.maximum(x[there] - x[here], 0)) / np.maximum(waited, 1), 0, 1)
    return imbalance.astype(np.int64), np.where(known, score[there], np.nan)
