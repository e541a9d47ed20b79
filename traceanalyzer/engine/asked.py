"""The time that rows ask for of each GPU's ledger."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.columns.spill import Narrow
from traceanalyzer.engine.claims import ClaimBook, Gpu, spans_by_gpu
from traceanalyzer.engine.rows import TableRows
from traceanalyzer.engine.tiles import Asked, Intervals, Whole
from traceanalyzer.intervals import total
from traceanalyzer.records import dataclass


@dataclass(frozen=True)
class _Many:
    """Rows of one GPU that follow one another, a block at a time; `tiles` are those that the rows of their table are, if they
    are tiles."""

    rows: TableRows
    tiles: Whole | None

    def __iter__(self) -> Iterator[Asked]:
        for block in self.rows.blocks():
            if self.tiles is not None:
                yield self.tiles.some(block.at)
            else:
                yield Intervals(*(block.column(name).to_numpy() for name in ("start_ns", "end_ns")))


def asked(rows: TableRows, book: ClaimBook, gpu: Gpu | None) -> dict[Gpu, Iterable[Asked]]:
    """The intervals of the rows by GPU; `gpu` is that of all of them, None where they tell."""
    if gpu is not None and min(gpu) >= 0 and rows.many and rows.source.apart:
        return {gpu: _Many(rows, book.idle_tiles(rows.source))}
    return {one: [Intervals(*spans)] for one, spans in spans_by_gpu(rows.spans()).items()}


def unclaimed(
    rows: TableRows, intervals: dict[Gpu, Iterable[Asked]], book: ClaimBook, lines: Collection[str]
) -> tuple[pa.Array, int]:
    """For each row how many ns of it on these lines nobody has claimed yet, and of all of them; `intervals` as `asked` tells."""
    for gpu, one in intervals.items():
        if isinstance(one, _Many):
            each, left = Narrow(), 0
            for some in one:
                ns = book.unclaimed_of(*gpu, some, lines)
                each.add(ns)
                left += int(ns.sum())
            return pa.array(each.array()), left
    table = rows.spans()
    unclaimed_ns = book.unclaimed_rows(table, lines)
    length = pc.subtract(table["end_ns"], table["start_ns"])
    covered = sum(total(some) for one in intervals.values() for some in one if isinstance(some, Intervals))
    if pc.sum(length).as_py() == covered and pc.min(length).as_py() >= 0:
        # No two of the rows overlap.
        return unclaimed_ns, pc.sum(unclaimed_ns).as_py()
    return unclaimed_ns, sum(book.unclaimed(*gpu, one, lines) for gpu, one in intervals.items())
