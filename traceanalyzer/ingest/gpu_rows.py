"""What only a whole file can say of its GPU operations: whose they are, and which of their times cannot be."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

_SECOND = 1_000_000_000
_WEEK = 7 * 86_400 * _SECOND
_NONE = np.iinfo(np.int64).min
# Importers clip what an int64 cannot hold to this; it is the year 2043, in ns since 1970.
_FARTHEST = np.iinfo(np.int64).max // 4
# One stream runs one operation after another; a few may start early (programmatic dependent launch), a crowd cannot.
_CROWD = 8
_SHORTEST_SWALLOWER = 1_000_000

Flags = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]


def owners(ops: pa.Table, calls: pa.Table) -> pa.Array:
    """The process of each operation; where the file does not say, the only one with a call of the same correlation id."""
    pairs = calls.filter(pc.is_valid(calls["correlation"])).group_by(["correlation", "process"]).aggregate([])
    correlation, process = _ints(pairs, "correlation"), _ints(pairs, "process")
    known, first, count = np.unique(correlation, return_index=True, return_counts=True)
    known, process = known[count == 1], process[first][count == 1]
    if not len(known):
        return ops["process"].combine_chunks()
    wanted = _ints(ops, "correlation")
    at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    found = (known[at] == wanted) & (process[at] != _NONE)
    return pc.coalesce(ops["process"].combine_chunks(), pa.array(process[at], mask=~found))


def impossible(ops: pa.Table, host: list[pa.Table]) -> Flags:
    """Operations never recorded, longer than the recording or far outside of it; `host` are the tables of host events.

    Generous: work that began some time before the recording is sound. Where most operations lie outside, the host's records are
    no yardstick and only what cannot be in itself is flagged.
    """
    start, end = _ints(ops, "start_ns"), _ints(ops, "end_ns")
    flags = np.asarray((end < start) | ((start == 0) & (end == 0)) | (np.abs(start) >= _FARTHEST))
    host = [table for table in host if table.num_rows]
    first, last = _extent(host or [ops])
    # A second of grace, because the host's and the GPU's records need not stop together.
    session = last - first + _SECOND if host else _WEEK
    outside = (end - start > session) | (start < first - session) | (start > last + session)
    return flags | outside if 2 * int(outside.sum()) <= len(outside) else flags


def swallowing(ops: pa.Table) -> Flags:
    """Operations whose recorded time holds many later ones of their own stream: their end is damaged."""
    start, end = _ints(ops, "start_ns"), _ints(ops, "end_ns")
    keys = [_ints(ops, c) for c in ("stream", "context", "device", "process")]
    order = np.lexsort((start, *keys))
    flags = np.zeros(len(order), bool)
    if len(order) <= _CROWD:
        return flags
    one, other = order[:-_CROWD], order[_CROWD:]
    correlation = _ints(ops, "correlation")
    same = np.logical_and.reduce([key[one] == key[other] for key in keys]) & (keys[0][one] != _NONE)
    holds = (start[other] > start[one]) & (end[other] <= end[one]) & (end[one] - start[one] > _SHORTEST_SWALLOWER)
    flags[one] = same & holds & (correlation[one] != correlation[other])
    return flags


def _extent(tables: list[pa.Table]) -> tuple[int, int]:
    """First and last time of the events; those far from the rest do not count."""
    start = np.concatenate([_ints(t, "start_ns") for t in tables])
    end = np.concatenate([_ints(t, "end_ns") for t in tables])
    middle = int(np.partition(start, len(start) // 2)[len(start) // 2])
    sound = (end - start <= _WEEK) & (np.abs(start - middle) <= _WEEK)
    return int(start[sound].min(initial=middle)), int(end[sound].max(initial=middle))


def _ints(table: pa.Table, name: str) -> Ints:
    return pc.fill_null(table[name].cast(pa.int64()), _NONE).to_numpy()  # type: ignore[no-any-return]
