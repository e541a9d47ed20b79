"""The time that rows ask for of each GPU's ledger."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceanalyzer.engine.claims import ClaimBook, Gpu, spans_by_gpu
from traceanalyzer.engine.rows import TableRows
from traceanalyzer.engine.tiles import Asked, Rows
from traceanalyzer.intervals import Array


@dataclass(frozen=True)
class _Many:
    """Rows of one GPU that follow one another, a block at a time; `tiles` has for each row of their table the tile that it is."""

    rows: TableRows
    tiles: Rows | None

    def __iter__(self) -> Iterator[Asked]:
        for block in self.rows.blocks():
            starts, ends = (block.column(name).to_numpy() for name in ("start_ns", "end_ns"))
            yield Asked(starts, ends, None if self.tiles is None else self.tiles[block.at])


def asked(rows: TableRows, book: ClaimBook, gpu: Gpu | None) -> dict[Gpu, Iterable[Asked]]:
    """The intervals of the rows by GPU; `gpu` is that of all of them, None where they tell."""
    if gpu is not None and min(gpu) >= 0 and rows.many and rows.source.apart:
        return {gpu: _Many(rows, rows.source.tiles(book))}
    return {one: [Asked(*spans)] for one, spans in spans_by_gpu(rows.spans()).items()}


def unclaimed(
    rows: TableRows, intervals: dict[Gpu, Iterable[Asked]], book: ClaimBook, lines: Collection[str]
) -> tuple[pa.Array, int]:
    """For each row how many ns of it on these lines nobody has claimed yet, and of all of them; `intervals` as `asked` tells."""
    for gpu, one in intervals.items():
        if isinstance(one, _Many):
            # Most are shorter than two seconds, and there are many.
            left = [_narrow(book.unclaimed_of(*gpu, some, lines)) for some in one]
            return pa.array(np.concatenate(left)), sum(int(some.sum()) for some in left)
    every = sum(book.unclaimed(*gpu, one, lines) for gpu, one in intervals.items())
    return book.unclaimed_rows(rows.spans(), lines), every


def _narrow(values: Array) -> Array | npt.NDArray[np.int32]:
    return values.astype(np.int32) if values.max() < 1 << 31 else values
