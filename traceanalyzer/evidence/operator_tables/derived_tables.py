"""What is told of tables of sums and of execution traces: the tables that rules and the section read."""

from __future__ import annotations

import pyarrow as pa

from traceanalyzer.derive.columns import RANK, count, flag, ns, number, share, text
from traceanalyzer.evidence.operator_tables.tables import file_column
from traceanalyzer.model.derived import Derived, Needs
from traceanalyzer.model.schema import Column, TableSpec

_HERE = "traceanalyzer.evidence.operator_tables.answers"


PROFILE = count("profile", "0-based place of the profile among those that the file has tables of")

OPERATOR_SUMS = TableSpec(
    "operator_sums",
    "what the tables of one profile add up to: how often and how long, never when",
    (
        RANK,
        file_column(),
        PROFILE,
        count("profiles", "profiles that the file has tables of"),
        text("device_name", "what the device is called: CUDA, XPU, ...; null without columns of one"),
        flag("alone", "true: beside no trace, so that nothing tells more"),
        ns("host_total", "time of operators and calls on the host, of all threads together; null when not said"),
        ns("device_total", "time of the device's work, of all streams together; null when not said"),
        count("steps", "steps of the profiler; null when not marked, or not among the rows"),
        count("rows", "names in the tables"),
        flag("whole", "true: the kernels listed make up the whole time of the device"),
        flag("host_whole", "true: what is listed of the host makes up its whole time"),
        count("kernels", "kernels that are listed; null when the table lists operators only"),
        ns("kernel_time", "their time"),
        ns("kernel_mean", "mean length of a kernel; null without"),
        ns("communication", "time of those that communicate"),
        ns("copies", "time of copies and memsets on the device"),
        count("launches", "calls that launch work; null when none is among the rows"),
        ns("launch_time", "time on the host of these"),
        ns("launch_mean", "mean length of such a call; null without"),
        count("syncs", "calls in which the host waits for the device; null when none is among the rows"),
        ns("sync_time", "time on the host of these"),
        text("sync_name", "the one of these that takes longest"),
        Column("flops", pa.float64(), "count", "floating-point operations that PyTorch counts; null when it did not"),
        text("device_word", "what the device is called in a sentence"),
        text("kernel_words", "kernel_mean in words; null without"),
        text("top_name", "operator whose work takes most of the device, or kernel that takes more"),
        ns("top_time", "that work's time"),
        flag("top_starts", "true: it is an operator, which starts that work"),
        count("top_calls", "calls of it"),
    ),
)

LONE_OPERATOR_SUMS = TableSpec(
    "lone_operator_sums", "as operator_sums, of tables beside no trace", OPERATOR_SUMS.columns
)

OPERATOR_ROWS = TableSpec(
    "operator_rows",
    "a name of a profile's tables: those that take most of the device or of the host",
    (
        RANK,
        file_column(),
        PROFILE,
        count("order", "0-based place"),
        text("list", "device (its own events), operators (what starts them) or host"),
        text("name", "name as in the table"),
        text("class", "as in operator_averages"),
        count("calls", "calls"),
        ns("self_host", "time on the host without what it calls"),
        ns("self_device", "time of the device's work that it started itself"),
        share("share", "of the time of the device, or of the host"),
        Column("flops", pa.float64(), "count", "floating-point operations of all calls; null without"),
        number("rate", "floating-point operations a second of the device's time; null without"),
        Column("memory", pa.int64(), "bytes", "device memory allocated less freed; null when not recorded"),
        text("shapes", "input shapes; null when not told apart"),
    ),
)

EXECUTION_SUMMARY = TableSpec(
    "execution_summary",
    "an execution trace, and how it fits the trace beside it",
    (
        RANK,
        file_column(),
        text("schema", "version of its schema"),
        flag("alone", "true: beside no trace"),
        count("operators", "operators and functions of the backward pass"),
        count("ranges", "ranges that the program marks"),
        count("names", "different operators"),
        count("threads", "threads"),
        count("shaped", "operators with shapes"),
        Column("flops", pa.float64(), "count", "floating-point operations of those whose inputs tell; null without"),
        count("counted", "operators with such a count"),
        count("in_trace", "operators of the trace beside it"),
        count("numbered", "of these, those with an id of a record function"),
        count("matched", "of these, those whose id is in the execution trace"),
        count("alike", "of these, those with the same name there"),
    ),
)

EXECUTION_OPERATORS = TableSpec(
    "execution_operators",
    "operators of an execution trace with the same name, shapes and types",
    (
        RANK,
        file_column(),
        count("order", "0-based place, by floating-point operations, then by calls"),
        text("name", "operator"),
        text("shapes", "input shapes; null when not recorded"),
        text("dtypes", "input types"),
        count("calls", "how often"),
        Column("flops", pa.float64(), "count", "floating-point operations of all; null when the inputs do not tell"),
        text("sizes", "what is multiplied, in words"),
    ),
)

EXECUTION_COLLECTIVES = TableSpec(
    "execution_collectives",
    "collectives of an execution trace with the same group, size and type",
    (
        RANK,
        file_column(),
        count("order", "0-based place, by elements"),
        text("name", "collective"),
        text("group", "process group"),
        count("group_size", "ranks of it"),
        text("dtype", "type of the elements"),
        count("elements", "elements of one"),
        count("calls", "how often"),
    ),
)

NO_TABLE = Needs("average_tables", "there is no table of PyTorch's profiler")
NO_TRACE = Needs("execution_traces", "there is no execution trace of PyTorch")

DERIVED = (
    Derived(
        "operator_sums",
        f"{_HERE}.sums:operator_sums",
        ("operator_averages", "average_tables", "placed_evidence"),
        OPERATOR_SUMS,
        NO_TABLE,
        small=True,
        label="[{device_total} on the device, ][{host_total} on the host]",
        empty_without="average_tables",
    ),
    Derived(
        "lone_operator_sums",
        f"{_HERE}.sums:lone_operator_sums",
        ("operator_sums",),
        LONE_OPERATOR_SUMS,
        Needs(
            "lone_operator_sums",
            "there is no table of PyTorch's profiler that is beside no trace",
            events="average_tables",
        ),
        small=True,
        label="[{device_total} on the device, ][{host_total} on the host]",
        empty_without="operator_sums",
    ),
    Derived(
        "operator_rows",
        f"{_HERE}.sums:operator_rows",
        ("operator_averages", "average_tables"),
        OPERATOR_ROWS,
        small=True,
        internal=True,
        empty_without="average_tables",
    ),
    Derived(
        "execution_summary",
        f"{_HERE}.execution:execution_summary",
        ("execution_nodes", "execution_traces", "host_ranges", "placed_evidence"),
        EXECUTION_SUMMARY,
        NO_TRACE,
        small=True,
        label="{operators} operators",
        empty_without="execution_traces",
    ),
    Derived(
        "execution_operators",
        f"{_HERE}.execution:execution_operators",
        ("execution_nodes",),
        EXECUTION_OPERATORS,
        small=True,
        internal=True,
        empty_without="execution_nodes",
    ),
    Derived(
        "execution_collectives",
        f"{_HERE}.execution:execution_collectives",
        ("execution_nodes",),
        EXECUTION_COLLECTIVES,
        small=True,
        internal=True,
        empty_without="execution_nodes",
    ),
)
