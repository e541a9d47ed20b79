"""All tables of a trace by name: event tables as they are, derived ones computed once, on demand.

Each derived table is a function of the inputs it declares and gets nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from traceanalyzer.derive.busy import busy, ledger_ops
from traceanalyzer.derive.clocks import clocks, launches
from traceanalyzer.derive.gaps import gaps
from traceanalyzer.derive.health import health
from traceanalyzer.derive.host import INPUT_PATTERNS, Host
from traceanalyzer.derive.kernels import kernel_stats
from traceanalyzer.derive.launches import links
from traceanalyzer.derive.ledger import ledger, ledger_intervals
from traceanalyzer.derive.steps import step_stats
from traceanalyzer.derive.transfers import communication, copies
from traceanalyzer.model.trace import Trace

# What each derived table is made from. Not tables for rules, but shared by several: the threads' interval sets (`host`), the unions of
# each GPU's operations (`busy`), the operations on the ledger, which keep the columns of gpu_ops, and `links`, which are the launches
# before those that the clocks contradict are left out.
DERIVED: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "ledger_ops": (ledger_ops, ("gpu_ops",)),
    "busy": (busy, ("ledger_ops",)),
    "links": (links, ("ledger_ops", "api_calls")),
    "clocks": (clocks, ("links", "api_calls")),
    "launches": (launches, ("links", "clocks")),
    "health": (health, ("recorded_health", "gpu_ops", "ledger_ops", "api_calls", "links", "clocks")),
    "host": (Host, ("api_calls", "host_ranges", "overheads", "steps", "launches", "gpu_ops", "input_patterns")),
    "gaps": (gaps, ("ledger_ops", "launches", "host")),
    "ledger_intervals": (ledger_intervals, ("busy", "gaps")),
    "step_stats": (step_stats, ("steps", "launches")),
    "ledger": (ledger, ("ledger_ops", "busy", "ledger_intervals", "launches", "step_stats", "devices")),
    "copies": (copies, ("ledger_ops", "busy", "launches", "host")),
    "communication": (communication, ("ledger_ops", "busy")),
    "kernel_stats": (kernel_stats, ("ledger_ops",)),
}
_NO_GPU_WORK = ("gpu_ops", "the trace holds no GPU operations")
# Table -> the table that must have rows for it to say something about the program, and what to say when it has none.
NEEDS = {
    "gpu_ops": _NO_GPU_WORK,
    "gaps": _NO_GPU_WORK,
    "ledger": _NO_GPU_WORK,
    "ledger_intervals": _NO_GPU_WORK,
    "api_calls": ("api_calls", "the trace holds no CUDA or HIP API calls"),
    "launches": ("launches", "no GPU operation can be linked to a launching API call"),
    "host_ranges": ("host_ranges", "the trace holds no operators, annotations or Python frames"),
    "steps": ("steps", "the trace marks no steps"),
    "step_stats": ("step_stats", "the trace marks no steps that launched GPU work"),
    "copies": ("copies", "the trace holds no memory copies"),
    "communication": ("communication", "the trace holds no communication kernels"),
    "collectives": ("collectives", "the trace describes no collectives"),
    "counters": ("counters", "the trace holds no counters"),
    "memory_events": ("memory_events", "the trace holds no memory events"),
    "kernel_stats": ("kernel_stats", "the trace holds no kernels"),
}


class Catalog:
    """The tables of one trace. `input_patterns` are extra name patterns of data-loader ranges."""

    def __init__(self, trace: Trace, input_patterns: tuple[str, ...] = ()) -> None:
        self._trace = trace
        self._made: dict[str, Any] = {
            "input_patterns": (*INPUT_PATTERNS, *input_patterns),
            "recorded_health": trace.table("health"),
        }

    def table(self, name: str) -> pa.Table:
        """An event or derived table. Raises KeyError for an unknown name."""
        if name not in self._made:
            if name not in DERIVED:
                return self._trace.table(name)
            function, inputs = DERIVED[name]
            self._made[name] = function(*(self.table(n) for n in inputs))
        return self._made[name]

    def unavailable(self, name: str) -> str | None:
        """Why an empty table says nothing in this trace; None when it has rows or when being empty is an answer."""
        needed, reason = NEEDS.get(name, (None, None))
        return reason if needed and not self.table(needed).num_rows else None
