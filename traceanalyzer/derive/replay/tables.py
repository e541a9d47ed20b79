"""Timelines that are played again, and what steps would take without the profiler."""

from __future__ import annotations

from traceanalyzer.derive.columns import DEVICE, RANK, SPAN, count, ns, text, whole
from traceanalyzer.model.derived import Derived
from traceanalyzer.model.needs import NO_GPU_WORK
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

_STEP = whole("step", "index of the step that ends with it in step_stats; null where it is of the whole window")

PATH_STAYS = TableSpec(
    "path_stays",
    "one stretch in which the critical path lies on one GPU and its host; those of a GPU that waits for no other are its steps, each "
    "from the end of the step before",
    (RANK, DEVICE, _STEP, *SPAN),
)

CRITICAL_PATH = TableSpec(
    "critical_path",
    "one stretch of the chain that sets the length of a step; those of one step add up to it",
    (
        RANK,
        DEVICE,
        _STEP,
        *SPAN,
        text(
            "where",
            "gpu: the GPU works or pauses; host: the GPU, or what comes after it, waits for the host, which does this; launch: from a "
            "launch call to its operation's start on the idle GPU",
        ),
        text(
            "kind",
            "a ledger line, for what makes the GPU wait its cause: compute, exposed_memcpy, host_work, launch_latency",
        ),
        text(
            "name",
            "the operation on the GPU; of the host's work and launches the line of the program or the range they happen in, of other "
            "time of the host what it did; null where nothing tells",
        ),
    ),
)

PATH_LINKS = TableSpec(
    "path_links",
    "the stretches of the critical path of one GPU that are of one kind and name, in all steps together; the longest first",
    (
        RANK,
        DEVICE,
        *CRITICAL_PATH.columns[6:],
        ns("duration", "their length"),
        ns("gain", "how much sooner the last step would end without them; null where that was not replayed"),
        ns("deviation", "standard deviation of their length from step to step; null for a single one"),
        count("steps", "steps in which they lie or might; null where that is the whole window"),
    ),
)

DERIVED = (
    Derived(
        "timelines", "traceanalyzer.derive.replay.timelines:timelines", ("ledger_ops", "launches", "host", "windows")
    ),
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
    Derived(
        "path_stays",
        "traceanalyzer.derive.replay.critical_path:path_stays",
        ("step_stats", "windows", "communication"),
        PATH_STAYS,
        small=True,
        internal=True,
    ),
    Derived(
        "critical_path",
        "traceanalyzer.derive.replay.critical_path:critical_path",
        ("path_stays", "timelines", "ledger_ops", "gaps", "launches", "host"),
        CRITICAL_PATH,
        NO_GPU_WORK,
        kept=True,
        label="{duration} of the critical path: {kind:text}[ in {name}]",
    ),
    Derived(
        "path_links",
        "traceanalyzer.derive.replay.critical_path:path_links",
        ("critical_path", "path_stays", "timelines", "what_if"),
        PATH_LINKS,
        small=True,
        internal=True,
    ),
)
