"""Kernels, copies, memsets and graph-level executions: the table `gpu_ops`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.ingest.formats.nsys.lookups import (
    Devices,
    Ints,
    Kinds,
    Strings,
    integers,
    names_by_key,
    nulls,
    present,
    processes,
)
from traceanalyzer.ingest.formats.nsys.repairs import Repairs
from traceanalyzer.ingest.formats.nsys.sqlite import tables
from traceanalyzer.ingest.formats.nsys.sqlite.rows import Columns, EventReader
from traceanalyzer.ingest.rows.classify import COMPUTE, kernel_class, map_names

_class = cache(kernel_class)


class GpuOps:
    """Makes `gpu_ops` of the tables of GPU work, one after the other.

    Which times cannot be is judged when the whole file is known; only operations without an end are flagged here.
    """

    def __init__(self, strings: Strings, devices: Devices, kinds: Kinds, repairs: Repairs) -> None:
        self._strings, self._devices, self._kinds, self._repairs = strings, devices, kinds, repairs

    def read(self, reader: EventReader) -> Iterator[pa.Table]:
        """All rows, in batches."""
        parts: tuple[tuple[tables.Table, Callable[[Columns, int], dict[str, Any]]], ...] = (
            (tables.KERNEL, self._kernels),
            (tables.MEMCPY, self._copies),
            (tables.MEMSET, self._memsets),
            (tables.GRAPH_TRACE, self._graphs),
        )
        for table, of_kind in parts:
            for raw in reader.read(table):
                columns = self._repairs.complete(raw, "start")
                rows = len(columns["start"])
                yield pa.table(self._placed(columns, of_kind(columns, rows)))

    def _placed(self, columns: Columns, rest: dict[str, Any]) -> dict[str, Any]:
        """Times and places, which all kinds have, beside the `rest`."""
        start, unfinished = integers(columns["start"]), nulls(columns["end"])
        rows = len(start)
        if unfinished.any():
            self._repairs.unfinished += int(unfinished.sum())
            self._repairs.example = self._repairs.example or rest["name"][int(unfinished.argmax())].as_py()
            rest["quarantined"] = pa.array(unfinished, mask=~unfinished)
        owner = processes(columns["owner"]) if "owner" in columns else pa.nulls(rows, pa.int64())
        rest |= {
            "process": owner,
            "start_ns": start,
            "end_ns": np.where(unfinished, start, integers(columns["end"])),
            "device": self._devices.physical(owner, self._numbers(columns, rows)),
        }
        rest |= {name: columns[name] for name in ("context", "stream", "bytes") if name in columns}
        if "correlation" in columns:
            # No launch call made an operation with the number 0 (a migration).
            rest["correlation"] = present(columns["correlation"])
        if "graph_node" in columns:
            rest["graph_node_id"] = present(columns["graph_node"])
        graph = _graph_id(columns)
        return rest if graph is None else rest | {"graph_id": graph}

    def _numbers(self, columns: Columns, rows: int) -> pa.Array:
        """The CUDA device of each row; 0 where the table leaves no choice."""
        if "device" not in columns:
            self._repairs.deviceless += rows
            return pa.array(np.zeros(rows, np.int32))
        device = self._repairs.small(columns["device"])
        self._repairs.homeless += device.null_count
        return device

    def _kernels(self, columns: Columns, rows: int) -> dict[str, Any]:
        ids = columns.get("name", pa.nulls(rows, pa.int64()))
        names = self._strings.names(ids, "unknown kernel", columns.get("short_name"))
        small = {name: self._repairs.small(columns[name]) for name in (*_GRID, *_BLOCK, "registers") if name in columns}
        found = {"kind": constant("kernel", rows), "name": names, "class": map_names(names, _class)}
        if "registers" in small:
            found["registers"] = small["registers"]
        for name, axes in (("grid", _GRID), ("block", _BLOCK)):
            if all(axis in small for axis in axes):
                found[name] = _triple([small[axis] for axis in axes])
        shared = [columns[name] for name in ("static_shared", "dynamic_shared") if name in columns]
        if shared:
            found["shared_memory"] = shared[0] if len(shared) == 1 else _sum(*shared)
        return found

    def _copies(self, columns: Columns, rows: int) -> dict[str, Any]:
        kinds = self._kinds
        copy, source, target = (columns.get(name, pa.nulls(rows, pa.int64())) for name in ("copyKind", "src", "dst"))

        def name(key: int) -> str:
            what = f"Memcpy {kinds.copy(_unpacked(key, 2)).label}".strip()
            src, dst = kinds.memory_kind(_unpacked(key, 1)), kinds.memory_kind(_unpacked(key, 0))
            return what if src == dst == "unknown" else f"{what} ({src.title()} -> {dst.title()})"

        names = names_by_key(_packed(copy, source, target), name)
        return {
            **_computing("memcpy", names),
            "copy_kind": names_by_key(copy, lambda key: kinds.copy(key).kind),
            "migration_cause": names_by_key(columns.get("cause", pa.nulls(rows, pa.int64())), _MIGRATIONS.get),
            "src_memory": names_by_key(source, kinds.memory_kind),
            "dst_memory": names_by_key(target, kinds.memory_kind),
        }

    def _memsets(self, columns: Columns, rows: int) -> dict[str, Any]:
        def name(key: int | None) -> str:
            target = self._kinds.memory_kind(key)
            return f"Memset ({target.title()})" if target != "unknown" else "Memset"

        return _computing("memset", names_by_key(columns.get("dst", pa.nulls(rows, pa.int64())), name))

    def _graphs(self, columns: Columns, rows: int) -> dict[str, Any]:
        graphs = columns.get("graph", pa.nulls(rows, pa.int64()))
        return _computing(
            "graph", names_by_key(graphs, lambda key: "CUDA graph" if key is None else f"CUDA graph {key}")
        )


# CUPTI's reasons for moving managed memory; 0 and what is not known are no reason.
_MIGRATIONS = {1: "asked", 2: "fault", 3: "speculative", 4: "eviction", 5: "access_counters"}
_GRID, _BLOCK = ("gridX", "gridY", "gridZ"), ("blockX", "blockY", "blockZ")
_PACKED_BITS = 8


def constant(name: str, rows: int) -> pa.DictionaryArray:
    """A column that says the same in every row."""
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array([name]))


def _computing(kind: str, names: pa.DictionaryArray) -> dict[str, Any]:
    return {"kind": constant(kind, len(names)), "name": names, "class": constant(COMPUTE, len(names))}


def _packed(*ids: pa.Array) -> pa.Array:
    """One key of several small ids; what is no small id counts as none."""
    keys: Ints = np.zeros(len(ids[0]), np.int64)
    for column in ids:
        values = integers(column, -1)
        small = (values >= 0) & (values < (1 << _PACKED_BITS) - 1)
        keys = (keys << _PACKED_BITS) | np.where(small, values + 1, 0)
    return pa.array(keys)


def _unpacked(key: int, place: int) -> int | None:
    """The id at a place of such a key, counted from the last."""
    value = (key >> (place * _PACKED_BITS)) & ((1 << _PACKED_BITS) - 1)
    return value - 1 if value else None


def _graph_id(columns: Columns) -> pa.Array | None:
    """The graph as recorded, else from the node id, whose upper half names the executable graph (2023 and later)."""
    graph, node = (present(columns[name]) if name in columns else None for name in ("graph", "graph_node"))
    if node is None:
        return graph
    upper = present(pc.shift_right(node, 32))
    return upper if graph is None else pc.coalesce(graph, upper)


def _sum(left: pa.Array, right: pa.Array) -> pa.Array:
    """Sum of two columns, of which one may be null."""
    return pc.coalesce(pc.add(left, right), left, right)


def _triple(parts: list[pa.Array]) -> pa.Array:
    """x, y and z of a launch; null unless all three are known."""
    values = np.empty((len(parts[0]), 3), np.int32)
    for axis, part in enumerate(parts):
        values[:, axis] = part.fill_null(0).to_numpy()
    absent = np.logical_or.reduce([nulls(part) for part in parts])
    return pa.FixedSizeListArray.from_arrays(
        pa.array(values.ravel()), 3, mask=pa.array(absent) if absent.any() else None
    )
