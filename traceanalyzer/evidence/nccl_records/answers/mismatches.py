"""Collectives in which ranks do different things: another operation, element type or size.

What must be alike is what NCCL needs to be: of an all-reduce, broadcast or reduce all sizes, of an all-gather what comes out, of a
reduce-scatter what goes in, of a gather what goes in, of a scatter what comes out. What ranks exchange in an all-to-all may differ.
"""

from __future__ import annotations

import numpy as np

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL
from traceanalyzer.evidence.nccl_records.answers.compared import Compared, Flags, Group, named
from traceanalyzer.evidence.nccl_records.answers.words import listed
from traceanalyzer.intervals import Array
from traceanalyzer.records import dataclass

OPERATION, TYPE, SIZE = "operation", "element type", "size"
_IN = (
    "all_reduce",
    "allreduce",
    "reduce",
    "broadcast",
    "gather",
    "barrier",
    "all_gather_base",
    "all_gather_into",
    "all_gather_single",
)
_OUT = ("all_reduce", "allreduce", "broadcast", "scatter", "all_gather", "allgather", "reduce_scatter_base", "barrier")
_NOT_IN = ("all_gather_v", "all_to_all", "alltoall")
_NOT_OUT = ("reduce_scatter_v",)


@dataclass(frozen=True)
class Mismatch:
    """One collective of a group; `parts` are the positions of the ranks that do the same, the most first, with one of their calls."""

    group: Group
    place: int
    kind: str
    parts: list[tuple[list[int], int]]
    later: int
    pending: bool

    @property
    def sequence(self) -> int:
        return int(self.group.sequences[self.place])


def same_in(operation: str) -> bool:
    """Whether all ranks must give equally much."""
    name = operation.lower().lstrip("_")
    return name.startswith(_IN) and not name.startswith(_NOT_IN)


def same_out(operation: str) -> bool:
    """Whether all ranks must get equally much."""
    name = operation.lower().lstrip("_")
    return name.startswith(_OUT) and not name.startswith(_NOT_OUT)


def mismatch(all_: Compared, group: Group) -> Mismatch | None:
    """The first collective of a group in which ranks differ, from where all of their records begin; None for none."""
    at = group.at[:, group.judged] if group.judged else np.zeros((0, 0), np.int64)
    if not at.size:
        return None
    begin = first_common(group)
    held = at >= 0
    compare = (held.sum(axis=1) > 1) & (group.sequences >= begin)
    row = np.maximum(at, 0)
    operation, _ = frames.codes(all_.calls, "operation")
    dtype, _ = frames.codes(all_.calls, "dtype")
    dtype = np.where(frames.where(all_.calls, "dtype", lambda _: True), dtype, NULL)
    sizes = np.zeros(at.shape, np.int64)
    differ = {OPERATION: _differ(operation[row], held), TYPE: _differ(dtype[row], held & (dtype[row] != NULL))}
    unequal = np.zeros(len(at), bool)
    for name, test in (("in_elements", same_in), ("out_elements", same_out)):
        elements = frames.ints(all_.calls, name)
        judged = frames.where(all_.calls, "operation", test)
        known = held & judged[row] & (elements[row] != NULL)
        unequal |= _differ(elements[row], known)
        sizes = np.where(known, 31 * sizes + elements[row] + 1, sizes)
    differ[SIZE] = unequal
    any_ = (differ[OPERATION] | differ[TYPE] | differ[SIZE]) & compare
    if not any_.any():
        return None
    place = int(np.flatnonzero(any_)[0])
    kind = next(kind for kind in (OPERATION, TYPE, SIZE) if differ[kind][place])
    keys = {OPERATION: operation[row], TYPE: dtype[row], SIZE: sizes}[kind][place]
    done = bool(np.all(all_.done[row[place]][held[place]]))
    return Mismatch(group, place, kind, _parts(group, at[place], keys), int(any_.sum()) - 1, not done)


def first_common(group: Group) -> int:
    """The first number that the records of all compared ranks hold, where their rings lost their beginnings; else 0."""
    found = 0
    for at in group.judged:
        member = group.members[at]
        own = group.sequences[group.at[:, at] >= 0]
        if member.lost and len(own):
            found = max(found, int(own[0]))
    return found


def _differ(values: Array, known: Flags) -> Flags:
    """In which rows the known values are not all the same."""
    high = np.where(known, values, NULL).max(axis=1)
    low = np.where(known, values, np.iinfo(np.int64).max).min(axis=1)
    found: Flags = (known.sum(axis=1) > 1) & (high != low)
    return found


def _parts(group: Group, calls: Array, keys: Array) -> list[tuple[list[int], int]]:
    by_key: dict[int, tuple[list[int], int]] = {}
    for position, call, key in zip(group.judged, calls.tolist(), keys.tolist(), strict=True):
        if call >= 0:
            by_key.setdefault(key, ([], call))[0].append(position)
    return sorted(by_key.values(), key=lambda part: (-len(part[0]), part[0]))


def what(all_: Compared, one: Mismatch) -> str:
    """Who does what, in words: "rank 0 calls all_reduce, rank 1 broadcast"."""
    said = []
    for number, (positions, call) in enumerate(one.parts):
        verb = f"call{'s' if len(positions) == 1 else ''} " if not number else ""
        said.append(f"{named(one.group, positions)} {verb}{_does(all_, one, call)}")
    return listed(said)


def _does(all_: Compared, one: Mismatch, call: int) -> str:
    operation = all_.value("operation", call) or "something unknown"
    if one.kind == OPERATION:
        return operation
    if one.kind == TYPE:
        return f"{operation} with {all_.value('dtype', call) or 'an unknown type'}"
    return f"{operation} with {all_.value('sizes', call) or 'unknown sizes'}"


def more(all_: Compared, one: Mismatch) -> str:
    """Where each called it, whether it is complete, and how many follow in which they differ, as sentences without the last stop."""
    found = [
        f"{named(one.group, positions)} {'calls it ' if not number else ''}at {place}"
        for number, (positions, call) in enumerate(one.parts)
        if (place := all_.value("place", call)) is not None
    ]
    said = [", ".join(found)[:1].upper() + ", ".join(found)[1:]] if found else []
    said.append("It is not complete on all of them" if one.pending else "It is complete all the same")
    if one.later:
        said.append(f"They differ in {one.later:,} later one{'s' if one.later > 1 else ''} as well")
    return ". ".join(said)
