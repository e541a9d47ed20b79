"""Opening an export without touching it or trusting it, and reading it in Arrow batches.

Nothing is written beside the input, not even SQLite's own helpers, and nothing beside it is honoured unseen (`changes`). What the
file may ask for is judged before a row is read (`sqlite_files`). SQL errors leave this module as InputError.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

# Not through its DB-API module, which imports pandas: that takes longer than reading a small export.
import adbc_driver_manager
import adbc_driver_sqlite
import pyarrow as pa

from traceanalyzer.errors import InputError
from traceanalyzer.ingest.bytes.containers import Note
from traceanalyzer.ingest.bytes.source import Source
from traceanalyzer.ingest.formats.nsys.sqlite import SQLITE_MAGIC, changes
from traceanalyzer.ingest.formats.nsys.sqlite.sqlite_files import (
    PRAGMAS,
    Entry,
    check_pages,
    read_schema,
    unreadable,
    uri_of,
)
from traceanalyzer.units import format_bytes

BATCH_ROWS = 1 << 15
LONGEST_TEXT = 1 << 20
"""Bytes of a name or the text of a range. Kernels have some 10 KB at most."""
_FAILURES = (adbc_driver_manager.Error, OSError, pa.ArrowException)
_TELLTALES = ("StringIds", "NVTX_EVENTS", "META_DATA_EXPORT", "EXPORT_META_DATA")
_PREFIXES = ("cupti_activity_kind_", "nvtx_", "target_info_")
_VERSIONED = re.compile(r"(.+)_v([1-9][0-9]{0,2})")
# Tables that are read as a whole (of GPUs, processes, threads, facts) have some thousand rows.
_MOST_ROWS = 1 << 18
# What a row lacks is taken from the schema: a long text there stands once in the file and in every row.
_LONGEST_DEFAULT = 100


class Database:
    """One open export. Table and column names are matched without regard to case, as SQLite does.

    `notes` is what is to be said in health of how it was opened.
    """

    def __init__(
        self, connection: adbc_driver_manager.AdbcConnection, path: Path, schema: list[Entry], notes: tuple[Note, ...]
    ) -> None:
        self._connection, self._path, self.notes = connection, path, notes
        self._versions = _by_name(schema)
        self._columns: dict[str, dict[str, str]] = {}

    def find(self, name: str) -> str | None:
        """The table of this name, or else its highest `_V2`, `_V3` ... sibling, as spelled in the file."""
        return next(iter(self.versions(name)), None)

    def versions(self, name: str) -> list[str]:
        """The table of this name and its `_V2`, `_V3` ... siblings, the one to read first, as spelled in the file.

        Raises InputError where one of them is a view: a view may take for ever and any memory.
        """
        found = self._versions.get(name.lower(), {})
        for entry in found.values():
            if not entry.plain:
                raise InputError(
                    f"{self._path}: {entry.name} is a view, and only tables are read; "
                    "export the report again, or put its rows into a table of this name"
                )
        return [found[version].name for version in sorted(found, key=lambda version: (version > 0, -version))]

    def starting(self, names: tuple[str, ...]) -> list[str]:
        """The plain tables whose names begin with one of these, as spelled in the file, sorted."""
        wanted = tuple(name.lower() for name in names)
        found = (
            entry for name, entries in self._versions.items() if name.startswith(wanted) for entry in entries.values()
        )
        return sorted(entry.name for entry in found if entry.plain)

    def columns(self, table: str) -> dict[str, str]:
        """Columns of a table that are stored in it: lower case to the file's spelling."""
        if table not in self._columns:
            sql = "select cast(name as text) as name, coalesce(length(dflt_value), 0) as default_length"
            found = self.table(f"{sql} from pragma_table_info({literal(table)})")
            rows = found.to_pylist() if found else []
            if any(row["default_length"] > _LONGEST_DEFAULT for row in rows):
                raise InputError(
                    f"{self._path}: a column of {table} has a default of more than {_LONGEST_DEFAULT} characters, as no "
                    "export has; run nsys export again"
                )
            self._columns[table] = {str(row["name"]).lower(): str(row["name"]) for row in rows}
        return self._columns[table]

    def has_rows(self, table: str) -> bool:
        """Whether a table has any row."""
        return self.table(f"select 1 as n from {table_source(table)} limit 1") is not None

    def row_estimate(self, table: str) -> int:
        """About how many rows a table has, without reading it; 0 where it does not tell."""
        try:
            found = self.table(f"select coalesce(cast(max(rowid) as integer), 0) as n from {quote_identifier(table)}")
        except InputError:
            return 0
        return max(int(found["n"][0].as_py()), 0) if found else 0

    def row_count(self, table: str) -> int:
        """How many rows a table has; 0 where it cannot be asked."""
        try:
            found = self.table(f"select count(*) as n from {table_source(table)}")
        except InputError:
            return 0
        return int(found["n"][0].as_py()) if found else 0

    def longest_text(self, table: str, expressions: list[str]) -> int:
        """Bytes of the longest text that expressions over a table give. Raises InputError when no name is so long."""
        if not expressions:
            return 0
        lengths = ", ".join(f"coalesce(max(length(cast({expression} as blob))), 0)" for expression in expressions)
        found = self.table(f"select {lengths} from {table_source(table)}")
        longest = max(column[0].as_py() for column in found.columns) if found else 0
        if longest > LONGEST_TEXT:
            raise InputError(
                f"{self._path}: {table} holds a text of {format_bytes(longest)}, and names end at "
                f"{format_bytes(LONGEST_TEXT)}; run nsys export again"
            )
        return int(longest)

    def batches(self, sql: str, rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """Rows of a query, so many a batch, empty batches left out.

        The driver takes each column's type from the first batch. A cell that does not fit it later is an InputError, never
        a changed value.
        """
        try:
            with adbc_driver_manager.AdbcStatement(self._connection) as statement:
                statement.set_options(**{"adbc.sqlite.query.batch_rows": str(rows)})
                statement.set_sql_query(sql)
                stream, _ = statement.execute_query()
                for batch in pa.RecordBatchReader.from_stream(stream):
                    if batch.num_rows:
                        yield _valid_text(batch)
        except _FAILURES as error:
            raise unreadable(self._path, error) from error

    def table(self, sql: str) -> pa.Table | None:
        """All rows of a small query; None when there are none. Raises InputError where it is not small."""
        batches: list[pa.RecordBatch] = []
        rows = 0
        for batch in self.batches(sql):
            batches.append(batch)
            rows += batch.num_rows
            if rows > _MOST_ROWS:
                raise InputError(
                    f"{self._path}: a table of facts, processes or threads has more than {_MOST_ROWS:,} rows, as no "
                    "export has; run nsys export again"
                )
        return pa.Table.from_batches(batches) if batches else None


def quote_identifier(identifier: str) -> str:
    """An SQL identifier."""
    return '"' + identifier.replace('"', '""') + '"'


def table_source(table: str) -> str:
    """A table to select from, as its rows lie: what an index says of them may be something else, and in another order."""
    return f"{quote_identifier(table)} not indexed"


def literal(text: str) -> str:
    """An SQL string literal."""
    return "'" + text.replace("'", "''") + "'"


@contextlib.contextmanager
def open_database(source: Source) -> Iterator[Database]:
    """Open an export for reading. Raises InputError when it is damaged, incomplete, not SQLite or no export."""
    with contextlib.ExitStack() as stack:
        path, notes = _readable(source, stack)
        before = _state(path, source.path)
        _check_complete(path, source.path)
        schema = read_schema(path, source.path)
        if not _is_export(schema):
            raise InputError(
                f"{source.path}: a SQLite file, but not an Nsight Systems export (no events of CUDA or NVTX); "
                "make one with nsys export --type sqlite REPORT.nsys-rep"
            )
        check_pages(path, source.path)
        yield Database(_connect(path, source.path, stack), source.path, schema, notes)
        if _state(path, source.path) != before:
            raise _changed(source.path)


def _readable(source: Source, stack: contextlib.ExitStack) -> tuple[Path, tuple[Note, ...]]:
    """The file to open and what to say of it: the input itself, or a private copy where it is packed or changes wait beside it."""
    beside = changes.Changes() if source.packed else changes.find_changes(source.place, source.head)
    if not source.packed and not beside.belonging:
        return source.place, tuple(beside.notes)
    try:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="traceanalyzer-")))
        copy = folder / "export.sqlite"
        before = _state(source.place, source.path)
        with source.open() as stream, copy.open("wb") as target:
            shutil.copyfileobj(stream, target, 1 << 20)
        if stream.damage:
            raise InputError(f"{source.path}: {stream.damage}; copy the whole file, or run nsys export again")
        applied = changes.apply_changes(beside, copy, source.path, source.allowed) if beside.belonging else []
        if _state(source.place, source.path) != before:
            raise _changed(source.path)
    except OSError as error:
        raise InputError(f"{source.path}: cannot be unpacked to a temporary folder ({error})") from error
    return copy, (*beside.notes, *applied)


def _state(path: Path, shown: Path) -> tuple[int, int, int]:
    """What differs once a file was written to, or is another one."""
    try:
        found = path.stat()
    except OSError as error:
        raise InputError(f"{shown}: cannot be read ({error.strerror})") from error
    return found.st_ino, found.st_size, found.st_mtime_ns


def _changed(shown: Path) -> InputError:
    return InputError(f"{shown}: was changed while it was read; wait until the program that writes it is done")


def _check_complete(path: Path, shown: Path) -> None:
    """Raise InputError when the file is shorter than its own header says."""
    try:
        with path.open("rb") as stream:
            header = stream.read(changes.HEADER_BYTES)
        size = path.stat().st_size
    except OSError as error:
        raise InputError(f"{shown}: cannot be read ({error.strerror})") from error
    if len(header) < changes.HEADER_BYTES or not header.startswith(SQLITE_MAGIC):
        raise InputError(f"{shown}: the file ends inside its header; run nsys export again and copy the whole file")
    expected = changes.told_bytes(header)
    if expected is not None and size < expected:
        raise InputError(
            f"{shown}: the file is cut off ({size:,} of {expected:,} bytes); "
            "run nsys export again and copy the whole file"
        )


def _connect(path: Path, shown: Path, stack: contextlib.ExitStack) -> adbc_driver_manager.AdbcConnection:
    try:
        database = stack.enter_context(adbc_driver_sqlite.connect(uri_of(path)))
        connection: adbc_driver_manager.AdbcConnection = stack.enter_context(
            adbc_driver_manager.AdbcConnection(database)
        )
        for pragma in PRAGMAS:
            with adbc_driver_manager.AdbcStatement(connection) as statement:
                statement.set_sql_query(f"pragma {pragma}")
                statement.execute_update()
    except _FAILURES as error:
        raise unreadable(shown, error) from error
    return connection


def _by_name(schema: list[Entry]) -> dict[str, dict[int, Entry]]:
    """Tables and views by name in lower case and version, 0 for the plain name."""
    found: dict[str, dict[int, Entry]] = {}
    for entry in schema:
        if entry.name.isascii():  # Others are none of ours, whatever their lower case looks like.
            name = entry.name.lower()
            found.setdefault(name, {})[0] = entry
            if match := _VERSIONED.fullmatch(name):
                found.setdefault(match.group(1), {})[int(match.group(2))] = entry
    return found


def _is_export(schema: list[Entry]) -> bool:
    found = _by_name(schema)
    return any(name.lower() in found for name in _TELLTALES) or any(name.startswith(_PREFIXES) for name in found)


def _valid_text(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Replace broken UTF-8, which SQLite stores as it comes, so that every later step may rely on text being text."""
    for index, field in enumerate(batch.schema):
        if pa.types.is_string(field.type):
            try:
                batch.column(index).validate(full=True)
            except pa.ArrowInvalid:
                raw = batch.column(index).cast(pa.binary()).to_pylist()
                repaired = pa.array([None if value is None else value.decode(errors="replace") for value in raw])
                batch = batch.set_column(index, field, repaired.cast(pa.string()))
    return batch
