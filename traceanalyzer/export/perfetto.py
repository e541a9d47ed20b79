"""A trace that ui.perfetto.dev opens: what was recorded, where the time of each GPU went, and what was found, on one timeline.

It is JSON in the Chrome trace format. Times are whole nanoseconds since the first event, written as decimal microseconds. One rank is
held at a time, and its rows become text a batch at a time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import IO

import pyarrow.compute as pc

from traceanalyzer.export.findings import write_findings
from traceanalyzer.export.rank import write_rank
from traceanalyzer.export.tracks import Numbers
from traceanalyzer.model.tables import Tables
from traceanalyzer.records import dataclass
from traceanalyzer.redaction.data import places_of, processes_of, redaction_for
from traceanalyzer.result.clocks import clock_offsets, origins
from traceanalyzer.result.document import Evidence, Result

TIMES = {
    **dict.fromkeys(
        ("gpu_ops", "api_calls", "host_ranges", "overheads", "step_stats", "ledger_intervals"), ("start_ns", "end_ns")
    ),
    **dict.fromkeys(("counters", "memory_events"), ("time_ns", "time_ns")),
}


@dataclass(frozen=True)
class Recording:
    """One file of a job: what it is called (empty where it is the only one), the job's rank (None if not known), the tables' rank, and
    how to get its tables."""

    label: str
    rank: int | None
    ordinal: int
    tables: Callable[[], Tables]


def write_trace(result: Result, recordings: Sequence[Recording], out: IO[bytes], redact: bool = True) -> None:
    """Write the trace of these recordings to `out`; the same result and tables give the same bytes.

    Paths, users and hosts are left out unless `redact` is false.
    """
    looks = [_look(one.tables(), one.ordinal) for one in recordings]
    redaction = redaction_for([known for _, _, known in looks], places_of(result)) if redact else None
    labels = [one.label for one in recordings]
    if redaction:
        result = redaction.result(result)
        labels = redaction.labels(labels)
    offsets = clock_offsets(result)
    ahead = [0 if one.rank is None else offsets.get(one.rank, 0) for one in recordings]
    spans = [(first, last) for first, last, _ in looks]
    zeros, _ = origins(spans, ahead)
    numbers = Numbers()
    out.write(b'{"displayTimeUnit":"ns","traceEvents":[\n')
    write_findings(result, partial(_zero_of, recordings, spans, zeros), numbers, out)
    for one, label, origin in zip(recordings, labels, zeros, strict=True):
        tables = redaction.tables(one.tables()) if redaction else one.tables()
        write_rank(tables, label, one.ordinal, origin, numbers, out)
    out.write("".join(numbers.events).rstrip(",\n").encode())
    made_by = {"name": "traceanalyzer", "version": result.tool["version"], "headline": result.verdict.headline}
    out.write(b'\n],"otherData":' + json.dumps(made_by, ensure_ascii=False).encode() + b"}\n")


def _zero_of(
    recordings: Sequence[Recording], spans: Sequence[tuple[int, int]], zeros: Sequence[int], evidence: Evidence
) -> int | None:
    """The time on the evidence's clock that is 0 in the trace; None when it lies in no recording, or cannot be told in which.

    Files that do not say their ranks have the same one, and can each begin at a time of their own.
    """
    found = {
        zero
        for one, (first, last), zero in zip(recordings, spans, zeros, strict=True)
        if one.rank == evidence.rank and evidence.start_ns <= last and evidence.end_ns >= first
    }
    return found.pop() if len(found) == 1 else None


def _look(tables: Tables, ordinal: int) -> tuple[int, int, tuple[set[str], set[int]]]:
    """The first and last time in the tables of one rank, and the hosts and process ids that they name."""
    first, last = [], []
    for name, (start, end) in TIMES.items():
        table = tables.table(name)
        table = table.filter(pc.equal(table["rank"], ordinal))
        if name == "gpu_ops":
            table = table.filter(pc.invert(pc.fill_null(table["quarantined"], False)))
        if name == "memory_events":
            table = table.filter(pc.or_(pc.is_valid(table["total_allocated"]), pc.is_valid(table["total_reserved"])))
        if table.num_rows:
            first.append(pc.min(table[start]).as_py())
            last.append(pc.max(table[end]).as_py())
    return min(first, default=0), max(last, default=0), processes_of(tables)
