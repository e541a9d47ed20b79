"""Who had not made a call that others wait in.

A rank is missing from a collective that some rank has called and none has completed, where its own records end before. Where one that
comes after the end of a rank's records is complete elsewhere, that rank must have taken part: its records are older, and nothing is
told of it. What is sent and received is told by the peer.
"""

from __future__ import annotations

from dataclasses import field

import numpy as np

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL
from traceanalyzer.evidence.nccl_records.answers.compared import Compared, Group
from traceanalyzer.evidence.nccl_records.answers.words import called, of_group
from traceanalyzer.intervals import Array
from traceanalyzer.records import dataclass
from traceanalyzer.units import format_duration

LONGER = 10
"""A wait this many times as long as ranks are usually apart is no usual one; and at least `LEAST_NS`."""
LEAST_NS = 10_000_000
FEWEST = 3


@dataclass(frozen=True)
class Missing:
    """One call of a group (`sequence` is `NULL` for a send or receive), who made it and who did not; `rows` are those of the former."""

    group: Group
    sequence: int
    rows: list[int]
    present: list[int]
    absent: list[int]
    words: str
    age: int
    timed_out: bool
    usual: int

    @property
    def certain(self) -> bool:
        """Whether they had waited longer than these ranks are ever apart."""
        return self.timed_out or (NULL not in (self.age, self.usual) and self.age > max(LONGER * self.usual, LEAST_NS))


@dataclass
class Progress:
    """How far each member of a group had come: its last collective, `NULL` without any; `older` are those whose records were written
    before what others hold."""

    last: Array
    older: list[int] = field(default_factory=list)


def progress(all_: Compared, group: Group) -> Progress:
    last = np.full(len(group.members), NULL)
    if group.at.size:
        held = group.at >= 0
        places = np.where(held, np.arange(len(held))[:, None], -1).max(axis=0)
        last = np.where(places >= 0, group.sequences[np.maximum(places, 0)], NULL)
    for at, (member, reached) in enumerate(zip(group.members, group.enqueued, strict=True)):
        # A status counts sends and receives too where there are any, and Inspector has no calls that did not complete.
        if reached != NULL and not group.has_p2p and not member.inspector and (last[at] == NULL or reached > last[at]):
            last[at] = reached
    found = Progress(last)
    held = group.at >= 0
    through = all_.done & all_.synchronizing
    complete = (
        np.where(held, through[np.maximum(group.at, 0)], False).any(axis=1) if group.at.size else np.zeros(0, bool)
    )
    if complete.any():
        newest = int(group.sequences[np.flatnonzero(complete)[-1]])
        found.older = [at for at in group.judged if last[at] < newest]
    return found


def pending(all_: Compared, group: Group) -> list[int]:
    """The places, in `sequences`, of collectives that some rank called and none completed."""
    if not group.at.size:
        return []
    held = group.at >= 0
    done = np.where(held, all_.done[np.maximum(group.at, 0)], False)
    return np.flatnonzero(held.any(axis=1) & ~done.any(axis=1)).tolist()


def missing(all_: Compared, group: Group) -> list[Missing]:
    """Of one group: who is missing from its first collective that nobody completed, and whose peers did not answer."""
    if not group.judged or all(group.members[at].inspector for at in group.judged):
        return []
    far = progress(all_, group)
    found = []
    for place in pending(all_, group):
        sequence = int(group.sequences[place])
        present = [at for at in group.judged if group.at[place, at] >= 0]
        absent = [
            at
            for at in group.judged
            if group.at[place, at] < 0
            and at not in far.older
            and not group.members[at].inspector
            and far.last[at] < sequence
        ]
        unknown = {
            at for at in absent if far.last[at] == NULL and (group.members[at].active_only or group.members[at].lost)
        }
        absent = [at for at in absent if at not in unknown]
        if present and absent:
            rows = [int(group.at[place, at]) for at in present]
            found.append(_found(all_, group, sequence, rows, present, absent))
        break
    if not found:
        found = _peers(all_, group, far)
    return found


def _found(
    all_: Compared, group: Group, sequence: int, rows: list[int], present: list[int], absent: list[int]
) -> Missing:
    operation = all_.value("operation", rows[0])
    words = called(operation, sequence if sequence != NULL else None) + of_group(group.label)
    created = [int(all_.created[row]) for row in rows if all_.created[row] != NULL]
    since = min(created, default=NULL)
    age = all_.latest - since if created and all_.latest is not None else NULL
    late = any(all_.calls["timed_out"][row].as_py() for row in rows)
    return Missing(group, sequence, rows, present, absent, words, age, late, usual_distance(all_, group))


def usual_distance(all_: Compared, group: Group) -> int:
    """The most that calls of one completed collective ever lay apart, the first aside, in ns; `NULL` for fewer than `FEWEST`."""
    at = group.at[:, group.judged]
    whole = (at >= 0).all(axis=1) if at.size else np.zeros(0, bool)
    created = all_.created[at[whole]] if whole.any() else np.zeros((0, 1), np.int64)
    created = created[(created != NULL).all(axis=1)][1:]
    if len(created) < FEWEST:
        return NULL
    return int((created.max(axis=1) - created.min(axis=1)).max())


def _peers(all_: Compared, group: Group, far: Progress) -> list[Missing]:
    """Sends and receives that wait for the other side, which has not asked for its part; the first of each pair."""
    if not group.has_p2p or group.ranks is None:
        return []
    rank, code = frames.ints(all_.calls, "rank"), frames.codes(all_.calls, "group")
    peer, number = frames.ints(all_.calls, "peer"), frames.ints(all_.calls, "p2p_sequence")
    ordinals = {group.members[at].ordinal: at for at in group.judged}
    if group.name not in code[1]:
        return []
    open_ = np.flatnonzero((code[0] == code[1].index(group.name)) & (number != NULL) & ~all_.done & (peer != NULL))
    waiting: dict[tuple[int, int, str], int] = {}
    for row in open_.tolist():
        at = ordinals.get(int(rank[row]))
        operation = all_.value("operation", row)
        if at is not None and operation in ("send", "recv"):
            waiting.setdefault((at, int(peer[row]), operation), row)
    found = []
    for (at, other, operation), row in waiting.items():
        there = group.member_of(other)
        own = group.members[at].rank
        if there is None or own is None or there in far.older:
            continue
        counterpart = (there, group.ranks.index(own), "recv" if operation == "send" else "send")
        if counterpart not in waiting:
            one = _found(all_, group, NULL, [row], [at], [there])
            how = f"{'a send to' if operation == 'send' else 'a receive from'} {group.members[there].who}"
            found.append(
                Missing(
                    group, NULL, [row], [at], [there], how + of_group(group.label), one.age, one.timed_out, one.usual
                )
            )
    return found


def ends(all_: Compared, one: Missing, at: int) -> str:
    """How far a missing rank had come, in words."""
    last = int(progress(all_, one.group).last[at])
    if one.sequence == NULL:
        return (
            "asked for no such receive" if all_.value("operation", one.rows[0]) == "send" else "asked for no such send"
        )
    return f"ends at {last:,}" if last not in (NULL, 0) else "has called none"


def how_long(one: Missing) -> str:
    """For how long they had waited, or that it is not told whether in vain, as a sentence."""
    if one.timed_out:
        return "The watchdog gave that call up"
    if one.certain:
        return f"The latest of these records was written at least {format_duration(one.age)} after the first call"
    waited = f" ({format_duration(one.age)} as far as times in the records tell)" if one.age not in (NULL, 0) else ""
    return (
        f"How long they had waited{waited} does not tell a hang from a run that went on: records that are written while ranks run end "
        "at different calls"
    )
