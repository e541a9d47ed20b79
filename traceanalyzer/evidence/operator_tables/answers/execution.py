"""What an execution trace tells alone, and of the trace beside it. It holds no times."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import Array, Flags
from traceanalyzer.derive.roofline.formulas import work_of
from traceanalyzer.evidence.operator_tables.answers.sums import beside_a_trace
from traceanalyzer.evidence.operator_tables.derived_tables import (
    EXECUTION_COLLECTIVES,
    EXECUTION_OPERATORS,
    EXECUTION_SUMMARY,
)
from traceanalyzer.evidence.operator_tables.joining import matched

MOST_OPERATORS = 40
_Work = tuple[float, str]
"""Floating-point operations, and what is multiplied in words."""
_DEEPEST = 64
_ALIKE = ("name", "shapes", "dtypes", "arguments")


def execution_summary(
    execution_nodes: pa.Table, execution_traces: pa.Table, host_ranges: pa.Table, placed_evidence: pa.Table
) -> pa.Table:
    """One row an execution trace."""
    beside = beside_a_trace(placed_evidence)
    rows = []
    for trace in execution_traces.sort_by([("rank", "ascending"), ("file", "ascending")]).to_pylist():
        nodes = _of(execution_nodes, trace)
        operators = nodes.filter(pc.fill_null(nodes["operator"], False))
        counts = list(_counts(operators))
        known = [row["inner_flops"] for row in counts if row["inner_flops"] is not None]
        alone = trace["rank"] not in beside
        rows.append(
            {
                **{name: trace[name] for name in ("rank", "file", "schema", "threads")},
                "alone": alone,
                "operators": operators.num_rows,
                "ranges": nodes.num_rows - operators.num_rows,
                "names": len({row["name"] for row in counts}),
                "shaped": operators.num_rows - operators["shapes"].null_count,
                "flops": sum(known) if known else None,
                "counted": sum(row["inner"] for row in counts if row["inner_flops"] is not None),
                **({} if alone else _of_trace(operators, host_ranges, trace["rank"])),
            }
        )
    return pa.Table.from_pylist(rows, EXECUTION_SUMMARY.schema)


def _of(table: pa.Table, trace: dict[str, Any]) -> pa.Table:
    return table.filter(pc.and_(pc.equal(table["rank"], trace["rank"]), pc.equal(table["file"], trace["file"])))


def _of_trace(operators: pa.Table, ranges: pa.Table, rank: int) -> dict[str, int]:
    own = ranges.filter(pc.equal(ranges["rank"], rank))
    own = own.filter(pa.array(frames.equals(own, "category", "operator")))
    at, agree = matched(operators, own)
    return {
        "in_trace": own.num_rows,
        "numbered": own.num_rows - own["record_function"].null_count,
        "matched": int((at >= 0).sum()),
        "alike": int(agree.sum()),
    }


def execution_operators(execution_nodes: pa.Table) -> pa.Table:
    """The first of each execution trace."""
    rows = []
    for (rank, file), own in frames.split(
        execution_nodes.sort_by([("rank", "ascending"), ("file", "ascending")]), "rank", "file"
    ):
        counts = list(_counts(own.filter(pc.fill_null(own["operator"], False))))
        counts.sort(key=lambda row: (-(row["inner_flops"] or 0), -row["calls"], row["name"], row["shapes"] or ""))
        for order, row in enumerate(counts[:MOST_OPERATORS]):
            told = {name: row[name] for name in ("name", "shapes", "dtypes", "calls", "sizes")}
            rows.append({"rank": rank, "file": file, "order": order, **told, "flops": row["inner_flops"] or None})
    return pa.Table.from_pylist(rows, EXECUTION_OPERATORS.schema)


def _counts(operators: pa.Table) -> Iterator[dict[str, Any]]:
    """Operators that are alike. What one does is also done by those that it ran in: `inner` counts only the innermost that tell."""
    some = pa.table({name: operators[name].cast(pa.string()) for name in _ALIKE})
    keys, works = _alike(some)
    told = np.array([work is not None for work in works], bool)[keys] if len(works) else np.zeros(0, bool)
    inner = np.bincount(keys[~_around(operators, told)], minlength=len(works))
    calls = np.bincount(keys, minlength=len(works))
    first = np.full(len(works), len(keys))
    np.minimum.at(first, keys, np.arange(len(keys)))
    rows = some.take(pa.array(first)).to_pylist()
    for at, (row, work) in enumerate(zip(rows, works, strict=True)):
        yield {
            **{name: row[name] for name in ("name", "shapes", "dtypes")},
            "calls": int(calls[at]),
            "inner": int(inner[at]),
            "inner_flops": work[0] * int(inner[at]) if work else None,
            "sizes": work[1] if work else None,
        }


def _alike(some: pa.Table) -> tuple[Array, list[_Work | None]]:
    """By operator the number of those that are alike, and what each of these has to do."""
    codes = [some[name].combine_chunks().dictionary_encode(null_encoding="encode") for name in _ALIKE]
    keys = frames.dense(*(one.indices.cast(pa.int64()).to_numpy() for one in codes))
    _, first = np.unique(keys, return_index=True)
    rows = some.take(pa.array(first)).to_pylist()
    told = (work_of(*(row[name] or "" for name in _ALIKE)) for row in rows)
    return keys, [(float(work.flops), work.sizes) if work else None for work in told]


def _around(operators: pa.Table, told: Flags) -> Flags:
    """Whether something that tells its work ran within an operator."""
    ids, parents = frames.ints(operators, "node"), frames.ints(operators, "parent")
    order = np.argsort(ids, kind="stable")
    around = np.zeros(len(ids), bool)
    now = np.flatnonzero(told)
    for _ in range(_DEEPEST):
        if not len(now):
            break
        place = np.minimum(np.searchsorted(ids, parents[now], sorter=order), len(ids) - 1)
        above = order[place]
        above = above[(ids[above] == parents[now]) & (parents[now] != frames.NULL)]
        now = np.unique(above[~around[above]])
        around[now] = True
    return around


def execution_collectives(execution_nodes: pa.Table) -> pa.Table:
    """Of each execution trace."""
    some = execution_nodes.filter(pc.is_valid(execution_nodes["collective"]))
    keys = ("rank", "file", "collective", "group", "group_size", "dtype", "elements")
    columns = {name: some[name] for name in keys}
    columns |= {name: some[name].cast(pa.string()) for name in ("collective", "group", "dtype")}
    counts = pa.table(columns).group_by(list(keys), use_threads=False).aggregate([([], "count_all")])
    order = [(name, "ascending") for name in ("rank", "file")] + [("elements", "descending")]
    order += [(name, "ascending") for name in ("collective", "group", "dtype", "group_size")]
    rows: list[dict[str, Any]] = []
    places: dict[tuple[int, int], int] = {}
    for row in counts.sort_by(order).to_pylist():
        whose = (row["rank"], row["file"])
        places[whose] = places.get(whose, -1) + 1
        if places[whose] < MOST_OPERATORS:
            rows.append({**row, "order": places[whose], "name": row["collective"], "calls": row["count_all"]})
    wanted = EXECUTION_COLLECTIVES.schema.names
    return pa.Table.from_pylist([{name: row[name] for name in wanted} for row in rows], EXECUTION_COLLECTIVES.schema)
