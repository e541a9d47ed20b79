"""The ledger's tiles, parted into what a rank can change itself and what it only waits for, as far as that is told or likely."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from traceanalyzer.derive import frames
from traceanalyzer.derive.tables.ledger import LEDGER_INTERVALS
from traceanalyzer.intervals import EMPTY, Spans, intersect, subtract, union


def own_intervals(ledger_intervals: pa.Table, communication: pa.Table) -> pa.Table:
    """The tiles without the time in which a GPU waits for another rank: what rules about one rank may claim."""
    return _cut(ledger_intervals, communication, subtract)


def waited_intervals(ledger_intervals: pa.Table, communication: pa.Table) -> pa.Table:
    """The rest of the tiles: exposed communication that is waiting for another rank, for rules about the whole job."""
    tiles = ledger_intervals.filter(pa.array(frames.equals(ledger_intervals, "line", "exposed_communication")))
    return _cut(tiles, communication, intersect)


def _cut(tiles: pa.Table, communication: pa.Table, how: Callable[[Spans, Spans], Spans]) -> pa.Table:
    """The tiles in their order, those of exposed communication cut by their GPU's waits; the others as they are."""
    wait = np.maximum(*(frames.ints(communication, c) for c in ("wait", "likely_wait")))
    waited, wait = communication.filter(pa.array(wait > 0)), wait[wait > 0]
    start = frames.ints(waited, "start_ns")
    waits = {key: union(start[rows], start[rows] + wait[rows]) for key, rows in frames.groups(waited)}
    if not waits and how is subtract:
        return tiles
    tables = []
    for key, mine in frames.split(tiles):
        communicates = frames.equals(mine, "line", "exposed_communication")
        exposed = mine.filter(pa.array(communicates))
        spans = how((frames.ints(exposed, "start_ns"), frames.ints(exposed, "end_ns")), waits.get(key, EMPTY))
        cut = frames.build(
            LEDGER_INTERVALS,
            {"rank": np.full(len(spans[0]), key[0]), "device": np.full(len(spans[0]), key[1])}
            | {"line": pa.repeat("exposed_communication", len(spans[0]))}
            | {"start_ns": spans[0], "end_ns": spans[1]},
        )
        both = pa.concat_tables([mine.filter(pa.array(~communicates)), cut]).unify_dictionaries().combine_chunks()
        tables.append(both.take(pa.array(np.argsort(frames.ints(both, "start_ns"), kind="stable"))))
    return frames.stack(LEDGER_INTERVALS, tables)
