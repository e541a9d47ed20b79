"""Recordings that hold next to nothing of what a program runs on the GPU: of these, shares of the window say nothing of the run.

Launches that a stream capture only records into a CUDA graph start nothing; the kernels run when the graph is launched. A recording of
the capture alone holds many launches and a handful of operations beside it, often of the warm-up. The same handful may be left over
where the recording began too late or ended too early.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.derive.launches.launch_calls import captured_launches, graph_launches
from traceanalyzer.model.trace import Input
from traceanalyzer.units import format_count, format_duration, format_share
from traceanalyzer.vocabulary.health import TOO_LITTLE
from traceanalyzer.vocabulary.levels import HIGH, LOW

FEW_OPS = 10
"""With fewer operations, and no steps that repeat, a single pause is more than a tenth of all there is."""
SHORT_WINDOW = 1_000_000
"""ns. One launch, copy or hiccup of the host takes tens of microseconds, so several percent of a window this short."""
RAN = 0.2
"""Where graphs are captured after a warm-up, each captured launch has run once before. With less than a fifth of that the capture
is what was recorded."""
OF_RECORDING, HANDFUL_WINDOW = 0.01, 10_000_000
"""A few operations within a hundredth of the recording, and within 10 ms, are what was left over."""
Row = tuple[str, str, str, int]


def too_little(
    ledger_ops: pa.Table, api_calls: pa.Table, host_ranges: pa.Table, steps: pa.Table, inputs: Sequence[Input]
) -> dict[int, Row]:
    """By rank that has operations and shows too little: code, severity, message and count of its note of health."""
    captured, launched = captured_launches(api_calls), graph_launches(api_calls)
    ledger_ops, api_calls, host_ranges = (
        t.select(["rank", "start_ns", "end_ns"]) for t in (ledger_ops, api_calls, host_ranges)
    )
    marked, recorded = frames.by_rank(steps), _recorded(ledger_ops, api_calls, host_ranges, inputs)
    found: dict[int, Row] = {}
    for rank, ops in frames.by_rank(ledger_ops).items():
        only_captured = 0 if launched[rank] else captured[rank]
        low, high = recorded[rank]
        note = _captured(only_captured, ops) or _few(ops, marked[rank].num_rows, high - low)
        if note is not None:
            found[rank] = note
    return found


def _captured(launches: int, ops: pa.Table) -> Row | None:
    """What a capture that nothing launched means; `launches` are those that it holds."""
    if launches < FEW_OPS:
        return None
    what = f"{format_count(launches)} launches were captured into a CUDA graph, and no graph was launched"
    if ops.num_rows > RAN * launches:
        message = f"{what} while the profiler recorded: what the graph runs is not in this trace"
        return TOO_LITTLE, LOW, message, launches
    ran = f"{format_count(ops.num_rows)} GPU {'operation' if ops.num_rows == 1 else 'operations'} ran beside them"
    message = f"{what}; {ran}. The recording holds the capture and not the replay: record the launches of the graph, after the warm-up"
    return TOO_LITTLE, HIGH, message, launches


def _few(ops: pa.Table, steps: int, recording: int) -> Row | None:
    """What a window of few operations, or a short one, means beside a recording of so many ns."""
    window, count = _length(ops), ops.num_rows
    if count < FEW_OPS and steps < 2 and 0 < window <= min(OF_RECORDING * recording, HANDFUL_WINDOW):
        which = "only 1 GPU operation lies" if count == 1 else f"only {count} GPU operations lie"
        message = (
            f"{which} in the recording, within {format_duration(window)} of {format_duration(recording)} "
            f"({format_share(window / recording)}): too little to judge the run by; record whole iterations, after the warm-up"
        )
        return TOO_LITTLE, HIGH, message, count
    if window < SHORT_WINDOW:
        message = (
            f"the GPU's work spans only {format_duration(window)}: shares of so short a time may be chance, "
            "and say little of the run"
        )
        return TOO_LITTLE, LOW, message, count
    if count < FEW_OPS and steps < 2:
        message = "there are only a few GPU operations and no steps: what is true of them may not be true of the run"
        return TOO_LITTLE, LOW, message, count
    return None


def _length(ops: pa.Table) -> int:
    return int(frames.ints(ops, "end_ns").max()) - int(frames.ints(ops, "start_ns").min())


def _recorded(
    ledger_ops: pa.Table, api_calls: pa.Table, host_ranges: pa.Table, inputs: Sequence[Input]
) -> dict[int, tuple[int, int]]:
    """From when to when each rank was recorded: what its file says, and at least from its first event to its last."""
    found = {one.ordinal: one.recorded_ns for one in inputs if one.recorded_ns is not None}
    for table in (ledger_ops, api_calls, host_ranges):
        for rank, rows in frames.by_rank(table).items():
            low, high = int(frames.ints(rows, "start_ns").min()), int(frames.ints(rows, "end_ns").max())
            known = found.get(rank, (low, high))
            found[rank] = min(known[0], low), max(known[1], high)
    return found
