"""SQLite files as untrusted input: how one is opened, and what it has to stand before a row of it is read.

A file may hold statements that never end, pages that stand in many places of a tree, and cells that any size is claimed for. So
SQLite never looks beside an input (journals: `changes`), the schema is read and every page is visited once, on a connection
that does only so much as a sound file of this size asks for. After that a table is known to be a plain tree whose
rows lie in the file, each once, so that reading it takes time and memory in proportion to the file.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import repeat
from pathlib import Path
from urllib.parse import quote

from traceanalyzer.errors import InputError
from traceanalyzer.records import dataclass

IMMUTABLE = "mode=ro&immutable=1"
"""How an input is opened: no locks, no journal, nothing beside it is looked at."""
PRAGMAS = ("trusted_schema = off", "cell_size_check = on")
"""For every connection: functions in a schema may do no harm, and the sizes of cells are checked as they are read."""

# SQLite's instructions: real exports take half of one a byte, and one with columns that are all null may take some more.
_LOOK_EVERY = 100_000
_LEAST_WORK, _WORK_PER_BYTE = 5_000_000, 10
# A statement of a schema has some KB, a name or text at most some hundred.
_LIMITS = {sqlite3.SQLITE_LIMIT_LENGTH: 16 << 20, sqlite3.SQLITE_LIMIT_SQL_LENGTH: 1 << 20}
_MOST_REASON = 200
# What SQLite itself writes into a schema, however the statement was spelled.
_STATEMENTS = ("CREATE TABLE ", "CREATE INDEX ", "CREATE UNIQUE INDEX ", "CREATE VIEW ", "CREATE TRIGGER ")


@dataclass(frozen=True)
class Entry:
    """A table or view of a schema. `plain` is true of tables whose rows lie in the file."""

    name: str
    plain: bool


def uri_of(path: Path, how: str = IMMUTABLE) -> str:
    """The URI by which SQLite opens a file, whatever bytes its name is made of."""
    return f"file://{quote(os.fsencode(path.absolute()))}?{how}"


def unreadable(path: Path, reason: object) -> InputError:
    """One line for a file that SQLite cannot read. Reasons quote the file, so they are cut and made printable."""
    lines = [line for line in str(reason).splitlines() if line] or ["no reason given"]
    # SQLite puts a heading before what it says of pages, and its driver a number.
    text = (lines[-1] if lines[0].startswith("***") else lines[0]).rsplit("] ", 1)[-1][:_MOST_REASON]
    clean = "".join(c if c.isprintable() else "?" for c in text)
    return InputError(f"{path}: cannot be read as SQLite ({clean}); run nsys export again and copy the whole file")


@contextlib.contextmanager
def bounded_connection(path: Path, shown: Path, how: str = IMMUTABLE) -> Iterator[sqlite3.Connection]:
    """A connection whose statements end: each is given up when it does more than a sound file of this size asks for.

    Raises InputError, which names the file as `shown`, for that and for whatever else SQLite objects to.
    """
    try:
        steps = (_LEAST_WORK + _WORK_PER_BYTE * path.stat().st_size) // _LOOK_EVERY
        connection = sqlite3.connect(uri_of(path, how), uri=True, isolation_level=None, check_same_thread=False)
    except (OSError, sqlite3.Error) as error:
        raise unreadable(shown, error) from error
    try:
        connection.text_factory = partial(str, encoding="utf-8", errors="replace")
        for limit, most in _LIMITS.items():
            connection.setlimit(limit, most)
        # Answers 0, which means to go on, so many times, and then 1. It is no Python function, in which a signal would get lost.
        connection.set_progress_handler(partial(next, repeat(0, steps), 1), _LOOK_EVERY)
        for pragma in (*PRAGMAS, "ignore_check_constraints = on"):
            connection.execute(f"pragma {pragma}")
        yield connection
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_INTERRUPT:
            raise InputError(
                f"{shown}: a damaged or hostile SQLite file (it makes more work than a file of its size can hold); "
                "run nsys export again"
            ) from error
        raise unreadable(shown, error) from error
    except UnicodeDecodeError as error:  # in the words of SQLite, which quote the file
        raise unreadable(shown, "malformed, in bytes that are no text") from error
    finally:
        connection.close()


def read_schema(path: Path, shown: Path) -> list[Entry]:
    """The tables and views of a file. Raises InputError for a schema that is damaged, endless, or needs code of SQLite's extensions."""
    entries = []
    with bounded_connection(path, shown) as connection:
        for kind, name, sql in connection.execute("select type, name, substr(sql, 1, 24) from sqlite_master"):
            if sql is not None and not str(sql).upper().startswith(_STATEMENTS):
                raise InputError(
                    f"{shown}: its schema has a virtual table or something else that no export has; run nsys export again"
                )
            if kind in ("table", "view"):
                entries.append(Entry(str(name), kind == "table" and str(sql).upper().startswith(_STATEMENTS[0])))
    return entries


def check_pages(path: Path, shown: Path) -> None:
    """Visit every page and row once. Raises InputError when the file is damaged in a way that can be told from its structure.

    What is changed inside of a cell cannot: SQLite keeps no checksums.
    """
    # In a thread, so that an interrupt need not wait for the end.
    with bounded_connection(path, shown) as connection, ThreadPoolExecutor(1) as beside:
        try:
            found = beside.submit(lambda: connection.execute("pragma quick_check(1)").fetchall()).result()
        except BaseException:
            connection.interrupt()
            raise
    if found != [("ok",)]:
        raise unreadable(shown, found[0][0] if found else "no answer")
