"""What is told of DeepSpeed's logs: the tables that rules and the section read."""

from __future__ import annotations

import pyarrow as pa

from traceanalyzer.derive.columns import RANK, count, flag, ns, number, share, text
from traceanalyzer.model.derived import Derived, Needs
from traceanalyzer.model.schema import Column, TableSpec

_HERE = "traceanalyzer.evidence.deepspeed_log.answers"
_NO_TIMERS = Needs("deepspeed_times", "no log with DeepSpeed's timers was given")
_NO_COMMS = "no log with a summary of DeepSpeed's comms logger was given"
_NO_PROFILE = Needs("deepspeed_profiles", "no report of DeepSpeed's flops profiler was given")


PHASES = TableSpec(
    "deepspeed_phases",
    "one timer of DeepSpeed's over all lines of the log that have it",
    (
        RANK,
        count("order", "0-based place: as DeepSpeed prints them"),
        text("group", "which timers are printed together: step, micro, optimizer, pipe or other"),
        text("phase", "the timer, as DeepSpeed calls it"),
        text("label", "what it times, in words"),
        count("samples", "lines"),
        ns("median", "median of one step (of one micro-batch in the group micro)"),
        ns("tenth", "a tenth of the lines have less"),
        ns("nine_tenths", "a tenth have more"),
        share("share", "median, as a share of the median of all of a step; null outside of the group step"),
        flag("part", "true: its time is in that of another timer too"),
    ),
)

STEPS = TableSpec(
    "deepspeed_step_times",
    "one step by DeepSpeed's timers, the longest stretches of a long log thinned out",
    (
        RANK,
        count("sample", "0-based number of the line"),
        ns("fwd", "forward pass"),
        ns("bwd", "backward pass"),
        ns("step", "optimizer's step"),
    ),
)

RUN = TableSpec(
    "deepspeed_run",
    "what DeepSpeed's log tells of a run as a whole",
    (
        RANK,
        text("version", "of DeepSpeed; null when the log does not say"),
        Column("stage", pa.int64(), None, "ZeRO stage, 0 for none; null when not told for certain"),
        text("zero", "the stage in words, and what told it"),
        count("world_size", "ranks; null when not told"),
        count("accumulation", "micro-batches of a step; null when not told"),
        count("batch", "samples of a micro-batch on one GPU; null when not told"),
        count("steps", "steps that have timers"),
        ns("total", "median of a step: forward, backward and the optimizer's step; null without"),
        text("phase", "the timer that most of it goes to"),
        text("label", "that in words"),
        ns("most", "median of that one"),
        number("samples", "median of the samples a second that it prints; null without"),
        ns("between", "median time from one line of a step to the next; null where lines have no time"),
        flag("timers", "true: wall_clock_breakdown was on"),
        flag("comms", "true: the comms logger was on"),
        flag("profiler", "true: the flops profiler reported"),
        flag(
            "cumulative",
            "true: each latency of the comms logger holds those of all earlier calls; false: it does not; null: not told",
        ),
        text("why_cumulative", "what tells that"),
        text("breakdown", "where a step goes, as a sentence without its stop; null without timers"),
    ),
)

GROWTH = TableSpec(
    "deepspeed_growth",
    "how the steps of a run get longer or shorter by DeepSpeed's timers; the phase is the one that grows most",
    (
        RANK,
        count("steps", "steps that are compared: all but the first few"),
        ns("total", "median of a step"),
        ns("first", "length of the first step, on a robust line through all"),
        ns("last", "length of the last one on it"),
        share("chance", "probability of so clear a trend among steps in no order"),
        flag("steady", "true: both halves of the run rise"),
        text("label", "the phase that grows most, in words"),
        ns("median", "median of it"),
        ns("phase_first", "its length in the first step, on a line of its own"),
        ns("phase_last", "and in the last one"),
        flag("dominates", "true: it is the longest phase too"),
        flag(
            "alike",
            "true: forward and backward pass grow alike and the optimizer's step does not, as with longer sequences",
        ),
        count(
            "visits",
            "by how many calls more a comms logger that sums up all earlier ones looks at in each step; null without such",
        ),
        ns("visit", "by how much a step gets longer for each of these; null without"),
        text("seen", "what the trace beside shows of that; null without"),
    ),
)

INSTRUMENTS = TableSpec(
    "deepspeed_instruments",
    "what DeepSpeed's own measuring does to a run",
    (
        RANK,
        flag("timers", "true: wall_clock_breakdown was on"),
        flag("comms", "true: the comms logger was on, which waits for the GPU after each collective"),
        flag("profiler", "true: the flops profiler was on, which waits for the GPU around each module of one step"),
        count("collectives", "collectives of a step that the comms logger waits for; null when not told"),
        ns("step", "median of a step by the timers, else in the trace; null without"),
        text("breakdown", "where a step goes, as in deepspeed_run"),
        count("waits", "calls a step, in the trace beside, by which the host waits for the GPU; null without a trace"),
        ns("waiting", "time of a step that they take on the host; null without a trace"),
        count("looks", "of these, waits for single events, which cost a call each"),
        ns("traced_step", "median step in the trace beside; null without"),
        share("busy", "share of a step in the trace in which the GPU is busy; null without"),
        ns("compute", "of a step in the trace, in which the GPU computes; null without"),
        text("words", "what that comes to, as a sentence without its stop"),
    ),
)

FAULTS = TableSpec(
    "deepspeed_faults",
    "one figure of DeepSpeed's that cannot be right, or means something else than its name says",
    (
        RANK,
        count("order", "0-based place"),
        text("fault", "clock, shard, twice, micro-batch, cumulative or contradicted"),
        text("figure", "the figure"),
        text("said", "what DeepSpeed says"),
        text("right", "what is right, as far as that can be told; null otherwise"),
        text("words", "that as a sentence without its stop"),
        text("why", "what makes it so, as a sentence without its stop"),
    ),
)

RATES = TableSpec(
    "deepspeed_rates",
    "one way to say how fast a GPU computes: operations over a time",
    (
        RANK,
        count("order", "0-based place"),
        text("label", "what is divided by what"),
        number("flops", "floating-point operations; null where only the rate is told"),
        ns("time", "by which they are divided; null where only the rate is told"),
        number("tflops", "TFLOPS"),
        text("meaning", "what to take it for"),
    ),
)

COLLECTIVES = TableSpec(
    "deepspeed_collectives",
    "one operation and size of the last summary of the comms logger, beside what the trace shows of it",
    (
        RANK,
        count("order", "0-based place: what steps do first, then by total"),
        text("op", "operation"),
        Column("bytes", pa.int64(), "bytes", "size of a message"),
        count("calls", "calls"),
        ns("average", "mean latency that it says"),
        ns("total", "latency of all calls that it says"),
        ns("straggler", "of it waiting for late ranks, by its straggler column; null without"),
        flag("inside", "true: it is of steps, and not of the start of a run"),
        flag("summed", "true: each latency holds those of all earlier calls"),
        count("traced", "kernels in the trace beside of that operation and size; null where none is told apart"),
        ns("traced_median", "median of them"),
        ns("traced_most", "longest of them"),
        text("meaning", "what to take the latency for"),
    ),
)

MODULE_COSTS = TableSpec(
    "deepspeed_module_costs",
    "one module of the last report of the flops profiler: figures, and what of them holds",
    (
        RANK,
        count("order", "0-based place in the tree"),
        Column("parent", pa.int64(), None, "order of its parent; null for the root"),
        count("depth", "0 for the root"),
        text("path", "names from the root's child on; empty for the root"),
        text("class", "its class"),
        count("repeat", "modules that one line stands for"),
        number("seconds", "its latency as it is printed"),
        count("params", "parameters that are printed"),
        count(
            "shaped",
            "parameters by its printed shape and those inside of it; null where one of them has no known shape",
        ),
        count("macs", "multiply-accumulate operations of a forward pass that are printed"),
        count("once", "the same with what is counted twice counted once"),
        number(
            "flops",
            "floating-point operations: its rate times its latency; null without, and where the latency cannot be",
        ),
        ns("latency", "of its forward pass; null where it cannot be"),
        flag("twice", "true: its matrix product is counted twice"),
        flag("sharded", "true: it has fewer parameters than its shape"),
    ),
)

_LOG = (
    *("deepspeed_series", "deepspeed_progress", "deepspeed_settings"),
    *("deepspeed_comms", "deepspeed_comm_calls", "deepspeed_profiles"),
)
DERIVED = (
    Derived(
        "deepspeed_series",
        f"{_HERE}.phases:series",
        ("deepspeed_times", "deepspeed_progress", "deepspeed_settings"),
        internal=True,
    ),
    Derived(
        "deepspeed_phases",
        f"{_HERE}.phases:phases",
        ("deepspeed_series",),
        PHASES,
        _NO_TIMERS,
        small=True,
        label="{label}: {median}",
        empty_without="deepspeed_times",
    ),
    Derived(
        "deepspeed_step_times",
        f"{_HERE}.phases:step_times",
        ("deepspeed_series",),
        STEPS,
        _NO_TIMERS,
        small=True,
        empty_without="deepspeed_times",
    ),
    Derived(
        "deepspeed_module_costs",
        f"{_HERE}.modules:module_costs",
        ("deepspeed_modules", "deepspeed_profiles"),
        MODULE_COSTS,
        _NO_PROFILE,
        small=True,
        empty_without="deepspeed_modules",
    ),
    Derived(
        "deepspeed_run",
        f"{_HERE}.run:run",
        (*_LOG, "deepspeed_phases", "deepspeed_module_costs"),
        RUN,
        small=True,
    ),
    Derived(
        "deepspeed_growth",
        f"{_HERE}.growth:growth",
        ("deepspeed_series", "deepspeed_comms", "deepspeed_run", "steps", "api_calls"),
        GROWTH,
        _NO_TIMERS,
        small=True,
        label="{label}: {phase_first} to {phase_last}",
        empty_without="deepspeed_run",
    ),
    Derived(
        "deepspeed_instruments",
        f"{_HERE}.instruments:instruments",
        ("deepspeed_run", "deepspeed_comms", "steps", "api_calls", "step_ledger"),
        INSTRUMENTS,
        small=True,
        empty_without="deepspeed_run",
    ),
    Derived(
        "deepspeed_rates",
        f"{_HERE}.rates:rates",
        (
            "deepspeed_run",
            "deepspeed_profiles",
            "deepspeed_progress",
            "deepspeed_module_costs",
            "step_ledger",
            "roofline",
        ),
        RATES,
        _NO_PROFILE,
        small=True,
        empty_without="deepspeed_run",
    ),
    Derived(
        "deepspeed_collectives",
        f"{_HERE}.collectives:collectives",
        ("deepspeed_run", "deepspeed_comms", "communication"),
        COLLECTIVES,
        Needs("deepspeed_comms", _NO_COMMS),
        small=True,
        label="{op}: {average}",
        empty_without="deepspeed_comms",
    ),
    Derived(
        "deepspeed_faults",
        f"{_HERE}.faults:faults",
        ("deepspeed_run", "deepspeed_profiles", "deepspeed_module_costs", "deepspeed_collectives", "deepspeed_phases"),
        FAULTS,
        small=True,
        label="{figure}: {said}",
        empty_without="deepspeed_run",
    ),
)
