"""All tables of a trace by name: event tables as they are, derived ones computed once, on demand.

Each derived table is a function of the inputs it declares and gets nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from traceanalyzer.derive.gaps import gaps
from traceanalyzer.derive.health import health
from traceanalyzer.derive.host import INPUT_PATTERNS, Host
from traceanalyzer.derive.kernels import kernel_stats
from traceanalyzer.derive.launches import launches
from traceanalyzer.derive.ledger import ledger, ledger_intervals
from traceanalyzer.derive.steps import step_stats
from traceanalyzer.derive.transfers import communication, copies
from traceanalyzer.model.trace import Trace

# What each derived table is made from. `host` is no table but the threads' interval sets, which several tables share.
DERIVED: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "launches": (launches, ("gpu_ops", "api_calls")),
    "host": (Host, ("api_calls", "host_ranges", "overheads", "steps", "launches", "gpu_ops", "input_patterns")),
    "gaps": (gaps, ("gpu_ops", "launches", "host")),
    "ledger_intervals": (ledger_intervals, ("gpu_ops", "gaps")),
    "step_stats": (step_stats, ("steps", "launches")),
    "ledger": (ledger, ("gpu_ops", "ledger_intervals", "launches", "step_stats", "devices")),
    "copies": (copies, ("gpu_ops", "launches", "host")),
    "communication": (communication, ("gpu_ops",)),
    "kernel_stats": (kernel_stats, ("gpu_ops",)),
}
# Why a table that is empty says nothing about the program.
UNAVAILABLE = {
    "gpu_ops": "the trace holds no GPU operations",
    "api_calls": "the trace holds no CUDA or HIP API calls",
    "launches": "no GPU operation can be linked to a launching API call",
    "host_ranges": "the trace holds no operators, annotations or Python frames",
    "steps": "the trace marks no steps",
    "step_stats": "the trace marks no steps that launched GPU work",
    "copies": "the trace holds no memory copies",
    "communication": "the trace holds no communication kernels",
    "collectives": "the trace describes no collectives",
    "counters": "the trace holds no counters",
    "memory_events": "the trace holds no memory events",
    "kernel_stats": "the trace holds no kernels",
}


class Catalog:
    """The tables of one trace. `input_patterns` are extra name patterns of data-loader ranges."""

    def __init__(self, trace: Trace, input_patterns: tuple[str, ...] = ()) -> None:
        self._trace = trace
        self._made: dict[str, Any] = {"input_patterns": (*INPUT_PATTERNS, *input_patterns)}

    def table(self, name: str) -> pa.Table:
        """An event or derived table. Raises KeyError for an unknown name."""
        if name == "health" and name not in self._made:
            inputs = (self._get(n) for n in ("gpu_ops", "api_calls", "launches"))
            self._made[name] = health(self._trace.table("health"), *inputs)
        return self._get(name)

    def unavailable(self, name: str) -> str | None:
        """Why an empty table says nothing in this trace; None when it has rows or when being empty is an answer."""
        if name in ("gaps", "ledger", "ledger_intervals") and not self.table("gpu_ops").num_rows:
            return UNAVAILABLE["gpu_ops"]
        return UNAVAILABLE.get(name) if name in UNAVAILABLE and not self.table(name).num_rows else None

    def _get(self, name: str) -> Any:
        if name not in self._made:
            if name not in DERIVED:
                return self._trace.table(name)
            function, inputs = DERIVED[name]
            self._made[name] = function(*(self._get(n) for n in inputs))
        return self._made[name]
