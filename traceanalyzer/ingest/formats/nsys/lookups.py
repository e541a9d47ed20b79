"""What ids stand for: strings, physical devices, memory and copy kinds. All lookups work on whole columns."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.ingest.formats.nsys.gpu_numbers import gpu_numbers
from traceanalyzer.ingest.formats.nsys.sqlite import selects, tables
from traceanalyzer.ingest.formats.nsys.sqlite.database import Database
from traceanalyzer.ingest.formats.nsys.sqlite.rows import EventReader
from traceanalyzer.ingest.formats.nsys.sqlite.tables import PID_BITS, PROCESS_BITS, THREAD_BITS, Table
from traceanalyzer.records import dataclass

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
_MOST_GPUS = 1 << 31  # What a column of devices can hold.
_NO_STRING = np.iinfo(np.int64).min


def integers(column: pa.Array, absent: int = 0) -> Ints:
    """A column of integers as numpy, with `absent` for null."""
    whole = column.fill_null(absent) if column.null_count else column
    return np.asarray(whole.to_numpy(zero_copy_only=False), dtype=np.int64)


def nulls(column: pa.Array) -> Bools:
    """Which rows of a column are null."""
    return np.asarray(column.is_null()) if column.null_count else np.zeros(len(column), np.bool_)


def nullable_ints(values: Ints, absent: Bools) -> pa.Array:
    """A column of integers with nulls."""
    return pa.array(values, mask=absent) if absent.any() else pa.array(values)


def processes(global_ids: pa.Array) -> pa.Array:
    """The process of each global id."""
    return nullable_ints((integers(global_ids) >> 24) & PROCESS_BITS, nulls(global_ids))


def threads(global_ids: pa.Array) -> pa.Array:
    """The thread of each global id; null where it stands for the process as a whole."""
    return present(pa.array(integers(global_ids) & THREAD_BITS))


def among(values: Ints, known: Ints) -> Bools:
    """Which values are among those that are known: a few, which may be any numbers."""
    return np.isin(values, known, kind="sort")


def present(column: pa.Array) -> pa.Array:
    """The same with null for 0, which stands for none."""
    if column.null_count == len(column):
        return column
    values = integers(column)
    return nullable_ints(values, values == 0)


def names_by_key(keys: pa.Array, name: Callable[[Any], str | None]) -> pa.DictionaryArray:
    """A dictionary-encoded column of `name(key)`, asked once for each distinct key, null among them."""
    encoded = keys.dictionary_encode(null_encoding="encode")
    names = pa.array([name(key) for key in encoded.dictionary.to_pylist()], pa.string()).dictionary_encode()
    return pa.DictionaryArray.from_arrays(names.indices.take(encoded.indices), names.dictionary)


class Strings:
    """The file's string table. Its ids are sparse, some may be missing, and of several rows with one id the first counts.

    `doubled` is how many others there are.
    """

    def __init__(self, reader: EventReader) -> None:
        parts = [(columns["id"], columns["value"]) for columns in reader.read(tables.STRINGS)]
        ids = np.concatenate([np.empty(0, np.int64), *(integers(part, _NO_STRING) for part, _ in parts)])
        self._ids, self._rows = np.unique(ids, return_index=True)
        self.doubled = len(ids) - len(self._ids)
        # Wide offsets: the strings of a long run can have more bytes than 31 bits count.
        values = [part.cast(pa.large_string()) for _, part in parts]
        self._values = pa.chunked_array(values, pa.large_string()).combine_chunks()

    def names(self, ids: pa.Array, absent: str | None, fallback: pa.Array | None = None) -> pa.DictionaryArray:
        """Ids to names: `absent` for null, "#<id>" for an id without a string unless `fallback` has one with."""
        encoded = ids.dictionary_encode()
        if fallback is not None:
            lost = np.append(self._find(encoded.dictionary) < 0, True)[integers(encoded.indices, -1)]
            if lost.any():
                better = lost & (self._find(fallback) >= 0)
                return self.names(pc.if_else(pa.array(better), fallback, ids), absent)
        names = pa.concat_arrays(
            [self._look_up(encoded.dictionary), pa.array([absent], pa.string())]
        ).dictionary_encode()
        # A null takes the name at the end.
        places = encoded.indices.fill_null(len(encoded.dictionary))
        return pa.DictionaryArray.from_arrays(names.indices.take(places), names.dictionary)

    def matching(self, pattern: str, most: int) -> list[str]:
        """The first `most` strings in which a pattern is found."""
        found = self._values.filter(pc.match_substring_regex(self._values, pattern))
        return found.slice(0, most).to_pylist()  # type: ignore[no-any-return]

    def _find(self, ids: pa.Array) -> Ints:
        """The place of each id's string, -1 for those without."""
        wanted = integers(ids, _NO_STRING)
        if not len(self._ids):
            return np.full(len(wanted), -1)
        at = np.minimum(np.searchsorted(self._ids, wanted), len(self._ids) - 1)
        return np.where((self._ids[at] == wanted) & (wanted != _NO_STRING), self._rows[at], -1)

    def _look_up(self, ids: pa.Array) -> pa.Array:
        """The string of each id, or "#<id>"."""
        row = self._find(ids)
        lost = pa.array(row < 0)
        found = self._values.take(pa.array(row, mask=row < 0)).cast(pa.string())
        instead = pc.binary_join_element_wise("#", ids.filter(lost).cast(pa.string()), "")
        return pc.replace_with_mask(found, lost, instead)


class Devices:
    """From a process's CUDA device to the physical GPU, where the file says so; else the two are the same.

    GPUs have the numbers that `gpu_numbers` gives them. `told` says whether equal numbers of two processes are sure to be one GPU.
    """

    def __init__(self, database: Database) -> None:
        sql = selects.select(database, tables.CUDA_DEVICE, "cudaId is not null and pid is not null", "gpuId, uuid")
        found = database.table(sql) if sql else None
        rows = found.to_pylist() if found else []
        by_uuid = _by_uuid(database) if any(row["gpuId"] is None for row in rows) else {}
        own: dict[tuple[int, int], int] = {}
        for row in rows:
            gpu = by_uuid.get(row["uuid"]) if row["gpuId"] is None else row["gpuId"]
            if gpu is not None and 0 <= gpu < _MOST_GPUS:
                own.setdefault((row["pid"], row["cudaId"]), gpu)
        self._numbers = gpu_numbers(database, ((gpu, cuda) for (_, cuda), gpu in own.items()))
        self._gpus = {where: self.number(gpu) for where, gpu in own.items()}
        pids = {pid for pid, _ in self._gpus}
        self._only_pid = pids.pop() if len(pids) == 1 else 0
        self.told = bool(self._gpus) or _gpu_count(database) == 1

    def number(self, gpu: int) -> int:
        """The number that is shown of a GPU, given the profiler's."""
        return self._numbers.get(gpu, gpu)

    def physical(self, process: pa.Array, device: pa.Array) -> pa.Array:
        """Physical GPU of each row. A row without a process is taken for one of the only process that the file describes."""
        pid = np.where(nulls(process), self._only_pid, integers(process) & PID_BITS)
        keys = nullable_ints((pid << 32) | integers(device), nulls(device)).dictionary_encode()
        pairs = [(key >> 32, key & 0xFFFFFFFF) for key in keys.dictionary.to_pylist()]
        gpus = pa.array([self._gpus.get(pair, pair[1]) for pair in pairs], pa.int32())
        return gpus.take(keys.indices)


def _gpu_count(database: Database) -> int:
    sql = selects.select(database, tables.GPU, "device is not null")
    found = database.table(sql) if sql else None
    return len(set(found["device"].to_pylist())) if found else 0


def _by_uuid(database: Database) -> dict[str, int]:
    sql = selects.select(database, tables.GPU, "device is not null and uuid <> ''", "device desc")
    found = database.table(sql) if sql else None
    return dict(zip(found["uuid"].to_pylist(), found["device"].to_pylist(), strict=True)) if found else {}


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
_ACCESSES = ("unknown", "read", "write", "atomic", "prefetch")
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
    accesses: dict[int, str] = field(default_factory=lambda: dict(enumerate(_ACCESSES)))

    @classmethod
    def read(cls, database: Database) -> Kinds:
        """What the file says, over the defaults."""
        kinds = cls()
        for key, text in _enumeration(database, tables.MEMORY_KINDS):
            kinds.memory[key] = _memory_kind(text)
        for key, text in _enumeration(database, tables.COPY_KINDS):
            kinds.copies[key] = _copy_kind(text.split("|")[0])
        for key, text in _enumeration(database, tables.ACCESS_KINDS):
            kinds.accesses[key] = next((kind for kind in _ACCESSES if kind in text.lower()), "unknown")
        operations = dict(_enumeration(database, tables.MEMORY_OPERATIONS))
        if operations:
            kinds.releases = frozenset(
                k for k, text in operations.items() if re.search("dealloc|free|release", text, re.I)
            )
        return kinds

    def memory_kind(self, key: int | None) -> str:
        """pageable, pinned, device, managed, array or unknown."""
        return self.memory.get(key, "unknown") if key is not None else "unknown"

    def copy(self, key: int | None) -> Copy:
        """The kind of copy of one id."""
        other = Copy("other", "")
        return self.copies.get(key, other) if key is not None else other


def _enumeration(database: Database, table: Table) -> list[tuple[int, str]]:
    """Rows (id, "NAME|label") of one enumeration table."""
    sql = selects.select(database, table, where="id is not null", order="id")
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
