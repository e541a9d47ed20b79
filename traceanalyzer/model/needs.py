"""What the tables of a recording may lack, and what to say then: of event tables, and what several derived ones share."""

from __future__ import annotations

from traceanalyzer.model.derived import Needs

NO_GPU_WORK = Needs("gpu_ops", "the trace holds no GPU operations", settings=("whole_file", "gpu"))
NO_STEPS = Needs(
    "step_stats",
    "the trace marks no steps that launched GPU work, and none can be told from its launches",
    settings=("steps",),
)
NO_CALLS = Needs("api_calls", "the trace holds no CUDA or HIP API calls", settings=("launches",))
NO_LAUNCHES = Needs("launches", "no GPU operation can be linked to a launching API call", settings=("launches",))
NO_RANGES = Needs(
    "host_ranges", "the trace holds no operators, annotations or frames of the host", settings=("operators",)
)
NO_COPIES = Needs("copies", "the trace holds no memory copies", settings=("graph_kernels",), always_recorded=True)
NO_KERNELS = Needs("kernels", "the trace holds no compute kernels", settings=("graph_kernels",))
NO_COMMUNICATION = Needs(
    "communication",
    "the trace holds no communication kernels",
    settings=("graph_kernels",),
    always_recorded=True,
)
NO_MEMORY = Needs("memory_events", "the trace holds no memory events", settings=("memory",))

EVENT_NEEDS = {
    "api_calls": NO_CALLS,
    "host_ranges": NO_RANGES,
    "steps": Needs("steps", "the trace marks no steps", settings=("steps",)),
    "collectives": Needs("collectives", "the trace describes no collectives", settings=("collectives",)),
    "counters": Needs("counters", "the trace holds no counters", settings=("counters",)),
    "memory_events": NO_MEMORY,
}
"""Of the event tables that rules may need; the derived ones say it in their declarations."""
