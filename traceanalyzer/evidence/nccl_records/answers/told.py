"""The tables that rules and the section read, of what the records of all ranks say together."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL
from traceanalyzer.evidence.nccl_records import derived_tables as declared
from traceanalyzer.evidence.nccl_records.answers.compared import Compared, Group, named
from traceanalyzer.evidence.nccl_records.answers.lateness import Late, arrived
from traceanalyzer.evidence.nccl_records.answers.lateness import lateness as late_ranks
from traceanalyzer.evidence.nccl_records.answers.mismatches import mismatch, more, what
from traceanalyzer.evidence.nccl_records.answers.missing import Missing, ends, how_long, pending, progress
from traceanalyzer.evidence.nccl_records.answers.missing import missing as missing_of
from traceanalyzer.evidence.nccl_records.answers.words import called, listed, numbers, of_group
from traceanalyzer.model.schema import TableSpec
from traceanalyzer.units import format_duration

MOST_DRAWN = 400
"""Collectives whose arrivals are drawn: of more, the first and the latest of each stretch."""
MOST_RANKS_DRAWN = 16
_MOST_WORDS = 20


def _table(spec: TableSpec, rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist([{name: row.get(name) for name in spec.schema.names} for row in rows], spec.schema)


def _known(value: int) -> int | None:
    return None if value == NULL else value


def missing(nccl_compared: Compared) -> pa.Table:
    """Rows of nccl_missing: none of a group in which ranks differ before, since their numbers mean different things from there on."""
    rows: list[dict[str, Any]] = []
    for group in nccl_compared.groups:
        differs = mismatch(nccl_compared, group)
        for one in missing_of(nccl_compared, group):
            if differs is not None and (one.sequence == NULL or differs.sequence <= one.sequence):
                continue
            rows.append(
                {
                    "rank": group.members[one.absent[0]].ordinal,
                    "order": len(rows),
                    "group": group.label,
                    "sequence": _known(one.sequence),
                    "lead": f"{_begun(named(group, one.absent))} {_is(one.absent)} missing",
                    "rest": _waits(nccl_compared, one),
                    "age": _known(one.age),
                    "timed_out": one.timed_out,
                    "certain": one.certain,
                    "more": how_long(one),
                    "missing": len(one.absent),
                }
            )
    return _table(declared.MISSING, rows)


def _waits(all_: Compared, one: Missing) -> str:
    row = one.rows[0]
    place = all_.value("place", row)
    has = "has" if len(one.present) == 1 else "have"
    what = f"{one.words} {all_.value('state', row)}" + (f" ({place})" if place else "")
    by_end: dict[str, list[int]] = defaultdict(list)
    for at in one.absent:
        by_end[ends(all_, one, at)].append(at)
    far = listed(
        [
            f"{named(one.group, there)} {words if len(there) == 1 else _several(words)}"
            for words, there in by_end.items()
        ]
    )
    return f"{named(one.group, one.present)} {has} {what}, and {far}"


def _several(words: str) -> str:
    return words.replace("ends ", "end ", 1).replace("has ", "have ", 1)


def _is(positions: list[int]) -> str:
    return "is" if len(positions) == 1 else "are"


def _begun(words: str) -> str:
    return words[:1].upper() + words[1:]


def mismatches(nccl_compared: Compared) -> pa.Table:
    """Rows of nccl_mismatches, one a group."""
    rows: list[dict[str, Any]] = []
    for group in nccl_compared.groups:
        if (one := mismatch(nccl_compared, group)) is not None:
            rows.append(
                {
                    "rank": group.members[one.parts[-1][0][0]].ordinal,
                    "order": len(rows),
                    "group": group.label,
                    "sequence": one.sequence,
                    "kind": one.kind,
                    "lead": f"Ranks do not agree on collective {one.sequence:,}{of_group(group.label)}: {what(nccl_compared, one)}",
                    "more": more(nccl_compared, one),
                    "parts": len(one.parts),
                    "later": one.later,
                    "pending": one.pending,
                }
            )
    return _table(declared.MISMATCHES, rows)


def lateness(nccl_compared: Compared) -> pa.Table:
    """Rows of nccl_lateness."""
    rows: list[dict[str, Any]] = []
    for group in nccl_compared.groups:
        late = late_ranks(nccl_compared, group)
        total = sum(one.lost for one in late)
        for one in late:
            others = named(group, [at for at in group.judged if at != one.at])
            rows.append(
                {
                    "rank": group.members[one.at].ordinal,
                    "order": len(rows),
                    "group": group.label,
                    "lead": f"{_begun(group.members[one.at].who)} is late",
                    "how": _how(one, group, others),
                    "more": _more(one, others),
                    **{
                        name: getattr(one, name)
                        for name in ("collectives", "last", "rounds", "seen", "typical", "lost", "behind", "span")
                    },
                    "share": one.lost / one.span,
                    "of_all": one.lost / total if total else 0.0,
                    "blur": _known(one.blur),
                    "measured": one.measured,
                    "operation": one.operation,
                    "place": one.place,
                }
            )
    return _table(declared.LATENESS, rows)


def _how(one: Late, group: Group, others: str) -> str:
    where = f" (most often {one.operation}{f', {one.place}' if one.place else ''})" if one.operation else ""
    times = f"{one.rounds:,} of {one.collectives:,} collectives{of_group(group.label)}{where}"
    sum_ = f"{format_duration(one.lost)} of {format_duration(one.span)}"
    typical = format_duration(one.typical)
    verb = "waits" if len(group.judged) == 2 else "wait"
    if one.measured:
        return f"{others} {verb} for it in {times}, typically {typical} each ({sum_})"
    return f"it holds up {times} by {typical} each, which {others} had called by then: {sum_}"


def _more(one: Late, others: str) -> str:
    if one.measured:
        return f"It comes last to {one.last:,} of {one.collectives:,}."
    return (
        f"It comes last to {one.last:,} of {one.collectives:,}, at most {format_duration(one.behind)} behind. When calls were made is "
        f"recorded, and not when they began on the GPU: whether {others} had other work meanwhile is not told"
    )


def ranks(nccl_compared: Compared) -> pa.Table:
    """Rows of nccl_ranks, by group and rank."""
    all_ = nccl_compared
    ordinal, code = frames.ints(all_.calls, "rank"), frames.codes(all_.calls, "group")
    number = frames.ints(all_.calls, "sequence")
    rows = []
    for group in all_.groups:
        far = progress(all_, group)
        late = {one.at: one for one in late_ranks(all_, group)}
        own = code[0] == (code[1].index(group.name) if group.name in code[1] else -2)
        waits = _waiting(all_, group)
        for at, member in enumerate(group.members):
            calls = np.flatnonzero(own & (ordinal == member.ordinal))
            last = int(far.last[at])
            at_last = np.flatnonzero(number[calls] == last)
            words, place = waits.get(at, (None, None))
            why = group.why_not
            if member.doubled:
                why = "several files say they are this rank"
            elif at in far.older:
                why = (
                    "written before the others: later collectives, which it must have taken part in, are complete there"
                )
            one = late.get(at)
            rows.append(
                {
                    "rank": member.ordinal,
                    "group": group.label,
                    "who": member.who,
                    "calls": len(calls),
                    "first": int(number[calls][number[calls] != NULL].min()) if (number[calls] != NULL).any() else None,
                    "last": _known(last),
                    "operation": all_.value("operation", int(calls[at_last[-1]])) if len(at_last) else None,
                    "completed": int((all_.done[calls] & (number[calls] != NULL)).sum()),
                    "waiting": words,
                    "place": place,
                    "typical": one.typical if one else None,
                    "rounds": one.rounds if one else None,
                    "why_not": why,
                }
            )
    return _table(declared.RANKS, rows)


def _waiting(all_: Compared, group: Group) -> dict[int, tuple[str, str | None]]:
    """What each member waits for, and where it called that, by position: its first call that is not complete."""
    ordinal, code = frames.ints(all_.calls, "rank"), frames.codes(all_.calls, "group")
    if group.name not in code[1]:
        return {}
    open_ = np.flatnonzero(
        (code[0] == code[1].index(group.name)) & ~all_.done & all_.calls["state"].is_valid().to_numpy()
    )
    nobody = {int(group.sequences[place]) for place in pending(all_, group)}
    entry = frames.ints(all_.calls, "entry")
    number, p2p = frames.ints(all_.calls, "sequence"), frames.ints(all_.calls, "p2p_sequence")
    at = {member.ordinal: place for place, member in enumerate(group.members)}
    found: dict[int, tuple[str, str | None]] = {}
    for row in open_[np.argsort(entry[open_], kind="stable")].tolist():
        place = at.get(int(ordinal[row]))
        if place is None or place in found:
            continue
        which = int(number[row]) if number[row] != NULL else int(p2p[row])
        state = all_.value("state", row)
        words = f"{called(all_.value('operation', row), _known(which))} ({state})"
        if number[row] != NULL and which not in nobody:
            words += ", complete on other ranks"
        found[place] = words, all_.value("place", row)
    return found


def group_stats(nccl_compared: Compared) -> pa.Table:
    """Rows of nccl_group_stats."""
    all_ = nccl_compared
    code, names = frames.codes(all_.calls, "group")
    operation, operations = frames.codes(all_.calls, "operation")
    rows = []
    for group in all_.groups:
        own = code == (names.index(group.name) if group.name in names else -2)
        own &= np.isin(frames.ints(all_.calls, "rank"), [member.ordinal for member in group.members[:1]])
        kinds = Counter(operations[one] or "unknown" for one in operation[own].tolist())
        common = group.at[:, group.judged] if group.judged and group.at.size else np.zeros((0, 1), np.int64)
        seen = arrived(all_, group)
        clocks = None
        if seen is not None and seen.apart:
            clocks = (
                "the ranks' clocks differ: calls are complete on one before another made them, so lateness is not told"
            )
        rows.append(
            {
                "rank": group.members[0].ordinal if group.members else 0,
                "group": group.label,
                "name": group.name,
                "ranks": f"{numbers(group.ranks)}" if group.ranks is not None else None,
                "size": group.size,
                "given": len(group.members),
                "judged": len(group.judged),
                "collectives": int((common >= 0).all(axis=1).sum()),
                "absent": group.absent,
                "kinds": listed([f"{count:,} {name}" for name, count in kinds.most_common(_MOST_WORDS)])
                if kinds
                else None,
                "clocks": clocks,
                "why_not": group.why_not,
            }
        )
    return _table(declared.GROUP_STATS, rows)


def arrivals(nccl_compared: Compared) -> pa.Table:
    """Rows of nccl_arrivals: how long after the first each rank came, of the group with most collectives."""
    best = None
    for group in nccl_compared.groups:
        found = arrived(nccl_compared, group)
        if found is not None and not found.apart and (best is None or len(found.at) > len(best[1].at)):
            best = group, found
    if best is None:
        return declared.ARRIVALS.schema.empty_table()
    group, found = best
    last = found.came.max(axis=1)
    behind = found.came - found.came.min(axis=1)[:, None]
    order = np.argsort(last, kind="stable")
    shown = _drawn(behind[order].max(axis=1))
    # The ranks that are ever furthest behind, in their own order.
    furthest = sorted(np.argsort(-behind.max(axis=0), kind="stable")[:MOST_RANKS_DRAWN].tolist())
    rows = [
        {
            "rank": group.members[group.judged[at]].ordinal,
            "group": group.label,
            "series": series,
            "who": group.members[group.judged[at]].who,
            "time_ns": int(last[order][place]),
            "behind": int(behind[order][place, at]),
        }
        for series, at in enumerate(furthest)
        for place in shown
    ]
    return _table(declared.ARRIVALS, rows)


def _drawn(values: np.ndarray[Any, Any]) -> list[int]:
    """Places to draw: all, or of each stretch the first and the one with the largest value."""
    if len(values) <= MOST_DRAWN:
        return list(range(len(values)))
    edges = np.linspace(0, len(values), MOST_DRAWN // 2 + 1).astype(int)
    found: set[int] = set()
    for start, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        if end > start:
            found |= {start, start + int(values[start:end].argmax())}
    return sorted(found)
