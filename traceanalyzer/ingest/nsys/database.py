"""Opening an export without touching it, and reading it in Arrow batches.

Nothing is written beside the input, not even SQLite's own helpers: a file in WAL mode, opened the ordinary read-only
way, leaves `-wal` and `-shm` files behind. SQL errors leave this module as InputError.
"""

from __future__ import annotations

import contextlib
import shutil
import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

# Not through its DB-API module, which imports pandas: that takes longer than reading a small export.
import adbc_driver_manager
import adbc_driver_sqlite
import pyarrow as pa

from traceanalyzer.errors import InputError
from traceanalyzer.ingest.sources import SQLITE_MAGIC, Source

BATCH_ROWS = 1 << 15
_HEADER_BYTES = 100
_FAILURES = (adbc_driver_manager.Error, OSError, pa.ArrowException)


class Database:
    """One open export. Table and column names are matched without regard to case, as SQLite does."""

    def __init__(self, connection: adbc_driver_manager.AdbcConnection, path: Path) -> None:
        self._connection, self._path = connection, path
        found = self.table("select cast(name as text) as name, type from sqlite_master where type in ('table', 'view')")
        rows = found.to_pylist() if found else []
        self._names: dict[str, str] = {row["name"].lower(): row["name"] for row in rows}
        self._views = {row["name"] for row in rows if row["type"] == "view"}
        self._columns: dict[str, dict[str, str]] = {}

    @property
    def table_names(self) -> list[str]:
        """All tables and views, as spelled in the file."""
        return sorted(self._names.values())

    def is_view(self, table: str) -> bool:
        """Whether a table, as spelled in the file, is a view."""
        return table in self._views

    def find(self, name: str) -> str | None:
        """The table of this name, or else its highest `_V2`, `_V3` ... sibling, as spelled in the file."""
        return next(iter(self.versions(name)), None)

    def versions(self, name: str) -> list[str]:
        """The table of this name and its `_V2`, `_V3` ... siblings, the one to read first, as spelled in the file."""
        wanted = name.lower()
        siblings = {
            found: int(found[len(wanted) + 2 :])
            for found in self._names
            if found.startswith(wanted + "_v") and found[len(wanted) + 2 :].isdecimal()
        }
        found = [wanted] if wanted in self._names else []
        return [self._names[one] for one in (*found, *sorted(siblings, key=siblings.__getitem__, reverse=True))]

    def columns(self, table: str) -> dict[str, str]:
        """Columns of a table: lower case to the file's spelling."""
        if table not in self._columns:
            found = self.table(f"select cast(name as text) as name from pragma_table_info({literal(table)})")
            self._columns[table] = {str(n).lower(): str(n) for n in (found["name"].to_pylist() if found else [])}
        return self._columns[table]

    def row_estimate(self, table: str) -> int:
        """About how many rows a table has, without reading it; 0 for a view."""
        try:
            found = self.table(f"select coalesce(max(rowid), 0) as n from {quoted(table)}")
        except InputError:
            return 0
        return int(found["n"][0].as_py()) if found else 0

    def batches(self, sql: str) -> Iterator[pa.RecordBatch]:
        """Rows of a query, batch by batch, empty batches left out.

        The driver takes each column's type from the first batch. A cell that does not fit it later is an InputError, never
        a changed value.
        """
        try:
            with adbc_driver_manager.AdbcStatement(self._connection) as statement:
                statement.set_options(**{"adbc.sqlite.query.batch_rows": str(BATCH_ROWS)})
                statement.set_sql_query(sql)
                stream, _ = statement.execute_query()
                for batch in pa.RecordBatchReader.from_stream(stream):
                    if batch.num_rows:
                        yield _valid_text(batch)
        except _FAILURES as error:
            raise unreadable(self._path, error) from error

    def table(self, sql: str) -> pa.Table | None:
        """All rows of a small query; None when there are none."""
        batches = list(self.batches(sql))
        return pa.Table.from_batches(batches) if batches else None


def quoted(identifier: str) -> str:
    """An SQL identifier."""
    return '"' + identifier.replace('"', '""') + '"'


def literal(text: str) -> str:
    """An SQL string literal."""
    return "'" + text.replace("'", "''") + "'"


def unreadable(path: Path, error: Exception) -> InputError:
    """One line for a file that SQLite cannot read."""
    reason = str(error).splitlines()[0].rsplit("] ", 1)[-1]
    return InputError(f"{path}: cannot be read as SQLite ({reason}); run nsys export again and copy the whole file")


@contextlib.contextmanager
def open_database(source: Source) -> Iterator[Database]:
    """Open an export for reading. Raises InputError when it is damaged, incomplete or not SQLite."""
    with contextlib.ExitStack() as stack:
        path, flags = _readable(source, stack)
        _check_complete(path, source.path)
        yield _connect(path, flags, source.path, stack)


def _readable(source: Source, stack: contextlib.ExitStack) -> tuple[Path, str]:
    """The file to open and how: the input itself where that leaves no trace, else a private copy of it."""
    path = source.place
    pending = [side for side in _side_files(path) if side.is_file() and side.stat().st_size]
    if source.packed or pending:
        # Changes that another program left beside the file belong to it, and applying them means writing: in the copy.
        try:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="traceanalyzer-")))
            copy = folder / "export.sqlite"
            with source.open() as stream, copy.open("wb") as target:
                shutil.copyfileobj(stream, target, 1 << 20)
            if stream.damage:
                raise InputError(f"{source.path}: {stream.damage}; copy the whole file, or run nsys export again")
            for side in pending:
                shutil.copyfile(side, folder / (copy.name + side.name[len(path.name) :]))
        except OSError as error:
            raise InputError(f"{source.path}: cannot be unpacked to a temporary folder ({error})") from error
        return copy, "mode=rw"
    # Bytes 18 and 19 are 2 in WAL mode, where even a read-only connection creates files. With nothing pending the file
    # is complete as it is.
    wal = source.head[18:20] == b"\x02\x02"
    return path, "mode=ro&immutable=1" if wal else "mode=ro"


def _side_files(path: Path) -> tuple[Path, ...]:
    return tuple(path.with_name(path.name + suffix) for suffix in ("-wal", "-journal"))


def _check_complete(path: Path, shown: Path) -> None:
    """Raise InputError when the file is shorter than its own header says."""
    try:
        with path.open("rb") as stream:
            header = stream.read(_HEADER_BYTES)
        size = path.stat().st_size
    except OSError as error:
        raise InputError(f"{shown}: cannot be read ({error.strerror})") from error
    if len(header) < _HEADER_BYTES or not header.startswith(SQLITE_MAGIC):
        raise InputError(f"{shown}: the file ends inside its header; run nsys export again and copy the whole file")
    page_bytes, pages = struct.unpack(">H", header[16:18])[0], struct.unpack(">I", header[28:32])[0]
    expected = (65536 if page_bytes == 1 else page_bytes) * pages
    # The page count is valid only when both change counters agree.
    if header[24:28] == header[92:96] and size < expected:
        raise InputError(
            f"{shown}: the file is cut off ({size:,} of {expected:,} bytes); "
            "run nsys export again and copy the whole file"
        )


def _connect(path: Path, flags: str, shown: Path, stack: contextlib.ExitStack) -> Database:
    uri = "file:" + quote(str(path.absolute()))
    attempts = [flags] if "immutable" in flags else [flags, "mode=ro&immutable=1"]
    for attempt in attempts:
        try:
            database = stack.enter_context(adbc_driver_sqlite.connect(f"{uri}?{attempt}"))
            # SQLite opens lazily: what is read here shows a failure.
            return Database(stack.enter_context(adbc_driver_manager.AdbcConnection(database)), shown)
        except (*_FAILURES, InputError) as error:
            # Some read-only media refuse locks; with nothing pending beside the file, reading without them is safe.
            if attempt == attempts[-1]:
                raise error if isinstance(error, InputError) else unreadable(shown, error) from error
    raise AssertionError("unreachable")


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
