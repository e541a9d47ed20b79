"""The rows that show a finding: which ones, and a readable line for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.engine import compute
from traceanalyzer.engine.message import shortened, words
from traceanalyzer.engine.names import Expression
from traceanalyzer.engine.rows import TableRows
from traceanalyzer.names import readable_name
from traceanalyzer.result.document import Evidence
from traceanalyzer.units import format_bytes, format_duration

LONGEST_LABEL = 120
# Leaves room in a label for a range and an operation beside each other.
_LONGEST_PART = 50
Row = dict[str, Any]


def evidence(table: str, rows: TableRows, order_by: Expression | None, limit: int) -> list[Evidence]:
    """Up to `limit` rows, the largest by `order_by` first; none for tables without times.

    The default order is by what a row still had to give before the claim, else by length. Rows with nothing left to give show
    nothing of the finding as long as others have.
    """
    names = rows.table.column_names
    if "start_ns" not in names or "end_ns" not in names or not rows.count:
        return []
    weight = compute.as_array(order_by(rows), rows.count) if order_by else rows.column("duration")
    if rows.has_column("unclaimed") and pc.max(left := rows.column("unclaimed")).as_py() > 0:
        weight = pc.if_else(pc.greater(left, 0), weight if order_by else left, None)
    keys = {"weight": compute.to_float(weight)}
    keys |= {name: rows.column(name) for name in ("rank", "device", "start_ns", "end_ns") if name in names}
    order = [(name, "descending" if name == "weight" else "ascending") for name in keys]
    # The row number last: rows that agree in all else keep the order of the table.
    keys["row"] = pa.array(np.arange(rows.count))
    ranked = pa.table(keys).filter(pc.is_valid(keys["weight"]))
    best = ranked.take(pc.sort_indices(ranked, sort_keys=[*order, ("row", "ascending")])[:limit])["row"]
    label = _LABELS.get(table, _event)
    return [
        Evidence(
            row.get("rank"),
            row.get("device"),
            row["start_ns"],
            row["end_ns"],
            shortened(label(row | {"duration": row["end_ns"] - row["start_ns"]}), LONGEST_LABEL),
        )
        for row in rows.table.take(best).to_pylist()
    ]


def _gap(row: Row) -> str:
    what = f"{format_duration(row['duration'])} idle, {words(row['cause'])}"
    detail = row["wait_name"] or row["range_name"]
    what += f": {_part(detail)}" if detail else ""
    return what + (f", before {_part(row['next_op_name'])}" if row["next_op_name"] else "")


def _copy(row: Row) -> str:
    size = "" if row["bytes"] is None else f"{format_bytes(row['bytes'])} "
    memory = " pageable" if row["pageable"] else ""
    exposed = f", {format_duration(row['exposed'])} exposed" if row["exposed"] is not None else ""
    where = f", in {_part(row['range_name'])}" if row["range_name"] else ""
    return f"{size}{words(row['copy_kind'] or 'unknown')}{memory}{exposed or ', ' + format_duration(row['duration'])}{where}"


def _communication(row: Row) -> str:
    exposed = row["exposed"] if row["exposed"] is not None else row["duration"]
    return f"{format_duration(row['duration'])}, {format_duration(exposed)} exposed: {_part(row['name'])}"


def _launch(row: Row) -> str:
    return f"{format_duration(row['duration'])} in {_part(row['api_name'])}, queued {format_duration(row['queue_delay'] or 0)}"


def _event(row: Row) -> str:
    name = next((row[key] for key in ("name", "api_name", "line") if row.get(key)), None)
    return format_duration(row["duration"]) + (f": {_part(name)}" if name else "")


_LABELS: dict[str, Callable[[Row], str]] = {
    "gaps": _gap,
    "copies": _copy,
    "communication": _communication,
    "launches": _launch,
}


def _part(name: str | None) -> str:
    return readable_name(name or "an operation", _LONGEST_PART)
