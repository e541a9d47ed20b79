"""What NVTX ranges carry beside their text: binary payloads, laid out as the schemas say that a library registered.

A payload is exported (with `--include-blobs=true` only) behind 32 bytes that say its domain, schema, size, and its size with these 32
bytes, eight bytes each. What does not agree with itself and with its schema is not read. Schemas are numbered by each process as they
come: one number that stands for two layouts tells nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.ingest.formats.nsys.lookups import Ints
from traceanalyzer.ingest.formats.nsys.sqlite import selects, tables
from traceanalyzer.ingest.formats.nsys.sqlite.database import Database
from traceanalyzer.records import dataclass

HEADER_BYTES = 32
MOST_BYTES = 4096
"""Of a payload that is looked at; those of NCCL have some ten."""
# Numbers of the types of NVTX's payload extension whose size is the same everywhere.
_TYPES = {
    **{5: "<i4", 6: "<u4", 9: "<i8", 10: "<u8", 22: "<u8"},
    **{11: "<i1", 12: "<u1", 13: "<i2", 14: "<u2", 15: "<i4", 16: "<u4", 17: "<i8", 18: "<u8"},
}
_DIGITS = r"^(?:[0-9A-Fa-f]{2})+$"

Key = tuple[int, int]
"""(domain, schema)."""
Fields = dict[str, npt.NDArray[np.integer[Any]]]


@dataclass(frozen=True)
class Schema:
    """Where each number lies in a payload: (offset in bytes, numpy's type) by label."""

    fields: Mapping[str, tuple[int, str]]

    @property
    def size(self) -> int:
        """Bytes that a payload has at least."""
        return max((offset + np.dtype(kind).itemsize for offset, kind in self.fields.values()), default=0)


def read_schemas(database: Database) -> dict[Key, Schema]:
    """The schemas that stand for one layout."""
    sql = selects.select(database, tables.PAYLOAD_ENTRIES, order="domain, schema, place, name, type, offset, flags")
    found = database.table(sql) if sql else None
    entries: dict[Key, dict[int, tuple[str, int, int, int]]] = {}
    torn: set[Key] = set()
    for row in found.to_pylist() if found else ():
        key, entry = (
            (row["domain"], row["schema"]),
            (row["name"], row["type"], row["offset"] or 0, row["flags"] or 0),
        )
        # One row for each process that registered it.
        if entries.setdefault(key, {}).setdefault(row["place"], entry) != entry:
            torn.add(key)
    return {
        key: Schema({name: (offset, _TYPES[kind]) for name, kind, offset, flags in own.values() if _plain(kind, offset, flags)})
        for key, own in entries.items()
        if key not in torn
    }  # fmt: skip


def decode(texts: pa.Array, domains: Ints, schemas: Mapping[Key, Schema]) -> Iterator[tuple[Schema, Ints, Fields]]:
    """The sound payloads of one schema, by the rows of `texts` (hexadecimal), and the numbers in them."""
    sound = pc.fill_null(pc.match_substring_regex(texts, _DIGITS), False).to_numpy(zero_copy_only=False)
    length = pc.fill_null(pc.binary_length(texts), 0).to_numpy() // 2
    for size in np.unique(length[sound & (length >= HEADER_BYTES)]).tolist():
        rows = np.flatnonzero(sound & (length == size))
        joined = bytes.fromhex("".join(texts.take(pa.array(rows)).to_pylist()))
        data = np.frombuffer(joined, np.uint8).reshape(len(rows), size)
        domain, schema, own, whole = (_numbers(data, 8 * at, "<u8") for at in range(4))
        agrees = (domain == domains[rows]) & (own + HEADER_BYTES == whole) & (whole <= size)
        keys, which = np.unique(np.stack((domain, schema))[:, agrees], axis=1, return_inverse=True)
        order = np.argsort(np.reshape(which, -1), kind="stable")
        groups = np.split(np.flatnonzero(agrees)[order], np.cumsum(np.bincount(np.reshape(which, -1)))[:-1])
        for (where, number), mine in zip(keys.T.tolist(), groups, strict=False):
            known = schemas.get((where, number))
            if known is not None:
                here = mine[own[mine] >= known.size]
                fields = {
                    label: _numbers(data[here], HEADER_BYTES + at, kind) for label, (at, kind) in known.fields.items()
                }
                yield known, rows[here], fields


def _plain(kind: int, offset: int, flags: int) -> bool:
    """Whether an entry is one number, and no array or pointer."""
    return kind in _TYPES and not flags and 0 <= offset < MOST_BYTES


def _numbers(data: npt.NDArray[np.uint8], at: int, kind: str) -> npt.NDArray[np.integer[Any]]:
    width = np.dtype(kind).itemsize
    return np.ascontiguousarray(data[:, at : at + width]).view(kind)[:, 0]
