"""Which trace a profile is beside, and which pages are of one profile: told by the kernels."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.evidence.kernel_counters.reading.collected import function_of
from traceanalyzer.intervals import Array
from traceanalyzer.model.tables import Tables

MOST = 0.5
"""Of another program's kernels a few are the same: those of a library that both use."""
_SAME = ("pid", "launch", "function", "blocks", "threads")


def ran(own: Tables, trace: Tables) -> bool | None:
    """Whether the trace ran most of the functions that were profiled, and one of them at least with a grid as large; None for a trace
    without kernels."""
    ops = trace.table("gpu_ops")
    ops = ops.filter(frames.equals(ops, "kind", "kernel"))
    code, names = frames.codes(ops, "name")
    functions = [function_of(name) if name else None for name in names]
    # A grid that was not recorded has no blocks.
    sizes = {(functions[one], blocks) for one, blocks in zip(code.tolist(), _blocks(ops).tolist(), strict=True)}
    there = {function for function, _ in sizes} - {None}
    if not there:
        return None
    launches = own.table("counted_launches")
    profiled = set(zip(launches["function"].to_pylist(), launches["blocks"].to_pylist(), strict=True))
    wanted = {function for function, _ in profiled} - {None}
    if not wanted or len(wanted & there) < MOST * len(wanted):
        return False
    known = {(function, blocks) for function, blocks in profiled if blocks is not None}
    recorded = {(function, blocks) for function, blocks in sizes if blocks and function in wanted}
    return not known or not recorded or bool(known & recorded)


def _blocks(ops: pa.Table) -> Array:
    """Blocks of the grid of each operation, 0 where it was not recorded."""
    grid = ops["grid"].combine_chunks().fill_null([0, 0, 0]).flatten().fill_null(0)
    sizes: Array = grid.to_numpy(zero_copy_only=False).reshape(-1, 3).astype(np.int64).prod(axis=1)
    return sizes


def are_of_one_run(own: Tables, other: Tables) -> bool:
    """Whether two pages show mostly the same launches of the same processes."""
    one, two = (
        {*zip(*(tables.table("counted_launches")[name].to_pylist() for name in _SAME), strict=True)}
        for tables in (own, other)
    )
    return len(one & two) >= MOST * min(len(one), len(two))
