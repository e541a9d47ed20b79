"""Sampled GPU metrics and device-memory events."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.ingest.formats.nsys.lookups import Devices, Kinds, integers, names_by_key, nulls, processes
from traceanalyzer.ingest.formats.nsys.repairs import Repairs
from traceanalyzer.ingest.formats.nsys.sqlite import selects, tables
from traceanalyzer.ingest.formats.nsys.sqlite.database import Database
from traceanalyzer.ingest.formats.nsys.sqlite.rows import EventReader
from traceanalyzer.ingest.rows.classify import map_names

_HOST_MEMORY = ("pageable", "pinned")
# A clock recorded in hertz under a label that says MHz.
_HERTZ_FROM = 1e5


def read_memory_events(
    reader: EventReader, devices: Devices, kinds: Kinds, repairs: Repairs, process: int
) -> Iterator[pa.Table]:
    """Batches of `memory_events`: allocations (positive) and releases (negative) of device memory.

    `process` is the one of rows that name none. Host memory is left out.
    """
    for raw in reader.read(tables.DEVICE_MEMORY):
        columns = repairs.complete(raw, "start", "bytes")
        nothing = pa.nulls(len(columns["start"]), pa.int64())
        owner = processes(columns.get("owner", nothing)).fill_null(process)
        released = np.isin(integers(columns.get("operation", nothing)), list(kinds.releases))
        rows = {
            "process": owner,
            "time_ns": columns["start"],
            "device": devices.physical(owner, repairs.small(columns.get("device", nothing))),
            "bytes": pc.if_else(pa.array(released), pc.negate(columns["bytes"]), columns["bytes"]),
        }
        if "address" in columns:
            # Stored as a signed number: the bits are the address.
            address = columns["address"]
            rows["address"] = pa.array(integers(address).view(np.uint64), mask=nulls(address))
        kind = names_by_key(columns.get("kind", nothing), kinds.memory_kind)
        on_device = pc.invert(pc.is_in(kind, pa.array(_HOST_MEMORY)))
        yield pa.table(rows).filter(on_device)


def read_counters(reader: EventReader, database: Database, devices: Devices, repairs: Repairs) -> Iterator[pa.Table]:
    """Batches of `counters` from the sampled GPU metrics of all GPUs of the machine."""
    labels = _metric_labels(database)
    for raw in reader.read(tables.GPU_METRICS):
        columns = repairs.complete(raw, "timestamp", "value")
        nothing = pa.nulls(len(columns["value"]), pa.int64())
        kinds, ids = (columns.get(n, nothing).dictionary_encode(null_encoding="encode") for n in ("typeId", "metricId"))
        metric = _metrics(kinds, ids, labels)
        unit = map_names(metric, _unit)
        value = columns["value"].cast(pa.float64(), safe=False)  # Beyond 2^53 to the nearest.
        hertz = pc.and_(pc.equal(unit, "MHz"), pc.greater_equal(value, _HERTZ_FROM))
        # The low byte of the type is the GPU.
        known = kinds.dictionary.to_pylist()
        gpus = pa.array([None if kind is None else devices.number(kind & 0xFF) for kind in known], pa.int32())
        yield pa.table(
            {
                "time_ns": columns["timestamp"],
                "device": gpus.take(kinds.indices),
                "metric": metric,
                "unit": unit,
                "value": pc.if_else(pc.fill_null(hertz, False), pc.divide(value, 1e6), value),
            }
        )


def _metrics(
    kinds: pa.DictionaryArray, ids: pa.DictionaryArray, labels: dict[tuple[int, int], str]
) -> pa.DictionaryArray:
    """Names of metrics. An id means something only within its type, so one key of both is looked up."""
    keys = (integers(kinds.indices) << 32) | integers(ids.indices)
    types, metrics = kinds.dictionary.to_pylist(), ids.dictionary.to_pylist()

    def label(key: int) -> str:
        metric = metrics[key & 0xFFFFFFFF]
        return labels.get((types[key >> 32], metric), f"metric {metric}")

    return names_by_key(pa.array(keys), label)


def _metric_labels(database: Database) -> dict[tuple[int, int], str]:
    sql = selects.select(database, tables.GPU_METRIC_NAMES, "typeId is not null and metricId is not null")
    found = database.table(sql) if sql else None
    if found is None:
        return {}
    columns = (found[name].to_pylist() for name in ("typeId", "metricId", "name"))
    return {(kind, metric): name for kind, metric, name in zip(*columns, strict=True) if name}


def _unit(label: str) -> str | None:
    """The unit that ends a metric's name in brackets: "SMs Active [Throughput %]"."""
    match = re.search(r"\[([^\[\]]+)\]$", label)
    return match.group(1) if match else None
