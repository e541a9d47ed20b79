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
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from traceanalyzer.errors import InputError
from traceanalyzer.files import set_usual_mode
from traceanalyzer.model.schema import EVENT_TABLES, SCHEMA_VERSION, TableSpec
from traceanalyzer.model.trace import Input, Trace

MANIFEST = "manifest.json"
TOOL = "traceanalyzer"


def is_store(path: Path) -> bool:
    """Whether `path` is a folder that `StoreWriter` wrote, perhaps damaged since. Any other manifest.json does not count."""
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


class StoreWriter:
    """Writes a store, whole or not at all, replacing one that is there.

        with StoreWriter(folder, version) as store:
            store.write("gpu_ops", 0, tables)
            store.inputs = inputs

    `scratch` is a folder for whatever is needed meanwhile, on the same disk. Raises InputError when something else is there, or
    when the store cannot be written.
    """

    def __init__(self, folder: Path, tool_version: str) -> None:
        check_place(folder)
        self.inputs: tuple[Input, ...] = ()
        self._folder, self._tool_version = folder, tool_version
        self._rows = dict.fromkeys(EVENT_TABLES, 0)

    def __enter__(self) -> StoreWriter:
        with self._disk():
            place = self._folder.resolve()
            place.parent.mkdir(parents=True, exist_ok=True)
            self._aside = Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=place.parent))
            self.scratch = self._aside / "scratch"
            self.scratch.mkdir()
        return self

    @property
    def rows(self) -> int:
        """How many rows were written, of all tables."""
        return sum(self._rows.values())

    def write(self, name: str, rank: int, tables: Iterable[pa.Table]) -> None:
        """Write the table `name` of one rank, in the order given."""
        part = _Part(self._aside / name / f"rank={rank}" / "part-0.parquet", EVENT_TABLES[name])
        # Compressing does not hold the interpreter: it runs beside whatever makes the next rows.
        with self._disk(), ThreadPoolExecutor(1) as beside:
            written: Future[None] | None = None
            for table in tables:
                if written is not None:
                    written.result()
                written = beside.submit(part.append, table)
            if written is not None:
                written.result()
            part.close()
        self._rows[name] += part.rows

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                with self._disk():
                    self._put_in_place()
        finally:
            shutil.rmtree(self._aside, ignore_errors=True)

    def _put_in_place(self) -> None:
        shutil.rmtree(self.scratch)
        manifest = {
            "schema_version": SCHEMA_VERSION,
            "tool": {"name": TOOL, "version": self._tool_version},
            "inputs": [asdict(item) for item in self.inputs],
            "tables": self._rows,
        }
        (self._aside / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
        set_usual_mode(self._aside)
        place = self._folder.resolve()
        if not place.exists():
            self._aside.rename(place)
            return
        # Renamed and not removed in place: when the last step fails, the old store comes back.
        old = Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=place.parent)) / "old"
        place.rename(old)
        try:
            self._aside.rename(place)
        except BaseException:
            old.rename(place)
            raise
        finally:
            shutil.rmtree(old.parent, ignore_errors=True)

    @contextmanager
    def _disk(self) -> Iterator[None]:
        """What the disk refuses becomes one clear line."""
        try:
            yield
        except OSError as error:
            raise InputError(
                f"{self._folder}: cannot be written ({error.strerror or error}); choose another place"
            ) from error


class _Part:
    """One Parquet file; none when there are no rows. The column `rank` is left to the name of its folder."""

    def __init__(self, path: Path, spec: TableSpec) -> None:
        self._path, self._spec = path, spec
        self._schema = spec.schema.remove(spec.schema.get_field_index("rank"))
        self._writer: pq.ParquetWriter | None = None
        self.rows = 0

    def append(self, table: pa.Table) -> None:
        if not table.num_rows:
            return
        if self._writer is None:
            self._path.parent.mkdir(parents=True)
            self._writer = pq.ParquetWriter(self._path, self._schema, **_parquet_options(self._spec))
        self._writer.write_table(table.select(self._schema.names))
        self.rows += table.num_rows

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


def _parquet_options(spec: TableSpec) -> dict[str, Any]:
    """Times and ids grow slowly, so their differences are small. Dictionaries suit names, and statistics (to skip row groups) times."""
    names = [c.name for c in spec.columns if pa.types.is_dictionary(c.type) or pa.types.is_string(c.type)]
    growing = [c.name for c in spec.columns if c.type in (pa.int64(), pa.int32()) and c.name != "rank"]
    return {
        "compression": "zstd",
        "write_page_checksum": True,
        "write_statistics": [c.name for c in spec.columns if c.name.endswith("_ns")] or False,
        "use_dictionary": names,
        "column_encoding": dict.fromkeys(growing, "DELTA_BINARY_PACKED"),
    }


def read_store(folder: Path) -> Trace:
    """Read what `StoreWriter` wrote. Raises InputError when the store is damaged or of another schema version."""
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
    return pa.concat_tables(tables).select(spec.schema.names).cast(spec.schema).unify_dictionaries().combine_chunks()


def _rank_in_path(part: Path) -> int:
    return int(part.parent.name.partition("=")[2])
