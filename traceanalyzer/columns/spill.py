"""Large tables that lie in a file: what is not being read of them takes no memory.

    table = spilled(table)      the same table; its wide columns lie in a temporary file that has no name
    forget()                    what was read of such tables leaves the memory of this process until it is read again

The system keeps what it has room for, so reading again costs next to nothing where there is memory. A file is gone with its table,
however the process ends.
"""

from __future__ import annotations

import mmap
import tempfile
from contextlib import suppress
from shutil import disk_usage
from weakref import WeakSet

import pyarrow as pa

from traceanalyzer.columns.lean import pieced, repeats

LARGE_BYTES = 16 << 20
"""What a table takes in memory from which on it is worth a file."""
_MAPS: WeakSet[mmap.mmap] = WeakSet()
_CAN = hasattr(mmap, "MADV_DONTNEED")


def spilled(table: pa.Table) -> pa.Table:
    """The table, in a file where it is large; as it is where the system cannot do that or has no room for it.

    Columns that say the same of every row (`columns.lean`) stay in memory, where they take none.
    """
    wide = [at for at, column in enumerate(table.columns) if not repeats(column)]
    size = sum(table.column(at).nbytes for at in wide)
    if not _CAN or size < LARGE_BYTES or disk_usage(tempfile.gettempdir()).free < 2 * size:
        return table
    with suppress(OSError):
        own = _in_file(table.select(wide))
        for at, column in zip(wide, own.columns, strict=True):
            table = table.set_column(at, table.schema.field(at), column)
    return table


def forget() -> None:
    """Let go of the pages of all tables in files; whatever reads one of them has it again."""
    for pages in list(_MAPS):
        pages.madvise(mmap.MADV_DONTNEED)


def _in_file(table: pa.Table) -> pa.Table:
    """Raises OSError where the disk is full, or there is none to write to."""
    table = pa.Table.from_arrays([pieced(column) for column in table.unify_dictionaries().columns], schema=table.schema)
    with tempfile.TemporaryFile() as file:
        with pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
        file.flush()
        pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    _MAPS.add(pages)
    return pa.ipc.open_file(pa.py_buffer(pages)).read_all()
