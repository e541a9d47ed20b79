"""The store: a folder with one Parquet file per table and rank, and a manifest. It lies on a disk or behind a URL.

    STORE/manifest.json
    STORE/gpu_ops/rank=0/part-0.parquet      (hive layout: duckdb, pandas, polars and Dask read it as it is)

The same inputs give the same bytes. `shelves` writes it. What is read is held against the manifest, and that against its own digest: a
store is read as it was written or not at all. One that is replaced in the meantime is a ChangedError.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from contextlib import suppress
from dataclasses import field
from functools import lru_cache
from pathlib import Path

import msgspec
import pyarrow as pa

from traceanalyzer.columns.frames import concatenated
from traceanalyzer.columns.lean import repeated
from traceanalyzer.errors import ChangedError, InputError
from traceanalyzer.files import is_folder, open_regular
from traceanalyzer.model.schema import EVENT_TABLES, SCHEMA_VERSION
from traceanalyzer.model.stores.conforming import Conforming
from traceanalyzer.model.stores.layout import MANIFEST, PARTS, file_of, locate_store
from traceanalyzer.model.stores.parts import Part, PartFile, is_sealed, read_table, seal
from traceanalyzer.model.stores.versions import OLDEST, is_older, is_readable
from traceanalyzer.model.table_specs import is_table_name, table_specs
from traceanalyzer.model.trace import Input, Trace
from traceanalyzer.records import dataclass
from traceanalyzer.urls import Place, RemoteFolder, local_of, shown_place, url_of

TOOL = "traceanalyzer"
_WORTH_THREADS = 16 << 20
# That of a job of 10,000 ranks has 50 MB.
_MOST_MANIFEST = 1 << 30
_AGAIN = "ingest the trace again"
_UNREADABLE = (OSError, ValueError, RecursionError, msgspec.MsgspecError)


@dataclass(frozen=True)
class Edition:
    """Which store it is, by the digest of its manifest; of what version of the schema, and with which tables."""

    digest: str
    schema_version: str
    tables: tuple[str, ...]


@dataclass(frozen=True)
class Manifest:
    """What a store says of itself: its inputs in the order of their ranks, what each gave, and the rows of each table.

    `digest` is that of the manifest itself, and so tells one store from every other.
    """

    schema_version: str
    tool: dict[str, str]
    inputs: tuple[Input, ...]
    tables: dict[str, int]
    parts: tuple[Part, ...]
    digest: str = ""

    def __post_init__(self) -> None:
        if len(self.parts) != len(self.inputs):
            raise ValueError("inputs or parts are missing")
        if len({one.ordinal for one in self.inputs}) != len(self.inputs):
            raise ValueError("two inputs have the same place")
        if (bad := next((name for name in self.tables if not is_table_name(name)), None)) is not None:
            raise ValueError(f"no table is called {ascii(bad)[:20]}")
        if unknown := {name for part in self.parts for name in part.tables} - self.tables.keys():
            raise ValueError(f"unknown table {ascii(min(unknown))[1:-1][:20]}")
        if not is_older(self.schema_version) and (gone := EVENT_TABLES.keys() - self.tables.keys()):
            raise ValueError(f"table {min(gone)} is missing")
        rows = Counter[str]()
        for part in self.parts:
            rows.update({name: file.rows for name, file in part.tables.items()})
        if self.tables != {name: rows[name] for name in self.tables}:
            raise ValueError("the rows of its tables do not add up")

    @property
    def edition(self) -> Edition:
        return Edition(self.digest, self.schema_version, tuple(self.tables))

    def encoded(self) -> bytes:
        """As the file holds it."""
        return seal(self)


@dataclass(frozen=True)
class _Version:
    schema_version: str


@dataclass(frozen=True)
class _Tool:
    name: str


@dataclass(frozen=True)
class _Signed:
    tool: _Tool


@dataclass(frozen=True)
class _Named(_Signed):
    tables: dict[str, int] = field(default_factory=dict)


def is_store(place: Place) -> bool:
    """Whether a place is a store, perhaps damaged since. Any other manifest.json does not count."""
    local = local_of(place)
    if local is None:
        url = url_of(place) or ""
        return not set("*?[") & set(url) and _is_remote_store(RemoteFolder(url))
    folder = locate_store(local)
    if not is_folder(folder):
        return False
    return is_own_manifest(folder) or any(
        next((folder / name).glob("rank=*"), None) is not None for name in EVENT_TABLES
    )


def _is_remote_store(folder: RemoteFolder) -> bool:
    with suppress(OSError):
        return is_own_manifest(folder) or not EVENT_TABLES.keys().isdisjoint(folder.names())
    return False


def is_own_manifest(folder: Path | RemoteFolder) -> bool:
    """Whether a folder has a manifest that this program wrote, in whatever version."""
    try:
        return msgspec.json.decode(_read(folder, MANIFEST, _MOST_MANIFEST), type=_Signed).tool.name == TOOL
    except _UNREADABLE:
        return False


def stated_tables(place: Place) -> set[str]:
    """The tables that a manifest of this program names, in whatever version and however damaged its store is; none without it."""
    try:
        names = msgspec.json.decode(_read(_folder(place), MANIFEST, _MOST_MANIFEST), type=_Named).tables
    except _UNREADABLE:
        return set()
    return {name for name in names if is_table_name(name)}


def read_manifest(place: Place) -> Manifest:
    """What a store says of itself, and whether it holds what it says and nothing else.

    Raises InputError when it is damaged or of another schema version, ChangedError when it is replaced meanwhile.
    """
    manifest = read_statement(place)
    try:
        others = _unexpected(_folder(place), manifest)
    except OSError as error:
        raise _damaged(place, manifest.digest, str(error)) from error
    if others:
        raise _damaged(
            place, manifest.digest, f"it holds {', '.join(others[:3])}, which is not of it", "move that away"
        )
    return manifest


def read_statement(place: Place) -> Manifest:
    """What a store says of itself, without a look at what it holds. Raises InputError as `read_manifest`."""
    try:
        content = _manifest(place)
        version = msgspec.json.decode(content, type=_Version).schema_version
    except _UNREADABLE as error:
        raise InputError(
            f"{shown_place(place)}: damaged store ({MANIFEST} is missing or not readable); {_AGAIN}"
        ) from error
    if not is_readable(version):
        said, own = ascii(version)[1:-1][:20], SCHEMA_VERSION.partition(".")[0]
        raise InputError(
            f"{shown_place(place)}: a store of schema {said}, this version reads {OLDEST} and later ones of {own}; {_AGAIN}"
        )
    try:
        return decode_manifest(content)
    except (ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise InputError(f"{shown_place(place)}: damaged store ({_first_sentence(error)}); {_AGAIN}") from error


def _manifest(place: Place) -> bytes:
    try:
        return _read(_folder(place), MANIFEST, _MOST_MANIFEST)
    except FileNotFoundError:  # perhaps at the moment in which another takes its place
        return _read(_folder(place), MANIFEST, _MOST_MANIFEST)


@lru_cache(maxsize=1)
def decode_manifest(content: bytes) -> Manifest:
    """The manifest that a file holds. Raises MsgspecError and ValueError for one that is not as it was written."""
    # A process reads one rank after the other of the same store, and the manifest tells of them all.
    manifest = msgspec.json.decode(content, type=Manifest)
    if not is_sealed(content, manifest.digest):
        raise ValueError(f"{MANIFEST} is not as it was written")
    return manifest


def _unexpected(folder: Path | RemoteFolder, manifest: Manifest) -> list[str]:
    """What lies among the tables, or beside them, and is not of the store. Hidden files of systems do no harm."""
    tables = {*EVENT_TABLES, *manifest.tables}
    there = [name for name in _names(folder, "") if name not in tables and name not in (MANIFEST, PARTS)]
    for table in tables:
        known = {
            f"rank={given.ordinal}"
            for given, part in zip(manifest.inputs, manifest.parts, strict=True)
            if table in part.tables
        }
        there += [f"{table}/{name}" for name in _names(folder, table) if name not in known]
    return sorted(there)


def _names(folder: Path | RemoteFolder, within: str) -> list[str]:
    if isinstance(folder, RemoteFolder):
        names = (folder.within(within) if within else folder).names()
    else:
        try:
            names = [path.name for path in (folder / within).iterdir()]
        except FileNotFoundError:
            names = []
    return [name for name in names if not name.startswith(".")]


def read_rank(place: Place, ordinal: int) -> Trace:
    """Read one input of a store, that whose `ordinal` it is. Raises InputError as `read_store` does, and KeyError for another."""
    manifest = read_statement(place)
    for given, part in zip(manifest.inputs, manifest.parts, strict=True):
        if given.ordinal == ordinal:
            return read_part(place, manifest.edition, given, part)
    raise KeyError(f"{shown_place(place)} has no rank {ordinal}")


def read_part(place: Place, edition: Edition, given: Input, part: Part) -> Trace:
    """As `read_rank`, by one who has read the manifest of that edition and knows what of it is about this input.

    Raises ChangedError when the store is another one by now.
    """
    return Trace((given,), _tables(place, edition, [(given, part)]))


def read_store(place: Place) -> Trace:
    """Read a whole store. Raises InputError when it is damaged or of another schema version, or replaced again and again."""
    try:
        return _whole(place)
    except ChangedError:
        return _whole(place)


def _whole(place: Place) -> Trace:
    manifest = read_manifest(place)
    parts = list(zip(manifest.inputs, manifest.parts, strict=True))
    return Trace(manifest.inputs, _tables(place, manifest.edition, parts))


def _tables(place: Place, edition: Edition, parts: list[tuple[Input, Part]]) -> dict[str, pa.Table]:
    specs, tables, short = table_specs(), {}, []
    conforming = Conforming(edition.schema_version, edition.tables)
    for given, part in parts:
        conforming.pass_over(given.ordinal, part.tables.keys() - specs.keys())
    try:
        for name, spec in specs.items():
            wanted = [(given.ordinal, part.tables[name]) for given, part in parts if name in part.tables]
            try:
                found = [_rows(_folder(place), name, ordinal, file) for ordinal, file in wanted]
            except FileNotFoundError:
                short.append(name)
                continue
            if any(rows.num_rows != file.rows for rows, (_, file) in zip(found, wanted, strict=True)):
                short.append(name)
            own = [conforming.table(at, rows, spec) for rows, (at, _) in zip(found, wanted, strict=True)]
            tables[name] = concatenated(own) if own else spec.empty()
    except (OSError, ValueError, KeyError, pa.ArrowException) as error:
        raise _damaged(place, edition.digest, _first_sentence(error)) from error
    if short:
        raise _damaged(place, edition.digest, f"rows missing in {', '.join(short)}")
    tables["health"] = conforming.with_notes(tables["health"], [given.ordinal for given, _ in parts])
    return tables


def _rows(folder: Path | RemoteFolder, name: str, ordinal: int, file: PartFile) -> pa.Table:
    """The table `name` of one rank, of bytes that are those which were written."""
    path = file_of(name, ordinal)
    content = _read(folder, path, file.bytes + 1)
    if len(content) != file.bytes or hashlib.sha256(content).hexdigest() != file.sha256:
        raise ValueError(f"{path} is not the one that was written")
    if isinstance(folder, Path) and len(_names(folder, path.rpartition("/")[0])) > 1:
        raise ValueError(f"{path.rpartition('/')[0]} holds more than that was written")
    # Threads pay for a file of gigabytes only, and ranks are read at once anyway.
    rows = read_table(content, table_specs()[name].schema, use_threads=file.bytes > _WORTH_THREADS)
    return rows.add_column(0, "rank", repeated(pa.array([ordinal], pa.int32()), rows.num_rows))


def _damaged(place: Place, digest: str, what: str, remedy: str = _AGAIN) -> InputError:
    """The error for a store that is not what its manifest of that digest says: another one by now, or damaged."""
    with suppress(InputError):
        if read_statement(place).digest != digest:
            return ChangedError(f"{shown_place(place)}: was replaced while it was read")
    return InputError(f"{shown_place(place)}: damaged store ({what}); {remedy}")


def _folder(place: Place) -> Path | RemoteFolder:
    local = local_of(place)
    return RemoteFolder(url_of(place) or "") if local is None else locate_store(local)


def _read(folder: Path | RemoteFolder, name: str, most: int) -> bytes:
    if isinstance(folder, RemoteFolder):
        return folder.read(name)
    with open_regular(folder / name) as stream:
        return stream.read(most)


def _first_sentence(error: Exception) -> str:
    return str(error).partition("\n")[0].partition(". ")[0].rstrip(".")
