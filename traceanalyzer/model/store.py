"""The store: a folder with one Parquet file per table and rank, and a manifest. It lies on a disk or behind a URL.

    STORE/manifest.json
    STORE/gpu_ops/rank=0/part-0.parquet      (hive layout: duckdb, pandas, polars and Dask read it as it is)

The same inputs give the same bytes. `shelves` writes it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from traceanalyzer.errors import InputError
from traceanalyzer.model.parts import Part, PartFile
from traceanalyzer.model.schema import EVENT_TABLES, SCHEMA_VERSION
from traceanalyzer.model.trace import Input, Trace
from traceanalyzer.urls import Place, RemoteFolder, shown, url_of

MANIFEST = "manifest.json"
PARTS = ".parts"
"""In a store behind a URL: the folder of what is finished of one that is being written."""
TOOL = "traceanalyzer"
_WORTH_THREADS = 16 << 20
_AGAIN = "ingest the trace again"


@dataclass(frozen=True)
class Manifest:
    """What a store says of itself: its inputs in the order of their ranks, what each gave, and the rows of each table."""

    schema_version: str
    tool: dict[str, str]
    inputs: tuple[Input, ...]
    tables: dict[str, int]
    parts: tuple[Part, ...]

    def __post_init__(self) -> None:
        if len(self.parts) != len(self.inputs):
            raise ValueError("inputs or parts are missing")

    def encoded(self) -> bytes:
        """As the file holds it."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n"


@dataclass(frozen=True)
class _Version:
    schema_version: str


def file_of(name: str, ordinal: int) -> str:
    """Where in a store the table `name` of one rank lies."""
    return f"{name}/rank={ordinal}/part-0.parquet"


def is_store(place: Place) -> bool:
    """Whether a place is a store, perhaps damaged since. Any other manifest.json does not count."""
    if (url := url_of(place)) is not None:
        return not set("*?[") & set(url) and _is_remote_store(RemoteFolder(url))
    folder = Path(place)
    if not folder.is_dir():
        return False
    return _is_own_manifest(folder) or any(
        next((folder / name).glob("rank=*"), None) is not None for name in EVENT_TABLES
    )


def _is_remote_store(folder: RemoteFolder) -> bool:
    with suppress(OSError):
        return _is_own_manifest(folder) or not EVENT_TABLES.keys().isdisjoint(folder.names())
    return False


def _is_own_manifest(folder: Path | RemoteFolder) -> bool:
    try:
        manifest = json.loads(_read(folder, MANIFEST))
        return bool(manifest["tool"]["name"] == TOOL)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def check_place(place: Place, inputs: Sequence[Place] = ()) -> None:
    """Whether a store can be written to `place` without harm to anything that is there. Raises InputError."""
    if (url := url_of(place)) is not None:
        _check_url(url, inputs)
    else:
        _check_folder(Path(place), [Path(given) for given in inputs if url_of(given) is None])


def _check_folder(folder: Path, inputs: Sequence[Path]) -> None:
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
    _check_others(folder, [p.name for p in folder.iterdir()])


def _check_url(url: str, inputs: Sequence[Place]) -> None:
    for given in inputs:
        other = url_of(given)
        if other is not None and f"{other.rstrip('/')}/".startswith(f"{url.rstrip('/')}/"):
            raise InputError(f"{url}: is an input or holds {other}; inputs are never written to, choose another name")
    try:
        names = RemoteFolder(url).names()
    except OSError as error:
        raise InputError(f"{url}: cannot be written ({error}); choose another place") from error
    if names and PARTS not in names and not is_store(url):
        raise InputError(f"{url}: is there already and is not a store; choose another name")
    _check_others(url, [name for name in names if name != PARTS])


def _check_others(place: Place, names: list[str]) -> None:
    others = sorted(name for name in names if name != MANIFEST and name not in EVENT_TABLES)
    if others:
        raise InputError(
            f"{place}: a store that also holds {', '.join(others[:3])}, which would be lost; choose another name"
        )


def read_manifest(place: Place) -> Manifest:
    """What a store says of itself. Raises InputError when it is damaged or of another schema version."""
    try:
        content = _read(_folder(place), MANIFEST)
        version = msgspec.json.decode(content, type=_Version).schema_version
    except (OSError, msgspec.MsgspecError) as error:
        raise InputError(f"{shown(place)}: damaged store ({MANIFEST} is missing or not readable); {_AGAIN}") from error
    if version != SCHEMA_VERSION:
        raise InputError(f"{shown(place)}: a store of schema {version}, this version reads {SCHEMA_VERSION}; {_AGAIN}")
    try:
        return _decoded(content)
    except msgspec.ValidationError as error:
        raise InputError(f"{shown(place)}: damaged store ({_first_sentence(error)}); {_AGAIN}") from error


@lru_cache(maxsize=1)
def _decoded(content: bytes) -> Manifest:
    # A process reads one rank after the other of the same store, and the manifest tells of them all.
    return msgspec.json.decode(content, type=Manifest)


def read_rank(place: Place, ordinal: int) -> Trace:
    """Read one input of a store, that whose `ordinal` it is. Raises InputError as `read_store` does, and KeyError for another."""
    manifest = read_manifest(place)
    for given, part in zip(manifest.inputs, manifest.parts, strict=True):
        if given.ordinal == ordinal:
            return read_part(place, given, part)
    raise KeyError(f"{shown(place)} has no rank {ordinal}")


def read_part(place: Place, given: Input, part: Part) -> Trace:
    """As `read_rank`, by one who has read the manifest and knows what of it is about this input."""
    return Trace((given,), _tables(place, [(given, part)]))


def read_store(place: Place) -> Trace:
    """Read a whole store. Raises InputError when it is damaged or of another schema version."""
    manifest = read_manifest(place)
    return Trace(manifest.inputs, _tables(place, list(zip(manifest.inputs, manifest.parts, strict=True))))


def _tables(place: Place, parts: list[tuple[Input, Part]]) -> dict[str, pa.Table]:
    folder = _folder(place)
    tables, short = {}, []
    try:
        for name, spec in EVENT_TABLES.items():
            wanted = [(given.ordinal, part.tables[name]) for given, part in parts if name in part.tables]
            try:
                found = [_rows(folder, name, ordinal, file) for ordinal, file in wanted]
            except FileNotFoundError:
                short.append(name)
                continue
            if any(rows.num_rows != file.rows for rows, (_, file) in zip(found, wanted, strict=True)):
                short.append(name)
            joined = pa.concat_tables(found) if found else spec.empty()
            tables[name] = joined.select(spec.schema.names).cast(spec.schema).unify_dictionaries().combine_chunks()
    except (OSError, ValueError, KeyError, pa.ArrowException) as error:
        raise InputError(f"{shown(place)}: damaged store ({_first_sentence(error)}); {_AGAIN}") from error
    if short:
        raise InputError(f"{shown(place)}: damaged store (rows missing in {', '.join(short)}); {_AGAIN}")
    return tables


def _rows(folder: Path | RemoteFolder, name: str, ordinal: int, file: PartFile) -> pa.Table:
    """The table `name` of one rank."""
    path = file_of(name, ordinal)
    source: Path | pa.BufferReader
    if isinstance(folder, Path):
        source = folder / path
    else:
        content = folder.read(path)
        # A bucket has no rename: one that was being replaced when that ended early holds files of both stores.
        if len(content) != file.bytes:
            raise ValueError(f"{path} is not the one that was written")
        source = pa.BufferReader(content)
    # Threads pay for a file of gigabytes only, and ranks are read at once anyway.
    rows = pq.ParquetFile(source, page_checksum_verification=True).read(use_threads=file.bytes > _WORTH_THREADS)
    return rows.add_column(0, "rank", pa.repeat(pa.scalar(ordinal, pa.int32()), rows.num_rows))


def _folder(place: Place) -> Path | RemoteFolder:
    url = url_of(place)
    return Path(place) if url is None else RemoteFolder(url)


def _read(folder: Path | RemoteFolder, name: str) -> bytes:
    return (folder / name).read_bytes() if isinstance(folder, Path) else folder.read(name)


def _first_sentence(error: Exception) -> str:
    return str(error).partition("\n")[0].partition(". ")[0].rstrip(".")
