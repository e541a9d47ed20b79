"""What the first sentence says where most of a recording lies outside of what is judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from traceanalyzer.result.document import Finding, Recording, Verdict
from traceanalyzer.result.verdict import within
from traceanalyzer.units import format_duration
from traceanalyzer.vocabulary.copies import CONTEXT, MODULES
from traceanalyzer.vocabulary.losses import UNKNOWN

MOSTLY_OUTSIDE = "REC001"
"""The rule that says so."""
WORTH_A_LINE = 0.25
"""Below this share of a recording, what is outside is the profiler starting and stopping."""
MOST_LINES = 4
STARTING = (CONTEXT, MODULES)
MOST = 0.5
"""What takes this share of the time outside stands for it."""
START_UP = 0.25
"""Start-up is named from this share of the time outside on: nobody could tell it from the program's own work."""


def with_outside(verdict: Verdict, recordings: Sequence[Recording], findings: Sequence[Finding]) -> Verdict:
    """The verdict, whose sentence says first what is not judged, where a finding says that this is most of a recording."""
    found = {finding.scope.rank for finding in findings if finding.rule == MOSTLY_OUTSIDE}
    apart = [one for one in recordings if one.rank in found and one.before_ns is not None]
    if verdict.bound_by == UNKNOWN.name or not apart or len(apart) < len(recordings) / 2:
        return verdict
    worst = max(apart, key=lambda one: one.outside_share)
    judged = worst.end_ns - worst.start_ns - (worst.before_ns or 0) - (worst.after_ns or 0)
    headline = f"{_outside(worst)}; in the {format_duration(judged)} judged, {within(verdict.headline)}"
    return replace(verdict, headline=headline)


def outside_lines(recordings: Sequence[Recording]) -> list[str]:
    """For a strip beside the ledgers: how long recordings are, what of them is not judged, and what the host did there. Only those of
    which that is more than a little, the largest first, and few of many."""
    worth = [one for one in recordings if one.outside_share >= WORTH_A_LINE]
    worth.sort(key=lambda one: -one.outside_share)
    several = len(recordings) > 1
    return [
        f"{_line(one)}{f' [rank {one.rank}]' if several and one.rank is not None else ''}" for one in worth[:MOST_LINES]
    ]


def _line(one: Recording) -> str:
    parts = []
    for side, ns, where in (
        ("before", one.before_ns, "before the first GPU work"),
        ("after", one.after_ns, "after the last"),
    ):
        did = ", ".join(f"{work.name} {format_duration(work.ns)}" for work in one.did if work.side == side)
        parts.append(f"{format_duration(ns or 0)} {where}" + (f" ({did})" if did else ""))
    return f"{format_duration(one.end_ns - one.start_ns)}, of which {' and '.join(parts)} are not judged"


def _outside(one: Recording) -> str:
    length, before, after = one.end_ns - one.start_ns, one.before_ns or 0, one.after_ns or 0
    side, ns, where = max(
        ("before", before, "before the first"), ("after", after, "after the last"), key=lambda s: s[1]
    )
    if 2 * ns < length:
        text = (
            f"{format_duration(before + after)} of the {format_duration(length)} recorded lie outside of the GPU's work"
        )
    else:
        text = f"{format_duration(ns)} of the {format_duration(length)} recorded lie {where} GPU work"
    did = [work for work in one.did if work.side == side and work.ns >= MOST * ns]
    if not did and side == "before":
        did = [work for work in one.did if work.side == side and work.name in STARTING and work.ns >= START_UP * ns]
    once = ", which is paid once" if did and did[0].name in STARTING else ""
    return f"{text}, {format_duration(did[0].ns)} of it in {did[0].name}{once}" if did else text
