"""Steps from the annotations or NVTX ranges that mark whole iterations."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.ingest.rows.classify import map_names
from traceanalyzer.model.markers import is_step_name

CATEGORIES = ("annotation", "nvtx")
SHORTEST_SHARE = 0.1
"""A marker much shorter than the longest marks something within a step."""


def step_marks(ranges: pa.Table) -> pa.Table:
    """Those of the `host_ranges` that may mark steps, with the columns that tell."""
    marked = map_names(ranges["name"], lambda name: name if is_step_name(name) else None).is_valid()
    named = pc.is_in(ranges["category"].cast(pa.string()), pa.array(CATEGORIES))
    return ranges.filter(pc.and_(marked, named)).select(
        ["process", "thread", "start_ns", "end_ns", "name", "category", "open"]
    )


def find_steps(marks: pa.Table) -> pa.Table:
    """The columns of `steps` but `rank`, numbered in order of their start within each process; `marks` as of `step_marks`."""
    processes = [_outermost(_main_thread(_whole_steps(part))) for part in _parts(marks, "process")]
    steps = pa.concat_tables(processes) if processes else _numbered(marks)
    return steps.rename_columns({"category": "method"})


def _parts(marks: pa.Table, column: str) -> list[pa.Table]:
    """The rows of each value of a column of ids, those without one last."""
    ids = marks[column]
    parts = [marks.filter(pc.equal(ids, one)) for one in sorted(pc.unique(ids.drop_null()).to_pylist())]
    without = marks.filter(pc.is_null(ids))
    return [*parts, without] if without.num_rows else parts


def _whole_steps(marks: pa.Table) -> pa.Table:
    """The marks of those families ("step_1", "step_2") that repeat, where any does, and that are not much shorter than the longest."""
    family = map_names(marks["name"], lambda name: re.sub(r"\d+", "#", name)).cast(pa.string())
    length = pc.subtract(marks["end_ns"], marks["start_ns"])
    found = (
        pa.table({"family": family, "length": length})
        .group_by("family")
        .aggregate([("length", "count"), ("length", "approximate_median")])
    )
    if pc.max(found["length_count"]).as_py() > 1:
        found = found.filter(pc.greater(found["length_count"], 1))
    longest = pc.max(found["length_approximate_median"]).as_py()
    found = found.filter(pc.greater_equal(found["length_approximate_median"], SHORTEST_SHARE * longest))
    return marks.filter(pc.is_in(family, found["family"].combine_chunks()))


def _main_thread(marks: pa.Table) -> pa.Table:
    """The marks of the thread on which they cover most time: a loader's "batch 3" beside the trainer's "step 3" is no step."""
    return max(_parts(marks, "thread"), key=lambda part: pc.sum(pc.subtract(part["end_ns"], part["start_ns"])).as_py())


def _outermost(marks: pa.Table) -> pa.Table:
    """The marks of one thread without those inside another ("batch" in "iteration").

    The profiler rounds: a step may begin a little before the last one ends. One that lies mostly in others is a part of them.
    """
    start, end = marks["start_ns"].to_numpy(), marks["end_ns"].to_numpy()
    order = np.lexsort((-end, start))
    marks, start, end = marks.take(pa.array(order)), start[order], end[order]
    reach = np.concatenate((start[:1], np.maximum.accumulate(end)[:-1]))
    inside = (start < reach) & (2 * (np.minimum(reach, end) - start) >= end - start)
    return _numbered(marks.filter(pa.array(~inside)))


def _numbered(marks: pa.Table) -> pa.Table:
    return marks.append_column("index", pa.array(np.arange(marks.num_rows), pa.int32()))
