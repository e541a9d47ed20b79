"""Faults on pages of managed memory: the table `page_faults`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.ingest.formats.nsys.lookups import Devices, Kinds, integers, names_by_key, nulls, processes, threads
from traceanalyzer.ingest.formats.nsys.repairs import Repairs
from traceanalyzer.ingest.formats.nsys.sqlite import tables
from traceanalyzer.ingest.formats.nsys.sqlite.rows import EventReader


def read_faults(
    reader: EventReader, devices: Devices, kinds: Kinds, repairs: Repairs, process: int
) -> Iterator[pa.Table]:
    """Batches of `page_faults` of the host and of GPUs. `process` is the one of rows that name none.

    A fault of the host is recorded with its beginning alone, and so takes no time here; its thread only where the table has one.
    """
    for table in (tables.HOST_FAULTS, tables.GPU_FAULTS):
        for raw in reader.read(table):
            columns = repairs.complete(raw, "start")
            nothing = pa.nulls(len(columns["start"]), pa.int64())
            owner = processes(columns.get("owner", nothing)).fill_null(process)
            end = columns.get("end", nothing)
            start, until = repairs.span(columns | {"end": pc.coalesce(end, columns["start"])})
            address = columns.get("address", nothing)
            rows = {
                "process": owner,
                "start_ns": start,
                "end_ns": until,
                # Stored as a signed number: the bits are the address.
                "address": pa.array(integers(address).view(np.uint64), mask=nulls(address)),
            }
            if table is tables.HOST_FAULTS:
                rows |= {"thread": threads(columns.get("caller", nothing)), "count": np.ones(len(start), np.int64)}
            else:
                rows |= {
                    "device": devices.physical(owner, repairs.small(columns.get("device", nothing))),
                    "count": columns.get("count", nothing),
                    "access": names_by_key(columns.get("access", nothing), kinds.accesses.get),
                }
            yield pa.table(rows)
