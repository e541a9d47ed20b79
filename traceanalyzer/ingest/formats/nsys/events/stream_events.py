"""Streams that were told to record an event, or to wait for one, and what kind of stream each is: the table `stream_events`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from traceanalyzer.ingest.formats.nsys.lookups import Devices, integers, names_by_key, nullable_ints, nulls, processes
from traceanalyzer.ingest.formats.nsys.sqlite import tables
from traceanalyzer.ingest.formats.nsys.sqlite.rows import EventReader
from traceanalyzer.ingest.formats.nsys.sqlite.tables import PID_BITS

_NONE = (1 << 32) - 1
"""Stands for no stream, and for no event: waits of the host name only one of the two."""
_KINDS = {1: "blocking", 2: "non-blocking", 3: "default"}
"""CUPTI's flags of a stream; 0 is unknown."""


def kinds(reader: EventReader) -> Iterator[pa.Table]:
    """A row for each stream that the file describes, in batches."""
    for columns in reader.read(tables.STREAMS):
        rows = len(columns["stream"])
        hw, vm = (integers(columns.get(name, pa.nulls(rows, pa.int64())), 0) & 0xFF for name in ("hw", "vm"))
        pid = integers(columns["pid"], 0) & PID_BITS
        process = nullable_ints((hw << 32) | (vm << 24) | pid, nulls(columns["pid"]))
        batch = pa.table(
            {"process": process, "stream": columns["stream"], "kind": names_by_key(columns["flag"], _KINDS.get)}
        )
        yield batch.filter(pa.array(~nulls(batch["stream"].combine_chunks()) & ~nulls(batch["kind"].combine_chunks())))


def read(reader: EventReader, devices: Devices) -> Iterator[pa.Table]:
    """All rows that name both a stream and an event, in batches."""
    for table, kind in ((tables.CUDA_EVENTS, "record"), (tables.SYNCHRONIZATIONS, "wait")):
        for columns in reader.read(table):
            rows = len(columns["stream"])
            owner = processes(columns["owner"]) if "owner" in columns else pa.nulls(rows, pa.int64())
            number = columns.get("device", pa.nulls(rows, pa.int64()))
            device = integers(number, -1)
            sound = (device >= 0) & (device <= np.iinfo(np.int32).max)
            told = np.ones(rows, bool)
            for name in ("stream", "event"):
                ids = integers(columns[name], _NONE)
                told &= (ids >= 0) & (ids != _NONE)
            batch = {
                "process": owner,
                "time_ns": columns.get("start", pa.nulls(rows, pa.int64())),
                "device": devices.physical(owner, nullable_ints(device, ~sound)),
                **{name: columns[name] for name in ("stream", "correlation", "event")},
                "kind": pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array([kind])),
            }
            yield pa.table(batch).filter(pa.array(told & ~nulls(columns["correlation"])))
