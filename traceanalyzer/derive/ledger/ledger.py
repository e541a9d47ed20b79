"""The ledger: every nanosecond of every GPU's window on exactly one line.

window = compute + exposed_communication + exposed_memcpy + exposed_memset + idle, and idle splits by cause, exactly in ns.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.columns.in_blocks import InBlocks, alike
from traceanalyzer.derive.ledger.busy import Busy
from traceanalyzer.derive.ledger.shared import Portion
from traceanalyzer.derive.ledger.tables import LEDGER, LEDGER_INTERVALS
from traceanalyzer.intervals import complement, total
from traceanalyzer.vocabulary.lines import (
    COMPUTE,
    EXPOSED_COMMUNICATION,
    EXPOSED_MEMCPY,
    EXPOSED_MEMSET,
    IDLE,
    idle_line,
)

BLOCK = 1 << 16
"""So many tiles are put in order at a time."""


def ledger_intervals(busy: dict[frames.Key, Busy], gaps: pa.Table, portions: Mapping[frames.Key, Portion]) -> pa.Table:
    """The tiles of every window, or of the portion that the file has of it, sorted by (rank, device, start)."""
    idle, made = dict(frames.groups(gaps)), InBlocks()
    idle_start, idle_end = frames.ints(gaps, "start_ns"), frames.ints(gaps, "end_ns")
    cause, causes = frames.codes(gaps, "cause")
    number: dict[str, int] = {}
    for key, unions in busy.items():
        lines = portions[key].lines if key in portions else unions.exposed()
        own = idle.get(key, slice(0, 0))
        names = [*lines, *(line.name for line in IDLE.values())]
        known = np.array([names.index(idle_line(one)) if one else -1 for one in causes], np.int8)
        start = np.concatenate([*(spans[0] for spans in lines.values()), idle_start[own]])
        end = np.concatenate([*(spans[1] for spans in lines.values()), idle_end[own]])
        counts = [len(spans[0]) for spans in lines.values()]
        line = np.concatenate((np.repeat(np.arange(len(lines), dtype=np.int8), counts), known[cause[own]]))
        code = np.full(len(names), -1, np.int32)
        for used in np.flatnonzero(np.bincount(line, minlength=len(names))).tolist():
            code[used] = number.setdefault(names[used], len(number))
        order = np.argsort(start, kind="stable")
        for first in range(0, len(order), BLOCK):
            rows = order[first : first + BLOCK]
            rank, device = (alike(one, len(rows)) for one in key)
            tiles = {"rank": rank, "device": device, "start_ns": start[rows], "end_ns": end[rows]}
            made.add(tiles | {"line": code[line[rows]]})
    if not number:
        return LEDGER_INTERVALS.empty()
    kinds = {field.name: field.type for field in LEDGER_INTERVALS.schema}
    lines = made.names("line", list(number))
    return frames.build(LEDGER_INTERVALS, {c: lines if c == "line" else made.numbers(c, kinds[c]) for c in kinds})


def ledger(
    ledger_ops: pa.Table,
    busy: dict[frames.Key, Busy],
    ledger_intervals: pa.Table,
    gaps: pa.Table,
    launches: pa.Table,
    step_stats: pa.Table,
    windows: pa.Table,
    portions: Mapping[frames.Key, Portion],
) -> pa.Table:
    """One row per (rank, device) with GPU work. Of a GPU that other files used too, the lines are those of the file's portion."""
    ops, tiles, idle, calls, steps = (
        frames.by_device(table) for table in (ledger_ops, ledger_intervals, gaps, launches, step_stats)
    )
    rows = [
        {
            **window,
            **_row(window, ops[key], busy[key], tiles[key], idle[key], calls[key], steps[key], portions.get(key)),
        }
        for window in windows.to_pylist()
        for key in [(window["rank"], window["device"])]
    ]
    return pa.Table.from_pylist(rows, schema=LEDGER.schema)


def _row(
    window: dict[str, Any],
    ops: pa.Table,
    busy: Busy,
    tiles: pa.Table,
    idle_parts: pa.Table,
    launches: pa.Table,
    step_stats: pa.Table,
    portion: Portion | None,
) -> dict[str, Any]:
    steps, whole = step_stats.num_rows, step_stats.filter(step_stats["complete"])
    start, end = window["start_ns"], window["end_ns"]
    line, lines = frames.codes(tiles, "line")
    sums = np.zeros(len(lines), np.int64)
    np.add.at(sums, line, frames.duration(tiles))
    by_line = {n: int(v) for n, v in zip(lines, sums, strict=True) if n is not None}
    gaps = portion.idle if portion else complement(busy.everything, start, end)
    kernels = int(frames.equals(ops, "kind", "kernel").sum())
    calls = int(launches["first"].to_numpy().sum())
    idle = {line.column: by_line.get(line.name, 0) for line in IDLE.values()}
    return {
        "duration": end - start,
        "busy": total(busy.everything),
        COMPUTE.column: total(busy.compute),
        "communication": total(busy.communication),
        EXPOSED_COMMUNICATION.column: by_line.get(EXPOSED_COMMUNICATION.name, 0),
        "memcpy": total(busy.memcpy),
        EXPOSED_MEMCPY.column: by_line.get(EXPOSED_MEMCPY.name, 0),
        EXPOSED_MEMSET.column: by_line.get(EXPOSED_MEMSET.name, 0),
        "idle": total(gaps),
        "max_gap": int((gaps[1] - gaps[0]).max()) if len(gaps[0]) else 0,
        **idle,
        "earlier_work": int(frames.duration(idle_parts)[idle_parts["earlier_work"].to_numpy()].sum()),
        "gpu_op_count": ops.num_rows,
        "kernel_count": kernels,
        "step_time": int(frames.duration(whole).sum()) // whole.num_rows if whole.num_rows else None,
        "launch_count": calls,
        "step_count": steps,
        "kernels_per_step": kernels / steps if steps else None,
        "launches_per_step": calls / steps if steps else None,
    }
