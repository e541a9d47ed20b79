"""What is said of a file of evidence: what it is, whose, and whether its times can be compared with the trace's."""

from __future__ import annotations

from traceanalyzer.result.document import EvidenceInfo
from traceanalyzer.units import format_duration

_CLOCKS = {"epoch": "times put on its clock by the time of day", "trace": "times on its own clock"}


def evidence_words(one: EvidenceInfo) -> str:
    """A line: "power.log (power log, placed beside rank 0 by rank, overlap in time; times put on its clock by the time of day)"."""
    kind = one.kind.replace("_", " ")
    if one.placed_by is None:
        return f"{one.path} ({kind}{'' if one.rank is None else f', rank {one.rank}'}{f'; {one.note}' if one.note else ''})"
    whose = "the trace" if one.rank is None else f"rank {one.rank}"
    clock = _CLOCKS.get(one.clock or "", f"times put on its clock by {one.clock}") if one.clock else one.note
    error = "" if one.clock_error_ns is None else f", within {format_duration(one.clock_error_ns)}"
    return f"{one.path} ({kind}, placed beside {whose} by {one.placed_by}; {clock}{error})"
