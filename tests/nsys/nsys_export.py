"""Makes small exports as Nsight Systems would, and collects what the importer makes of them."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow as pa

from traceanalyzer.ingest.contract import FileFacts
from traceanalyzer.ingest.nsys.importer import NsysImporter
from traceanalyzer.ingest.sources import find_sources
from traceanalyzer.model.schema import EVENT_TABLES

Row = dict[str, Any]
Tables = dict[str, list[Row]]
STRINGS = {
    1: "void f<int>(int)",
    2: "f",
    3: "cudaLaunchKernel_v7000",
    4: "cudaMemcpyAsync_v3020",
    5: "step_0",
    9: "python",
}


def global_id(pid: int, tid: int = 0, hw: int = 0, vm: int = 1) -> int:
    """A global id as stored: signed, so negative for hw >= 128."""
    value = hw << 56 | vm << 48 | pid << 24 | tid
    return value - (1 << 64) if value >= 1 << 63 else value


def process_id(pid: int, hw: int = 0, vm: int = 1) -> int:
    return hw << 32 | vm << 24 | pid


def kernel(start: int = 1000, end: int = 2000, pid: int = 7, correlation: int = 1, **more: Any) -> Row:
    row = {"start": start, "end": end, "deviceId": 0, "contextId": 1, "streamId": 7, "correlationId": correlation}
    row |= {"globalPid": global_id(pid), "demangledName": 1, "shortName": 2, "graphNodeId": None}
    row |= {"registersPerThread": 32, "staticSharedMemory": 16, "dynamicSharedMemory": 48}
    row |= {f"{what}{axis}": size for what, size in (("grid", 4), ("block", 128)) for axis in "XYZ"}
    return row | more


def memcpy(
    start: int = 3000, end: int = 4000, kind: int = 1, src: int | None = 0, dst: int | None = 2, **more: Any
) -> Row:
    row = {"start": start, "end": end, "deviceId": 0, "contextId": 1, "streamId": 7, "correlationId": 2}
    return row | {"globalPid": global_id(7), "bytes": 64, "copyKind": kind, "srcKind": src, "dstKind": dst} | more


def runtime(start: int = 500, end: int = 600, pid: int = 7, tid: int = 8, correlation: int = 1, name: int = 3) -> Row:
    row = {"start": start, "end": end, "eventClass": 0, "globalTid": global_id(pid, tid)}
    return row | {"correlationId": correlation, "nameId": name, "returnValue": 0}


def nvtx(start: int, end: int | None, text: str | None = None, text_id: int | None = None, kind: int = 59) -> Row:
    row = {"start": start, "end": end, "eventType": kind, "globalTid": global_id(7, 8)}
    return row | {"text": text, "textId": text_id, "domainId": 0}


def make_export(path: Path, tables: Tables, strings: dict[int, str] | None = STRINGS) -> Path:
    """Write the tables; columns are the union of the rows' keys."""
    connection = sqlite3.connect(path)
    if strings is not None:
        tables = {"StringIds": [{"id": key, "value": text} for key, text in strings.items()], **tables}
    for name, rows in tables.items():
        columns = list(dict.fromkeys(column for row in rows for column in row))
        typed = ", ".join(
            f'"{c}" {"TEXT" if any(isinstance(r.get(c), str) for r in rows) else "INTEGER"}' for c in columns
        )
        connection.execute(f'create table "{name}" ({typed})')
        marks = ", ".join("?" * len(columns))
        connection.executemany(
            f'insert into "{name}" values ({marks})', [[row.get(c) for c in columns] for row in rows]
        )
    connection.commit()
    connection.close()
    return path


class Collected:
    """A sink that keeps everything, checks it against the schema, and answers like a dictionary of lists."""

    def __init__(self) -> None:
        self.batches: dict[str, list[pa.Table]] = defaultdict(list)
        self.codes: list[str] = []
        self.messages: list[tuple[str, str, str, int, str | None]] = []
        self.facts = FileFacts("")
        self.progress = 0

    def add(self, table: str, batch: pa.Table | pa.RecordBatch) -> None:
        spec = EVENT_TABLES[table]
        assert "rank" not in batch.schema.names
        for field in batch.schema:
            column = spec.column(field.name)
            assert column is not None, field.name
            batch[field.name].cast(column.type)
        self.batches[table].append(batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch]))

    def health(self, code: str, severity: str, message: str, count: int = 1, example: str | None = None) -> None:
        self.codes.append(code)
        self.messages.append((code, severity, message, count, example))

    def table(self, name: str) -> pa.Table:
        batches = self.batches.get(name)
        return pa.concat_tables(batches, promote_options="permissive") if batches else EVENT_TABLES[name].empty()

    def column(self, table: str, column: str) -> list[Any]:
        return self.table(table)[column].to_pylist()


def read(path: Path) -> Collected:
    sink = Collected()
    (source,) = find_sources([path])
    importer = NsysImporter()
    assert importer.sniff(source)

    def progress(count: int) -> None:
        sink.progress += count

    sink.facts = importer.read(source, sink, progress)
    assert sink.progress == source.size
    return sink
