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
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from traceanalyzer.errors import InputError
from traceanalyzer.files import set_usual_mode
from traceanalyzer.model.schema import EVENT_TABLES, SCHEMA_VERSION
from traceanalyzer.model.trace import Input, Trace

MANIFEST = "manifest.json"
TOOL = "traceanalyzer"


def is_store(path: Path) -> bool:
    """Whether `path` is a folder that `write_store` wrote, perhaps damaged since. Any other manifest.json does not count."""
    if not path.is_dir():
        return False
    return _is_own_manifest(path / MANIFEST) or any(
        next((path / name).glob("rank=*"), None) is not None for name in EVENT_TABLES
    )


def _is_own_manifest(path: Path) -> bool:
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        return bool(manifest["tool"]["name"] == TOOL)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def check_place(folder: Path, inputs: Sequence[Path] = ()) -> None:
    """Whether a store can be written to `folder` without harm to anything that is there. Raises InputError."""
    if str(folder) == "-":
        raise InputError("-: a store is a folder and cannot be written to standard output; name a folder")
    above = next((p for p in folder.absolute().parents if p.exists()), None)
    if above is not None and not above.is_dir():
        raise InputError(f"{folder}: cannot be written ({above} is not a folder); choose another name")
    if above is not None and not os.access(above, os.W_OK):
        raise InputError(f"{folder}: cannot be written (no permission to write to {above}); choose another name")
    if not folder.exists():
        return
    for given in inputs:
        if given.exists() and folder.resolve() in (given.resolve(), *given.resolve().parents):
            what = "is an input" if folder.samefile(given) else f"holds the input {given}"
            raise InputError(f"{folder}: {what}; inputs are never written to, choose another name")
    if not folder.is_dir() or (any(folder.iterdir()) and not is_store(folder)):
        raise InputError(f"{folder}: is there already and is not a store; choose another name")
    others = sorted(p.name for p in folder.iterdir() if p.name != MANIFEST and p.name not in EVENT_TABLES)
    if others:
        raise InputError(
            f"{folder}: a store that also holds {', '.join(others[:3])}, which would be lost; choose another name"
        )


def write_store(trace: Trace, folder: Path, tool_version: str) -> None:
    """Write `trace` to `folder`, whole or not at all, replacing a store that is there.

    Raises InputError when something else is there, or when it cannot be written.
    """
    check_place(folder)
    try:
        _write(trace, folder, tool_version)
    except OSError as error:
        raise InputError(f"{folder}: cannot be written ({error.strerror}); choose another place") from error


def _write(trace: Trace, folder: Path, tool_version: str) -> None:
    folder = folder.resolve()
    folder.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        rows = {name: _write_table(aside, name, trace.table(name)) for name in EVENT_TABLES}
        manifest = {
            "schema_version": SCHEMA_VERSION,
            "tool": {"name": TOOL, "version": tool_version},
            "inputs": [asdict(item) for item in trace.inputs],
            "tables": rows,
        }
        (aside / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
        set_usual_mode(aside)
        if folder.exists():
            # Renamed and not removed in place: when the last step fails, the old store comes back.
            old = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent)) / "old"
            folder.rename(old)
            try:
                aside.rename(folder)
            except BaseException:
                old.rename(folder)
                raise
            finally:
                shutil.rmtree(old.parent, ignore_errors=True)
        else:
            aside.rename(folder)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise


def _write_table(folder: Path, name: str, table: pa.Table) -> int:
    for rank in sorted(pc.unique(table["rank"]).to_pylist()):
        part = folder / name / f"rank={rank}"
        part.mkdir(parents=True)
        rows = table.filter(pc.equal(table["rank"], rank)).drop_columns(["rank"])
        pq.write_table(rows, part / "part-0.parquet", compression="zstd", write_page_checksum=True)
    return int(table.num_rows)


def read_store(folder: Path) -> Trace:
    """Read what `write_store` wrote. Raises InputError when the store is damaged or of another schema version."""
    again = "ingest the trace again"
    if not _is_own_manifest(folder / MANIFEST):
        raise InputError(f"{folder}: damaged store ({MANIFEST} is missing or not readable); {again}")
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if manifest["schema_version"] != SCHEMA_VERSION:
            raise InputError(
                f"{folder}: a store of schema {manifest['schema_version']}, this version reads {SCHEMA_VERSION}; {again}"
            )
        inputs = tuple(Input(**item) for item in manifest["inputs"])
        tables = {name: _read_table(folder, name) for name in EVENT_TABLES}
        short = [name for name, count in manifest["tables"].items() if tables[name].num_rows != count]
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
        raise InputError(f"{folder}: damaged store ({_first_sentence(error)}); {again}") from error
    if short:
        raise InputError(f"{folder}: damaged store (rows missing in {', '.join(short)}); {again}")
    return Trace(inputs, tables)


def _first_sentence(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"{error} is missing"
    return str(error).partition("\n")[0].partition(". ")[0].rstrip(".")


def _read_table(folder: Path, name: str) -> pa.Table:
    spec = EVENT_TABLES[name]
    parts = sorted((folder / name).glob("rank=*/part-0.parquet"), key=_rank_in_path)
    tables = []
    for part in parts:
        rows = pq.ParquetFile(part, page_checksum_verification=True).read()
        rank = pa.repeat(pa.scalar(_rank_in_path(part), pa.int32()), rows.num_rows)
        tables.append(rows.add_column(0, "rank", rank))
    if not tables:
        return spec.empty()
    return pa.concat_tables(tables).select(spec.schema.names).cast(spec.schema).unify_dictionaries()


def _rank_in_path(part: Path) -> int:
    return int(part.parent.name.partition("=")[2])
