"""Tables of what the host did: operators, and calls that wait for the GPU."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.model.markers import is_step_name
from traceanalyzer.model.tables import Tables
from traceanalyzer.report.tables.merged import first, merge_rows, plain, rest
from traceanalyzer.report.tables.table import Column, DataTable, left_out, names
from traceanalyzer.report.timeline.lanes import table_or_none
from traceanalyzer.units import format_count

CATEGORIES = {
    **{"operator": "operator", "annotation": "annotation", "nvtx": "NVTX range", "mpi": "MPI call"},
    **{"openacc": "OpenACC construct", "openmp": "OpenMP region", "callback": "host function"},
}


def operators(tables: Tables, shown: str, most: int) -> DataTable | None:
    """Operators, annotations and NVTX ranges by name; ranges that mark a step have one name each and are left out."""
    table = table_or_none(tables, "operator_stats")
    if table is None:
        return None
    figures = ("count", "total", "self", "self_calls", "gpu_time", "self_gpu_time")
    table = plain(table, ("name", "category", *figures, "shapes", "shapes_count", "distinct_shapes"))
    steps = [name for name in pc.unique(table["name"]).to_pylist() if name and is_step_name(name)]
    marks = pc.and_(pc.is_in(table["name"], pa.array(steps, pa.string())), pc.not_equal(table["category"], "operator"))
    table = table.filter(pc.invert(marks)).sort_by([("shapes_count", "descending"), ("shapes", "ascending")])
    found = merge_rows(
        table,
        ("name", "category"),
        "self",
        **{figure: (figure, "sum") for figure in figures},
        shapes=("shapes", "first"),
        distinct_shapes=("distinct_shapes", "max"),
    )
    if not found.num_rows:
        return None
    rows = first(found, most)
    has_gpu, has_shapes = any(rows["gpu_time"]), any(rows["distinct_shapes"])
    gpu = (
        Column("own GPU time", "duration", "GPU time of the operations that it launched itself", rows["self_gpu_time"]),
        Column(
            "GPU time", "duration", "GPU time of all operations launched in it, by what it calls too", rows["gpu_time"]
        ),
    )
    shapes = [
        text + (f" and {format_count(n - 1)} other{'s' if n > 2 else ''}" if n > 1 else "") if text else None
        for text, n in zip(rows["shapes"], rows["distinct_shapes"], strict=True)
    ]
    columns = (
        names("Operator", "Name of the operator or range", rows["name"], "(unnamed)"),
        Column(
            "kind",
            "text",
            "Operator of the framework, or a range that the program marked",
            [CATEGORIES.get(c, c) for c in rows["category"]],
        ),
        Column("calls", "count", "How often it ran", rows["count"]),
        Column(
            "own time",
            "duration",
            "Host time in it and in nothing that it calls (calls of the GPU runtime aside)",
            rows["self"],
        ),
        Column(
            "in GPU calls",
            "duration",
            "Part of its own time in calls of the GPU runtime: launches, copies, waits, allocations",
            rows["self_calls"],
        ),
        Column("total time", "duration", "Host time in it, what it calls included", rows["total"]),
        *(gpu if has_gpu else ()),
        *([names("input shapes", "The shapes of its inputs that occur most often", shapes)] if has_shapes else []),
    )
    note = left_out("with most time of their own", len(rows["self"]), found.num_rows, rest(found, "self", most))
    marked = "Ranges that mark whole steps are not listed. " if steps else ""
    return DataTable(
        "operators", "Operators", f"Time on the host, by name. {note}{marked}{shown}", found.num_rows, columns, order=3
    )


def syncs(tables: Tables, shown: str, most: int) -> DataTable | None:
    """Calls that waited for the GPU, by name."""
    table = table_or_none(tables, "sync_stats")
    if table is None:
        return None
    table = plain(table, ("name", "count", "total", "longest", "idle", "place"))
    found = merge_rows(
        table.sort_by([("idle", "descending"), ("place", "ascending")]),
        ("name",),
        "idle",
        count=("count", "sum"),
        total=("total", "sum"),
        longest=("longest", "max"),
        idle=("idle", "sum"),
        place=("place", "first"),
    )
    rows = first(found, most)
    columns = (
        names("Call", "Call of the GPU runtime that returned only when the GPU was done", rows["name"], "(unnamed)"),
        Column("calls", "count", "How many of them waited", rows["count"]),
        Column("host time", "duration", "Host time in them; harmless as long as the GPU has work", rows["total"]),
        Column("longest", "duration", "The longest of them", rows["longest"], each=True),
        Column(
            "GPU idle",
            "duration",
            "Idle time of the GPU put down to them: until the call returns, and up to 50 µs after it while the queue fills again",
            rows["idle"],
        ),
        names("mostly asked for by", "What made the calls that most of the idle time comes from", rows["place"]),
    )
    note = left_out("with most idle time", len(rows["idle"]), found.num_rows, rest(found, "idle", most))
    return DataTable("syncs", "Synchronization", note + shown, found.num_rows, columns, order=4)
