"""What is told of a log of GPUs: the tables that rules and the section read."""

from __future__ import annotations

import pyarrow as pa

from traceanalyzer.derive.columns import DEVICE, RANK, SPAN, count, flag, ns, number, share, size, text
from traceanalyzer.model.derived import Derived, Needs
from traceanalyzer.model.schema import Column, TableSpec

_HERE = "traceanalyzer.evidence.gpu_log.answers"
_JUDGED = "judged_gpus"


GPU_LOAD = TableSpec(
    "gpu_load",
    "how one GPU did under load, as a log of clocks, power and use tells; the span is from the first such sample to the last",
    (
        RANK,
        DEVICE,
        *SPAN,
        Column("gpu", pa.int32(), None, "its index in its machine, as the log counts; null when not recorded"),
        text("model", "marketing name; null when not recorded"),
        text("log", "name of the log that is judged"),
        text("tool", "what wrote that"),
        text("others", "names of other logs of the same GPU, of which only what that one lacks is taken; null without"),
        text("told_by", "what told which GPU of the log it is; null for a log that is beside no trace"),
        text("unjudged", "why nothing can be judged; null where it can"),
        flag("beside", "true: beside a trace"),
        flag("on_clock", "true: on the clock of the rank's trace"),
        flag("timed", "false: the log has no times"),
        flag("unused", "true: never under load, while other GPUs of the same log were"),
        flag("reasons_known", "true: the log says why clocks are below the highest"),
        flag("clocks_known", "true: the log says the clock of the multiprocessors"),
        count("samples", "samples of this GPU"),
        count(
            "load_samples", "of these, those under load that are judged: kernels ran in a tenth of their time or more"
        ),
        count("trace_samples", "of these, those within the trace's window of this GPU; null where clocks do not meet"),
        ns("interval", "usual time from one sample to the next"),
        share("utilization", "time in which kernels ran, the mean over the load with its pauses"),
        share("utilization_middle", "the same, the median"),
        share("utilization_whole", "the same over the whole log, the mean"),
        size("memory_used", "most memory in use meanwhile"),
        size("memory_total", "memory of the device; null when not recorded"),
        share("memory_share", "one of the other"),
        number("temperature", "median temperature under load in degrees Celsius"),
        number("temperature_most", "highest temperature under load"),
        number("power", "median power under load in W"),
        number("power_limit", "limit of power in W"),
        number("power_limit_default", "limit that the GPU has unless another is set, in W"),
        number("clock", "median clock of the multiprocessors under load in MHz"),
        number("clock_least", "lowest of these"),
        number(
            "clock_max", "the highest that this clock can be or, where the log does not say, that it was in the log"
        ),
        flag("clock_max_told", "true: the log says the highest clock"),
        share("clock_share", "median clock, of the highest"),
        share(
            "by_power",
            "samples under load in which the software power cap holds clocks down (0x4); null without reasons",
        ),
        share("by_heat", "the same of thermal slowdown (0x20 of the driver, 0x40 of the hardware)"),
        share("by_brake", "the same of the power brake of the hardware (0x80), which the power supply asks for"),
        share("by_slowdown", "the same of a slowdown of the hardware that says no more (0x8)"),
        share("by_setting", "the same of clocks that are set (0x2, 0x100) or kept alike on several GPUs (0x10)"),
        share("by_nothing", "samples under load in which nothing holds clocks down"),
        share("faults", "samples under load with heat, the power brake or another slowdown of the hardware"),
        number("fault_clock", "median clock in these, in MHz"),
        number("fault_temperature", "highest temperature in these"),
        share("faster", "how much less time work that is bound by the clock would take at the highest clock"),
        ns("step", "time of a step of the trace; null without steps, or on another clock"),
        ns(
            "step_saving",
            "what a step could take less at the highest clock at most: of its compute, as the clocks tell",
        ),
        Column(
            "processes", pa.int64(), "count", "most processes on the GPU at once under load; null when not recorded"
        ),
        share("several", "samples under load with two processes or more"),
        count("process_samples", "samples under load that say how many processes there are"),
        count("ours", "processes of the trace on this GPU; null for a log that is beside no trace"),
        count(
            "foreign_judged", "samples before which nothing of the trace ran on the GPU for as long as use is a mean of"
        ),
        count("foreign_samples", "of these, samples with a use of a fifth or more"),
        share("foreign_use", "mean use in these"),
        count(
            "slow_kernels",
            "kernels that take five times the median of their like or more, and half a millisecond longer",
        ),
        ns("slow_time", "what these take longer in all"),
        number("slow_ratio", "how many times as long, the median of these"),
        count("link_samples", "samples under load that say how the PCIe link runs"),
        number("link_gen", "generation of PCIe under load, the median"),
        number("link_gen_max", "the highest it can be or, where the log does not say, that it was in the log"),
        flag("link_gen_told", "true: the log says the highest"),
        share("link_gen_below", "samples under load in which it is below that"),
        number("link_width", "lanes of PCIe under load, the median"),
        number("link_width_max", "the most there can be or, where the log does not say, that there were"),
        flag("link_width_told", "true: the log says the most"),
        share("link_width_below", "samples under load in which there are fewer"),
        text("said_processes", "how many processes use it, in words before the name of the GPU"),
        text("said_power", "how the power cap holds clocks down, in words after the name of the GPU"),
        text("said_fault", "how heat or the hardware does"),
        text("said_other", "how low clocks are, where neither power nor heat holds them down"),
        text("said_cost", "what that may cost, as a sentence"),
        text("said_link", "how the link runs, in words after the name of the GPU"),
        text("said_load", "how the GPU did under load, in words after its name"),
        text("said_clock", "its clock and power under load, in words behind 'with'; null where the log has neither"),
        share(
            "traced",
            "part of the trace's window in which its work ran on the GPU; null for a log that is beside no trace",
        ),
    ),
)

LINES = TableSpec(
    "gpu_log_lines",
    "one sample of a GPU that is drawn: of each stretch those with the lowest and highest values",
    (
        RANK,
        DEVICE,
        ns("time_ns", "when it was sampled"),
        number("sm_clock", "clock of the multiprocessors in MHz"),
        number("mem_clock", "clock of the memory in MHz"),
        number("power", "power in W"),
        number("power_limit", "limit of power in W"),
        number("temperature", "temperature in degrees Celsius"),
        share("utilization", "time before in which kernels ran"),
        size("memory_used", "memory in use"),
    ),
)

NO_LOG = Needs("gpu_log_samples", "there is no log of clocks, power and use")

DERIVED = (
    Derived(_JUDGED, f"{_HERE}.gpus:judged_gpus", ("gpu_log_samples", "placed_evidence", "devices", "windows")),
    Derived(
        "gpu_load",
        f"{_HERE}.load:gpu_load",
        (_JUDGED, "ledger", "kernels", "gpu_ops"),
        GPU_LOAD,
        NO_LOG,
        small=True,
        label="{log}: {load_samples} samples under load[, clock at {clock_share}][, utilization {utilization}]",
        empty_without="gpu_log_samples",
    ),
    Derived(
        "gpu_log_lines",
        f"{_HERE}.drawing:gpu_log_lines",
        (_JUDGED,),
        LINES,
        small=True,
        internal=True,
        empty_without="gpu_log_samples",
    ),
)
