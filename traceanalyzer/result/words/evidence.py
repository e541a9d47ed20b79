"""What is said of a file of evidence: what it is, whose, and whether its times can be compared with the trace's."""

from __future__ import annotations

from pathlib import PurePath

from traceanalyzer.result.document import EvidenceInfo
from traceanalyzer.units import format_duration

_CLOCKS = {"epoch": "times put on its clock by the time of day", "trace": "times on its own clock"}


def evidence_words(one: EvidenceInfo, short: bool = False) -> str:
    """A line: "power.log (power log, placed beside rank 0 by rank, overlap in time; times put on its clock by the time of day)".

    `short` is without the folder. Why a file could not be placed is said in health.
    """
    kind, path = one.kind.replace("_", " "), PurePath(one.path).name if short else one.path
    if one.placed_by is None:
        rank = "" if one.rank is None else f", rank {one.rank}"
        return f"{path} ({kind}{rank}{'; judged alone' if one.note else ''})"
    whose = "the trace" if one.rank is None else f"rank {one.rank}"
    clock = _CLOCKS.get(one.clock or "", f"times put on its clock by {one.clock}") if one.clock else one.note
    error = "" if one.clock_error_ns is None else f", within {format_duration(one.clock_error_ns)}"
    times = f"; {clock}{error}" if clock else ""
    return f"{path} ({kind}, placed beside {whose} by {one.placed_by}{times})"
