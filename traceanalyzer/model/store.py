"""The store: a folder with one Parquet file per table and rank, and a manifest.

    STORE/manifest.json
    STORE/gpu_ops/rank=0/part-0.parquet      (hive layout: duckdb, pandas, polars and Dask read it as it is)

The same inputs give the same bytes. A store is written beside its place and renamed, so a half-written one is never seen.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from traceanalyzer.errors import InputError
from traceanalyzer.model.schema import EVENT_TABLES, SCHEMA_VERSION
from traceanalyzer.model.trace import Input, Trace

MANIFEST = "manifest.json"


def is_store(path: Path) -> bool:
    """Whether `path` is a folder with a manifest."""
    return (path / MANIFEST).is_file()


def write_store(trace: Trace, folder: Path, tool_version: str) -> None:
    """Write `trace` to `folder`, replacing a store that is there. Raises InputError when something else is there."""
    if folder.exists() and not is_store(folder) and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder}: is there already and is not a store; choose another name")
    folder.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        rows = {name: _write_table(aside, name, trace.table(name)) for name in EVENT_TABLES}
        manifest = {
            "schema_version": SCHEMA_VERSION,
            "tool": {"name": "traceanalyzer", "version": tool_version},
            "inputs": [asdict(item) for item in trace.inputs],
            "tables": rows,
        }
        (aside / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
        aside.chmod(0o777 & ~_umask())
        if folder.exists():
            shutil.rmtree(folder)
        aside.rename(folder)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _write_table(folder: Path, name: str, table: pa.Table) -> int:
    for rank in sorted(pc.unique(table["rank"]).to_pylist()):
        part = folder / name / f"rank={rank}"
        part.mkdir(parents=True)
        rows = table.filter(pc.equal(table["rank"], rank)).drop_columns(["rank"])
        pq.write_table(rows, part / "part-0.parquet", compression="zstd")
    return int(table.num_rows)


def read_store(folder: Path) -> Trace:
    """Read what `write_store` wrote. Raises InputError when the store is damaged or of another schema version."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if manifest["schema_version"] != SCHEMA_VERSION:
            raise InputError(
                f"{folder}: a store of schema {manifest['schema_version']}, this version reads {SCHEMA_VERSION}; ingest again"
            )
        inputs = tuple(Input(**item) for item in manifest["inputs"])
        tables = {name: _read_table(folder, name) for name in EVENT_TABLES}
        short = [name for name, count in manifest["tables"].items() if tables[name].num_rows != count]
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
        raise InputError(f"{folder}: damaged store ({error}); ingest again") from error
    if short:
        raise InputError(f"{folder}: damaged store (rows missing in {', '.join(short)}); ingest again")
    return Trace(inputs, tables)


def _read_table(folder: Path, name: str) -> pa.Table:
    spec = EVENT_TABLES[name]
    parts = sorted((folder / name).glob("rank=*/part-0.parquet"), key=_rank_in_path)
    tables = []
    for part in parts:
        rows = pq.ParquetFile(part).read()
        rank = pa.repeat(pa.scalar(_rank_in_path(part), pa.int32()), rows.num_rows)
        tables.append(rows.add_column(0, "rank", rank))
    if not tables:
        return spec.empty()
    return pa.concat_tables(tables).select(spec.schema.names).cast(spec.schema).unify_dictionaries()


def _rank_in_path(part: Path) -> int:
    return int(part.parent.name.partition("=")[2])
