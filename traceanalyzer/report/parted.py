"""The tiles of the ledger with exposed communication as waiting for other ranks and transfer, where that is told of a GPU."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from traceanalyzer.columns import Ints, integers, short_encoded
from traceanalyzer.columns.frames import row_groups, row_parts
from traceanalyzer.intervals import EMPTY, Spans, intersect, subtract
from traceanalyzer.records import dataclass
from traceanalyzer.vocabulary.lines import EXPOSED_COMMUNICATION, EXPOSED_TRANSFER, EXPOSED_WAIT

TABLES = ("exposed_waits", "exposed_parts")
"""What tells it."""


def told_gpus(parts: pa.Table | None) -> set[tuple[int, int]]:
    """The (rank, device) of GPUs of which it is told; `parts` are rows of `exposed_parts`."""
    if parts is None:
        return set()
    columns = [parts[name].to_pylist() for name in ("rank", "device", "parted")]
    return {(rank, device) for rank, device, parted in zip(*columns, strict=True) if parted}


@dataclass(frozen=True)
class Tiles:
    """The tiles of one GPU: start, end, and which of `lines` each is on, -1 for none."""

    start: Ints
    end: Ints
    line: NDArray[np.int32]
    lines: list[str]


def tiles_by_gpu(
    intervals: pa.Table, waits: pa.Table | None, parts: pa.Table | None
) -> Iterator[tuple[tuple[int, ...], Tiles]]:
    """The tiles of each (rank, device), where it is told in order of time. `intervals` are rows of `ledger_intervals`, `waits` those of
    `exposed_waits`."""
    told = told_gpus(parts)
    waited = {} if waits is None or not told else _spans(waits)
    start, end = integers(intervals, "start_ns"), integers(intervals, "end_ns")
    line, lines = short_encoded(intervals, "line")
    for key, rows in row_parts(intervals, ("rank", "device")):
        tiles = Tiles(start[rows], end[rows], line[rows], lines)
        yield key, _cut(tiles, waited.get((key[0], key[1]), EMPTY)) if key in told else tiles


def _cut(tiles: Tiles, waited: Spans) -> Tiles:
    """The tiles with those of exposed communication cut into waiting and transfer."""
    communicates = tiles.line == _place(EXPOSED_COMMUNICATION.name, tiles.lines)
    if not communicates.any():
        return tiles
    lines = list(tiles.lines)
    spans = tiles.start[communicates], tiles.end[communicates]
    others = ~communicates
    cut = [(tiles.start[others], tiles.end[others], tiles.line[others])]
    for one, how in ((EXPOSED_WAIT, intersect), (EXPOSED_TRANSFER, subtract)):
        low, high = how(spans, waited)
        if len(low) and one.name not in lines:
            lines.append(one.name)
        cut.append((low, high, np.full(len(low), _place(one.name, lines), np.int32)))
    start, end, line = (np.concatenate(column) for column in zip(*cut, strict=True))
    order = np.argsort(start, kind="stable")
    return Tiles(start.take(order), end.take(order), line.take(order), lines)


def _place(line: str, lines: list[str]) -> int:
    """The position of a line, one that no tile has where it is none of them."""
    return lines.index(line) if line in lines else len(lines)


def _spans(waits: pa.Table) -> dict[tuple[int, int], Spans]:
    start, end = integers(waits, "start_ns"), integers(waits, "end_ns")
    return {(key[0], key[1]): (start[rows], end[rows]) for key, rows in row_groups(waits, ("rank", "device"))}
