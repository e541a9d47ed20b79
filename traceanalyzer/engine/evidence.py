"""The rows that show a finding: which ones, and a readable line for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.engine.language import compute
from traceanalyzer.engine.language.message import shortened
from traceanalyzer.engine.language.names import Expression
from traceanalyzer.engine.rows import GPU_KEYS, TableRows
from traceanalyzer.names import readable_name
from traceanalyzer.result.document import Evidence
from traceanalyzer.units import format_bytes, format_duration, format_share
from traceanalyzer.vocabulary.copies import way
from traceanalyzer.vocabulary.lines import COMPUTE, INPUT, cause_of_line, cause_words

LONGEST_LABEL = 120
# Leaves room in a label for a range and an operation beside each other.
_LONGEST_PART = 50
# What the host did comes before what followed; of that the start says enough.
_LONGEST_PLACE = 75
Row = dict[str, Any]


def evidence(table: str, rows: TableRows, order_by: Expression | None, limit: int) -> list[Evidence]:
    """Up to `limit` rows, the largest by `order_by` first; none for tables without times. A rank that others waited for is shown too.

    The default order is by what a row still had to give before the claim, else by length. Rows with nothing left to give show
    nothing of the finding as long as others have.
    """
    if not (rows.has_column("start_ns") and rows.has_column("end_ns") and rows.count):
        return []
    weight = compute.as_array(order_by(rows), rows.count) if order_by else rows.column("duration")
    if rows.has_column("unclaimed") and pc.max(left := rows.column("unclaimed")).as_py() > 0:
        weight = pc.if_else(pc.greater(left, 0), weight if order_by else left, None)
    best = _heaviest(rows, compute.to_float(weight), limit)
    label = _LABELS.get(table, _event)
    found: list[Evidence] = []
    for row in rows.records(best):
        if table in ("collective_waits", "mpi_waits") and row["late"]:
            late = _shown(row["late_rank"], row["late_device"], row["late_start_ns"], row["late_end_ns"], _late(row))
            found += [late] if late not in found else []
        row["duration"] = row["end_ns"] - row["start_ns"]
        found.append(_shown(row.get("rank"), row.get("device"), row["start_ns"], row["end_ns"], label(row)))
    return found[:limit]


def _shown(rank: int | None, device: int | None, start: int, end: int, label: str) -> Evidence:
    return Evidence(rank, device, start, end, shortened(label, LONGEST_LABEL))


def _heaviest(rows: TableRows, weight: pa.Array, limit: int) -> pa.Array:
    """Positions of the `limit` rows of the largest weight that is not null, in the order in which they are shown."""
    # Sorted are only those that may be among them, which is few of a million.
    near = pc.is_valid(weight)
    if limit < len(weight) - weight.null_count:
        near = pc.greater_equal(weight, weight[pc.top_k_unstable(weight, limit)[-1].as_py()])
    near = pc.indices_nonzero(near)
    keys = {"weight": weight.take(near)}
    keys |= {name: rows.column(name).take(near) for name in (*GPU_KEYS, "start_ns", "end_ns") if rows.has_column(name)}
    order = [(name, "descending" if name == "weight" else "ascending") for name in keys]
    # The row number last: rows that agree in all else keep the order of the table.
    ranked = pa.table(keys | {"row": near})
    return ranked.take(pc.sort_indices(ranked, sort_keys=[*order, ("row", "ascending")])[:limit])["row"]


def _gap(row: Row) -> str:
    what = f"{format_duration(row['duration'])} idle, {cause_words(row['cause'])}"
    # A loader's own range says more than what it happens to run.
    where = row["range_name"] if row["cause"] == INPUT.cause else row["place"] or row["range_name"]
    details = [readable_name(name, _LONGEST_PLACE) for name in (row["wait_name"], where) if name]
    what += f": {' for '.join(dict.fromkeys(details))}" if details else ""
    return what + (f", before {_part(row['next_op_name'])}" if row["next_op_name"] else "")


def _copy(row: Row) -> str:
    size = "" if row["bytes"] is None else f"{format_bytes(row['bytes'])} "
    memory = ", pageable" if row["pageable"] else ""
    exposed = f", {format_duration(row['exposed'])} exposed" if row["exposed"] is not None else ""
    where = f", in {_part(row['range_name'])}" if row["range_name"] else ""
    return f"{size}{way(row['copy_kind'])}{memory}{exposed or ', ' + format_duration(row['duration'])}{where}"


def _burst(row: Row) -> str:
    what = "migrations" if row["managed"] else "copies"
    idle = f", {format_duration(row['idle'])} idle between them" if row["idle"] else ""
    where = f", in {_part(row['range_name'])}" if row["range_name"] else ""
    return f"{row['copies']:,} {what} in {format_duration(row['duration'])}, {format_bytes(row['bytes'])}{idle}{where}"


def _readback(row: Row) -> str:
    size = "" if row["bytes"] is None else f"{format_bytes(row['bytes'])} "
    memory = ", pageable" if row["pageable"] else ""
    idle = f", {format_duration(row['idle'])} idle after it" if row["idle"] else ""
    where = f", in {_part(row['operator'])}" if row["operator"] else ""
    where += f" at {_part(row['source'])}" if row["source"] else ""
    return f"{size}to the host{memory}, {format_duration(row['exposed'])} exposed{idle}{where}"


def _lock(row: Row) -> str:
    meanwhile = f" ran {_part(row['frame'])}" if row["frame"] else " ran Python"
    where = f" in {_part(row['place'])}" if row["place"] else ""
    return f"{format_duration(row['duration'])} waiting for Python's lock{where}; {row['other']}{meanwhile}"


def _pattern(row: Row) -> str:
    what = f"{_part(row['operator'])} {row['detail'] or ''}".rstrip()
    times = f", {row['count']:,} times in {format_duration(row['duration'])}" if row["count"] > 1 else ""
    where = f", at {_part(row['source'])}" if row["source"] else ""
    return f"{what}{times}, {format_duration(row['gpu_time'])} on the GPU{where}"


def _communication(row: Row) -> str:
    exposed = row["exposed"] if row["exposed"] is not None else row["duration"]
    much = "all of it" if exposed == row["duration"] else format_duration(exposed)
    return f"{format_duration(row['duration'])}, {much} exposed: {_part(row['name'])}"


def _waiting(row: Row) -> str:
    what = "waiting" if row["wait"] is not None else "most likely waiting"
    what += f": {format_duration(row['duration'])}" + (f" for {row['late']}" if row["late"] else "")
    return what + (f" in {row['kind']}" if row["kind"] else "")


def _mpi(row: Row) -> str:
    if row["wait"] is None:
        return f"{format_duration(row['duration'])} in {_part(row['name'])}"
    return (
        f"waiting: {format_duration(row['duration'])}"
        + (f" for {row['late']}" if row["late"] else "")
        + f" in {_part(row['name'])}"
    )


def _staged(row: Row) -> str:
    sizes = f"{format_bytes(row['down'])} to the host, {_part(row['name'])}, {format_bytes(row['up'])} to the GPU"
    return f"{format_duration(row['duration'])}: {sizes}"


def _late(row: Row) -> str:
    doing = f", {cause_words(cause_of_line(row['late_cause']))}" if row["late_cause"] else ""
    detail = f": {_part(row['late_doing'])}" if row["late_doing"] else ""
    return f"late: {row['late']}{doing}{detail}"


def _launch(row: Row) -> str:
    return f"{format_duration(row['duration'])} in {_part(row['api_name'])}, queued {format_duration(row['queue_delay'] or 0)}"


def _step(row: Row) -> str:
    what = f"step {row['index']}: {format_duration(row['duration'])}"
    if row["reason"] is None:
        return what
    return f"{what}, {format_duration(row['excess'])} more, mostly {row['reason']}"


def _steps(row: Row) -> str:
    return f"{row['steps']:,} steps, from {format_duration(row['first'])} to {format_duration(row['last'])}"


def _metric(row: Row) -> str:
    who = _part(row["name"]) if row["name"] else "all kernels" if row["ran"] == COMPUTE.name else "anything"
    mean = "" if row["mean"] is None else f" {format_share(row['mean'])} on average"
    return f"{who}: {row['recorded']}{mean} in {row['samples']:,} samples"


def _pace(row: Row) -> str:
    return f"{format_duration(row['duration'])} in which the same kernels take {row['ratio']:.2f} times as long"


def _memory(row: Row) -> str:
    used = row["peak_allocated"]
    return f"{format_bytes(row['peak_reserved'])} reserved" + ("" if used is None else f", {format_bytes(used)} in use")


def _growth(row: Row) -> str:
    where = f", in {_part(row['place'])}" if row["place"] else ""
    return f"step {row['index']}: {format_bytes(row['growth'])} more in use, {format_bytes(row['kept'])} kept{where}"


def _chain(row: Row) -> str:
    return f"{row['kernels']:,} kernels, {format_duration(row['busy'])}; the longest: {_part(row['name'])}"


def _attention(row: Row) -> str:
    rest = row["duration"] - row["matmul"]
    return f"{row['direction']}: {format_duration(rest)} between matrix products of {format_duration(row['matmul'])}"


def _recording(row: Row) -> str:
    return f"the whole recording: {format_duration(row['duration'])}"


def _event(row: Row) -> str:
    name = next((row[key] for key in ("name", "api_name", "line") if row.get(key)), None)
    length = format_duration(row["duration"])
    return f"{length}: {_part(name)}" if name else f"a stretch of {length}"


_LABELS: dict[str, Callable[[Row], str]] = {
    "gaps": _gap,
    "copies": _copy,
    "copy_bursts": _burst,
    "readbacks": _readback,
    "other_threads": _lock,
    "patterns": _pattern,
    "communication": _communication,
    "collective_waits": _waiting,
    "mpi_waits": _mpi,
    "staged_messages": _staged,
    "launches": _launch,
    "kernel_chains": _chain,
    "attention_blocks": _attention,
    "step_ledger": _step,
    "step_growth": _steps,
    "kernel_pace": _pace,
    "gpu_metrics": _metric,
    "memory_stats": _memory,
    "memory_growth": _growth,
    "recordings": _recording,
}


def _part(name: str | None) -> str:
    return readable_name(name or "an operation", _LONGEST_PART)
