"""The comms logger's last summary, beside the kernels of the trace that it is beside."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.evidence.deepspeed_log.answers.run import OUTSIDE_STEPS
from traceanalyzer.evidence.deepspeed_log.derived_tables import COLLECTIVES

_KINDS = (
    ("all-gather", ("all_gather", "allgather")),
    ("reduce-scatter", ("reduce_scatter",)),
    ("all-reduce", ("all_reduce",)),
    ("all-to-all", ("all_to_all",)),
    ("broadcast", ("broadcast",)),
    ("reduce", ("reduce",)),
)
"""As the trace's tables call them, by what the names of operations hold: the first that does decides."""
ROUNDED = 0.006
"""Sizes are printed with two decimals: of a size as "1.0 MB" that is half a hundredth."""
Row = dict[str, Any]


def kind_of(op: str) -> str | None:
    """What the trace's tables call an operation of torch.distributed."""
    return next((kind for kind, words in _KINDS if any(word in op for word in words)), None)


def collectives(deepspeed_run: pa.Table, deepspeed_comms: pa.Table, communication: pa.Table) -> pa.Table:
    """One row a line of the last summary of each rank."""
    rows: list[Row] = []
    for run in deepspeed_run.to_pylist():
        own, kernels = (
            table.filter(pc.equal(table["rank"], run["rank"])) for table in (deepspeed_comms, communication)
        )
        if not own.num_rows:
            continue
        last = own.filter(pc.equal(own["summary"], pc.max(own["summary"]).as_py()))
        lines = sorted(last.to_pylist(), key=_place)
        rows += [_row(order, line, run, kernels) for order, line in enumerate(lines)]
    return pa.Table.from_pylist(rows, COLLECTIVES.schema)


def _place(line: Row) -> tuple[bool, int, str, int]:
    """What steps do first, then by total."""
    return line["op"] in OUTSIDE_STEPS, -(line["total"] or 0), line["op"], line["bytes"]


def _row(order: int, line: Row, run: Row, kernels: pa.Table) -> Row:
    took = _durations(line, kernels)
    seen = {
        "traced": len(took) or None,
        "traced_median": round(float(np.median(took))) if len(took) else None,
        "traced_most": int(took.max()) if len(took) else None,
    }
    row = {name: line[name] for name in ("rank", "op", "bytes", "calls", "average", "total", "straggler")}
    row |= {"inside": line["op"] not in OUTSIDE_STEPS, "summed": bool(run["cumulative"])}
    return row | {"order": order, **seen, "meaning": _meaning(line, run, seen)}


def _durations(line: Row, kernels: pa.Table) -> Any:
    """How long each kernel of the trace took that moves such a message: its size is what a rank puts in."""
    kind = kind_of(line["op"])
    if kind is None or not kernels.num_rows:
        return np.zeros(0, np.int64)
    own = kernels.filter(pc.equal(kernels["kind"].cast(pa.string()), kind))
    size = own["in_bytes"].fill_null(-1).to_numpy()
    near = (
        np.abs(size - line["bytes"]) <= max(ROUNDED * line["bytes"], 1) if line["bytes"] else np.zeros(len(size), bool)
    )
    return (own["end_ns"].to_numpy() - own["start_ns"].to_numpy())[near]


def _meaning(line: Row, run: Row, seen: Row) -> str:
    if run["cumulative"]:
        return "nothing: it holds all earlier calls too"
    if line["straggler"] is not None and line["total"]:
        return "with the waiting that the column beside has"
    if seen["traced_most"] and line["average"] and line["average"] > 2 * seen["traced_most"]:
        return "mostly waiting: kernels in the trace are shorter"
    return "an upper bound: waiting for others is in it"
