"""What to record next time so that PyTorch's own tables tell more."""

from __future__ import annotations

from collections.abc import Iterator

from traceanalyzer.model.tables import Tables
from traceanalyzer.result.recording.diagnosis import Setting


def advice(tables: Tables) -> Iterator[Setting]:
    """One setting for each thing that these files lack."""
    totals, traces = tables.table("average_tables"), tables.table("execution_traces")
    if totals.num_rows:
        yield Setting(
            "a trace",
            "prof.export_chrome_trace('trace.json') of the same profiler",
            "when each operator and kernel ran: what overlaps, what the GPU waited for, and each step for itself",
            "no more than the table, but for the file that it writes",
            None,
            [],
        )
    if totals.num_rows and not any(totals["by_shape"].to_pylist()):
        yield Setting(
            "input shapes",
            "profile(record_shapes=True, with_flops=True), and key_averages(group_by_input_shape=True).table(row_limit=-1)",
            "which sizes take the time, and how much is computed",
            "some microseconds an operator",
            "record_shapes keeps the tensors of a step alive a little longer.",
            [],
        )
    if traces.num_rows:
        yield Setting(
            "a trace of the same steps",
            "profile(..., execution_trace_observer=ExecutionTraceObserver().register_callback('et.json'))",
            "times for the operators of the execution trace: both then carry the same ids",
            "as any trace of the profiler",
            "Without the profiler the observer records no times at all.",
            [],
        )
