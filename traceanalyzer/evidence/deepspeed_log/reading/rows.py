"""Rows on their way into tables: columns that are handed on in batches."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from traceanalyzer.ingest.contract import Sink
from traceanalyzer.model.schema import TableSpec

_ROWS = 1 << 16


class Rows:
    """Rows of one table, in the order of its columns without the rank."""

    def __init__(self, sink: Sink, spec: TableSpec) -> None:
        self._sink, self._spec = sink, spec
        self._schema = pa.schema([field for field in spec.schema if field.name != "rank"])
        self._rows: list[tuple[object, ...]] = []
        self.count = 0

    def add(self, *row: object) -> None:
        self._rows.append(row)
        self.count += 1
        if len(self._rows) >= _ROWS:
            self.flush()

    def extend(self, rows: Sequence[tuple[object, ...]]) -> None:
        self._rows += rows
        self.count += len(rows)
        if len(self._rows) >= _ROWS:
            self.flush()

    def flush(self) -> None:
        """Hand on what there is."""
        if self._rows:
            columns = zip(*self._rows, strict=True)
            arrays = [pa.array(column, field.type) for column, field in zip(columns, self._schema, strict=True)]
            self._sink.add(self._spec.name, pa.table(arrays, schema=self._schema))
            self._rows = []
