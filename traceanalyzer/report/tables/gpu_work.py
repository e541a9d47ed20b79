"""Tables of what ran on the GPUs: kernels and copies."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.model.tables import Tables
from traceanalyzer.report.kinds import FAMILIES
from traceanalyzer.report.palette import BY_KEY, kernel_key
from traceanalyzer.report.tables.merged import first, merge_rows, plain, rest
from traceanalyzer.report.tables.table import Column, DataTable, left_out, names
from traceanalyzer.report.timeline.lanes import table_or_none
from traceanalyzer.vocabulary.copies import way


def kernels(tables: Tables, windows: int, most: int) -> DataTable | None:
    """Kernels by name over all GPUs, whose windows add up to `windows` ns."""
    table = table_or_none(tables, "kernel_stats")
    if table is None:
        return None
    several = len(pc.unique(pc.add(pc.multiply(table["rank"].cast(pa.int64()), 1 << 31), table["device"]))) > 1
    found = merge_rows(
        plain(table, ("name", "class", "family", "count", "total", "longest")),
        ("name", "class"),
        "total",
        family=("family", "max"),
        gpus=("total", "count"),
        count=("count", "sum"),
        total=("total", "sum"),
        longest=("longest", "max"),
    )
    rows = first(found, most)
    total, count = rows["total"], rows["count"]
    columns = (
        names("Kernel", "Name of the kernel", rows["name"], "(unnamed)"),
        Column("family", "text", "What its name says it does", [FAMILIES.get(f, f) for f in rows["family"]]),
        *([Column("GPUs", "count", "On how many GPUs it ran", rows["gpus"])] if several else []),
        Column("count", "count", "How often it ran", count),
        Column("total", "duration", "Sum of its durations", total),
        Column(
            "mean", "duration", "Mean duration", [t // max(c, 1) for t, c in zip(total, count, strict=True)], each=True
        ),
        Column("longest", "duration", "Longest duration", rows["longest"], each=True),
        Column(
            "share",
            "share",
            "Total over the windows of all GPUs, first GPU operation to last; kernels that run side by side both count",
            [round(t / max(windows, 1), 6) for t in total],
        ),
    )
    return DataTable(
        id="kernels",
        title="Kernels",
        note=left_out("with the largest totals", len(total), found.num_rows, rest(found, "total", most)),
        count=found.num_rows,
        columns=columns,
        order=4 if several else 3,
        colours=[BY_KEY[kernel_key(kind)].css for kind in rows["class"]],
    )


def copies(tables: Tables, shown: str, most: int) -> DataTable | None:
    """Copies by direction and kind of memory."""
    table = table_or_none(tables, "copies")
    if table is None:
        return None
    length = pc.subtract(table["end_ns"], table["start_ns"])
    timed = pc.if_else(pc.is_valid(table["bytes"]), length, 0)
    found = merge_rows(
        plain(table, ("copy_kind", "src_memory", "dst_memory", "bytes", "exposed"))
        .append_column("time", length)
        .append_column("timed", timed),
        ("copy_kind", "src_memory", "dst_memory"),
        "time",
        count=("time", "count"),
        bytes=("bytes", "sum"),
        sized=("bytes", "count"),
        largest=("bytes", "max"),
        time=("time", "sum"),
        timed=("timed", "sum"),
        exposed=("exposed", "sum"),
    )
    rows = first(found, most)
    memory = [
        f"{a or 'unknown'} to {b or 'unknown'}" for a, b in zip(rows["src_memory"], rows["dst_memory"], strict=True)
    ]
    partly = [sized < count for sized, count in zip(rows["sized"], rows["count"], strict=True)]
    columns = (
        Column("Copy", "text", "From where to where", [way(k) for k in rows["copy_kind"]]),
        Column(
            "memory",
            "text",
            "Kind of memory at both ends; pageable memory is copied more slowly and never in the background",
            memory,
        ),
        Column("count", "count", "How many copies", rows["count"]),
        Column(
            "size",
            "bytes",
            "Bytes moved, all copies together; at least so many (≥) where the size of some is not known",
            rows["bytes"],
            at_least=partly,
        ),
        Column("largest", "bytes", "Bytes of the largest copy", rows["largest"], at_least=partly),
        Column("time", "duration", "Sum of their durations", rows["time"]),
        Column(
            "exposed",
            "duration",
            "Part of that time in which the GPU neither computed nor communicated",
            rows["exposed"],
        ),
        Column(
            "rate",
            "rate",
            "Size over time",
            [None if not b or not t else round(b / t, 3) for b, t in zip(rows["bytes"], rows["timed"], strict=True)],
        ),
    )
    note = left_out("that took longest", len(rows["time"]), found.num_rows, rest(found, "time", most))
    return DataTable("copies", "Copies", note + shown, found.num_rows, columns, order=5)
