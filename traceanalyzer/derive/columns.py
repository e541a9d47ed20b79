"""Columns that many derived tables have."""

from __future__ import annotations

import pyarrow as pa

from traceanalyzer.model.schema import NAME, Column


def text(name: str, doc: str) -> Column:
    return Column(name, NAME, None, doc)


def flag(name: str, doc: str) -> Column:
    return Column(name, pa.bool_(), None, doc)


def share(name: str, doc: str) -> Column:
    return Column(name, pa.float64(), "share", doc)


def number(name: str, doc: str) -> Column:
    return Column(name, pa.float64(), None, doc)


def whole(name: str, doc: str) -> Column:
    return Column(name, pa.int64(), None, doc)


def size(name: str, doc: str) -> Column:
    return Column(name, pa.int64(), "bytes", doc)


def ns(name: str, doc: str) -> Column:
    return Column(name, pa.int64(), "ns", doc)


def count(name: str, doc: str) -> Column:
    return Column(name, pa.int64(), "count", doc)


RANK = Column("rank", pa.int32(), None, "rank of the job, or the file's ordinal when the rank is unknown")
DEVICE = Column("device", pa.int32(), None, "index of the physical GPU on its host")
PROCESS = Column("process", pa.int64(), None, "process within its file")
THREAD = Column("thread", pa.int64(), None, "launching host thread; null when there is no launch record")
STREAM = Column("stream", pa.int64(), None, "stream within (process, device, context)")
SPAN = (ns("start_ns", "start"), ns("end_ns", "end, exclusive"))
