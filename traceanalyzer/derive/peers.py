"""Sends and receives: who is on the other side.

The kernel's arguments name the other rank of the job. The range around the launch of one without arguments ("nccl:send 1->2") counts
ranks within the group.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceanalyzer.derive import frames
from traceanalyzer.derive.frames import NULL
from traceanalyzer.derive.process_groups import members
from traceanalyzer.intervals import Array

SEND, RECEIVE = "send", "receive"
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


def ends_of(kernels: pa.Table) -> tuple[npt.NDArray[np.bool_], Array, Array]:
    """Where a kernel is one send or one receive whose other side is known, and then the sending and the receiving rank, else `NULL`."""
    sends, receives = (frames.equals(kernels, "kind", kind) for kind in (SEND, RECEIVE))
    rank, peer = frames.ints(kernels, "rank"), frames.ints(kernels, "peer")
    paired = (sends | receives) & (peer != NULL) & (peer != rank)
    sender, receiver = np.where(sends, rank, peer), np.where(sends, peer, rank)
    return paired, np.where(paired, sender, NULL), np.where(paired, receiver, NULL)
