"""Streams that were told to record an event, or to wait for one: the table `stream_events`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from traceanalyzer.ingest.nsys import tables
from traceanalyzer.ingest.nsys.lookups import Devices, integers, masked, nulls, processes
from traceanalyzer.ingest.nsys.rows import EventReader

_NONE = (1 << 32) - 1
"""Stands for no stream, and for no event: waits of the host name only one of the two."""


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
                "device": devices.physical(owner, masked(device, ~sound)),
                **{name: columns[name] for name in ("stream", "correlation", "event")},
                "kind": pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array([kind])),
            }
            yield pa.table(batch).filter(pa.array(told & ~nulls(columns["correlation"])))
