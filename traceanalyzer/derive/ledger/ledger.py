"""The ledger: every nanosecond of every GPU's window on exactly one line.

window = compute + exposed_communication + exposed_memcpy + exposed_memset + idle, and idle splits by cause, exactly in ns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.columns.in_blocks import InBlocks, alike, cut
from traceanalyzer.columns.spill import forget
from traceanalyzer.derive.ledger.busy import Busy
from traceanalyzer.derive.ledger.shared import Portion
from traceanalyzer.derive.ledger.tables import LEDGER, LEDGER_INTERVALS
from traceanalyzer.intervals import Array, total
from traceanalyzer.vocabulary.lines import (
    COMPUTE,
    EXPOSED_COMMUNICATION,
    EXPOSED_MEMCPY,
    EXPOSED_MEMSET,
    IDLE,
    idle_line,
)

BLOCK = 1 << 16
"""So many tiles of the commonest kind are put in order at a time."""
Tiles = tuple[Array, Array, Array | frames.Codes]
"""Start, end and number of the line of some tiles, in order of time."""
_ENDLESS = np.iinfo(np.int64).max


def ledger_intervals(busy: dict[frames.Key, Busy], gaps: pa.Table, portions: Mapping[frames.Key, Portion]) -> pa.Table:
    """The tiles of every window, or of the portion that the file has of it, sorted by (rank, device, start)."""
    idle, made = dict(frames.groups(gaps)), InBlocks()
    idle_start, idle_end = frames.ints(gaps, "start_ns"), frames.ints(gaps, "end_ns")
    cause, causes = frames.short_codes(gaps, "cause")
    number: dict[str, int] = {}
    for key, unions in busy.items():
        lines = portions[key].lines if key in portions else unions.exposed()
        own = idle.get(key, slice(0, 0))
        # Busy lines are numbered first, then the causes.
        names = [*lines, *(idle_line(one) if one else "" for one in causes)]
        parts: list[Tiles] = [(*spans, alike(line, len(spans[0]))) for line, spans in enumerate(lines.values())]
        parts.append((idle_start[own], idle_end[own], cause[own]))
        used = {line for line, spans in lines.items() if len(spans[0])}
        for block in cut(cause[own]):
            used |= {names[len(lines) + one] for one in np.flatnonzero(np.bincount(block)).tolist()}
        for name in (*lines, *(line.name for line in IDLE.values())):
            if name in used:
                number.setdefault(name, len(number))
        code = np.array([number.get(name, -1) for name in names], np.int32)
        for start, end, line in _in_order(parts, len(lines)):
            rank, device = (alike(one, len(start)) for one in key)
            tiles = {"rank": rank, "device": device, "start_ns": start, "end_ns": end}
            made.add(tiles | {"line": code.take(line)})
    if not number:
        return LEDGER_INTERVALS.empty()
    kinds = {field.name: field.type for field in LEDGER_INTERVALS.schema}
    lines = made.names("line", list(number))
    return frames.build(LEDGER_INTERVALS, {c: lines if c == "line" else made.numbers(c, kinds[c]) for c in kinds})


def _in_order(parts: Sequence[Tiles], busy: int) -> Iterator[Tiles]:
    """Start, end and line of tiles in the order of their starts, some after the other, of lists that are in that order each.

    The numbers of the lines in the last list count from `busy` on.
    """
    longest = max((part[0] for part in parts), key=len)
    done = [0] * len(parts)
    for cut_at in [*longest[BLOCK::BLOCK].tolist(), _ENDLESS]:
        until = [int(np.searchsorted(part[0], cut_at)) for part in parts]
        near = [[column[low:high] for column in part] for part, low, high in zip(parts, done, until, strict=True)]
        near[-1][2] = near[-1][2] + np.int32(busy)
        start, end, line = (np.concatenate(column) for column in zip(*near, strict=True))
        if len(start):
            order = np.argsort(start, kind="stable")
            yield start.take(order), end.take(order), line.take(order)
        done = until


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
    line, lines = frames.short_codes(tiles, "line")
    sums = np.zeros(len(lines), np.int64)
    times = [cut(frames.ints(tiles, column)) for column in ("start_ns", "end_ns")]
    for codes, low, high in zip(cut(line), *times, strict=True):
        np.add.at(sums, codes, high - low)
        forget()
    by_line = {n: int(v) for n, v in zip(lines, sums, strict=True) if n is not None}
    ran = busy.everything
    if portion:
        length = portion.idle[1] - portion.idle[0]
    else:
        # Before, between and after what ran.
        length = np.append(ran[0], end)
        length[0] -= start
        length[1:] -= ran[1]
    hidden = idle_parts.select(["start_ns", "end_ns"]).filter(idle_parts["earlier_work"])
    kernels = int(frames.equals(ops, "kind", "kernel").sum())
    calls = int(launches["first"].to_numpy().sum())
    idle = {line.column: by_line.get(line.name, 0) for line in IDLE.values()}
    return {
        "duration": end - start,
        "busy": total(ran),
        COMPUTE.column: total(busy.compute),
        "communication": total(busy.communication),
        EXPOSED_COMMUNICATION.column: by_line.get(EXPOSED_COMMUNICATION.name, 0),
        "memcpy": total(busy.memcpy),
        EXPOSED_MEMCPY.column: by_line.get(EXPOSED_MEMCPY.name, 0),
        EXPOSED_MEMSET.column: by_line.get(EXPOSED_MEMSET.name, 0),
        "idle": int(length.sum()),
        "max_gap": int(length.max(initial=0)),
        **idle,
        "earlier_work": int(frames.duration(hidden).sum()),
        "gpu_op_count": ops.num_rows,
        "kernel_count": kernels,
        "step_time": int(frames.duration(whole).sum()) // whole.num_rows if whole.num_rows else None,
        "launch_count": calls,
        "step_count": steps,
        "kernels_per_step": kernels / steps if steps else None,
        "launches_per_step": calls / steps if steps else None,
    }
