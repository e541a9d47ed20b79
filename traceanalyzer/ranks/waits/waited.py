"""The ledger's tiles, parted into what a rank can change itself and what it only waits for, as far as that is told or likely.

What it waits for others because all of them ask for many small collectives, one after the other, it can change as well as they.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.columns.in_blocks import InBlocks
from traceanalyzer.derive.ledger.tables import LEDGER_INTERVALS
from traceanalyzer.intervals import EMPTY, Spans, intersect, subtract, union
from traceanalyzer.vocabulary.lines import EXPOSED_COMMUNICATION, MPI

COMMUNICATION, IN_MPI = EXPOSED_COMMUNICATION.name, MPI.name
"""The lines in which a GPU may wait for another rank."""


def own_intervals(ledger_intervals: pa.Table, communication: pa.Table, mpi_call_waits: pa.Table) -> pa.Table:
    """The tiles without the time in which a GPU waits for another rank: what rules about one rank may claim."""
    waits = _waits(communication, mpi_call_waits, calls=False)
    return _cut(ledger_intervals, waits, subtract) if waits else ledger_intervals


def waited_intervals(ledger_intervals: pa.Table, communication: pa.Table, mpi_call_waits: pa.Table) -> pa.Table:
    """The rest of the tiles: communication and calls of MPI that are waiting for another rank."""
    tiles = ledger_intervals.filter(pa.array(frames.equals(ledger_intervals, "line", COMMUNICATION, IN_MPI)))
    return _cut(tiles, _waits(communication, mpi_call_waits), intersect)


def stall_intervals(waited_intervals: pa.Table, communication: pa.Table, mpi_call_waits: pa.Table) -> pa.Table:
    """Those of `waited_intervals` that are not in `own_intervals`: what rules about the whole job may claim."""
    return _cut(waited_intervals, _waits(communication, mpi_call_waits, calls=False), intersect)


Waits = dict[tuple[str, frames.Key], Spans]
"""By ledger line and (rank, device)."""


def _waits(communication: pa.Table, mpi_call_waits: pa.Table, calls: bool = True) -> Waits:
    """With the waiting for `calls` for many small collectives, which is the last of a wait, or without."""
    likely = np.maximum(*(frames.ints(communication, c) for c in ("wait", "likely_wait")))
    if not calls:
        likely = likely - np.maximum(frames.ints(communication, "call_wait"), 0)
    found: Waits = {}
    for line, table, wait in (
        (COMMUNICATION, communication, likely),
        (IN_MPI, mpi_call_waits, frames.ints(mpi_call_waits, "wait")),
    ):
        start = frames.ints(table, "start_ns")
        for key, rows in frames.groups(table):
            own = np.arange(len(wait))[rows]
            own = own[wait[own] > 0]
            if len(own):
                found[line, key] = union(start[own], start[own] + wait[own])
    return found


def _cut(tiles: pa.Table, waits: Waits, how: Callable[[Spans, Spans], Spans]) -> pa.Table:
    """The tiles in their order, those of communication and MPI cut by their GPU's waits; the others as they are."""
    code, lines = frames.short_codes(tiles, "line")
    begin, over = (frames.ints(tiles, column) for column in ("start_ns", "end_ns"))
    made = InBlocks()
    for key, rows in frames.groups(tiles):
        line, start, end = code[rows], begin[rows], over[rows]
        stays, cut = np.ones(len(line), bool), []
        for name in (COMMUNICATION, IN_MPI):
            if name in lines:
                number = lines.index(name)
                stays &= (other := line != number)
                own = np.flatnonzero(~other)
                spans = how((start.take(own), end.take(own)), waits.get((name, key), EMPTY))
                cut.append((np.full(len(spans[0]), number, np.int32), *spans))
        if not stays.all():
            rest = np.flatnonzero(stays)
            kept = line.take(rest), start.take(rest), end.take(rest)
            line, start, end = (np.concatenate(column) for column in zip(kept, *cut, strict=True))
            order = np.argsort(start, kind="stable")
            line, start, end = line.take(order), start.take(order), end.take(order)
        if count := len(start):
            rank, device = (np.broadcast_to(np.int32(one), count) for one in key)
            made.add({"rank": rank, "device": device, "line": line, "start_ns": start, "end_ns": end})
    if "line" not in made:
        return LEDGER_INTERVALS.empty()
    kinds = {field.name: field.type for field in LEDGER_INTERVALS.schema}
    names = made.names("line", lines)
    return frames.build(LEDGER_INTERVALS, {c: names if c == "line" else made.numbers(c, kinds[c]) for c in kinds})
