"""API calls, NVTX ranges and the profiler's own overhead: what happened on host threads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.ingest.classify import api_class, map_names, plain_api_name
from traceanalyzer.ingest.nsys import tables
from traceanalyzer.ingest.nsys.database import Database
from traceanalyzer.ingest.nsys.lookups import Ints, Strings, from_unique, integers

# SQLite sorts, so that a big export need not fit into memory.
_ORDER = 'process, thread, start, "end" desc'
# PyTorch's emit_nvtx appends an operator's arguments to its name:
# "aten::add, seq = 7, op_id = 3, sizes = [[2, 2]], input_op_ids = [(0,-1)]".
_OPERATOR = (
    r"^(?P<name>.+?)(?:, seq = (?P<sequence>\d{1,18}))?, op_id = \d+"
    r"(?:, sizes = (?P<shapes>\[.*?\]))?(?:, input_op_ids = .*)?$"
)
# CUPTI's own numbers for what it spent time on.
_CUPTI_OVERHEADS = {
    1: "CUPTI: driver compiler",
    1 << 16: "CUPTI: buffer flush",
    2 << 16: "CUPTI: instrumentation",
    3 << 16: "CUPTI: resource management",
    4 << 16: "CUPTI: module loading on first use",
    5 << 16: "CUPTI: lazy function loading",
    6 << 16: "CUPTI: command buffer full",
    7 << 16: "CUPTI: activity buffer request",
}


@dataclass
class Repairs:
    """How many rows had to be corrected: `opened` had no end, `reversed` ended before their start."""

    opened: int = 0
    reversed: int = 0

    def span(self, column: dict[str, pa.Array], last: int) -> tuple[Ints, Ints]:
        """Start and end of each row. A missing end becomes `last`, the end of the records."""
        start, missing = integers(column["start"]), np.asarray(column["end"].is_null())
        end = np.where(missing, np.maximum(start, last), integers(column["end"]))
        self.opened += int(missing.sum())
        self.reversed += int((end < start).sum())
        return start, np.maximum(start, end)


def read_api_calls(
    database: Database, strings: Strings, repairs: Repairs, last: int, process: int
) -> Iterator[pa.Table]:
    """Batches of `api_calls`, runtime and driver calls alike, ordered by process, thread and start."""
    sql = tables.select(database, tables.RUNTIME, "start is not null", _ORDER)
    for column in _columns(database, sql):
        start, end = repairs.span(column, last)
        raw = strings.names(column["name"], "unknown call")
        plain = map_names(raw, plain_api_name)
        yield pa.table(
            {
                "process": integers(column["process"], process),
                "thread": column["thread"],
                "start_ns": start,
                "end_ns": end,
                "name": plain,
                "raw_name": raw,
                "class": map_names(plain, api_class),
                "correlation": column["correlation"],
            }
        )


def read_host_ranges(
    database: Database, strings: Strings, repairs: Repairs, last: int, process: int
) -> Iterator[pa.Table]:
    """Batches of `host_ranges` of all NVTX domains, ordered by process, thread and start."""
    ranges = f'type in {tables.NVTX_RANGES} or (type is null and "end" is not null)'
    sql = tables.select(database, tables.NVTX, f"start is not null and ({ranges})", _ORDER)
    for column in _columns(database, sql):
        start, end = repairs.span(column, last)
        text = pc.if_else(pc.equal(column["text"], ""), pa.scalar(None, pa.string()), column["text"])
        registered = strings.names(column["text_id"], "(unnamed range)").dictionary_decode()
        yield pa.table(
            {
                "process": integers(column["process"], process),
                "thread": column["thread"],
                "start_ns": start,
                "end_ns": end,
                **_described(pc.coalesce(text, registered).dictionary_encode()),
            }
        )


def read_overheads(
    database: Database, strings: Strings, repairs: Repairs, last: int, process: int
) -> Iterator[pa.Table]:
    """Batches of `overheads`: what Nsight Systems and CUPTI say that they cost."""
    for table in (tables.OVERHEAD, tables.CUPTI_OVERHEAD):
        for column in _columns(database, tables.select(database, table, "start is not null", _ORDER)):
            start, end = repairs.span(column, last)
            names = strings.names(column["name"], None)
            if "kind" in column:
                kinds = from_unique(integers(column["kind"], -1), lambda key: _CUPTI_OVERHEADS.get(key, "CUPTI: other"))
                names = pc.coalesce(names.dictionary_decode(), kinds.dictionary_decode()).dictionary_encode()
            owner = integers(column["process"], process)
            yield pa.table(
                {"process": owner, "thread": column["thread"], "start_ns": start, "end_ns": end, "name": names}
            )


def _columns(database: Database, sql: str | None) -> Iterator[dict[str, pa.Array]]:
    for batch in database.batches(sql) if sql else ():
        yield dict(zip(batch.schema.names, batch.columns, strict=True))


def _described(names: pa.DictionaryArray) -> dict[str, pa.Array]:
    """Name, category and arguments of ranges. Arguments leave the names of PyTorch operators, so that they group."""
    parsed = pc.extract_regex(names.dictionary, _OPERATOR)
    name, sequence, shapes = (pc.struct_field(parsed, part) for part in ("name", "sequence", "shapes"))
    is_operator = pc.fill_null(pc.match_substring(name, "::"), False)
    category = pc.if_else(is_operator, "operator", "nvtx").dictionary_encode()
    shapes = pc.if_else(pc.equal(shapes, ""), pa.scalar(None, pa.string()), shapes)
    numbers = pc.if_else(pc.equal(sequence, ""), pa.scalar(None, pa.string()), sequence).cast(pa.int64())
    plain = pc.coalesce(name, names.dictionary).dictionary_encode()
    take = names.indices
    return {
        "name": pa.DictionaryArray.from_arrays(plain.indices.take(take), plain.dictionary),
        "category": pa.DictionaryArray.from_arrays(category.indices.take(take), category.dictionary),
        "shapes": shapes.take(take),
        "sequence": numbers.take(take),
    }
