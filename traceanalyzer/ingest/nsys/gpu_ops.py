"""Kernels, copies, memsets and graph-level executions: the table `gpu_ops`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.ingest.classify import kernel_class, map_names
from traceanalyzer.ingest.nsys import tables
from traceanalyzer.ingest.nsys.database import Database
from traceanalyzer.ingest.nsys.extents import Extents
from traceanalyzer.ingest.nsys.lookups import Devices, Ints, Kinds, Strings, from_unique, integers

KERNEL, MEMCPY, MEMSET, GRAPH = range(4)
KINDS = ("kernel", "memcpy", "memset", "graph")
_PARTS = [part.with_constant("op", op) for op, part in enumerate(tables.GPU_WORK)]
# SQLite sorts (it spills to its own temporary files), so that a big export need not fit into memory.
_ORDER = 'process, start, "end" desc, op, device, context, stream, correlation, graph_node'

_class = cache(kernel_class)


def read_gpu_ops(
    database: Database, strings: Strings, devices: Devices, kinds: Kinds, extents: Extents
) -> Iterator[pa.Table]:
    """Batches of `gpu_ops`, ordered by process and start."""
    sql = tables.union(database, _PARTS, "start is not null", _ORDER)
    for batch in database.batches(sql) if sql else ():
        yield _convert(batch, strings, devices, kinds, extents)


def _convert(raw: pa.RecordBatch, strings: Strings, devices: Devices, kinds: Kinds, extents: Extents) -> pa.Table:
    column = {name: values.cast(pa.int64()) for name, values in zip(raw.schema.names, raw.columns, strict=True)}
    op, owner = integers(column["op"]), integers(column["process"], extents.only_process)
    start = integers(column["start"])
    # A row without an end never finished being recorded.
    unfinished = np.asarray(column["end"].is_null())
    end = np.where(unfinished, start, integers(column["end"]))
    names = _names(op, column, strings, kinds)
    return pa.table(
        {
            "process": owner,
            "start_ns": start,
            "end_ns": end,
            "device": devices.physical(owner, column["device"]),
            "context": column["context"],
            "stream": column["stream"],
            "kind": from_unique(op, lambda key: KINDS[key]),
            "name": names,
            "class": map_names(names, _class),
            "correlation": column["correlation"],
            "graph_id": _graph_id(column["graph"], column["graph_node"]),
            "graph_node_id": column["graph_node"],
            "bytes": column["bytes"],
            "copy_kind": _of_copies(op, column["copyKind"], lambda key: kinds.copy(key).kind),
            "src_memory": _of_copies(op, column["src"], kinds.memory_kind),
            "dst_memory": _of_copies(op, column["dst"], kinds.memory_kind),
            "grid": _triple(op, [column["grid" + axis] for axis in "XYZ"]),
            "block": _triple(op, [column["block" + axis] for axis in "XYZ"]),
            "registers": column["registers"].cast(pa.int32(), safe=False),
            "shared_memory": _sum(column["static_shared"], column["dynamic_shared"]),
            "quarantined": extents.impossible(start, end) | unfinished,
        }
    )


def _names(op: Ints, column: dict[str, pa.Array], strings: Strings, kinds: Kinds) -> pa.DictionaryArray:
    """Kernel names as recorded; for the rest a name that says what it did."""
    kernels = strings.names(column["name"], "unknown kernel", column["short_name"])
    # One key for all that another name depends on: the graph, or operation, copy kind, source and target.
    copy, src, dst = (np.clip(integers(column[name], -1), -1, 62) + 1 for name in ("copyKind", "src", "dst"))
    graph = integers(column["graph"], -1)
    keys = np.where(op == GRAPH, (graph << 20) | (GRAPH << 18), (op << 18) | (copy << 12) | (src << 6) | dst)

    def name(key: int) -> str:
        kind = (key >> 18) & 3
        if kind == GRAPH:
            return f"CUDA graph {key >> 20}" if key >> 20 >= 0 else "CUDA graph"
        source, target = kinds.memory_kind(((key >> 6) & 63) - 1), kinds.memory_kind((key & 63) - 1)
        if kind == MEMSET:
            return f"Memset ({target.title()})" if target != "unknown" else "Memset"
        what = f"Memcpy {kinds.copy(((key >> 12) & 63) - 1).label}".strip()
        return what if source == target == "unknown" else f"{what} ({source.title()} -> {target.title()})"

    others = from_unique(keys, name)
    # Joined as dictionaries: kernel names can be a kilobyte long, a million of them must not be spelled out.
    shifted = pc.add(others.indices, pa.scalar(len(kernels.dictionary), pa.int32()))
    indices = pc.if_else(pa.array(op == KERNEL), kernels.indices, shifted)
    joined = pa.concat_arrays([kernels.dictionary, others.dictionary])
    return _used(pa.DictionaryArray.from_arrays(indices, joined))


def _used(names: pa.DictionaryArray) -> pa.DictionaryArray:
    """The same with only those dictionary values that occur."""
    return from_unique(integers(names.indices), lambda key: str(names.dictionary[key].as_py()))


def _graph_id(graph: pa.Array, node: pa.Array) -> pa.Array:
    """The graph as recorded, else from the node id, whose upper half names the executable graph (2023 and later)."""
    upper = pc.shift_right(node, pa.scalar(32, pa.int64()))
    return pc.coalesce(graph, pc.if_else(pc.greater(upper, 0), upper, pa.scalar(None, pa.int64())))


def _sum(left: pa.Array, right: pa.Array) -> pa.Array:
    """Sum of two columns, one of which may be absent."""
    return pc.coalesce(pc.add(left, right), left, right)


def _of_copies(op: Ints, ids: pa.Array, name: Callable[[int], str]) -> pa.DictionaryArray:
    """Names of ids for copies, null for the rest."""
    return from_unique(np.where(op == MEMCPY, integers(ids, -1), -2), lambda key: None if key == -2 else name(key))


def _triple(op: Ints, parts: list[pa.Array]) -> pa.Array:
    """x, y and z of a kernel's launch; null unless all three are known."""
    absent = np.logical_or.reduce([op != KERNEL, *(np.asarray(part.is_null()) for part in parts)])
    values = np.stack([integers(part) for part in parts], axis=1).astype(np.int32).ravel()
    return pa.FixedSizeListArray.from_arrays(pa.array(values), 3, mask=pa.array(absent))
