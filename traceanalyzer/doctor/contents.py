"""How much of what a trace holds, and which optional facts it carries."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.catalog.catalog import Catalog
from traceanalyzer.columns import frames
from traceanalyzer.derive.launches.launch_calls import captured_launches
from traceanalyzer.derive.recording.program import program_of
from traceanalyzer.intervals import Array
from traceanalyzer.ranks.collectives import nccl_calls
from traceanalyzer.result.recording.diagnosis import Contents, GpuWork

_NEVER = np.iinfo(np.int64).max
_TIMED = ("gpu_ops", "api_calls", "host_ranges", "overheads")
_SAMPLED = ("memory_events", "counters")


def contents(catalog: Catalog) -> Contents:
    """The rows of one recording, counted."""
    ops, launches, ranges = (catalog.table(name) for name in ("ledger_ops", "launches", "host_ranges"))
    linked, moved, before = _launched(ops, launches)
    gpus = _gpus(catalog.table("gpu_ops"), catalog.table("devices"))
    steps = catalog.table("steps")
    traits = set(catalog.table("program")["name"].to_pylist())
    return Contents(
        gpus=gpus,
        unused_gpus=len(set(catalog.table("devices")["device"].to_pylist()) - {gpu.device for gpu in gpus}),
        gpu_operations=ops.num_rows,
        launch_recorded=int(linked.sum()),
        migrations=int(moved.sum()),
        queued_before=int(before.sum()),
        linked_to_operator=_valid(ops, "external_id"),
        graph_kernels=_graph_kernels(launches),
        captured_launches=captured_launches(catalog.table("api_calls")).total(),
        api_calls=_counts(catalog.table("api_calls"), "class"),
        host_ranges=_counts(ranges, "category"),
        shapes=_valid(ranges.filter(pa.array(frames.equals(ranges, "category", "operator"))), "shapes"),
        processes=catalog.table("processes").num_rows,
        threads=_threads(catalog.table("api_calls"), ranges),
        steps=steps.num_rows,
        step_method=steps["method"][0].as_py() if steps.num_rows else None,
        first_step=steps["name"][0].as_py() if steps.num_rows else None,
        collectives=_described_collectives(catalog.table("collectives")),
        counters=_counts(catalog.table("counters"), "metric"),
        memory_events=catalog.table("memory_events").num_rows,
        framework=next((name for name in ("pytorch", "jax") if name in traits), None),
        program=program_of(catalog.table("program")),
        traced=sorted({kind for one in catalog.value("inputs") for kind in one.traced}),
        cpu_samples=catalog.table("cpu_samples").num_rows,
        thread_runs=catalog.table("thread_runs").num_rows,
        page_faults=catalog.table("page_faults").num_rows,
    )


def extent(catalog: Catalog) -> tuple[int, int] | None:
    """Time of the first event and end of the last in ns, without operations of impossible times; None without timed events."""
    starts, ends = [], []
    for name in (*_TIMED, *_SAMPLED):
        table = catalog.table("ledger_ops" if name == "gpu_ops" else name)
        start, end = ("time_ns", "time_ns") if name in _SAMPLED else ("start_ns", "end_ns")
        starts.append(pc.min(table[start]).as_py())
        ends.append(pc.max(table[end]).as_py())
    known = [(start, end) for start, end in zip(starts, ends, strict=True) if start is not None]
    return (min(start for start, _ in known), max(end for _, end in known)) if known else None


def _gpus(ops: pa.Table, devices: pa.Table) -> list[GpuWork]:
    """One row a GPU with operations, sorted by its number."""
    names = dict(zip(devices["device"].to_pylist(), devices["name"].to_pylist(), strict=True))
    device = frames.ints(ops, "device")
    communication = frames.equals(ops, "class", "communication")
    aside = pc.fill_null(ops["quarantined"], False).to_numpy()
    kinds = {kind: frames.equals(ops, "kind", kind) for kind in ("kernel", "memcpy", "memset", "graph")}
    result = []
    for one in np.unique(device).tolist():
        here = device == one
        kernels, copies, memsets, graphs = (int((here & of_kind).sum()) for of_kind in kinds.values())
        number = None if one == frames.NULL else one
        talking = int((here & communication & kinds["kernel"]).sum())
        result.append(
            GpuWork(number, names.get(number), kernels, talking, copies, memsets, graphs, int((here & aside).sum()))
        )
    return result


def _launched(ops: pa.Table, launches: pa.Table) -> tuple[frames.Flags, frames.Flags, frames.Flags]:
    """Which operations have a launch record; of the others, which are migrations and which were queued before recording began.

    A stream runs its operations in order. So what has no record and starts before the first one with a record on its stream was queued
    before; on a stream without any record the GPU's first one decides.
    """
    linked = np.isin(frames.ints(ops, "row"), frames.ints(launches, "op"))
    kind, kinds = frames.codes(ops, "copy_kind")
    moved = np.array([bool(k and k.startswith("uvm")) for k in kinds])[kind] & ~linked
    start = frames.ints(ops, "start_ns")
    gpu = frames.dense(*(frames.ints(ops, c) for c in ("rank", "process", "device")))
    stream = frames.dense(gpu, *(frames.ints(ops, c) for c in ("context", "stream")))
    on_stream, on_gpu = _first(stream, start, linked), _first(gpu, start, linked)
    first = np.where(on_stream < _NEVER, on_stream, on_gpu)
    return linked, moved, ~linked & ~moved & (first < _NEVER) & (start < first)


def _first(group: Array, start: Array, wanted: frames.Flags) -> Array:
    """For each row the earliest start among the wanted rows of its group, `_NEVER` when there is none."""
    earliest = np.full(int(group.max(initial=-1)) + 1, _NEVER)
    np.minimum.at(earliest, group[wanted], start[wanted])
    return earliest[group]


def _graph_kernels(launches: pa.Table) -> int:
    """Kernels that the launch of a CUDA graph started, each with a record of its own."""
    index, values = frames.codes(launches, "api_name")
    launching = np.array([value is not None and "GraphLaunch" in value for value in values])
    return int((launching[index] & frames.equals(launches, "op_kind", "kernel")).sum())


def _counts(table: pa.Table, column: str) -> dict[str, int]:
    """Rows by value of a column of names, sorted by name; a null counts as "unnamed"."""
    index, values = frames.codes(table, column)
    rows = np.bincount(index, minlength=len(values)).tolist()
    found = {value or "unnamed": count for value, count in zip(values, rows, strict=True) if count}
    return dict(sorted(found.items()))


def _valid(table: pa.Table, column: str) -> int:
    return int(pc.count(table[column]).as_py())


def _described_collectives(collectives: pa.Table) -> int:
    """Collectives that say what they are: on the GPU, or as NCCL's own calls ask for them."""
    of_nccl = frames.where(collectives, "name", lambda name: name.startswith(nccl_calls.PREFIX))
    return int((of_nccl | pc.is_null(collectives["thread"]).to_numpy()).sum())


def _threads(*tables: pa.Table) -> int:
    """Threads on which something was recorded."""
    columns = [np.concatenate([frames.ints(table, c) for table in tables]) for c in ("rank", "process", "thread")]
    return int(frames.dense(*columns).max(initial=-1)) + 1
