"""Large tables and arrays that lie in files: what is not being read of them takes no memory.

    table = spilled(table)      the same table; its wide columns lie in a temporary file that has no name
    array = stored(array)       the same for an array; `room` is an empty one to write to
    forget()                    what was read or written leaves the memory of this process until it is read again

The system keeps what it has room for, so reading again costs next to nothing where there is memory. A file is gone with its table,
however the process ends.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from contextlib import suppress
from dataclasses import fields, replace
from shutil import disk_usage
from typing import IO, TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceanalyzer.columns.lean import pieced, repeats

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

LARGE_BYTES = 1 << 20
"""What a column takes in memory from which on it is worth a file."""
_MAPS: WeakKeyDictionary[mmap.mmap, range] = WeakKeyDictionary()
"""What lies in files, and at which addresses."""
_CAN = hasattr(mmap, "MADV_DONTNEED") and hasattr(os, "posix_fallocate")
T = TypeVar("T", bound=np.generic)
D = TypeVar("D", bound="DataclassInstance")


def spilled(table: pa.Table) -> pa.Table:
    """The table, whose large columns lie in a file; as it is where the system cannot do that or has no room for it.

    Columns that say the same of every row (`columns.lean`) stay in memory, where they take none.
    """
    wide = [at for at, column in enumerate(table.columns) if column.nbytes >= LARGE_BYTES and not _is_out(column)]
    if not wide or not _has_room(sum(table.column(at).nbytes for at in wide)):
        return table
    with suppress(OSError):
        own = _in_file(table.select(wide))
        for at, column in zip(wide, own.columns, strict=True):
            table = table.set_column(at, table.schema.field(at), column)
    return table


def stored(values: npt.NDArray[T]) -> npt.NDArray[T]:
    """The array, in a file where it is large."""
    if values.nbytes < LARGE_BYTES or 0 in values.strides:
        return values
    own = room(len(values), values.dtype)
    own[:] = values
    return own


def put_away(value: D) -> D:
    """A value made of arrays, with each of them `stored`."""
    arrays = {field.name: getattr(value, field.name) for field in fields(value)}
    return replace(value, **{name: stored(one) for name, one in arrays.items() if isinstance(one, np.ndarray)})


def room(count: int, kind: Any) -> npt.NDArray[Any]:
    """An array of so many numbers to write to, in a file where it is large. What it holds before that is anything."""
    size = count * np.dtype(kind).itemsize
    if size >= LARGE_BYTES and _has_room(size):
        with suppress(OSError), tempfile.TemporaryFile() as file:
            # A page without a place on the disk would end the process when it is written to.
            os.posix_fallocate(file.fileno(), 0, size)
            return np.frombuffer(_mapped(file, mmap.ACCESS_WRITE), kind)
    return np.empty(count, kind)


def forget() -> None:
    """Let go of the pages of all that lies in files; whatever reads one of them has it again."""
    for pages in list(_MAPS):
        pages.madvise(mmap.MADV_DONTNEED)


def _has_room(size: int) -> bool:
    return _CAN and disk_usage(tempfile.gettempdir()).free >= 2 * size


def _in_file(table: pa.Table) -> pa.Table:
    """Raises OSError where the disk is full, or there is none to write to."""
    table = pa.Table.from_arrays([pieced(column) for column in table.unify_dictionaries().columns], schema=table.schema)
    with tempfile.TemporaryFile() as file:
        with pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
        file.flush()
        return pa.ipc.open_file(pa.py_buffer(_mapped(file, mmap.ACCESS_READ))).read_all()


def _mapped(file: IO[bytes], access: int) -> mmap.mmap:
    pages = mmap.mmap(file.fileno(), 0, access=access)
    begin: int = pa.py_buffer(pages).address
    _MAPS[pages] = range(begin, begin + len(pages))
    return pages


def _is_out(column: pa.ChunkedArray) -> bool:
    """Whether a column takes no memory: it lies in a file, or is held once."""
    if repeats(column):
        return True
    places = [chunk.buffers()[-1].address for chunk in column.chunks if len(chunk)]
    return all(any(place in pages for pages in list(_MAPS.values())) for place in places)
