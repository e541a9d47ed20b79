"""Who comes late to collectives, and by how much.

With the time that each rank was in a collective (`duration`): the one that was in it for the shortest time came last, and the next one
waited for it by the difference. Without: by when the program asked for it. A collective is held up by its last rank from when

    max(the last but one asked for it, every rank had asked for the one before it)

so that what the program does at one time, and what all ranks do alike, holds up nobody. That others could not have begun earlier for
another reason is seen where the collective was complete soon after the last call, within as long as that call was late.
What runs on the GPU in between is not in these records.

Clocks: no rank completes a collective before all have called it, which bounds how far the clocks of ranks may differ. Where that cannot
be, they do differ, and nothing is told; and a rank is late only where it would be with a clock that is ahead by as much as it can be.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL
from traceanalyzer.evidence.nccl_records.answers.compared import Compared, Flags, Group
from traceanalyzer.intervals import Array
from traceanalyzer.records import dataclass

_MOST_NS = 1 << 61
FLOOR_NS = 100_000
"""Ranks never ask at the same time; what is less than this is nobody's lateness."""
MOST_TYPICAL = 3
"""A single long delay counts as at most so many usual ones: it is no habit of a rank."""


@dataclass(frozen=True)
class Late:
    """How late one rank comes; as in nccl_lateness."""

    at: int
    collectives: int
    last: int
    rounds: int
    seen: int
    typical: int
    lost: int
    behind: int
    span: int
    blur: int
    measured: bool
    operation: str | None
    place: str | None


@dataclass(frozen=True)
class Arrived:
    """The compared collectives of a group: calls by collective and rank, when the rank came, how long each was held up, by whom."""

    at: Array
    came: Array
    held_up: Array
    who: Array
    seen: Flags
    measured: bool
    blur: Array
    apart: bool


def arrived(all_: Compared, group: Group) -> Arrived | None:
    """None where there are no collectives to compare."""
    at = group.at[:, group.judged] if group.judged else np.zeros((0, 0), np.int64)
    if not at.size:
        return None
    row = np.maximum(at, 0)
    usable = (at >= 0).all(axis=1) & all_.synchronizing[row].all(axis=1) & all_.done[row].all(axis=1)
    if all_.inside is not None:
        usable &= all_.inside[row].all(axis=1)
    took = all_.duration[row]
    measured = usable & (took != NULL).all(axis=1)
    if measured.sum() >= 3 and measured.sum() * 2 >= usable.sum():
        return _measured(all_, row[measured], took[measured])
    usable &= (all_.created[row] != NULL).all(axis=1)
    return _asked(all_, row[usable]) if usable.sum() > 1 else None


def _measured(all_: Compared, at: Array, took: Array) -> Arrived:
    order = np.sort(took, axis=1)
    held_up = order[:, 1] - order[:, 0]
    held_up[0] = 0
    came = all_.created[at]
    if (came == NULL).any():
        came = took.max(axis=1)[:, None] - took
        came = came + np.r_[0, np.cumsum(took.max(axis=1))[:-1]][:, None]
    blur = np.zeros(at.shape[1], np.int64)
    return Arrived(at, came, held_up, took.argmin(axis=1), np.ones(len(at), bool), True, blur, False)


def _asked(all_: Compared, at: Array) -> Arrived:
    came, over = all_.created[at], all_.completed[at]
    last = came.max(axis=1)
    held_up = _held_up(came)
    known = np.where(over == NULL, np.iinfo(np.int64).max, over).min(axis=1)
    began = np.where(all_.started[at] == NULL, np.iinfo(np.int64).max, all_.started[at]).min(axis=1)
    seen = (known - last <= held_up) | (began < last)
    blur = _blur(came, over)
    return Arrived(at, came, held_up, came.argmax(axis=1), seen, False, np.maximum(blur, 0), bool((blur < 0).any()))


def _held_up(came: Array) -> Array:
    """For how long each collective is held up by its last rank. To the first one ranks come as their start-up lets them."""
    last, order = came.max(axis=1), np.sort(came, axis=1)
    before = np.maximum.accumulate(last)
    found = np.zeros(len(came), np.int64)
    found[1:] = np.maximum(0, last[1:] - np.maximum(order[1:, -2], before[:-1]))
    return found


def _whatever_the_clock(found: Arrived, at: int) -> Flags:
    """Which collectives a rank holds up even if its clock is ahead by as much as it can be."""
    own = found.who == at
    late: Flags = own & (found.held_up >= FLOOR_NS)
    if found.measured:
        return late
    came = found.came.copy()
    came[:, at] -= found.blur[at]
    late &= (came.argmax(axis=1) == at) & (_held_up(came) >= FLOOR_NS)
    return late


def _blur(came: Array, over: Array) -> Array:
    """How far each rank's clock may be ahead of the others', at most; below 0 where clocks contradict each other."""
    order = np.sort(came, axis=1)
    # The last of the others: the last of all, and for that one the last but one.
    others = np.where(came.argmax(axis=1)[:, None] == np.arange(came.shape[1]), order[:, -2:-1], order[:, -1:])
    most = np.iinfo(np.int64).max
    found: Array = np.where(over == NULL, most, np.where(over == NULL, 0, over) - others).min(axis=0)
    return found


def lateness(all_: Compared, group: Group) -> list[Late]:
    """One a rank that was ever late, the latest first."""
    found = arrived(all_, group)
    if found is None or found.apart or len(found.at) < 2:
        return []
    span = int(found.came.max(axis=1)[-1] - found.came.max(axis=1)[0])
    if found.measured:
        span = max(span, min(int(all_.duration[found.at].max(axis=1).sum(dtype=np.float64)), _MOST_NS))
    first = found.came.min(axis=1)
    rows = []
    for at in range(found.at.shape[1]):
        own = found.who == at
        late = np.flatnonzero(_whatever_the_clock(found, at))
        if not len(late):
            continue
        late = late[found.held_up[late] >= _half_of_it(found.held_up[late]) / 2]
        held = found.held_up[late]
        typical = int(np.median(held))
        calls = found.at[late, at]
        rows.append(
            Late(
                at=group.judged[at],
                collectives=len(found.at),
                last=int(own.sum()),
                rounds=len(late),
                seen=int(found.seen[late].sum()),
                typical=typical,
                lost=min(int(np.minimum(held, MOST_TYPICAL * typical).sum(dtype=np.float64)), _MOST_NS),
                behind=int((found.came[:, at] - first)[1:].max()),
                span=max(span, 1),
                blur=NULL if found.measured else int(found.blur[at]),
                measured=found.measured,
                operation=_commonest(all_, "operation", calls),
                place=_commonest(all_, "place", calls),
            )
        )
    return sorted(rows, key=lambda row: -row.lost)


def _half_of_it(held: Array) -> int:
    """The delay from which on delays make half of their sum: what is as long belongs to it, and a crowd of small ones does not."""
    order = np.sort(held)[::-1]
    sums = np.cumsum(order.astype(np.float64))
    return int(order[np.searchsorted(sums, sums[-1] / 2)])


def _commonest(all_: Compared, column: str, calls: Array) -> str | None:
    code, names = frames.codes(all_.calls, column)
    if not len(calls):
        return None
    return names[Counter(code[calls].tolist()).most_common(1)[0][0]]
