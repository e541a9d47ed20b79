"""Large tables and arrays that lie in files: what is not being read of them takes no memory.

    table = spilled(table)      the same table; its wide columns lie in a temporary file that has no name
    array = stored(array)       the same for an array; a `Growing` one is written as it is made
    forget()                    what was read or written leaves the memory of this process until it is read again

The system keeps what it has room for, so reading again costs next to nothing where there is memory. A file is gone with its table,
however the process ends.
"""

from __future__ import annotations

import mmap
import tempfile
from contextlib import suppress
from dataclasses import fields, replace
from shutil import disk_usage
from typing import IO, Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceanalyzer.columns.lean import pieced, repeats

LARGE_BYTES = 1 << 20
"""What a column takes in memory from which on it is worth a file."""
_AT_ONCE = 1 << 16
_ASKED_AFTER = 16 << 20
_MAPS: WeakKeyDictionary[mmap.mmap, range] = WeakKeyDictionary()
"""What lies in files, and at which addresses."""
_WIDE = np.dtype(np.int64)
_CAN = hasattr(mmap, "MADV_DONTNEED")
T = TypeVar("T", bound=np.generic)
D = TypeVar("D")


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


def spilled_column(column: pa.Array | pa.ChunkedArray) -> pa.ChunkedArray:
    """As `spilled`, of one column."""
    return spilled(pa.table([column], ["column"]))["column"]


def stored(values: npt.NDArray[T]) -> npt.NDArray[T]:
    """The array, in a file where it is large; it is not to be written to."""
    if values.nbytes < LARGE_BYTES or 0 in values.strides:
        return values
    own = Growing()
    own.add(values)
    return own.array()


def put_away(value: D) -> D:
    """A dataclass with each of its arrays `stored`."""
    made: Any = value
    arrays = {field.name: getattr(value, field.name) for field in fields(made)}
    own: D = replace(made, **{name: stored(one) for name, one in arrays.items() if isinstance(one, np.ndarray)})
    return own


class Growing:
    """An array that grows at its end; it lies in a file from where it is large on, as long as the disk has room."""

    def __init__(self) -> None:
        self._held: list[npt.NDArray[Any]] = []
        self._kind: np.dtype[Any] = np.dtype(np.int64)
        self._bytes = self._written = 0
        self._file: IO[bytes] | None = None
        self._may_write, self._room = True, 0

    def add(self, values: npt.NDArray[Any]) -> None:
        """More of the same kind."""
        self._kind = values.dtype
        self._bytes += values.nbytes
        self._held.append(np.ascontiguousarray(values))
        if self._bytes - self._written >= LARGE_BYTES or (self._file is not None and values.nbytes >= _AT_ONCE):
            self._write()
        if self._held:  # What was written at once need not be copied.
            self._held[-1] = np.array(self._held[-1])

    def array(self) -> npt.NDArray[Any]:
        """All of it, not to be written to; nothing is added any more."""
        if self._file is not None:
            self._write()
        if self._file is not None:
            self._leave()
        return self._held[0] if len(self._held) == 1 else np.concatenate(self._held or [np.empty(0, self._kind)])

    def _write(self) -> None:
        if not self._may_write:
            return
        try:
            if self._bytes > self._room:
                # It is asked seldom: that costs as much as writing a little.
                self._room = self._bytes + _ASKED_AFTER
                if not _has_room(self._room):
                    raise OSError
            self._file = self._file or tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
            while self._held:
                left = self._held[0].data.cast("B")
                while left:
                    left = left[self._file.write(left) :]
                self._written += self._held.pop(0).nbytes
        except OSError:
            # What is in the file stays there, the rest in memory.
            self._may_write = False
            if self._file is not None:
                self._leave()

    def _leave(self) -> None:
        assert self._file is not None
        with self._file as file:
            if self._written:
                self._held.insert(0, np.frombuffer(_mapped(file, self._written), self._kind))
        self._file = None


class Narrow:
    """Whole numbers that grow at their end, as `Growing`, in 32 bits as long as that does: most times are shorter than two seconds."""

    def __init__(self) -> None:
        self._grown = Growing()
        self._kind: np.dtype[Any] = np.dtype(np.int32)

    def add(self, values: npt.NDArray[np.integer[Any]]) -> None:
        if self._kind.itemsize < _WIDE.itemsize and not _is_short(values):
            before, self._grown, self._kind = self.array(), Growing(), _WIDE
            self._grown.add(before.astype(_WIDE))
        self._grown.add(values.astype(self._kind, copy=False))

    def array(self) -> npt.NDArray[np.integer[Any]]:
        """All of them, not to be written to; nothing is added any more."""
        return self._grown.array()


def _is_short(values: npt.NDArray[np.integer[Any]]) -> bool:
    bounds = np.iinfo(np.int32)
    return values.dtype == np.int32 or bool(values.max(initial=0) <= bounds.max and values.min(initial=0) >= bounds.min)


def forget() -> None:
    """Let go of the pages of all that lies in files; whoever reads one of them has it again."""
    for pages in list(_MAPS):
        pages.madvise(mmap.MADV_DONTNEED)


def _has_room(size: int) -> bool:
    with suppress(OSError):  # Where there is no folder for such files there is no room either.
        return _CAN and disk_usage(tempfile.gettempdir()).free >= 2 * size
    return False


def _in_file(table: pa.Table) -> pa.Table:
    """Raises OSError where the disk is full, or there is none to write to."""
    table = pa.Table.from_arrays([pieced(column) for column in table.unify_dictionaries().columns], schema=table.schema)
    with tempfile.TemporaryFile() as file:
        with pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
        file.flush()
        return pa.ipc.open_file(pa.py_buffer(_mapped(file))).read_all()


def _mapped(file: IO[bytes], size: int = 0) -> mmap.mmap:
    """The first `size` bytes of a file, all of them without."""
    pages = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)
    begin: int = pa.py_buffer(pages).address
    _MAPS[pages] = range(begin, begin + len(pages))
    return pages


def _is_out(column: pa.ChunkedArray) -> bool:
    """Whether a column takes no memory: it lies in a file, or is held once."""
    if repeats(column):
        return True
    places = [chunk.buffers()[-1].address for chunk in column.chunks if len(chunk)]
    return all(any(place in pages for pages in list(_MAPS.values())) for place in places)
