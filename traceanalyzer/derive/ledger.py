"""The ledger: every nanosecond of every GPU's window on exactly one line.

window = compute + exposed_communication + exposed_memcpy + exposed_memset + idle, and idle splits by cause, exactly in ns.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from traceanalyzer.derive import frames
from traceanalyzer.derive.busy import Busy, on_ledger
from traceanalyzer.derive.tables import IDLE_CAUSES, LEDGER, LEDGER_INTERVALS
from traceanalyzer.intervals import complement, total


def ledger_intervals(gpu_ops: pa.Table, gaps: pa.Table) -> pa.Table:
    """The tiles of every window, sorted by (rank, device, start)."""
    tables = []
    idle = dict(frames.groups(gaps))
    ops = on_ledger(gpu_ops)
    for key, rows in frames.groups(ops):
        lines = Busy.of(ops.slice(rows.start, rows.stop - rows.start)).exposed()
        start = np.concatenate([spans[0] for spans in lines.values()])
        end = np.concatenate([spans[1] for spans in lines.values()])
        line = np.repeat(np.arange(len(lines)), [len(spans[0]) for spans in lines.values()])
        names = [*lines, *(f"idle.{cause}" for cause in IDLE_CAUSES)]
        if key in idle:
            part = gaps.slice(idle[key].start, idle[key].stop - idle[key].start)
            cause, causes = frames.codes(part, "cause")
            known = np.array([names.index(f"idle.{c}") if c else -1 for c in causes])
            start = np.concatenate((start, frames.ints(part, "start_ns")))
            end = np.concatenate((end, frames.ints(part, "end_ns")))
            line = np.concatenate((line, known[cause]))
        order = np.argsort(start, kind="stable")
        tables.append(
            frames.build(
                LEDGER_INTERVALS,
                {
                    "rank": np.full(len(order), key[0]),
                    "device": np.full(len(order), key[1]),
                    "line": frames.names(line[order], [*names]),
                    "start_ns": start[order],
                    "end_ns": end[order],
                },
            )
        )
    return frames.stack(LEDGER_INTERVALS, tables)


def ledger(
    gpu_ops: pa.Table, ledger_intervals: pa.Table, launches: pa.Table, step_stats: pa.Table, devices: pa.Table
) -> pa.Table:
    """One row per (rank, device) with GPU work."""
    names = {(r["rank"], r["device"]): r["name"] for r in devices.to_pylist()}
    tiles = {key: ledger_intervals.slice(s.start, s.stop - s.start) for key, s in frames.groups(ledger_intervals)}
    ops, none = on_ledger(gpu_ops), LEDGER_INTERVALS.empty()
    rows = [
        _row(key, ops.slice(s.start, s.stop - s.start), tiles.get(key, none), launches, step_stats, names.get(key))
        for key, s in frames.groups(ops)
    ]
    return pa.Table.from_pylist(rows, schema=LEDGER.schema)


def _row(
    key: frames.Key, ops: pa.Table, tiles: pa.Table, launches: pa.Table, step_stats: pa.Table, name: str | None
) -> dict[str, Any]:
    start, end = int(frames.ints(ops, "start_ns").min()), int(frames.ints(ops, "end_ns").max())
    busy = Busy.of(ops)
    line, lines = frames.codes(tiles, "line")
    length = frames.ints(tiles, "end_ns") - frames.ints(tiles, "start_ns")
    sums = np.zeros(len(lines), np.int64)
    np.add.at(sums, line, length)
    by_line = {n: int(v) for n, v in zip(lines, sums, strict=True) if n is not None}
    gaps = complement(busy.everything, start, end)
    kernels = int(frames.equals(ops, "kind", "kernel").sum())
    calls = _count(launches, key, "first")
    steps = _count(step_stats, key)
    idle = {f"idle_{cause}": by_line.get(f"idle.{cause}", 0) for cause in IDLE_CAUSES}
    return {
        "rank": key[0],
        "device": key[1],
        "name": name,
        "start_ns": start,
        "end_ns": end,
        "duration": end - start,
        "busy": total(busy.everything),
        "compute": total(busy.compute),
        "communication": total(busy.communication),
        "exposed_communication": by_line.get("exposed_communication", 0),
        "memcpy": total(busy.memcpy),
        "exposed_memcpy": by_line.get("exposed_memcpy", 0),
        "exposed_memset": by_line.get("exposed_memset", 0),
        "idle": total(gaps),
        "max_gap": int((gaps[1] - gaps[0]).max()) if len(gaps[0]) else 0,
        **idle,
        "gpu_op_count": ops.num_rows,
        "kernel_count": kernels,
        "launch_count": calls,
        "step_count": steps,
        "kernels_per_step": kernels / steps if steps else None,
        "launches_per_step": calls / steps if steps else None,
    }


def _count(table: pa.Table, key: frames.Key, flag: str | None = None) -> int:
    here = (frames.ints(table, "rank") == key[0]) & (frames.ints(table, "device") == key[1])
    if flag is not None:
        here &= table[flag].to_numpy()
    return int(here.sum())
