"""What cannot be matched because it was not recorded: kernels whose counterparts lie outside another rank's recording, or on a rank
that is not there; and how much of the rest was matched."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL, Flags
from traceanalyzer.columns.grouped import Groups
from traceanalyzer.intervals import Array
from traceanalyzer.ranks.collectives.instances import Parts
from traceanalyzer.ranks.groups.process_groups import members

LEAST_MATCHED = 0.5
"""Where less of what all ranks recorded has counterparts, what has may have them by chance, and nobody is told to wait for anybody."""


def matched_share(time: Array, matched: Flags, outside: Flags) -> float | None:
    """The share of the `time` that all ranks of the groups recorded whose parts were found; None where there is no such time."""
    inside = int(time[~outside].sum())
    return round(float(time[matched & ~outside].sum() / inside), 6) if inside else None


def shares(communication: pa.Table) -> tuple[float | None, float, float]:
    """`matched_share` of `communication`, and which shares of all its time lie outside, and are matched without a word on waiting."""
    time, outside = frames.duration(communication), frames.flags(communication, "outside")
    matched = frames.ints(communication, "instance") != NULL
    untold = matched & (frames.ints(communication, "wait") == NULL)
    whole = max(int(time.sum()), 1)
    apart, silent = (round(float(time[which].sum() / whole), 6) for which in (outside, untold))
    return matched_share(time, matched, outside), apart, silent


def tells_nothing(communication: pa.Table) -> Flags:
    """Which kernels belong to collectives that not all ranks recorded, or that were the first after some rank began to."""
    matched = frames.ints(communication, "instance") != NULL
    found: Flags = matched & (frames.ints(communication, "wait") == NULL) | frames.flags(communication, "outside")
    return found


def untold(communication: pa.Table) -> dict[frames.Key, int]:
    """How long each GPU communicates with no computation beside it, beyond a transfer, in collectives that tell nothing of waiting
    because ranks did not all record yet or any more, ns. Nothing where so little was matched that this says nothing either."""
    share = shares(communication)[0]
    if share is None or share < LEAST_MATCHED:
        return {}
    rows = tells_nothing(communication)
    beyond = frames.ints(communication, "exposed") - frames.ints(communication, "exposed_transfer")
    beyond = np.where(rows, np.maximum(beyond, 0), 0)
    return {key: int(beyond[own].sum()) for key, own in frames.groups(communication)}


def edges(kernels: pa.Table, windows: pa.Table | None, lane: Array) -> tuple[Array, Array]:
    """From when to when each lane was recorded, on its rank's clock: its window, or else from its first to its last collective."""
    start, end = frames.ints(kernels, "start_ns"), frames.ints(kernels, "end_ns")
    of = Groups(lane)
    low, high = of.min(start), of.max(end)
    if windows is None or not windows.num_rows:
        return low, high
    who = [np.concatenate((frames.ints(kernels, c)[of.first], frames.ints(windows, c))) for c in ("rank", "device")]
    code = frames.dense(*who)
    gpus = Groups(code[len(of) :])
    at = gpus.find(code[: len(of)])
    begun, over = gpus.min(frames.ints(windows, "start_ns")), gpus.max(frames.ints(windows, "end_ns"))
    return np.where(at >= 0, np.minimum(begun[at], low), low), np.where(at >= 0, np.maximum(over[at], high), high)


def outside(parts: Parts, low: Array, high: Array, end: Array, absent: Flags) -> Flags:
    """For each part whether another lane of its chain did not record it.

    `low` and `high` bound the recording of each lane, `end` is the end of each part, all on one clock. That lane's part ended before or
    after, or was under way as the recording began or ended: then it is the one before or after the lane's own in the chain. `absent`:
    where nothing is there of some rank of the group; with nobody else in its chain, such a part is outside as well.
    """
    found = np.zeros(len(parts), bool)
    if not len(parts):
        return found
    chain = Groups(parts.chain)
    one = Groups(frames.dense(parts.chain, parts.lane))
    alone = chain.distinct(parts.lane)[chain.of] == 1
    found |= alone & absent
    # The latest beginning and the earliest ending of the lanes of each chain. A part lies within its own lane's.
    first, last = low[parts.lane], high[parts.lane]
    found |= ~alone & ((end < chain.max(first)[chain.of]) | (end > chain.min(last)[chain.of]))
    known = parts.place != NULL
    if known.any():
        # Places count from the end. Those of one chain follow each other, with a gap to the next chain's.
        order = np.lexsort((np.where(known, parts.place, np.iinfo(np.int64).max), chain.of))
        changes = np.diff(parts.place[order], prepend=NULL) != 0
        placed = np.empty(len(parts), np.int64)
        placed[order] = np.cumsum(changes | (np.diff(chain.of[order], prepend=-1) != 0)) + 2 * chain.of[order]
        most = one.max(np.where(known, placed, -1))
        least = one.min(np.where(known, placed, np.iinfo(np.int64).max))
        edge = np.concatenate((most[most >= 0] + 1, least[most >= 0] - 1))
        found |= known & np.isin(placed, edge)
    return found


def absent(kernels: pa.Table, parts: Parts, sender: Array, receiver: Array, there: set[int]) -> Flags:
    """For each part whether some rank of its group, or of the two of a message, is not among those of which something was recorded."""
    code, texts = frames.codes(kernels, "group_ranks")
    listed = [members(text) for text in texts]
    told = np.array([bool(own) for own in listed], bool)[code[parts.row]]
    gone = np.array([not there.issuperset(own) for own in listed], bool)[code[parts.row]]
    known = np.array(sorted(there), np.int64)
    of_two = ~(np.isin(sender, known) & np.isin(receiver, known))
    result: Flags = np.where(sender != NULL, of_two, np.where(told, gone, parts.size > len(there)))
    return result
