"""Sends and receives: who is on the other side.

The kernel's arguments name the other rank of the job. The range around the launch of one without arguments ("nccl:send 1->2") counts
ranks within the group. What a kernel of several holds its operators tell (`grouped_sends`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL, Flags
from traceanalyzer.intervals import Array
from traceanalyzer.ranks.groups.process_groups import members
from traceanalyzer.records import dataclass

SEND, RECEIVE, BOTH = "send", "receive", "send-receive"
_SIDES = re.compile(r"nccl:(?:send (\d+)->(\d+)|recv (\d+)<-(\d+))")


def sides(name: str | None) -> tuple[int, int] | None:
    """(this rank, the other one), both within the group, from the name of a range around a send or receive."""
    found = _SIDES.match(name or "")
    return (int(found[1] or found[3]), int(found[2] or found[4])) if found else None


def peers(names: Iterable[str | None], ranks: Array, group_ranks: Iterable[str | None]) -> Array:
    """The other rank of the job for each range name, `NULL` where it names none, or does not say which rank of the job that is.

    `ranks`: the ranks that launched; `group_ranks`: the ranks of each group as recorded, None where they are not told.
    """
    seen: dict[tuple[str | None, int, str | None], int] = {}
    found = []
    for key in zip(names, ranks.tolist(), group_ranks, strict=True):
        if key not in seen:
            seen[key] = _peer(*key)
        found.append(seen[key])
    return np.array(found, np.int64)


def _peer(name: str | None, rank: int, group_ranks: str | None) -> int:
    both = sides(name)
    if both is None:
        return NULL
    own, other = both
    group = members(group_ranks)
    if not group:
        # A group that starts at rank 0 without gaps counts as the job does; in any other this rank has another number.
        return other if own == rank else NULL
    return group[other] if max(both) < len(group) and group[own] == rank else NULL


@dataclass(frozen=True)
class Messages:
    """One value a message that a kernel sends or receives: the kernel's row, whether it sends, and the ranks on both sides."""

    row: Array
    sends: Flags
    sender: Array
    receiver: Array


def messages(kernels: pa.Table) -> Messages:
    """The sends and receives of communication kernels whose other side is known. A kernel may hold several."""
    rank, peer = frames.ints(kernels, "rank"), frames.ints(kernels, "peer")
    rows, out, other = [], [], []
    for kind, column in ((SEND, "sends"), (RECEIVE, "receives")):
        code, lists = frames.codes(kernels, column)
        ranks = [members(text) for text in lists]
        single = np.flatnonzero(frames.equals(kernels, "kind", kind) & (code == len(lists) - 1) & (peer != NULL))
        count = np.array([len(own) for own in ranks])[code]
        grouped = np.repeat(np.arange(len(code)), count)
        place = np.arange(len(grouped)) - np.repeat(np.cumsum(count) - count, count)
        first = np.cumsum([0, *(len(own) for own in ranks)])[code[grouped]]
        listed = np.array([r for own in ranks for r in own], np.int64)
        rows += [single, grouped]
        other += [peer[single], listed[first + place]]
        out.append(np.full(len(single) + len(grouped), kind == SEND))
    row, far, sends = (np.concatenate(parts) for parts in (rows, other, out))
    own = rank[row]
    kept = far != own
    sender, receiver = np.where(sends, own, far), np.where(sends, far, own)
    return Messages(*(column[kept] for column in (row, sends, sender, receiver)))
