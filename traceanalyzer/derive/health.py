"""What the tables themselves say about the health of the trace, added to what the importer met."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.derive import frames
from traceanalyzer.derive.host import DRIVER_OVERHEAD
from traceanalyzer.intervals import clip, total, union
from traceanalyzer.model.schema import HEALTH
from traceanalyzer.units import format_duration, format_share

Ints = npt.NDArray[np.int64]
CAPTURE = ("StreamBeginCapture", "StreamEndCapture")
MISSING_SHARE = 0.2
"""Launches without an operation are normal at the edge of a capture; this many are not."""
MOST_MISSING_SHARE = 0.5
"""With this many missing, what is left of the GPU's work says nothing of the run."""
OVERHEAD_SHARE = 0.05
"""The rules begin to speak at a twentieth of the window; what the profiler costs matters from there on."""
SHORT_WINDOW = 1_000_000
"""ns. One launch, copy or hiccup of the host takes tens of microseconds, so several percent of a window this short."""
FEW_OPS = 10
"""With fewer operations, and no steps that repeat, a single pause is more than a tenth of all there is."""


def health(
    recorded_health: pa.Table,
    gpu_ops: pa.Table,
    ledger_ops: pa.Table,
    api_calls: pa.Table,
    links: pa.Table,
    clocks: pa.Table,
    overheads: pa.Table,
    steps: pa.Table,
) -> pa.Table:
    """The importer's rows, TRC002 for each rank whose launches left no operations, TRC007 for one with no sound operation,
    TRC005 for one whose clocks disagree, TRC004 for one that the profiler slowed, TRC010 for one that shows too little.

    The first two make the verdict impossible (high) when no rank has GPU work, and when most of one rank's is missing.
    """
    recorded, sound = frames.ints(gpu_ops, "rank"), frames.ints(ledger_ops, "rank")
    worst = "low" if len(sound) else "high"
    calls = _real_launches(api_calls)
    callers, lost = frames.ints(calls, "rank"), ~_answered(calls, links)
    rows = [_disagreement(row) for row in clocks.to_pylist()]
    for rank in np.union1d(recorded, callers).tolist():
        here = callers == rank
        launched, missing = int(here.sum()), int((here & lost).sum())
        count = int((recorded == rank).sum())
        if count and not (sound == rank).any():
            message = "every GPU operation has impossible times or no device: nothing is left to judge"
            rows.append(_row(rank, "TRC007", worst, message, count))
        elif not count:
            message = "the trace has kernel launches but no GPU activity at all: the GPU side was not recorded"
            rows.append(_row(rank, "TRC002", worst, message, launched))
        elif missing > MOST_MISSING_SHARE * launched:
            message = "most kernel launches left no usable kernel in the trace: the GPU did more than it shows"
            rows.append(_row(rank, "TRC002", "high", message, missing))
        elif missing > MISSING_SHARE * launched:
            message = "kernel launches whose kernels are missing from the trace: GPU time may be under-counted"
            rows.append(_row(rank, "TRC002", "low", message, missing))
        rows += _weak(rank, ledger_ops, sound == rank, overheads, steps)
    return pa.concat_tables(
        [_softened(recorded_health, recorded, sound), pa.Table.from_pylist(rows, schema=HEALTH.schema)]
    )


def _weak(
    rank: int, ledger_ops: pa.Table, here: npt.NDArray[np.bool_], overheads: pa.Table, steps: pa.Table
) -> list[dict[str, object]]:
    """TRC004 and TRC010 of one rank, whose operations are `here`."""
    start, end = (frames.ints(ledger_ops, column)[here] for column in ("start_ns", "end_ns"))
    if not len(start):
        return []
    low, high = int(start.min()), int(end.max())
    window, rows = high - low, []
    lost, count = _profiler_time(overheads.filter(pc.equal(overheads["rank"], rank)), low, high)
    if lost and lost >= OVERHEAD_SHARE * window:
        message = (
            f"the profiler itself was at work for {format_share(lost / window)} of the time ({format_duration(lost)}): "
            "what the host did looks slower than it is without a profiler"
        )
        rows.append(_row(rank, "TRC004", "low", message, count))
    iterations = int((frames.ints(steps, "rank") == rank).sum())
    if window < SHORT_WINDOW:
        message = (
            f"the GPU's work spans only {format_duration(window)}: shares of so short a time may be chance, "
            "and say little of the run"
        )
        rows.append(_row(rank, "TRC010", "low", message, len(start)))
    elif len(start) < FEW_OPS and iterations < 2:
        message = "there are only a few GPU operations and no steps: what is true of them may not be true of the run"
        rows.append(_row(rank, "TRC010", "low", message, len(start)))
    return rows


def _profiler_time(overheads: pa.Table, low: int, high: int) -> tuple[int, int]:
    """ns of [low, high) in which the profiler worked for itself, and in how many rows."""
    name, names = frames.codes(overheads, "name")
    own = np.array([v is None or not DRIVER_OVERHEAD.search(v) for v in names], bool)[name]
    spans = union(frames.ints(overheads, "start_ns")[own], frames.ints(overheads, "end_ns")[own])
    return total(clip(spans, low, high)), int(own.sum())


def _softened(recorded_health: pa.Table, recorded: Ints, sound: Ints) -> pa.Table:
    """The importer's rows. What a rank without any GPU work says of that hides nothing of the others' work."""
    severity = recorded_health["severity"]
    empty = pc.invert(pc.is_in(recorded_health["rank"], pa.array(np.unique(recorded), pa.int32())))
    if len(sound):
        severity = pc.if_else(pc.and_(empty, pc.equal(severity, "high")), "low", severity)
    return recorded_health.set_column(recorded_health.schema.get_field_index("severity"), "severity", severity)


def _disagreement(row: dict[str, int]) -> dict[str, object]:
    """What clocks that disagree mean for the rules, for a row of `clocks`."""
    if row["late"]:
        message = (
            f"the GPU's clock runs away from the host's, by {format_duration(row['most_late'])} or more: what the host did "
            "while the GPU was idle cannot be told, so idle time has no cause; profile only once in a process"
        )
        return _row(row["rank"], "TRC005", "medium", message, row["late"])
    message = (
        f"GPU operations begin before the calls that launched them, by up to {format_duration(row['most_early'])}: "
        "idle time before these operations has no cause, and causes shorter than that are uncertain"
    )
    return _row(row["rank"], "TRC005", "low", message, row["early"])


def _real_launches(api_calls: pa.Table) -> pa.Table:
    """Launch calls that start work: not those that a stream capture only records into a CUDA graph, nor a driver call
    inside a runtime call."""
    name, names = frames.codes(api_calls, "name")
    begins, ends = (np.array([v is not None and v.endswith(e) for v in names])[name] for e in CAPTURE)
    start, rank = frames.ints(api_calls, "start_ns"), frames.ints(api_calls, "rank")
    keep = frames.equals(api_calls, "class", "launch")
    keep[keep] = ~_nested(api_calls.filter(pa.array(keep)))
    for one in np.unique(rank[begins]).tolist():
        opened, closed = np.sort(start[begins & (rank == one)]), np.sort(start[ends & (rank == one)])
        keep &= ~((rank == one) & (np.searchsorted(opened, start) > np.searchsorted(closed, start)))
    return api_calls.filter(pa.array(keep))


def _nested(calls: pa.Table) -> npt.NDArray[np.bool_]:
    """Which calls lie inside another one of their thread. The calls are sorted by thread and start."""
    thread = frames.dense(*(frames.ints(calls, c) for c in ("rank", "process", "thread")))
    return frames.ints(calls, "start_ns") < frames.latest_before(thread, frames.ints(calls, "end_ns"))


def _answered(calls: pa.Table, links: pa.Table) -> npt.NDArray[np.bool_]:
    """Which calls started at least one operation, of whatever kind: a graph may begin with a copy."""
    columns = ("rank", "process", "thread", "start_ns")
    key = frames.dense(*(np.concatenate((frames.ints(calls, c), frames.ints(links, c))) for c in columns))
    return np.isin(key[: calls.num_rows], key[calls.num_rows :])


def _row(rank: int, code: str, severity: str, message: str, count: int) -> dict[str, object]:
    return {"rank": rank, "code": code, "severity": severity, "message": message, "count": count, "example": None}
