"""Reading the tables of events, batch by batch, as fast as the driver goes.

A column of a real export holds numbers, or text, and nothing else, so cells are read as they lie, which costs the least.
The driver stops at a cell of another kind; from that row on the table is read with expressions that make such cells null.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from traceanalyzer.errors import InputError
from traceanalyzer.ingest.contract import Sink
from traceanalyzer.ingest.formats.nsys.sqlite import selects, tables
from traceanalyzer.ingest.formats.nsys.sqlite.database import BATCH_ROWS, Database, quote_identifier, table_source
from traceanalyzer.ingest.formats.nsys.sqlite.tables import Table
from traceanalyzer.vocabulary.health import NOT_ALL_READ
from traceanalyzer.vocabulary.levels import LOW

Columns = dict[str, pa.Array]
"""A batch of rows: our name of each field that the file has, and its values."""

# Of text, which is what makes rows large. With texts of up to 4 KiB, as they are, batches keep their number of rows.
_BATCH_BYTES = 128 << 20
_TYPES = {tables.INTEGER: (pa.int64(),), tables.NUMBER: (pa.int64(), pa.float64()), tables.TEXT: (pa.string(),)}


class EventReader:
    """Reads event tables of one export. `advance` hears how many rows were read."""

    def __init__(self, database: Database, sink: Sink, advance: Callable[[int], None]) -> None:
        self._database, self._sink, self._advance = database, sink, advance
        self._sizes: dict[str, int] = {}

    def read(self, table: Table) -> Iterator[Columns]:
        """All rows of a table in the order in which they lie in the file; none when it is absent or lacks a required column."""
        name = selects.find(self._database, table)
        if name is None:
            return
        for columns, rows in self._batches(table, name):
            self._advance(rows)
            yield columns

    def unended(self, table: Table) -> Iterator[Columns]:
        """The rows without an end, once more."""
        name = selects.find(self._database, table)
        if name is None:
            return
        known = selects.tolerant(self._database, table, name)
        where = f" where {known['end']} is null" if "end" in known else ""
        for batch in self._database.batches(_select(known, name) + where, self._batch_rows(table, name)):
            yield _columns(batch, known)

    def _batches(self, table: Table, name: str) -> Iterator[tuple[Columns, int]]:
        done = 0
        known = selects.plain(self._database, table, name)
        size = self._batch_rows(table, name)
        try:
            for batch in self._database.batches(_select(known, name), size):
                columns = _columns(batch, known)
                if not _fits(columns, table):
                    break
                yield columns, batch.num_rows
                done += batch.num_rows
            else:
                return
        except InputError:
            pass  # Damage shows again below.
        known = selects.tolerant(self._database, table, name)
        for batch in self._database.batches(_select(known, name) + f" limit -1 offset {done}", size):
            yield _columns(batch, known), batch.num_rows
        self._report_misfits(table, name)

    def _batch_rows(self, table: Table, name: str) -> int:
        """How many rows make a batch: fewer where texts are long. Raises InputError for a text that is too long."""
        if name not in self._sizes:
            known = selects.plain(self._database, table, name)
            texts = [known[field.name] for field in table.fields if field.kind == tables.TEXT and field.name in known]
            self._sizes[name] = min(BATCH_ROWS, _BATCH_BYTES // max(self._database.longest_text(name, texts), 1))
        return self._sizes[name]

    def _report_misfits(self, table: Table, name: str) -> None:
        """Say how many cells were made null."""
        plain = selects.plain(self._database, table, name)
        known = selects.tolerant(self._database, table, name)
        misfits = ", ".join(
            f"sum({plain[field]} is not null and {known[field]} is null) as {quote_identifier(field)}"
            for field in known
        )
        found = self._database.table(f"select {misfits} from {table_source(name)}")
        for field, count in found.to_pylist()[0].items() if found else ():
            if count:
                message = "cells that hold something else than a number count as unknown"
                self._sink.health(NOT_ALL_READ, LOW, message, count, f"{name}, {field}")


def _select(known: dict[str, str], name: str) -> str:
    return f"select {', '.join(dict.fromkeys(known.values()))} from {table_source(name)}"


def _columns(batch: pa.RecordBatch, known: dict[str, str]) -> Columns:
    """The columns of a batch by field. Fields with one expression share a column."""
    place = {expression: index for index, expression in enumerate(dict.fromkeys(known.values()))}
    return {field: batch.column(place[expression]) for field, expression in known.items()}


def _fits(columns: Columns, table: Table) -> bool:
    return all(columns[f.name].type in _TYPES[f.kind] for f in table.fields if f.name in columns)
