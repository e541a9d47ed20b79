"""From input files to one trace: find the importer, number the ranks, bring the tables into their declared form."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer import intervals
from traceanalyzer.errors import InputError
from traceanalyzer.ingest import gpu_rows
from traceanalyzer.ingest.contract import FileFacts, Importer
from traceanalyzer.ingest.registry import importer_of
from traceanalyzer.ingest.sources import Source, find_sources
from traceanalyzer.ingest.steps import find_steps
from traceanalyzer.model.schema import EVENT_TABLES, TableSpec
from traceanalyzer.model.trace import Input, Trace

ProgressFactory = Callable[[Source], Callable[[int], None]]

SORT_KEYS: dict[str, list[tuple[str, str]]] = {
    "gpu_ops": [(k, "ascending") for k in ("device", "start_ns", "end_ns", "process", "stream", "correlation")],
    "api_calls": [
        *((k, "ascending") for k in ("process", "thread", "start_ns")),
        ("end_ns", "descending"),
        ("correlation", "ascending"),
    ],
    "host_ranges": [
        *((k, "ascending") for k in ("process", "thread", "start_ns")),
        ("end_ns", "descending"),
        ("external_id", "ascending"),
    ],
    "overheads": [("start_ns", "ascending"), ("end_ns", "ascending")],
    "collectives": [(k, "ascending") for k in ("device", "start_ns", "end_ns", "stream")],
    "counters": [(k, "ascending") for k in ("device", "time_ns")],
    "memory_events": [(k, "ascending") for k in ("process", "time_ns", "address")],
    "devices": [("device", "ascending")],
    "processes": [("process", "ascending")],
    "threads": [("process", "ascending"), ("thread", "ascending")],
    "health": [("code", "ascending"), ("message", "ascending")],
}


def ingest(paths: list[Path], progress: ProgressFactory | None = None) -> Trace:
    """Read every trace file behind `paths`. `progress(source)` gives the function that hears of bytes read.

    Raises InputError for what cannot be read, and for two files that claim the same rank.
    """
    sources = find_sources(paths)
    chosen = [importer_of(source) for source in sources]
    read = [
        _read(source, importer, progress(source) if progress else lambda _: None)
        for source, importer in zip(sources, chosen, strict=True)
    ]
    ordinals = _ordinals(sources, [facts for facts, _ in read])
    inputs = tuple(
        Input(
            path=str(source.path),
            sha256=source.sha256(),
            bytes=source.size,
            format=importer.format,
            producer=facts.producer,
            rank=facts.rank,
            world_size=facts.world_size,
            ordinal=ordinal,
            clock_base_ns=facts.clock_base_ns,
        )
        for source, importer, (facts, _), ordinal in zip(sources, chosen, read, ordinals, strict=True)
    )
    by_rank = sorted(zip(ordinals, (tables for _, tables in read), strict=True), key=lambda item: item[0])
    return Trace(inputs, {name: _stacked(name, by_rank) for name in EVENT_TABLES})


def _stacked(name: str, by_rank: list[tuple[int, dict[str, pa.Table]]]) -> pa.Table:
    """One table of all ranks, in their order."""
    parts, rows = [], 0
    for ordinal, tables in by_rank:
        part = _with_rank(tables[name], ordinal)
        if "parent" in part.column_names and rows:
            part = _replace(part, "parent", pc.add(part["parent"], rows))
        rows += part.num_rows
        parts.append(part)
    return pa.concat_tables(parts).unify_dictionaries().combine_chunks()


def _ordinals(sources: list[Source], facts: list[FileFacts]) -> list[int]:
    """The value of the `rank` column for each file: the rank it states, else the next free number."""
    claimed: dict[int, Source] = {}
    for source, fact in zip(sources, facts, strict=True):
        if fact.rank is None:
            continue
        if fact.rank in claimed:
            raise InputError(
                f"{source.path}: says it is rank {fact.rank}, and so does {claimed[fact.rank].path}; leave one of them out"
            )
        claimed[fact.rank] = source
    free = (n for n in range(len(sources) + len(claimed)) if n not in claimed)
    return [next(free) if fact.rank is None else fact.rank for fact in facts]


class _Collector:
    """A sink that keeps everything in memory."""

    def __init__(self) -> None:
        self._batches: dict[str, list[pa.Table]] = defaultdict(list)
        self._health: dict[tuple[str, str, str], tuple[int, str | None]] = {}

    def add(self, table: str, batch: pa.Table | pa.RecordBatch) -> None:
        rows = batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])
        if rows.num_rows:
            self._batches[table].append(_conform(rows, EVENT_TABLES[table]))

    def health(self, code: str, severity: str, message: str, count: int = 1, example: str | None = None) -> None:
        before, first = self._health.get((code, severity, message), (0, None))
        self._health[code, severity, message] = (before + count, first if first is not None else example)

    def tables(self, facts: FileFacts) -> dict[str, pa.Table]:
        tables = {name: self._joined(spec) for name, spec in EVENT_TABLES.items() if name != "health"}
        tables["gpu_ops"] = self._judged(tables["gpu_ops"], tables["api_calls"], tables["host_ranges"])
        self._report()
        tables["health"] = self._joined(EVENT_TABLES["health"])
        tables = {name: _finished(name, table, facts) for name, table in tables.items()}
        tables["host_ranges"] = _nested(tables["host_ranges"])
        tables["steps"] = _conform(find_steps(tables["host_ranges"]), EVENT_TABLES["steps"])
        return tables

    def _joined(self, spec: TableSpec) -> pa.Table:
        batches = self._batches.pop(spec.name, [])
        table = pa.concat_tables(batches).unify_dictionaries().combine_chunks() if batches else spec.empty()
        if "correlation" in table.column_names:
            # No call has the id 0: it says that there is none.
            real = pc.if_else(pc.equal(table["correlation"], 0), pa.scalar(None, pa.int64()), table["correlation"])
            table = _replace(table, "correlation", real)
        return table

    def _judged(self, ops: pa.Table, calls: pa.Table, ranges: pa.Table) -> pa.Table:
        """The operations with what the whole file says of them: their process, and whether their times can be."""
        if not ops.num_rows:
            return ops
        if ops["process"].null_count and len(pc.unique(calls["process"])) > 1:
            ops = _replace(ops, "process", gpu_rows.owners(ops, calls))
        given = pc.fill_null(ops["quarantined"], False).to_numpy()
        found = gpu_rows.swallowing(ops)
        if ops["quarantined"].null_count:
            found |= gpu_rows.impossible(ops, [calls, ranges])
        found &= ~given
        if found.any():
            message = "GPU operations with impossible times were set aside: they are not on the ledger"
            example = ops["name"][int(np.flatnonzero(found)[0])].as_py()
            self.health("TRC007", "low", message, int(found.sum()), example)
        return _replace(ops, "quarantined", pa.array(found | given))

    def _report(self) -> None:
        for (code, severity, message), (count, example) in self._health.items():
            row = {"code": code, "severity": severity, "message": message, "count": count, "example": example}
            self.add("health", pa.Table.from_pylist([row]))


def _finished(name: str, table: pa.Table, facts: FileFacts) -> pa.Table:
    if "process" in table.column_names and facts.process is not None:
        table = _replace(table, "process", pc.fill_null(table["process"], facts.process))
    keys = SORT_KEYS.get(name)
    return table.sort_by(keys).combine_chunks() if keys else table


def _read(source: Source, importer: Importer, progress: Callable[[int], None]) -> tuple[FileFacts, dict[str, pa.Table]]:
    collector = _Collector()
    facts = importer.read(source, collector, progress)
    return facts, collector.tables(facts)


def _conform(rows: pa.Table, spec: TableSpec) -> pa.Table:
    """The declared columns in their order and types; absent ones are null. `rank` stays null until the ranks are known."""
    unknown = set(rows.column_names) - set(spec.schema.names)
    if unknown:
        raise ValueError(f"{spec.name} has no column {', '.join(sorted(unknown))}")
    columns = [
        rows[field.name].cast(field.type) if field.name in rows.column_names else pa.nulls(rows.num_rows, field.type)
        for field in spec.schema
    ]
    return pa.Table.from_arrays(columns, schema=spec.schema)


def _replace(table: pa.Table, name: str, values: pa.Array | pa.ChunkedArray) -> pa.Table:
    index = table.schema.get_field_index(name)
    return table.set_column(index, table.schema.field(index), values)


def _with_rank(table: pa.Table, ordinal: int) -> pa.Table:
    return _replace(table, "rank", pa.repeat(pa.scalar(ordinal, pa.int32()), table.num_rows))


def _nested(ranges: pa.Table) -> pa.Table:
    """Fill `depth` and `parent`, thread by thread. The ranges are sorted by (process, thread, start, -end)."""
    if not ranges.num_rows:
        return ranges
    starts, ends = ranges["start_ns"].to_numpy(), ranges["end_ns"].to_numpy()
    depth, parent = np.empty(len(starts), np.int64), np.empty(len(starts), np.int64)
    for first, stop in _thread_slices(ranges):
        depth[first:stop], inside = intervals.nesting(starts[first:stop], ends[first:stop])
        parent[first:stop] = np.where(inside >= 0, inside + first, -1)
    ranges = _replace(ranges, "depth", pa.array(depth, pa.int32()))
    return _replace(ranges, "parent", pa.array(parent, mask=parent < 0))


def _thread_slices(table: pa.Table) -> list[tuple[int, int]]:
    """Row ranges of each thread in a table sorted by (process, thread)."""
    process = pc.fill_null(table["process"], -1).to_numpy()
    thread = pc.fill_null(table["thread"], -1).to_numpy()
    change = np.flatnonzero((np.diff(process) != 0) | (np.diff(thread) != 0)) + 1
    bounds = [0, *change.tolist(), len(process)]
    return list(pairwise(bounds))
