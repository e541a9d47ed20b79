"""Timelines that are played again, and what steps would take without the profiler."""

from __future__ import annotations

from traceanalyzer.derive.columns import DEVICE, RANK, ns
from traceanalyzer.model.derived import Derived
from traceanalyzer.model.schema import TableSpec

UNPROFILED_STEPS = TableSpec(
    "unprofiled_steps",
    "one GPU whose steps can be told without what recording cost; means, from the end of one step to the end of the next",
    (
        RANK,
        DEVICE,
        ns("step", "a step as it was recorded"),
        ns("unprofiled", "a step without the profiler"),
        ns("least", "what that may be at least"),
        ns("most", "what that may be at most"),
    ),
)

DERIVED = (
    Derived("timelines", "traceanalyzer.derive.replay.replay:timelines", ("ledger_ops", "launches", "host", "windows")),
    Derived("idle_places", "traceanalyzer.derive.replay.idle_places:IdlePlaces", ("gaps",)),
    Derived(
        "profiler_cost",
        "traceanalyzer.derive.replay.profiler_cost:ProfilerCost",
        ("host_ranges", "api_calls", "inputs"),
    ),
    Derived(
        "what_if",
        "traceanalyzer.derive.replay.whatif:WhatIf",
        ("timelines", "step_stats", "host", "host_ranges", "profiler_cost"),
    ),
    Derived(
        "unprofiled_steps",
        "traceanalyzer.derive.replay.unprofiled:unprofiled_steps",
        ("what_if", "step_stats"),
        UNPROFILED_STEPS,
        small=True,
        internal=True,
    ),
)
