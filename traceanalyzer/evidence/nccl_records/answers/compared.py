"""The records of all ranks, sorted into process groups, and collectives by their numbers: what the answers are read from.

Groups are one where their name and their ranks are; within a group a number means the same collective on every rank. Only numbers that
all ranks' records can hold are compared: from where the last ring begins.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import field
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL
from traceanalyzer.evidence.nccl_records.answers.words import listed, numbers
from traceanalyzer.evidence.nccl_records.tables import COMPLETED, INSPECTOR
from traceanalyzer.intervals import Array
from traceanalyzer.model.trace import Input, file_names
from traceanalyzer.records import dataclass

Flags = npt.NDArray[np.bool_]
SYNCHRONIZING = (
    "all_reduce",
    "allreduce",
    "all_gather",
    "allgather",
    "reduce_scatter",
    "all_to_all",
    "alltoall",
    "barrier",
)
"""Beginnings of the names of collectives that no rank can leave before every rank has called them."""


@dataclass(frozen=True)
class Member:
    """One rank whose records are here. `first` is the first number that they can hold for certain, in any group where the ring lost
    its beginning; `latest` when they were not yet written."""

    ordinal: int
    rank: int | None
    who: str
    inspector: bool
    lost: bool
    active_only: bool
    latest: int | None
    doubled: bool


@dataclass
class Group:
    """One process group. `at` has a row a number of `sequences` and a column a member: the row of the call, -1 without one.

    `label` is what to call it where the job has several; `enqueued` is how far each member said it had come, `NULL` where unknown.
    """

    name: str
    description: str | None
    ranks: list[int] | None
    size: int | None
    members: list[Member]
    enqueued: list[int]
    label: str | None = None
    sequences: Array = field(default_factory=lambda: np.zeros(0, np.int64))
    at: Array = field(default_factory=lambda: np.zeros((0, 0), np.int64))
    has_p2p: bool = False

    @property
    def why_not(self) -> str | None:
        """Why no ranks of it are compared; None where they are."""
        if self.size is not None and len(self.members) > self.size:
            return f"there are {len(self.members)} records for {self.size} ranks: they are of several runs"
        usable = [member for member in self.members if not member.doubled]
        if len(usable) < len(self.members) and len(usable) < 2:
            return "several files say they are of the same rank"
        if len(usable) < 2:
            return "records of only one of its ranks are here" if self.size != 1 else "it has one rank"
        return None

    @cached_property
    def judged(self) -> list[int]:
        """The positions of the members that are compared."""
        return [] if self.why_not else [at for at, member in enumerate(self.members) if not member.doubled]

    @property
    def absent(self) -> str | None:
        """Ranks whose records are not here, in words; None for none."""
        if self.ranks is not None and all(member.rank is not None for member in self.members):
            away = set(self.ranks) - {member.rank for member in self.members}
            return f"rank{'s' if len(away) > 1 else ''} {numbers(away)}" if away else None
        if self.size is None or len(self.members) >= self.size:
            return None
        return f"{self.size - len(self.members)} ranks"

    def member_of(self, own_rank: int | None) -> int | None:
        """The position of the member with this rank in the group, of those that are compared; None where it is not here."""
        if own_rank is None or self.ranks is None or own_rank >= len(self.ranks):
            return None
        wanted = self.ranks[own_rank]
        return next((at for at in self.judged if self.members[at].rank == wanted), None)


@dataclass(frozen=True)
class Compared:
    """`calls` are those of all members; columns of it are numpy arrays with `NULL` for null."""

    calls: pa.Table
    members: list[Member]
    groups: list[Group]

    @cached_property
    def created(self) -> Array:
        return frames.ints(self.calls, "created_ns")

    @cached_property
    def completed(self) -> Array:
        return frames.ints(self.calls, "completed_ns")

    @cached_property
    def started(self) -> Array:
        return frames.ints(self.calls, "started_ns")

    @cached_property
    def duration(self) -> Array:
        return frames.ints(self.calls, "duration")

    @cached_property
    def done(self) -> Flags:
        """Which calls are complete."""
        return frames.equals(self.calls, "state", COMPLETED)

    @cached_property
    def synchronizing(self) -> Flags:
        return frames.where(self.calls, "operation", is_synchronizing)

    @cached_property
    def inside(self) -> Flags | None:
        """Which calls were made while the traces beside them were recorded; None where no traces are."""
        column = self.calls["inside"]
        if column.null_count == len(column):
            return None
        flags: Flags = column.fill_null(True).to_numpy(zero_copy_only=False)
        return flags

    def value(self, name: str, row: int) -> str | None:
        """A name of one call."""
        found: str | None = self.calls[name][row].as_py()
        return found

    def number(self, name: str, row: int) -> int | None:
        """A number of one call."""
        found: int | None = self.calls[name][row].as_py()
        return found

    @cached_property
    def latest(self) -> int | None:
        """The latest time in any of the records."""
        return max((member.latest for member in self.members if member.latest is not None), default=None)


def is_synchronizing(operation: str) -> bool:
    return operation.lower().lstrip("_").startswith(SYNCHRONIZING)


def compared(
    nccl_rank_calls: pa.Table, nccl_rank_groups: pa.Table, nccl_rank_dumps: pa.Table, inputs: Sequence[Input]
) -> Compared:
    """The records of a job."""
    calls = _once(nccl_rank_calls.combine_chunks())
    members = _members(nccl_rank_dumps, inputs)
    groups = _groups(nccl_rank_groups, members)
    _number(groups, calls)
    found = [
        group
        for group in groups
        if group.at.size or any(number != NULL for number in group.enqueued) or len(groups) == 1
    ]
    _label(found)
    return Compared(calls, list(members.values()), found)


def _once(calls: pa.Table) -> pa.Table:
    """Of a call that two files of one rank hold, the one that came further."""
    rank, entry = frames.ints(calls, "rank"), frames.ints(calls, "entry")
    group = frames.codes(calls, "group")[0]
    order = np.lexsort((~frames.equals(calls, "state", COMPLETED), entry, group, rank))
    again = np.zeros(len(order), bool)
    again[1:] = (
        (np.diff(rank[order]) == 0)
        & (np.diff(group[order]) == 0)
        & (np.diff(entry[order]) == 0)
        & (entry[order][1:] != NULL)
    )
    return calls if not again.any() else calls.take(pa.array(np.sort(order[~again])))


def _members(dumps: pa.Table, inputs: Sequence[Input]) -> dict[int, Member]:
    ranks = {one.ordinal: one.rank for one in inputs}
    names = file_names(inputs)
    by_ordinal: dict[int, list[dict[str, object]]] = defaultdict(list)
    for row in dumps.to_pylist():
        by_ordinal[row["rank"]].append(row)
    count = Counter(ranks.get(ordinal) for ordinal in by_ordinal)
    found = {}
    for ordinal, rows in sorted(by_ordinal.items()):
        rank = ranks.get(ordinal)
        doubled = rank is not None and count[rank] > 1
        who = f"the rank of {names.get(ordinal, 'one file')}" if rank is None else f"rank {rank}"
        if doubled:
            who += f" of {names.get(ordinal, 'one file')}"
        times = [row["latest_ns"] for row in rows if isinstance(row["latest_ns"], int)]
        found[ordinal] = Member(
            ordinal,
            rank,
            who,
            all(row["source"] == INSPECTOR for row in rows),
            any(bool(row["lost_beginning"]) for row in rows),
            any(bool(row["active_only"]) for row in rows),
            max(times, default=None),
            doubled,
        )
    return found


def _groups(table: pa.Table, members: dict[int, Member]) -> list[Group]:
    """Groups by name and ranks; one of whose ranks nothing is told is the only one of its name, where there is only one."""
    rows = [row for row in table.to_pylist() if row["rank"] in members and row["group"] is not None]
    by_name: dict[str, set[str | None]] = defaultdict(set)
    for row in rows:
        by_name[row["group"]].add(row["ranks"])
    found: dict[tuple[str, str | None], Group] = {}
    for row in sorted(rows, key=lambda row: row["rank"]):
        name, ranks = row["group"], row["ranks"]
        known = by_name[name] - {None}
        if ranks is None and len(known) == 1:
            ranks = next(iter(known))
        group = found.get((name, ranks))
        if group is None:
            listed_ranks = None if ranks is None else json.loads(ranks)
            group = found[name, ranks] = Group(name, row["description"], listed_ranks, row["size"], [], [])
        group.size = group.size or row["size"]
        group.description = group.description or row["description"]
        member = members[row["rank"]]
        reached = NULL if row["last_enqueued"] is None else row["last_enqueued"]
        if member in group.members:
            at = group.members.index(member)
            group.enqueued[at] = max(group.enqueued[at], reached)
        else:
            group.members.append(member)
            group.enqueued.append(reached)
    return list(found.values())


def _number(groups: list[Group], calls: pa.Table) -> None:
    """Each group's collectives by number and member; of several calls with one number (coalesced ones) the last."""
    rank, sequence = frames.ints(calls, "rank"), frames.ints(calls, "sequence")
    code, names = frames.codes(calls, "group")
    order = np.lexsort((frames.ints(calls, "entry"), sequence, rank))
    for group in groups:
        if group.name not in names:
            group.at = np.zeros((0, len(group.members)), np.int64)
            continue
        ordinals = np.array([member.ordinal for member in group.members])
        own = order[(code[order] == names.index(group.name)) & np.isin(rank[order], ordinals)]
        group.has_p2p = bool((sequence[own] == NULL).any())
        own = own[sequence[own] != NULL]
        group.sequences, row = np.unique(sequence[own], return_inverse=True)
        place = np.argsort(ordinals)
        column = place[np.searchsorted(ordinals[place], rank[own])]
        group.at = np.full((len(group.sequences), len(group.members)), -1, np.int64)
        group.at[row, column] = own


def _label(groups: list[Group]) -> None:
    """Names for groups, where there are several."""
    if len(groups) < 2:
        return
    count = Counter(group.description or group.name for group in groups)
    for group in groups:
        words = group.description or f"group {group.name}"
        if count[group.description or group.name] > 1:
            words += f" ({_ranks(group)})" if group.ranks else f" ({group.name})"
        group.label = words


def _ranks(group: Group) -> str:
    return f"ranks {numbers(group.ranks or [])}"


def named(group: Group, positions: Sequence[int]) -> str:
    """Members in words: "ranks 0, 2-5", or each by its own name."""
    chosen = [group.members[at] for at in positions]
    if chosen and all(member.rank is not None and not member.doubled for member in chosen):
        ranks = [member.rank for member in chosen if member.rank is not None]
        return f"rank{'s' if len(ranks) > 1 else ''} {numbers(ranks)}"
    return listed([member.who for member in chosen])
