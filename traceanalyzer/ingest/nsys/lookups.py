"""What ids stand for: strings, physical devices, memory and copy kinds. All lookups work on whole columns."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.ingest.nsys import tables
from traceanalyzer.ingest.nsys.database import Database
from traceanalyzer.ingest.nsys.tables import PID_BITS, Table

Ints = npt.NDArray[np.int64]


def integers(column: pa.Array, absent: int = 0) -> Ints:
    """A column of integers as numpy, with `absent` for null."""
    values = column.cast(pa.int64()).fill_null(absent)
    return np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.int64)


def from_unique(keys: Ints, name: Callable[[int], str | None]) -> pa.DictionaryArray:
    """A dictionary-encoded column of `name(key)`, asked once for each distinct key."""
    unique, inverse = np.unique(keys, return_inverse=True)
    names = pa.array([name(int(key)) for key in unique], pa.string()).dictionary_encode()
    return pa.DictionaryArray.from_arrays(names.indices.take(pa.array(inverse.ravel())), names.dictionary)


class Strings:
    """The file's string table. Its ids are sparse and some may be missing."""

    def __init__(self, database: Database) -> None:
        sql = tables.select(database, tables.STRINGS, where="id is not null", order="id")
        found = database.table(sql) if sql else None
        self._ids: Ints = integers(found["id"].combine_chunks()) if found else np.empty(0, np.int64)
        self._values: pa.Array = found["value"].combine_chunks() if found else pa.array([], pa.string())

    def known(self, ids: Ints) -> npt.NDArray[np.bool_]:
        """Which ids have a string."""
        if not len(self._ids):
            return np.zeros(len(ids), np.bool_)
        position = np.minimum(np.searchsorted(self._ids, ids), len(self._ids) - 1)
        return np.asarray(self._ids[position] == ids)

    def names(self, ids: pa.Array, absent: str | None, fallback: pa.Array | None = None) -> pa.DictionaryArray:
        """Ids to names: `absent` for null, "#<id>" for an id without a string unless `fallback` has one with."""
        nothing = np.iinfo(np.int64).min
        keys = integers(ids, nothing)
        if fallback is not None:
            others = integers(fallback, nothing)
            keys = np.where(~self.known(keys) & self.known(others), others, keys)
        return from_unique(keys, lambda key: absent if key == nothing else self.name(key))

    def name(self, key: int) -> str:
        """The string of one id, or "#<id>"."""
        position = int(np.searchsorted(self._ids, key))
        if position < len(self._ids) and self._ids[position] == key:
            return str(self._values[position].as_py())
        return f"#{key}"


class Devices:
    """From a process's CUDA device to the physical GPU, where the file says so; else the two are the same."""

    def __init__(self, database: Database) -> None:
        sql = tables.select(
            database, tables.CUDA_DEVICE, "gpuId is not null and cudaId is not null and pid is not null", "gpuId"
        )
        found = database.table(sql) if sql else None
        names = ("pid", "cudaId", "gpuId")
        pid, cuda, gpu = (
            (integers(found[n].combine_chunks()) for n in names) if found else (np.empty(0, np.int64) for _ in names)
        )
        self._keys, first = np.unique((pid << 32) | cuda, return_index=True)
        self._gpus = gpu[first]

    def physical(self, process: Ints, device: pa.Array) -> pa.Array:
        """Physical GPU of each row; GPU 0 where an export without device ids leaves no choice."""
        cuda = integers(device, 0)
        if len(self._keys):
            wanted = ((process & PID_BITS) << 32) | cuda
            position = np.minimum(np.searchsorted(self._keys, wanted), len(self._keys) - 1)
            cuda = np.where(self._keys[position] == wanted, self._gpus[position], cuda)
        return pa.array(cuda.astype(np.int32))


# Exports without enumerations use these. The memory kinds are not CUPTI's, which count from 0 = unknown.
_MEMORY = ("pageable", "pinned", "device", "array", "managed", "device_static", "managed_static", "unknown")
_COPIES = (
    "UNKNOWN",
    "HTOD",
    "DTOH",
    "HTOA",
    "ATOH",
    "ATOA",
    "ATOD",
    "DTOA",
    "DTOD",
    "HTOH",
    "PTOP",
    "UVM_HTOD",
    "UVM_DTOH",
    "UVM_DTOD",
)
_COPY = re.compile(r"(UVM_|UNIFIED_)?([HADP])(?:OST|RRAY|EVICE|EER)?_?TO_?([HADP])(?:OST|RRAY|EVICE|EER)?$")
# An array lies in device memory.
_SIDE = {"H": "h", "D": "d", "A": "d", "P": "p"}


@dataclass(frozen=True)
class Copy:
    """One kind of copy: our name for it, and how it reads in a sentence ("HtoD")."""

    kind: str
    label: str


@dataclass
class Kinds:
    """The file's own enumerations, id to meaning."""

    memory: dict[int, str] = field(default_factory=lambda: {i: _memory_kind(n) for i, n in enumerate(_MEMORY)})
    copies: dict[int, Copy] = field(default_factory=lambda: {i: _copy_kind(n) for i, n in enumerate(_COPIES)})
    releases: frozenset[int] = frozenset({1})

    @classmethod
    def read(cls, database: Database) -> Kinds:
        """What the file says, over the defaults."""
        kinds = cls()
        for key, text in _enumeration(database, tables.MEMORY_KINDS):
            kinds.memory[key] = _memory_kind(text)
        for key, text in _enumeration(database, tables.COPY_KINDS):
            kinds.copies[key] = _copy_kind(text.split("|")[0])
        operations = dict(_enumeration(database, tables.MEMORY_OPERATIONS))
        if operations:
            kinds.releases = frozenset(
                k for k, text in operations.items() if re.search("dealloc|free|release", text, re.I)
            )
        return kinds

    def memory_kind(self, key: int) -> str:
        """pageable, pinned, device, managed, array or unknown."""
        return self.memory.get(key, "unknown")

    def copy(self, key: int) -> Copy:
        """The kind of copy of one id."""
        return self.copies.get(key, Copy("other", ""))


def _enumeration(database: Database, table: Table) -> list[tuple[int, str]]:
    """Rows (id, "NAME|label") of one enumeration table."""
    sql = tables.select(database, table, where="id is not null", order="id")
    found = database.table(sql) if sql else None
    if found is None:
        return []
    texts = pc.binary_join_element_wise(found["name"], found["label"], "|")
    return list(zip(found["id"].to_pylist(), texts.to_pylist(), strict=True))


def _memory_kind(text: str) -> str:
    lowered = text.lower()
    return next((kind for kind in ("pageable", "pinned", "managed", "array", "device") if kind in lowered), "unknown")


def _copy_kind(name: str) -> Copy:
    match = _COPY.search(name.upper().replace("-", "_").replace(" ", "_"))
    if match is None:
        return Copy("other", "")
    unified, source, target = match.groups()
    kind = f"{_SIDE[source]}to{_SIDE[target]}"
    if unified:
        return Copy("uvm_" + kind, f"Unified {source}to{target}")
    return Copy(kind, f"{source}to{target}")
