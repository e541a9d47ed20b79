"""The order of rows in each event table.

Rows that are equal in every key keep the order in which the importer gave them, so the same file gives the same table. Exports of
Nsight Systems promise no order of rows, so what they hold is told apart by what it is called, too.
"""

from __future__ import annotations

from itertools import takewhile
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.columns import compacted
from traceanalyzer.records import dataclass

Ints = npt.NDArray[np.int64]
_LAST = np.iinfo(np.int64).max
LANES = ("process", "thread", "device")
"""The keys that name who recorded, of whom there are few."""


@dataclass(frozen=True)
class Key:
    """A column to sort by, nulls last.

    `ranks` gives the order of a column of names; a name that is not in it comes last. Other names have some order.
    `among` are the categories of the rows that are told apart by this key; () for all.
    """

    column: str
    descending: bool = False
    ranks: tuple[str, ...] = ()
    among: tuple[str, ...] = ()

    def values(self, rows: pa.Table) -> Ints:
        """Integers that sort as the column does; all the same when the rows do not have it."""
        if self.column not in rows.column_names or (self.among and "category" not in rows.column_names):
            return np.full(rows.num_rows, _LAST)
        column = rows[self.column]
        if self.ranks:
            column = pc.index_in(column.cast(pa.string()), pa.array(self.ranks))
        elif pa.types.is_dictionary(column.type):
            return self._of_names(column, rows)
        elif pa.types.is_floating(column.type):
            return _of_floats(column)
        if column.type != pa.int64():
            # An address is unsigned; its bits in the order of signed numbers are as good an order as any.
            column = column.cast(pa.int64(), safe=False)
        values: Ints = (pc.fill_null(column, _LAST) if column.null_count else column).to_numpy()
        return np.where(values == _LAST, _LAST, -values) if self.descending else values

    def _of_names(self, column: pa.ChunkedArray, rows: pa.Table) -> Ints:
        encoded = column.unify_dictionaries().combine_chunks()
        numbers = [_LAST if name is None else crc32(name.encode()) for name in encoded.dictionary.to_pylist()]
        values: Ints = np.array([*numbers, _LAST], np.int64)[encoded.indices.fill_null(len(numbers)).to_numpy()]
        if not self.among:
            return values
        told: npt.NDArray[np.bool_] = pc.is_in(rows["category"].cast(pa.string()), pa.array(self.among)).to_numpy()
        return np.where(told, values, _LAST)


def _of_floats(column: pa.ChunkedArray) -> Ints:
    """Their bits, which sort as the numbers do: of those below zero all but the sign are turned."""
    bits: Ints = pc.fill_null(column, np.nan).to_numpy().astype(np.float64).view(np.int64)
    return np.where(bits < 0, bits ^ _LAST, bits)


def _keys(*columns: str) -> tuple[Key, ...]:
    return tuple(Key(column) for column in columns)


# What lies around the other comes first, also where both take the same time.
_OUTSIDE_IN = (
    *_keys("process", "thread", "start_ns"),
    Key("end_ns", descending=True),
)
KEYS: dict[str, tuple[Key, ...]] = {
    "gpu_ops": (
        *_keys("device", "start_ns", "end_ns", "process", "stream", "correlation"),
        Key("kind", ranks=("kernel", "memcpy", "memset", "graph")),
        *_keys("name", "bytes", "context", "graph_node_id"),
    ),
    "api_calls": (*_OUTSIDE_IN, *_keys("correlation", "raw_name")),
    "host_ranges": (
        *_OUTSIDE_IN,
        Key("external_id"),
        Key(
            "category", ranks=("annotation", "python", "nvtx", "openacc", "openmp", "callback", "operator", "mpi", "os")
        ),
        Key("name", among=("nvtx", "openacc", "openmp", "callback", "mpi", "os")),
    ),
    "overheads": _keys("start_ns", "end_ns", "process", "thread", "name"),
    "stream_events": _keys("process", "correlation", "device", "stream", "event", "on_stream", "time_ns"),
    "collectives": _keys("device", "start_ns", "end_ns", "stream", "process", "thread"),
    "mpi_calls": (*_OUTSIDE_IN, Key("request")),
    "cpu_samples": _keys("process", "thread", "time_ns"),
    "thread_runs": _keys("process", "thread", "start_ns", "end_ns"),
    "page_faults": _keys("process", "device", "start_ns", "end_ns", "address"),
    "counters": _keys("device", "time_ns", "metric", "value"),
    "memory_events": _keys("process", "time_ns", "address", "device", "bytes"),
    "devices": _keys("device"),
    "processes": _keys("process"),
    "threads": _keys("process", "thread"),
}


def key_columns(rows: pa.Table, keys: tuple[Key, ...]) -> list[Ints]:
    """The rows' values of each key, the most significant first."""
    return [key.values(rows) for key in keys]


def sorted_order(rows: pa.Table, keys: tuple[Key, ...]) -> Ints | None:
    """The positions of the rows in order; None when they are in order already.

    The keys up to the last time tell nearly all rows apart. The others are looked at for those rows alone that are left.
    """
    if rows.num_rows < 2:
        return None
    times = [number for number, key in enumerate(keys, 1) if key.column.endswith("_ns")]
    leading, others = keys[: max(times, default=len(keys))], keys[max(times, default=len(keys)) :]
    # A key that is the same for all rows, such as the only process, says nothing.
    varied = [(key, column) for key in leading if ((column := key.values(rows)) != column[0]).any()]
    columns = [column for _, column in varied]
    lanes = sum(1 for _ in takewhile(lambda pair: pair[0].column in LANES, varied))
    order = None if _ordered(columns) else _sorted(columns, lanes)
    if not others:
        return order
    same = np.ones(rows.num_rows - 1, bool)  # as the row above
    for column in reversed(columns):
        placed = column if order is None else column[order]
        same &= placed[1:] == placed[:-1]
        if not same.any():
            return order
    among = np.append(same, False) | np.append(False, same)
    place = np.flatnonzero(among) if order is None else order[among]
    rest = key_columns(only(rows, place, others), others)
    group = np.cumsum(np.append(True, ~same))[among]
    found = place[np.lexsort((*rest[::-1], group))]
    if order is None:
        if (found == place).all():
            return None
        order = np.arange(rows.num_rows)
    order[among] = found
    return order


def _sorted(columns: list[Ints], lanes: int) -> Ints:
    """The order of rows by some columns, the first before all; equal rows stay as they are.

    The first `lanes` columns name threads or GPUs, of which each mostly comes in its own order: then they alone have to be sorted by.
    """
    order: Ints | None = None
    for column in reversed(columns[:lanes]):
        low = int(column.min())
        # Sixteen bits are sorted by counting.
        narrow = (column - low).astype(np.uint16) if int(column.max()) - low < 1 << 16 else column
        order = np.argsort(narrow, kind="stable") if order is None else order[np.argsort(narrow[order], kind="stable")]
    if order is not None and _ordered([column[order] for column in columns]):
        return order
    return np.lexsort(columns[::-1])


def only(rows: pa.Table, places: Ints, keys: tuple[Key, ...]) -> pa.Table:
    """A few rows, with the columns that keys look at."""
    wanted = {"category", *(key.column for key in keys)}
    # A table without columns has no rows.
    held = [name for name in rows.column_names if name in wanted] or rows.column_names[:1]
    return compacted(rows.select(held).take(pa.array(places)))


def _ordered(columns: list[Ints]) -> bool:
    """Whether no row comes before the one above it."""
    undecided: npt.NDArray[np.bool_] | None = None
    for column in columns:
        above, below = column[:-1], column[1:]
        before = below < above
        if (before if undecided is None else undecided & before).any():
            return False
        equal = below == above
        undecided = equal if undecided is None else undecided & equal
        if not undecided.any():
            return True
    return True
