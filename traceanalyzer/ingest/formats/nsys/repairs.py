"""What was corrected, guessed or left out in the rows of an export: counted, and said in the end."""

from __future__ import annotations

from collections import Counter
from dataclasses import field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.ingest.contract import Sink
from traceanalyzer.ingest.formats.nsys.lookups import Ints, integers
from traceanalyzer.ingest.formats.nsys.sqlite.rows import Columns
from traceanalyzer.records import dataclass
from traceanalyzer.vocabulary.health import IMPOSSIBLE_TIMES, NOT_ALL_READ
from traceanalyzer.vocabulary.levels import INFO, LOW

_LARGEST = np.iinfo(np.int32).max


@dataclass
class Repairs:
    """How many rows had each fault.

    `incomplete` lacked what they are there for, `reversed` ended before their start; `opened` had no end, by table;
    `unfinished` are GPU operations without one, of which `example` is the first; `oversized` are numbers that no such thing
    can have; `deviceless` are GPU operations of a table without device numbers, `homeless` those of a table with them, but
    with none in the row.
    """

    incomplete: int = 0
    reversed: int = 0
    opened: Counter[str] = field(default_factory=Counter)
    unfinished: int = 0
    example: str | None = None
    oversized: int = 0
    deviceless: int = 0
    homeless: int = 0

    def complete(self, columns: Columns, *needed: str) -> Columns:
        """The rows that have all that is `needed` to say anything."""
        for name in needed:
            self.incomplete += columns[name].null_count
            columns = keep_rows(columns, columns[name].is_valid())
        return columns

    def span(self, columns: Columns) -> tuple[Ints, Ints]:
        """Start and end of host rows that have both. One that ends before it starts takes no time."""
        start, end = integers(columns["start"]), integers(columns["end"])
        self.reversed += int((end < start).sum())
        return start, np.maximum(start, end)

    def small(self, column: pa.Array) -> pa.Array:
        """A column of counts and numbers below 2^31, which are null where they are not."""
        extremes = pc.min_max(column).as_py()
        if extremes["min"] is None or (extremes["min"] >= 0 and extremes["max"] <= _LARGEST):
            return column.cast(pa.int32())
        sound = pc.and_(pc.greater_equal(column, 0), pc.less_equal(column, _LARGEST))
        self.oversized += len(column) - column.null_count - pc.sum(sound).as_py()
        return pc.if_else(sound, column, None).cast(pa.int32())

    def report(self, sink: Sink) -> None:
        """Say what was met and what it means for the rules."""
        if self.incomplete:
            message = "rows without a time, or without the value that they are there for, were left out"
            sink.health(NOT_ALL_READ, LOW, message, self.incomplete)
        if self.unfinished:
            message = "GPU operations with impossible times were set aside: they are not on the ledger"
            sink.health(IMPOSSIBLE_TIMES, LOW, message, self.unfinished, self.example)
        if self.reversed:
            message = "host calls or ranges that end before they start were given no duration"
            sink.health(IMPOSSIBLE_TIMES, INFO, message, self.reversed)
        if self.opened.total():
            message = "ranges or calls were still open when recording stopped: they end with the last record"
            sink.health(NOT_ALL_READ, INFO, message, self.opened.total())
        if self.oversized:
            message = "numbers that cannot be (negative, or beyond 32 bits) count as unknown"
            sink.health(NOT_ALL_READ, LOW, message, self.oversized)
        if self.deviceless:
            message = "GPU operations in a table without device numbers count as those of GPU 0"
            sink.health(NOT_ALL_READ, LOW, message, self.deviceless)
        if self.homeless:
            message = "GPU operations without a device number are on no GPU's ledger"
            sink.health(NOT_ALL_READ, LOW, message, self.homeless)


def keep_rows(columns: Columns, mask: pa.Array) -> Columns:
    """The rows of `columns` where `mask` is true."""
    if mask.false_count == 0:
        return columns
    return {name: column.filter(mask) for name, column in columns.items()}
