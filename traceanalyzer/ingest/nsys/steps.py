"""Steps from NVTX: ranges that mark whole iterations and repeat."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.ingest.classify import map_names
from traceanalyzer.model.markers import is_step_name

# A marker much shorter than the longest marks something within a step.
_SHORTEST_SHARE = 0.1
_COLUMNS = ["process", "thread", "start_ns", "end_ns", "name"]


class StepFinder:
    """Collects the ranges with step-like names while the ranges stream by."""

    def __init__(self) -> None:
        self._found: list[pa.Table] = []

    def see(self, ranges: pa.Table) -> None:
        """Look through one batch of `host_ranges`."""
        names = ranges["name"].combine_chunks()
        marked = map_names(names, lambda name: "step" if is_step_name(name) else None)
        found = ranges.filter(marked.is_valid())
        if found.num_rows:
            self._found.append(found.select(_COLUMNS))

    def steps(self) -> list[pa.Table]:
        """The table `steps` by process, each ordered by start; empty when no marker repeats."""
        if not self._found:
            return []
        found = pa.concat_tables(self._found, promote_options="permissive").unify_dictionaries().combine_chunks()
        return [
            part
            for process in sorted(found["process"].unique().to_pylist())
            if (part := _of_process(found.filter(pc.equal(found["process"], process)))) is not None
        ]


def _of_process(ranges: pa.Table) -> pa.Table | None:
    """The steps of one process: those of the thread whose markers cover the most time."""
    threads = ranges["thread"].fill_null(-1)
    best: tuple[int, pa.Table] | None = None
    for thread in sorted(threads.unique().to_pylist()):
        steps = _outermost(_repeating(ranges.filter(pc.equal(threads, thread))))
        if steps.num_rows >= 2:
            covered = pc.sum(pc.subtract(steps["end_ns"], steps["start_ns"])).as_py()
            if best is None or covered > best[0]:
                best = (covered, steps)
    if best is None:
        return None
    steps = best[1]
    steps = steps.append_column("index", pa.array(np.arange(steps.num_rows, dtype=np.int32)))
    return steps.append_column("method", pa.array(["nvtx"] * steps.num_rows).dictionary_encode())


def _repeating(ranges: pa.Table) -> pa.Table:
    """Ranges of those families of names ("step_1", "step_2") that repeat and are not much shorter than the longest."""
    families = map_names(ranges["name"], lambda name: re.sub(r"\d+", "#", name)).cast(pa.string())
    duration = np.asarray(pc.subtract(ranges["end_ns"], ranges["start_ns"]))
    labels = np.asarray(families.to_numpy(zero_copy_only=False), dtype=object)
    medians = {
        family: float(np.median(duration[labels == family]))
        for family in sorted(set(labels.tolist()))
        if (labels == family).sum() >= 2
    }
    longest = max(medians.values(), default=0.0)
    kept = [family for family, median in medians.items() if median >= _SHORTEST_SHARE * longest]
    return ranges.filter(pa.array(np.isin(labels.astype(str), np.array(kept, dtype=str))))


def _outermost(ranges: pa.Table) -> pa.Table:
    """Ranges that do not lie within, or overlap, an earlier one."""
    ranges = ranges.sort_by([("start_ns", "ascending"), ("end_ns", "descending")])
    start, end = np.asarray(ranges["start_ns"]), np.asarray(ranges["end_ns"])
    before = np.concatenate(([np.iinfo(np.int64).min], np.maximum.accumulate(end)[:-1])) if len(end) else end
    return ranges.filter(pa.array(start >= before))
