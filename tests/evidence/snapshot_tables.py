"""Tables of memory snapshots for tests: of a file, and of a small program that is told by hand."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from traceanalyzer.evidence.memory_snapshot.reader import read_snapshot
from traceanalyzer.evidence.memory_snapshot.tables import TABLES
from traceanalyzer.ingest.bytes.source import source_of

SPECS = {spec.name: spec for spec in TABLES}
Rows = dict[str, list[dict[str, object]]]


def tables_of(rows: Rows) -> dict[str, pa.Table]:
    """Rows of some tables as all tables of a snapshot, of rank 0."""
    found = {}
    for name, spec in SPECS.items():
        plain = pa.schema([(f.name, pa.string() if pa.types.is_dictionary(f.type) else f.type) for f in spec.schema])
        made = [{"rank": 0, **dict.fromkeys(set(plain.names) - {"rank"}), **row} for row in rows.get(name, ())]
        found[name] = pa.Table.from_pylist(made, schema=plain).cast(spec.schema)
    return found


class _Sink:
    def __init__(self) -> None:
        self.batches: dict[str, list[pa.Table]] = {}

    def add(self, table: str, batch: pa.Table | pa.RecordBatch) -> None:
        spec = SPECS[table]
        rank = pa.array([0] * batch.num_rows, pa.int32())
        columns = {"rank": rank, **{name: batch[name] for name in batch.schema.names}}
        arrays = [columns.get(f.name, pa.nulls(batch.num_rows, f.type)) for f in spec.schema]
        self.batches.setdefault(table, []).append(pa.Table.from_arrays(arrays, schema=spec.schema))

    def candidates(self, batch: pa.Table) -> None:
        raise AssertionError("a snapshot holds no work of a GPU")

    def health(self, code: str, severity: str, message: str, count: int = 1, example: str | None = None) -> None:
        pass


def tables_of_file(path: Path) -> dict[str, pa.Table]:
    """All tables of a snapshot file, packed or not."""
    sink = _Sink()
    read_snapshot(source_of(path, path, None), sink, lambda _: None)
    return {
        name: pa.concat_tables(sink.batches[name]).unify_dictionaries().combine_chunks()
        if name in sink.batches
        else spec.empty()
        for name, spec in SPECS.items()
    }
