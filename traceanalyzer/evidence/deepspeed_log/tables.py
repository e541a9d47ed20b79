"""The tables of DeepSpeed's logs: timers, progress, settings, the comms logger's summaries and calls, the flops profiler's reports."""

from __future__ import annotations

import pyarrow as pa

from traceanalyzer.derive.columns import ns, number, text
from traceanalyzer.model.schema import Column, TableSpec
from traceanalyzer.units import Unit


def _rank() -> Column:
    return Column("rank", pa.int32(), None, "rank of the job, or the file's ordinal when the rank is unknown")


def _whole(name: str, doc: str, unit: Unit | None = "count") -> Column:
    return Column(name, pa.int64(), unit, doc)


def _line() -> tuple[Column, ...]:
    return (
        _whole("line", "0-based line of the file"),
        Column("log_rank", pa.int32(), None, "rank that the line says it is of; null when it says none"),
        ns("logged", "when it was logged, on the log's own clock, whose zone is not known; null without a time"),
    )


STEP, MICRO, OPTIMIZER, PIPE, OTHER = "step", "micro", "optimizer", "pipe", "other"
"""Groups of timers that are printed together: of a step, of a micro-batch, of the optimizer, of a pipeline's stages."""

TIMES = TableSpec(
    "deepspeed_times",
    "one timer of a line that DeepSpeed prints with wall_clock_breakdown",
    (
        _rank(),
        *_line(),
        text("group", "which timers are printed together: step, micro, optimizer, pipe or other"),
        _whole("sample", "0-based number of the line among those of its group and rank"),
        text("phase", "the timer, in the names of DeepSpeed 0.10 and later: fwd, bwd, step, ..."),
        ns("duration", "what it counted"),
    ),
)

PROGRESS = TableSpec(
    "deepspeed_progress",
    "one line that says how far the training is, or how fast",
    (
        _rank(),
        *_line(),
        _whole("step", "step of the optimizer that it is about"),
        _whole("skipped", "steps skipped so far; null when it does not say"),
        number("samples_per_second", "samples a second, of the last step where it says that; null without"),
        ns("iteration", "length of an iteration; null when it does not say"),
        number("tflops", "TFLOPS of a GPU, as the training program works them out; null without"),
    ),
)

SETTINGS = TableSpec(
    "deepspeed_settings",
    "one setting that the log tells",
    (_rank(), text("name", "its name in DeepSpeed's configuration"), text("value", "its value")),
)

COMMS = TableSpec(
    "deepspeed_comms",
    "one line of a summary of the comms logger: an operation and a size of its messages",
    (
        _rank(),
        _whole("summary", "0-based number of the summary in the file"),
        text("op", "operation, as torch.distributed calls it"),
        Column("bytes", pa.int64(), "bytes", "size of the message, as the rounded figure gives it"),
        _whole("calls", "calls"),
        ns("total", "latency of all of them"),
        ns("average", "mean latency without the tenth at either end"),
        number("throughput", "tput_avg in Gbit/s"),
        number("bus_bandwidth", "busbw_avg in Gbit/s"),
        ns("transfer", "with the straggler column: latency on the rank that waits least; null without"),
        ns(
            "straggler",
            "with the straggler column: latency beyond that, as this rank waits for late ones; null without",
        ),
    ),
)

CALLS = TableSpec(
    "deepspeed_comm_calls",
    "one call that a verbose comms logger prints",
    (
        _rank(),
        *_line(),
        text("op", "operation, as torch.distributed calls it"),
        Column("bytes", pa.int64(), "bytes", "size of the message, as the rounded figure gives it"),
        ns("duration", "the latency that it says"),
    ),
)

PROFILES = TableSpec(
    "deepspeed_profiles",
    "one report of the flops profiler, as it says things; null where it says nothing",
    (
        _rank(),
        _whole("report", "0-based number of the report in the file"),
        _whole("profile_step", "step that was profiled"),
        _whole("world_size", "ranks of the job"),
        _whole("data_parallel", "data parallel size"),
        _whole("model_parallel", "model parallel size"),
        _whole("batch", "samples of a micro-batch on one GPU"),
        _whole("params", "parameters that it counts on one GPU"),
        _whole("macs", "multiply-accumulate operations of a forward pass on one GPU"),
        number("flops", "floating-point operations of a forward pass on one GPU"),
        ns("fwd", "latency of the forward pass"),
        ns("bwd", "latency of the backward pass"),
        ns("step", "latency of the optimizer's step"),
        ns("iteration", "their sum"),
        number("fwd_rate", "FLOPS of the forward pass"),
        number("rate", "FLOPS of all of it"),
        number("passes", "forward passes that one iteration counts as, 3 without recomputation"),
        number("samples_per_second", "samples a second"),
        Column("engine", pa.bool_(), None, "DeepSpeed's engine wrote it, which does so on rank 0 alone"),
    ),
)

MODULES = TableSpec(
    "deepspeed_modules",
    "one module of the detailed profile of a report",
    (
        _rank(),
        _whole("report", "0-based number of the report in the file"),
        _whole("order", "0-based place in the tree, parents before children"),
        _whole("parent", "order of the parent; null for the root", None),
        _whole("depth", "0 for the root"),
        text("name", "its name in its parent; that of its class for the root"),
        text("path", "names from the root's child on, joined by dots; empty for the root"),
        text("class", "its class"),
        _whole("repeat", "modules that one line stands for"),
        _whole("params", "parameters"),
        _whole("macs", "multiply-accumulate operations of a forward pass"),
        ns("latency", "time of its forward pass on the host, with the GPU waited for at both ends; null without"),
        number("latency_seconds", "the same in seconds, as it is printed"),
        number("rate", "FLOPS"),
        text("shape", "what PyTorch prints of the module itself: in_features=..., ..."),
    ),
)

TABLES = (TIMES, PROGRESS, SETTINGS, COMMS, CALLS, PROFILES, MODULES)
