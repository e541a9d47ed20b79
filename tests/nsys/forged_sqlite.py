"""Makes SQLite files that SQLite itself would not write: pages that stand in many places, journals that name other files."""

from __future__ import annotations

import sqlite3
import struct
from pathlib import Path

JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")
_INTERIOR = 5


def edited(path: Path, *statements: str, page_size: int | None = None) -> Path:
    """The file after some statements, all of it written anew with another page size if so wished."""
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    if page_size:
        connection.execute(f"pragma page_size = {page_size}")
        connection.execute("vacuum")
    connection.close()
    return path


def schema_edited(path: Path, name: str, **values: object) -> Path:
    """The file with other values in a row of its schema."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("pragma writable_schema = on")
    changes = ", ".join(f"{column} = ?" for column in values)
    connection.execute(f"update sqlite_master set {changes} where name = ?", (*values.values(), name))
    connection.close()
    return path


def page_size_of(data: bytes | bytearray) -> int:
    told = int.from_bytes(data[16:18], "big")
    return 65536 if told == 1 else told


def endless(path: Path, table: str, levels: int = 6) -> Path:
    """Put a tower of pages on a table of many rows: each of them has the one below as all of its children."""
    connection = sqlite3.connect(path)
    (root,) = connection.execute("select rootpage from sqlite_master where name = ?", (table,)).fetchone()
    connection.close()
    return with_tower(path, root, levels)


def with_tower(path: Path, root: int, levels: int = 6) -> Path:
    """The same for the page number of a table's root, which must be an interior page. The rightmost leaf is what repeats."""
    data = bytearray(path.read_bytes())
    size = page_size_of(data)
    start = (root - 1) * size + (100 if root == 1 else 0)
    assert data[start] == _INTERIOR
    child = int.from_bytes(data[start + 8 : start + 12], "big")
    while data[(child - 1) * size] == _INTERIOR:
        at = (child - 1) * size
        child = int.from_bytes(data[at + 8 : at + 12], "big")
    cells = (size - 12) // 7 - 1
    for _ in range(levels):
        page = bytearray(size)
        # Cells of four bytes of a page number and one of a key.
        offsets = [size - 5 * (n + 1) for n in range(cells)]
        page[:12] = struct.pack(">BHHHBI", _INTERIOR, 0, cells, offsets[-1] % 65536, 0, child)
        for n, offset in enumerate(offsets):
            page[12 + 2 * n : 14 + 2 * n] = struct.pack(">H", offset)
            page[offset : offset + 5] = struct.pack(">IB", child, 1)
        data += page
        child = len(data) // size
    data[start + 8 : start + 12] = struct.pack(">I", child)
    data[28:32] = struct.pack(">I", len(data) // size)
    path.write_bytes(data)
    return path


def journal(path: Path, tail: bytes = b"", pages: int | None = None, records: dict[int, bytes] | None = None) -> Path:
    """A hot rollback journal beside a database, with the pages that it puts back, and a `tail`."""
    data = path.read_bytes()
    size = page_size_of(data)
    held = records or {}
    before = len(data) // size if pages is None else pages
    text = (JOURNAL_MAGIC + struct.pack(">5I", len(held), 0, before, 512, size)).ljust(512, b"\0")
    for number, page in held.items():
        checksum = sum(page[at] for at in range(size - 200, 0, -200)) & 0xFFFFFFFF
        text += struct.pack(">I", number) + page + struct.pack(">I", checksum)
    beside = path.with_name(path.name + "-journal")
    beside.write_bytes(text + tail)
    return beside


def super_record(name: Path | str, page_size: int) -> bytes:
    """The end of a journal that names a super-journal."""
    text = str(name).encode()
    lock_page = 0x40000000 // page_size + 1
    return struct.pack(">I", lock_page) + text + struct.pack(">II", len(text), sum(text) & 0xFFFFFFFF) + JOURNAL_MAGIC
