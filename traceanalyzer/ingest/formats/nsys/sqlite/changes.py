"""Changes that lie beside an export: what a program that wrote it and was interrupted, or still runs, left in `-journal` and `-wal`.

SQLite honours whatever has such a name: nothing ties it to its database, and a rollback journal may name a further file, which SQLite
deletes. So SQLite never sees one that lies beside an input. It is copied with the export into a private folder, judged there, and
applied there if it can belong to the export. What does not is left alone, and health says so.
"""

from __future__ import annotations

import errno
import os
import shutil
import struct
from dataclasses import field
from pathlib import Path

import numpy as np

from traceanalyzer.errors import InputError
from traceanalyzer.files import open_regular
from traceanalyzer.ingest.bytes.containers import Note
from traceanalyzer.ingest.bytes.limits import check_size
from traceanalyzer.ingest.formats.nsys.sqlite.sqlite_files import bounded_connection
from traceanalyzer.records import dataclass
from traceanalyzer.vocabulary.health import NOT_ALL_READ
from traceanalyzer.vocabulary.levels import LOW, MEDIUM

HEADER_BYTES = 100
"""Of a database."""
_JOURNAL, _WAL = "-journal", "-wal"
_JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")
_JOURNAL_HEADER = struct.Struct(">8s5I")  # magic, records, nonce, pages before, sector size, page size
_WAL_MAGIC = (0x377F0682, 0x377F0683)
_WAL_HEADER = struct.Struct(">8I")  # magic, version, page size, checkpoint, salts (2), checksums (2)
_FRAME_BYTES = 24  # page, size of the database after a commit (or 0), salts (2), checksums (2)
_PAGE, _PAGES, _SALTS = 0, 1, slice(2, 4)
_AGAIN = "close the program that writes it, or run nsys export again"


@dataclass
class Changes:
    """What lies beside one export: suffix and file of what can belong to it, and what is to be said in health."""

    belonging: dict[str, Path] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)


def find_changes(export: Path, head: bytes) -> Changes:
    """What lies beside an export that begins with `head`. A link's neighbours are those of the file that it leads to."""
    found = Changes()
    for suffix, belongs in ((_JOURNAL, _journal_belongs), (_WAL, _wal_belongs)):
        real = export.resolve()
        side = real.with_name(real.name + suffix)
        try:
            with open_regular(side, links=False) as stream:
                start = stream.read(_WAL_HEADER.size)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENAMETOOLONG):
                continue
            start = b"\x01"  # No ordinary file, or not ours to read.
        # A journal that is done with is empty, or begins with zeros.
        if not start or (suffix == _JOURNAL and start[0] == 0):
            continue
        if belongs(start, head):
            found.belonging[suffix] = side
        else:
            message = (
                "a file beside the export is called like changes to it, but is none that could be applied, and was not "
                f"read; {_AGAIN}"
            )
            found.notes.append(Note(NOT_ALL_READ, LOW, message, 1, side.name))
    return found


def apply_changes(changes: Changes, copy: Path, shown: Path, allowed: int) -> list[Note]:
    """Apply what belongs to an export to its private `copy`; what to say of it.

    Raises InputError when the changes are damaged, name other files, or are larger than `allowed` bytes.
    """
    notes = []
    for suffix, side in changes.belonging.items():
        own = copy.with_name(copy.name + suffix)
        with open_regular(side, links=False) as source, own.open("wb") as target:
            check_size(side, os.fstat(source.fileno()).st_size, allowed)
            shutil.copyfileobj(source, target, 1 << 20)
    frames = 0
    if _JOURNAL in changes.belonging:
        _check_journal(copy.with_name(copy.name + _JOURNAL), copy, shown)
        message = (
            "the program that wrote the export was interrupted: what it had not finished was undone in a private copy, "
            f"and may be missing; {_AGAIN}"
        )
        notes.append(Note(NOT_ALL_READ, MEDIUM, message, 1, shown.name + _JOURNAL))
    if _WAL in changes.belonging:
        frames = _frames(copy.with_name(copy.name + _WAL), copy, shown)
    with bounded_connection(copy, shown, "mode=rw") as connection:
        connection.execute("select count(*) from sqlite_master").fetchone()
        _, applied, _ = connection.execute("pragma wal_checkpoint(passive)").fetchone()
    if applied > 0:
        _check_size(copy, shown)
        message = f"changes that waited beside the export were applied to a private copy; {_AGAIN}"
        notes.append(Note(NOT_ALL_READ, MEDIUM, message, 1, shown.name + _WAL))
    if max(applied, 0) < frames:
        message = (
            f"changes that waited beside the export are damaged or were never finished: they were left out; {_AGAIN}"
        )
        notes.append(Note(NOT_ALL_READ, MEDIUM, message, 1, shown.name + _WAL))
    return notes


def page_bytes(head: bytes) -> int:
    """The page size that the header of a database tells."""
    told = int.from_bytes(head[16:18], "big")
    return 65536 if told == 1 else told


def told_bytes(head: bytes) -> int | None:
    """The size that the header of a database tells; None where it was written by a program that did not keep it."""
    # The page count is valid only when both change counters agree.
    return page_bytes(head) * int.from_bytes(head[28:32], "big") if head[24:28] == head[92:96] else None


def _journal_belongs(start: bytes, head: bytes) -> bool:
    if len(start) < _JOURNAL_HEADER.size:
        return False
    magic, *_, size = _JOURNAL_HEADER.unpack_from(start)
    return bool(magic == _JOURNAL_MAGIC and size == page_bytes(head))


def _wal_belongs(start: bytes, head: bytes) -> bool:
    """A write-ahead log goes with a database that says to have one."""
    if len(start) < _WAL_HEADER.size:
        return False
    magic, _, size, *_ = _WAL_HEADER.unpack(start)
    return magic in _WAL_MAGIC and size == page_bytes(head) and head[18:20] == b"\x02\x02"


def _check_journal(journal: Path, copy: Path, shown: Path) -> None:
    """Raise InputError for a journal that names a super-journal, or claims a size for the database that it cannot have had."""
    size = journal.stat().st_size
    with journal.open("rb") as stream:
        start = stream.read(_JOURNAL_HEADER.size).ljust(_JOURNAL_HEADER.size, b"\0")
        stream.seek(max(size - len(_JOURNAL_MAGIC), 0))
        end = stream.read()
    # SQLite takes the name of a super-journal from the end of a journal, before this mark, and from nowhere else.
    if end == _JOURNAL_MAGIC:
        raise InputError(
            f"{shown}: the journal beside it belongs to a change of several databases and names other files, which are "
            "not touched; run nsys export again"
        )
    _, _, _, pages, _, page = _JOURNAL_HEADER.unpack(start)
    _check_growth(pages, copy.stat().st_size + size, page, shown)


def _frames(wal: Path, copy: Path, shown: Path) -> int:
    """How many frames of a write-ahead log say that they belong to it, without a look at their checksums."""
    with wal.open("rb") as stream:
        header = _WAL_HEADER.unpack(stream.read(_WAL_HEADER.size).ljust(_WAL_HEADER.size, b"\0"))
    page, size = header[2], wal.stat().st_size
    count = (size - _WAL_HEADER.size) // (_FRAME_BYTES + page)
    if not count:
        return 0
    mapped = np.memmap(wal, np.uint8, "r", _WAL_HEADER.size, (count, _FRAME_BYTES + page))
    frames = np.ascontiguousarray(mapped[:, :_FRAME_BYTES]).view(">u4")
    # What lies behind them is of an earlier round.
    own = int(np.logical_and.accumulate((frames[:, _SALTS] == header[4:6]).all(axis=1)).sum())
    if own:
        _check_growth(int(frames[:own, [_PAGE, _PAGES]].max()), copy.stat().st_size + size, page, shown)
    return own


def _check_size(copy: Path, shown: Path) -> None:
    """Raise InputError for a log that was written for a database of another size than the file now has in its header."""
    with copy.open("rb") as stream:
        expected = told_bytes(stream.read(HEADER_BYTES))
    if expected not in (None, copy.stat().st_size):
        raise InputError(f"{shown}: the changes beside it are those of another file; {_AGAIN}")


def _check_growth(pages: int, known_bytes: int, page: int, shown: Path) -> None:
    """Raise InputError when applying changes would make a file much larger than what there is of it."""
    if pages * page > 2 * known_bytes + (1 << 20):
        raise InputError(f"{shown}: the changes beside it are damaged; {_AGAIN}")
