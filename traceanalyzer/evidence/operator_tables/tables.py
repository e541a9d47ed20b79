"""The tables of PyTorch's own tables: rows and totals of `key_averages().table()`, nodes of execution traces.

Neither holds a moment: columns of times are sums. A file's number is the same in all of its rows and different for another file.
"""

from __future__ import annotations

import pyarrow as pa

from traceanalyzer.derive.columns import count, ns, size
from traceanalyzer.model.schema import NAME, Column, TableSpec

OP_SCOPES = (0, 1)
"""Scopes of operators and of the functions of their backward passes; others are ranges that a program marks."""


def rank_column() -> Column:
    return Column("rank", pa.int32(), None, "rank of the job, or the file's ordinal when the rank is unknown")


def file_column() -> Column:
    return Column("file", pa.int64(), None, "number of the file, of its content")


def _table() -> Column:
    return Column("table", pa.int32(), None, "0-based place of the table in the file")


AVERAGES = TableSpec(
    "operator_averages",
    "one row of a table of PyTorch's profiler: all calls of one name together",
    (
        rank_column(),
        file_column(),
        _table(),
        Column("position", pa.int64(), None, "0-based place of the row in its table"),
        Column("name", NAME, None, "operator, call, range or kernel; ends in ... or .. where the table cut it short"),
        count("calls", "calls of it"),
        ns("self_host", "time on the host without what it calls; null when there is no such column"),
        ns("host_total", "time on the host; null as above"),
        ns("self_device", "time of the device's work that it started itself, or of the device's event; null as above"),
        ns("device_total", "time of the device's work that it and what it calls started; null as above"),
        size("host_memory", "host memory allocated less freed; null as above"),
        size("self_host_memory", "the same without what it calls"),
        size("device_memory", "device memory allocated less freed; null as above"),
        size("self_device_memory", "the same without what it calls"),
        Column(
            "flops", pa.float64(), "count", "floating-point operations of all calls, as PyTorch counts; null without"
        ),
        Column("shapes", pa.string(), None, "input shapes as written; null when rows are not told apart by them"),
        Column("place", NAME, None, "innermost source line of its stack; null when not recorded"),
        Column("on_device", pa.bool_(), None, "true: an event of the device, which takes no time of the host"),
        Column(
            "class",
            NAME,
            None,
            "of the device: kernel, communication, memcpy, memset or range; of the host: launch, sync, copy, memory, event (calls), "
            "step or operator",
        ),
    ),
)

TOTALS = TableSpec(
    "average_tables",
    "one table of PyTorch's profiler, and the totals that stand below it",
    (
        rank_column(),
        file_column(),
        _table(),
        Column(
            "device", NAME, None, "what the table calls the device: CUDA, XPU, ...; null without columns of a device"
        ),
        count("rows", "rows of it"),
        ns("host_total", "time of all on the host, each once; null when not said"),
        ns("device_total", "time of all work of the device; null when not said"),
        Column("by_shape", pa.bool_(), None, "true: a row for each name and input shapes"),
        Column("by_place", pa.bool_(), None, "true: a row for each name and stack"),
    ),
)

NODES = TableSpec(
    "execution_nodes",
    "one operator or range of an execution trace",
    (
        rank_column(),
        file_column(),
        Column("node", pa.int64(), None, "id of it in the execution trace; null when absent"),
        Column("parent", pa.int64(), None, "id of what it ran in, a thread's root at the top; null when absent"),
        Column(
            "record_function", pa.int64(), None, "id that a Kineto trace of the same run has it by; null when absent"
        ),
        Column("name", NAME, None, "operator, or range that the program marks"),
        Column("operator", pa.bool_(), None, "true: an operator or a function of the backward pass; false: a range"),
        Column("thread", pa.int64(), None, "thread of it, as PyTorch numbers threads"),
        Column("shapes", pa.string(), None, "input shapes (JSON), as Kineto writes them"),
        Column("dtypes", pa.string(), None, "input types (JSON), as Kineto writes them"),
        Column("arguments", NAME, None, "values of inputs that are no tensors (JSON), of convolutions and attention"),
        Column("collective", NAME, None, "collective that it asks for; null for others, and when not recorded"),
        Column("group", NAME, None, "name of its process group"),
        Column("elements", pa.int64(), "count", "elements that go in"),
        Column("dtype", NAME, None, "their type"),
        Column("group_size", pa.int32(), "count", "ranks of the group"),
    ),
)

TRACES = TableSpec(
    "execution_traces",
    "one execution trace",
    (
        rank_column(),
        file_column(),
        Column("schema", pa.string(), None, "version of its schema"),
        Column("pid", pa.int64(), None, "process of the operating system; null when not said"),
        count("nodes", "nodes that were read"),
        count("threads", "threads among them"),
    ),
)

TABLES = (AVERAGES, TOTALS, NODES, TRACES)
