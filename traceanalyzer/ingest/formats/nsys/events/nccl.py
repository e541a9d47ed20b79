"""Collectives as NCCL itself describes them: the payloads of its NVTX ranges say the size, the communicator and how many ranks it has.

The size is that of one message (`sendcount` of an all-gather, `recvcount` of a reduce-scatter, what one rank sends another in an
all-to-all). Who the ranks are in the job, and the types of elements, it does not say.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.ingest.contract import Sink
from traceanalyzer.ingest.formats.nsys.events import payloads
from traceanalyzer.ingest.formats.nsys.lookups import Bools, Ints, Strings, integers, nullable_ints, processes, threads
from traceanalyzer.ingest.formats.nsys.sqlite import selects
from traceanalyzer.ingest.formats.nsys.sqlite.database import Database
from traceanalyzer.vocabulary.health import NOT_ALL_READ, NOT_RECORDED
from traceanalyzer.vocabulary.levels import INFO, LOW

_COMMUNICATOR, _SIZE, _RANKS = "NCCL communicator ID", "Message size [bytes]", "No. of ranks"
_LARGEST = 1 << 50
"""Bytes of a message that can be."""
_MOST_RANKS = 1 << 24
# In the letters of the function's name: what comes of a message of one rank.
_ALIKE = ("allreduce", "broadcast", "bcast", "reduce", "send", "recv")
_GATHERED, _SCATTERED, _EXCHANGED = "allgather", "reducescatter", "alltoall"

Batch = tuple[dict[str, pa.Array], payloads.Fields]


class Nccl:
    """Makes rows of `collectives` on the ranges that ask for them. `process` is that of rows that name none."""

    def __init__(self, database: Database, strings: Strings, process: int) -> None:
        self._database, self._strings, self._process = database, strings, process
        every = payloads.read_schemas(database)
        self._schemas = {key: schema for key, schema in every.items() if {_SIZE, _RANKS} & schema.fields.keys()}
        self._rows = self._read = 0

    def read(self) -> Iterator[pa.Table]:
        """Batches of `collectives`, without a device."""
        ranks = self._group_sizes()
        for columns, fields in self._payloads(_SIZE):
            yield self._described(columns, fields, ranks)

    def report(self, sink: Sink) -> None:
        """Say where sizes were recorded and are not there, or not read."""
        if self._read or not any(_SIZE in schema.fields for schema in self._schemas.values()):
            return
        if self._rows:
            message = (
                "what NCCL says of its collectives has a form that is not known: their sizes and groups are not read"
            )
            sink.health(NOT_ALL_READ, LOW, message, self._rows)
        else:
            message = (
                "NCCL recorded the sizes and groups of its collectives, but they were left out at export: export again with "
                "nsys export --include-blobs=true"
            )
            sink.health(NOT_RECORDED, INFO, message)

    def _group_sizes(self) -> dict[int, int]:
        """Ranks of each communicator, where its making was recorded and says one number."""
        told: dict[int, set[int]] = {}
        for _, fields in self._payloads(_RANKS):
            if _COMMUNICATOR in fields:
                for group, ranks in zip(fields[_COMMUNICATOR].tolist(), fields[_RANKS].tolist(), strict=True):
                    if 0 < ranks < _MOST_RANKS and len(told) < _MOST_RANKS:
                        told.setdefault(group, set()).add(ranks)
        return {group: ranks.pop() for group, ranks in told.items() if len(ranks) == 1}

    def _payloads(self, label: str) -> Iterator[Batch]:
        """Columns of ranges whose payload has a number of this label, and all its numbers."""
        wanted = {key: schema for key, schema in self._schemas.items() if label in schema.fields}
        sql = selects.payload_rows(self._database, payloads.MOST_BYTES) if wanted else None
        if sql is None:
            return
        for batch in self._database.batches(sql):
            self._rows += batch.num_rows if label == _SIZE else 0
            columns = {name: batch.column(name) for name in batch.schema.names}
            for _, rows, fields in payloads.decode(columns["payload"], integers(columns["domain"], -1), wanted):
                self._read += len(rows) if label == _SIZE else 0
                yield {name: column.take(pa.array(rows)) for name, column in columns.items()}, fields

    def _described(self, columns: dict[str, pa.Array], fields: payloads.Fields, ranks: dict[int, int]) -> pa.Table:
        count = len(columns["start"])
        registered = self._strings.names(columns["text_id"], "unknown call")
        name = pc.if_else(pc.equal(columns["text"], ""), registered.dictionary_decode(), columns["text"])
        group = fields.get(_COMMUNICATOR, np.zeros(count, np.uint64))
        groups, at = np.unique(group, return_inverse=True)
        members = np.array([ranks.get(one, 0) for one in groups.tolist()], np.int64)[at]
        called = pa.array([f"{one:#018x}" if one else None for one in groups.tolist()], pa.string())
        start = integers(columns["start"])
        return pa.table(
            {
                "process": processes(columns["owner"]).fill_null(self._process),
                "thread": threads(columns["caller"]),
                "start_ns": pa.array(start),
                "end_ns": pa.array(np.maximum(start, integers(columns["end"]))),
                "name": name.dictionary_encode(),
                "group": called.take(pa.array(at)).dictionary_encode(),
                "group_size": nullable_ints(members, members == 0).cast(pa.int32()),
                **_put_and_got(name, _sizes(fields[_SIZE]), members),
            }
        )


def _put_and_got(name: pa.Array, size: Ints, ranks: Ints) -> dict[str, pa.Array]:
    """What a rank puts in and gets out, and the larger of both; null where the size, or the number of ranks, is not known."""
    letters = pc.ascii_lower(name)
    has = {
        word: pc.match_substring(letters, word).to_numpy(zero_copy_only=False)
        for word in (*_ALIKE, _GATHERED, _SCATTERED, _EXCHANGED)
    }
    alike = np.logical_or.reduce([has[word] for word in _ALIKE]) & ~has[_SCATTERED]
    whole: Ints = np.where((ranks > 0) & (size >= 0), size * ranks, -1)
    none = np.full(len(size), -1, np.int64)

    def first(*cases: tuple[Bools, Ints]) -> pa.Array:
        values: Ints = np.select([case for case, _ in cases], [value for _, value in cases], none)
        return nullable_ints(values, values < 0)

    gathered, scattered, exchanged = (has[word] for word in (_GATHERED, _SCATTERED, _EXCHANGED))
    return {
        "bytes": first((alike, size), (gathered | scattered | exchanged, whole)),
        "in_bytes": first((alike | gathered, size), (scattered | exchanged, whole)),
        "out_bytes": first((alike | scattered, size), (gathered | exchanged, whole)),
    }


def _sizes(told: npt.NDArray[np.integer[Any]]) -> Ints:
    """Sizes as signed numbers, -1 for those that cannot be."""
    return np.where(told > _LARGEST, -1, np.minimum(told, _LARGEST).astype(np.int64))
