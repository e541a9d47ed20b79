"""Calls of MPI with their arguments, and what the file says of ranks and communicators.

A handle of a communicator means something within one process only, and may be used again after it was freed. What is the same on all
ranks is the rank of the job that is the group's first, and the number that this one gave the group.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
import pyarrow as pa

from traceanalyzer.ingest.contract import Sink
from traceanalyzer.ingest.formats.nsys.events.host import Host
from traceanalyzer.ingest.formats.nsys.lookups import Ints, integers, nullable_ints, nulls, present, processes
from traceanalyzer.ingest.formats.nsys.sqlite import selects, tables
from traceanalyzer.ingest.formats.nsys.sqlite.database import Database
from traceanalyzer.ingest.formats.nsys.sqlite.rows import Columns
from traceanalyzer.ingest.rows.classify import map_names
from traceanalyzer.model.mpi_names import does
from traceanalyzer.records import dataclass
from traceanalyzer.vocabulary.health import NOT_RECORDED
from traceanalyzer.vocabulary.levels import INFO

_NONE = np.iinfo(np.int64).min
_LARGEST = 2**31 - 1
_does = cache(does)


@dataclass(frozen=True)
class World:
    """The rank of each process in MPI_COMM_WORLD where the file says one and no more, and how many ranks there are."""

    ranks: dict[int, int]
    size: int | None

    def rank_of(self, process: int) -> int | None:
        return self.ranks.get(process)


class Communicators:
    """What the file says of each: a row is one that a rank made, sorted by rank, handle and time."""

    def __init__(self, database: Database) -> None:
        sql = selects.select(database, tables.MPI_COMMUNICATORS, "communicator is not null", "rank, communicator, made")
        found = database.table(sql) if sql else None
        names = [field.name for field in tables.MPI_COMMUNICATORS.fields]
        columns = {
            name: integers(found[name].combine_chunks().cast(pa.int64()), _NONE) if found else np.empty(0, np.int64)
            for name in names
        }
        self.rank, self.made, self.handle = columns["rank"], columns["made"], columns["communicator"]
        self.size, self.own, self.root, self.number = (columns[c] for c in ("size", "own", "root", "number"))
        self.count = len(self.rank)

    def world_size(self) -> int | None:
        """The size of the largest one in which ranks have the number that they have in the job."""
        world = (self.own == self.rank) & (self.size > 0) & (self.size <= _LARGEST) & (self.rank != _NONE)
        return int(self.size[world].max()) if world.any() else None

    def rows(self, rank: Ints, handle: Ints, when: Ints) -> Ints:
        """For each call the row of its communicator: the last one that its rank made before it; -1 without any."""
        anyone = np.full(self.count, _NONE)
        row = np.where(
            rank == _NONE,
            latest_made(np.stack((anyone, self.handle)), self.made, np.stack((rank, handle)), when),
            latest_made(np.stack((self.rank, self.handle)), self.made, np.stack((rank, handle)), when),
        )
        return np.where(handle == _NONE, -1, row)


def latest_made(owner: Ints, made: Ints, caller: Ints, when: Ints) -> Ints:
    """For each call the row of the same owner (a column of ids each) that was made last before it, else its first; -1 without any."""
    count = len(made)
    _, ids = np.unique(np.concatenate((owner, caller), axis=1), axis=1, return_inverse=True)
    ids = np.reshape(ids, -1)
    order = np.lexsort((np.arange(len(ids)) >= count, np.concatenate((made, when)), ids))
    rows = np.flatnonzero(order < count)
    before = np.searchsorted(rows, np.arange(len(ids)), side="right") - 1
    place = np.empty(len(ids), np.int64)
    place[order] = np.arange(len(ids))
    # The first row of an owner is also that of calls before it.
    own = ids[order[rows]]
    at = np.maximum(before[place[count:]], np.searchsorted(own, ids[count:]))
    found = np.append(order[rows], -1)[np.minimum(at, len(rows))]
    return np.where(np.append(ids[:count], -1)[found] == ids[count:], found, -1)


class Calls:
    """Reads the calls of processes that start GPU work."""

    def __init__(self, database: Database, host: Host) -> None:
        self._database, self._host = database, host
        self._communicators = Communicators(database)
        self.world = World(_ranks(database), self._communicators.world_size())
        self._nameless = 0

    def read(self, last: int | None = None) -> Iterator[tuple[pa.Table, pa.Table]]:
        """Batches of `host_ranges`, each call once, and of `mpi_calls`, with a row for each request; `last` as for `Host.mpi_calls`."""
        for table, columns, ranges in self._host.mpi_calls(last):
            yield ranges, self._arguments(table, columns)

    def report(self, sink: Sink) -> None:
        """Say what is missing of communicators that calls name."""
        if self._nameless:
            message = (
                "calls of MPI name communicators that the file does not describe: they are matched across ranks only where their order "
                "tells which ones they are; record with a version of Nsight Systems that follows communicators, and export all tables"
            )
            sink.health(NOT_RECORDED, INFO, message, self._nameless)

    def _arguments(self, table: tables.Table, columns: Columns) -> pa.Table:
        found = self._host.called(columns)
        count = len(columns["start"])
        kind = map_names(found["name"], _does)
        process, which = np.unique(integers(found["process"], _NONE), return_inverse=True)
        rank = np.array([self.world.ranks.get(one, _NONE) for one in process.tolist()], np.int64)[which]
        handle = _column(columns, "communicator", count)
        row = self._communicators.rows(rank, handle, integers(found["start_ns"]))
        self._nameless += int(((handle != _NONE) & (row < 0)).sum()) if self._communicators.count == 0 else 0
        own = {
            name: np.append(getattr(self._communicators, name), _NONE)[row]
            for name in ("size", "own", "root", "number")
        }
        sends = (
            table is not tables.MPI_MESSAGES
            or np.array([value != "receive" for value in kind.dictionary.to_pylist()], bool)[integers(kind.indices)]
        )
        size = _column(columns, "size", count)
        received = _column(columns, "received", count)
        return pa.table(
            found
            | {
                "kind": kind,
                "communicator": _whole(handle),
                "group": _groups(own["root"], own["number"]),
                "group_size": _small(own["size"]),
                "group_rank": _small(own["own"]),
                "world_rank": _small(rank),
                "peer": _small(_column(columns, "peer", count)),
                "tag": _natural(_column(columns, "tag", count)),
                "root": _small(_column(columns, "root", count)),
                "request": present(_whole(_column(columns, "request", count))),
                "bytes": _natural(np.where(sends, size, _NONE)),
                "received_bytes": _natural(np.where(sends, received, size)),
            }
        )


def _ranks(database: Database) -> dict[int, int]:
    sql = selects.select(
        database, tables.MPI_RANKS, f"owner is not null and rank between 0 and {_LARGEST}", "owner, rank"
    )
    found = database.table(sql) if sql else None
    told: dict[int, set[int]] = {}
    if found:
        owners = processes(found["owner"].combine_chunks()).to_pylist()
        for owner, rank in zip(owners, found["rank"].to_pylist(), strict=True):
            told.setdefault(owner, set()).add(rank)
    return {owner: ranks.pop() for owner, ranks in told.items() if len(ranks) == 1}


def _column(columns: Columns, name: str, count: int) -> Ints:
    found = columns.get(name)
    return np.full(count, _NONE) if found is None else np.where(nulls(found), _NONE, integers(found))


def _whole(values: Ints) -> pa.Array:
    return nullable_ints(values, values == _NONE)


def _natural(values: Ints) -> pa.Array:
    """Negative numbers stand for any tag, any source or none."""
    return nullable_ints(values, values < 0)


def _small(values: Ints) -> pa.Array:
    absent = (values < 0) | (values > _LARGEST)
    return nullable_ints(np.where(absent, 0, values), absent).cast(pa.int32())


def _groups(root: Ints, number: Ints) -> pa.DictionaryArray:
    """The names of groups; null where the file does not say."""
    pairs, at = np.unique(np.stack([root, number]), axis=1, return_inverse=True)
    names = [None if _NONE in pair else f"{pair[0]}.{pair[1]}" for pair in pairs.T.tolist()]
    return pa.array(names, pa.string()).take(pa.array(at.reshape(-1))).dictionary_encode()
