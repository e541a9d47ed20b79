"""The rows that show a finding: which ones, and a readable line for each."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.engine.labels import label_of
from traceanalyzer.engine.language import compute
from traceanalyzer.engine.language.message import shorten
from traceanalyzer.engine.language.names import Expression
from traceanalyzer.engine.rows import GPU_KEYS, TableRows
from traceanalyzer.names import brief_name
from traceanalyzer.result.document import Evidence
from traceanalyzer.vocabulary.lines import cause_of_line, cause_words

LONGEST_LABEL = 120
Row = dict[str, Any]


def evidence(table: str, rows: TableRows, order_by: Expression | None, limit: int) -> list[Evidence]:
    """Up to `limit` rows, the largest by `order_by` first; none for tables without times. A rank that others waited for is shown too.

    The default order is by what a row still had to give before the claim, else by length. Rows with nothing left to give show
    nothing of the finding as long as others have.
    """
    if not (rows.has_column("start_ns") and rows.has_column("end_ns") and rows.count):
        return []
    left = rows.has_column("unclaimed") and pc.max(rows.column("unclaimed")).as_py() > 0
    best, first = None, 0
    # Of rows that weigh the same the earliest is shown.
    in_turn = bool(left and rows.many and rows.in_turn)
    for block in rows.blocks():
        if best is None or order_by or len(best) < limit or _may_outweigh(block, left, best["weight"][-1], in_turn):
            heaviest = _heaviest(block, _weight(block, order_by, left), limit, first)
            best = heaviest if best is None else _in_order(pa.concat_tables([best, heaviest]))[:limit]
        first += block.count
    assert best is not None
    label = label_of(table)
    found: list[Evidence] = []
    for row in rows.records(best["row"].to_numpy()):
        if "late_cause" in row and row["late"]:
            late = _shown(row["late_rank"], row["late_device"], row["late_start_ns"], row["late_end_ns"], _late(row))
            found += [late] if late not in found else []
        row["duration"] = row["end_ns"] - row["start_ns"]
        found.append(_shown(row.get("rank"), row.get("device"), row["start_ns"], row["end_ns"], label(row)))
    return found[:limit]


def _shown(rank: int | None, device: int | None, start: int, end: int, label: str) -> Evidence:
    return Evidence(rank, device, start, end, shorten(label, LONGEST_LABEL))


def _weight(rows: TableRows, order_by: Expression | None, left: bool) -> pa.Array:
    """By what rows are ordered; `left` says that there are some with something left to give."""
    weight = compute.as_array(order_by(rows), rows.count) if order_by else rows.column("duration")
    if left:
        unclaimed = rows.column("unclaimed")
        weight = pc.if_else(pc.greater(unclaimed, 0), weight if order_by else unclaimed, None)
    return compute.to_float(weight)


def _may_outweigh(rows: TableRows, left: bool, least: pa.Scalar, in_turn: bool) -> bool:
    """Whether any of these rows may be shown, in the default order, rather than an earlier one of the `least` weight."""
    most = pc.max(rows.column("unclaimed" if left else "duration"))
    if not most.is_valid:
        return False
    most = compute.to_float(most)
    return bool(most.as_py() > least.as_py() or (most == least and not in_turn))


def _heaviest(rows: TableRows, weight: pa.Array, limit: int, first: int) -> pa.Table:
    """The `limit` rows of the largest weight that is not null, in the order in which they are shown; `row` counts from `first`."""
    # Sorted are only those that may be among them, which is few of a million.
    near = pc.is_valid(weight)
    if limit < len(weight) - weight.null_count:
        near = pc.greater_equal(weight, weight[pc.top_k_unstable(weight, limit)[-1].as_py()])
    near = pc.indices_nonzero(near)
    keys = {"weight": weight.take(near)}
    few = rows.some(near.to_numpy())
    keys |= {name: few.column(name) for name in (*GPU_KEYS, "start_ns", "end_ns") if rows.has_column(name)}
    # The row number last: rows that agree in all else keep the order of the table.
    return _in_order(pa.table(keys | {"row": pc.add(near.cast(pa.int64()), first)}))[:limit]


def _in_order(found: pa.Table) -> pa.Table:
    order = [(name, "descending" if name == "weight" else "ascending") for name in found.column_names]
    return found.take(pc.sort_indices(found, sort_keys=order))


def _late(row: Row) -> str:
    doing = f", {cause_words(cause_of_line(row['late_cause']))}" if row["late_cause"] else ""
    detail = f": {brief_name(row['late_doing'])}" if row["late_doing"] else ""
    return f"late: {row['late']}{doing}{detail}"
