"""Makes small exports as Nsight Systems would, and collects what the importer makes of them."""

from __future__ import annotations

import sqlite3
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow as pa

from traceanalyzer.ingest.contract import FileFacts
from traceanalyzer.ingest.formats.nsys.importer import NsysImporter
from traceanalyzer.ingest.registry import find_sources
from traceanalyzer.ingest.rows.collector import Collector
from traceanalyzer.model.table_specs import table_specs

Row = dict[str, Any]
Tables = dict[str, list[Row]]
STRINGS = {
    1: "void f<int>(int)",
    2: "f",
    3: "cudaLaunchKernel_v7000",
    4: "cudaMemcpyAsync_v3020",
    5: "step_0",
    6: "cudaDeviceSynchronize_v3020",
    7: "cudaGraphLaunch_v10000",
    9: "python",
}


def global_id(pid: int, tid: int = 0, hw: int = 0, vm: int = 1) -> int:
    """A global id as stored: signed, so negative for hw >= 128."""
    value = hw << 56 | vm << 48 | pid << 24 | tid
    return value - (1 << 64) if value >= 1 << 63 else value


def process_id(pid: int, hw: int = 0, vm: int = 1) -> int:
    return hw << 32 | vm << 24 | pid


def kernel(start: int | None = 1000, end: int | None = 2000, pid: int = 7, correlation: int = 1, **more: Any) -> Row:
    row = {"start": start, "end": end, "deviceId": 0, "contextId": 1, "streamId": 7, "correlationId": correlation}
    row |= {"globalPid": global_id(pid), "demangledName": 1, "shortName": 2, "graphNodeId": None}
    row |= {"registersPerThread": 32, "staticSharedMemory": 16, "dynamicSharedMemory": 48}
    row |= {f"{what}{axis}": size for what, size in (("grid", 4), ("block", 128)) for axis in "XYZ"}
    return row | more


def memcpy(
    start: int | None = 3000,
    end: int | None = 4000,
    kind: int = 1,
    src: int | None = 0,
    dst: int | None = 2,
    **more: Any,
) -> Row:
    row = {"start": start, "end": end, "deviceId": 0, "contextId": 1, "streamId": 7, "correlationId": 2}
    return row | {"globalPid": global_id(7), "bytes": 64, "copyKind": kind, "srcKind": src, "dstKind": dst} | more


def runtime(
    start: int | None = 500, end: int | None = 600, pid: int = 7, tid: int = 8, correlation: int = 1, name: int = 3
) -> Row:
    row = {"start": start, "end": end, "eventClass": 0, "globalTid": global_id(pid, tid)}
    return row | {"correlationId": correlation, "nameId": name, "returnValue": 0}


def nvtx(start: int, end: int | None, text: str | None = None, text_id: int | None = None, kind: int = 59) -> Row:
    row = {"start": start, "end": end, "eventType": kind, "globalTid": global_id(7, 8)}
    return row | {"text": text, "textId": text_id, "domainId": 0}


def facts(table: str, **values: Any) -> Tables:
    """A table of metadata."""
    return {table: [{"name": key, "value": str(value)} for key, value in values.items()]}


def make_export(path: Path, tables: Tables, strings: dict[int, str] | None = STRINGS, typed: bool = True) -> Path:
    """Write the tables; columns are the union of the rows' keys. A table without rows has a start and an end.

    Without `typed`, SQLite keeps what is written later as it is.
    """
    connection = sqlite3.connect(path)
    if strings is not None:
        tables = {"StringIds": [{"id": key, "value": text} for key, text in strings.items()], **tables}
    for name, rows in tables.items():
        columns = list(dict.fromkeys(column for row in rows for column in row)) or ["start", "end"]
        kinds = ["TEXT" if any(isinstance(row.get(c), str) for row in rows) else "INTEGER" for c in columns]
        declared = ", ".join(f'"{c}" {kind if typed else ""}' for c, kind in zip(columns, kinds, strict=True))
        connection.execute(f'create table "{name}" ({declared})')
        marks = ", ".join("?" * len(columns))
        connection.executemany(
            f'insert into "{name}" values ({marks})', [[row.get(c) for c in columns] for row in rows]
        )
    connection.commit()
    connection.close()
    return path


class Collected:
    """A sink that checks what it is given against the schema, and answers with the tables that the pipeline makes of it."""

    def __init__(self, folder: Path) -> None:
        self._collector = Collector(folder)
        self._tables: dict[str, pa.Table] = {}
        self.batches: dict[str, list[pa.Table]] = defaultdict(list)
        self.codes: list[str] = []
        self.messages: list[tuple[str, str, str, int, str | None]] = []
        self.facts = FileFacts("")
        self.progress = 0

    def add(self, table: str, batch: pa.Table | pa.RecordBatch) -> None:
        spec = table_specs()[table]
        assert "rank" not in batch.schema.names
        for field in batch.schema:
            column = spec.column(field.name)
            assert column is not None, field.name
            batch[field.name].cast(column.type)
        self.batches[table].append(batch)
        self._collector.add(table, batch)

    def candidates(self, batch: pa.Table) -> None:
        self._collector.candidates(batch)

    def health(self, code: str, severity: str, message: str, count: int = 1, example: str | None = None) -> None:
        self.codes.append(code)
        self.messages.append((code, severity, message, count, example))
        self._collector.health(code, severity, message, count, example)

    def finish(self, facts: FileFacts) -> None:
        self.facts = facts
        for name, blocks in self._collector.tables(facts):
            rows = [table_specs()[name].empty(), *blocks]
            self._tables[name] = pa.concat_tables(rows).unify_dictionaries().combine_chunks().drop_columns(["rank"])

    def table(self, name: str) -> pa.Table:
        return self._tables[name]

    def column(self, table: str, column: str) -> list[Any]:
        return self.table(table)[column].to_pylist()

    def said(self) -> list[tuple[str, str, int]]:
        """What the finished table of health says: (code, severity, count)."""
        return [(row["code"], row["severity"], row["count"]) for row in self.table("health").to_pylist()]


def read(path: Path) -> Collected:
    (source,) = find_sources([path])
    assert source.kind == "nsys"
    importer = NsysImporter()
    with tempfile.TemporaryDirectory() as folder:
        sink = Collected(Path(folder))

        def progress(count: int) -> None:
            sink.progress += count

        sink.finish(importer.read(source, sink, progress))
    assert sink.progress == source.size
    return sink
