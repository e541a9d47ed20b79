"""Sampled GPU metrics and device-memory events."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.ingest.classify import map_names
from traceanalyzer.ingest.nsys import tables
from traceanalyzer.ingest.nsys.database import Database
from traceanalyzer.ingest.nsys.lookups import Devices, Ints, Kinds, from_unique, integers

_HOST_MEMORY = ("pageable", "pinned")
# A clock recorded in hertz under a label that says MHz.
_HERTZ_FROM = 1e5


def read_memory_events(database: Database, devices: Devices, kinds: Kinds, process: int) -> Iterator[pa.Table]:
    """Batches of `memory_events`: allocations (positive) and releases (negative) of device memory, in order of time."""
    sql = tables.select(
        database, tables.DEVICE_MEMORY, "start is not null and bytes is not null", "process, start, operation, address"
    )
    for batch in database.batches(sql) if sql else ():
        column = dict(zip(batch.schema.names, batch.columns, strict=True))
        owner, size = integers(column["process"], process), integers(column["bytes"])
        released = np.isin(integers(column["operation"]), list(kinds.releases))
        rows = pa.table(
            {
                "process": owner,
                "time_ns": column["start"],
                "device": devices.physical(owner, column["device"]),
                # Stored as a signed number: the bits are the address.
                "address": pa.array(
                    integers(column["address"]).view(np.uint64), mask=np.asarray(column["address"].is_null())
                ),
                "bytes": np.where(released, -size, size),
            }
        )
        kind = from_unique(integers(column["kind"], -1), kinds.memory_kind)
        on_device = ~np.isin(np.asarray(kind.cast(pa.string()).to_numpy(zero_copy_only=False), dtype=str), _HOST_MEMORY)
        if on_device.any():
            yield rows.filter(pa.array(on_device))


def read_counters(database: Database) -> Iterator[pa.Table]:
    """Batches of `counters` from the sampled GPU metrics of all GPUs, in order of time."""
    names = _metric_names(database)
    sql = tables.select(
        database, tables.GPU_METRICS, "timestamp is not null and value is not null", "timestamp, typeId, metricId"
    )
    for batch in database.batches(sql) if sql else ():
        column = dict(zip(batch.schema.names, batch.columns, strict=True))
        value = integers(column["value"]).astype(np.float64)
        types, type_index = np.unique(integers(column["typeId"]), return_inverse=True)
        keys = (type_index.ravel().astype(np.int64) << 32) | (integers(column["metricId"]) & 0xFFFFFFFF)
        metric = from_unique(keys, partial(_metric, names, types))
        unit = map_names(metric, _unit)
        in_mhz = np.asarray(pc.fill_null(pc.equal(unit.cast(pa.string()), "MHz"), False))
        yield pa.table(
            {
                "time_ns": column["timestamp"],
                # The low byte of the type is the GPU.
                "device": (types[type_index.ravel()] & 0xFF).astype(np.int32),
                "metric": metric,
                "unit": unit,
                "value": np.where(in_mhz & (value >= _HERTZ_FROM), value / 1e6, value),
            }
        )


def _metric(names: dict[tuple[int, int], str], types: Ints, key: int) -> str:
    """Name of a metric, which belongs to (type, metric). `key` holds the type's position in `types` and the metric."""
    kind, metric = int(types[key >> 32]), key & 0xFFFFFFFF
    return names.get((kind, metric), f"metric {metric}")


def _metric_names(database: Database) -> dict[tuple[int, int], str]:
    sql = tables.select(database, tables.GPU_METRIC_NAMES, "typeId is not null and metricId is not null")
    found = database.table(sql) if sql else None
    if found is None:
        return {}
    columns = (found[name].to_pylist() for name in ("typeId", "metricId", "name"))
    return {(kind, metric): name for kind, metric, name in zip(*columns, strict=True) if name}


def _unit(label: str) -> str | None:
    """The unit that ends a metric's name in brackets: "SMs Active [Throughput %]"."""
    match = re.search(r"\[([^\[\]]+)\]$", label)
    return match.group(1) if match else None
