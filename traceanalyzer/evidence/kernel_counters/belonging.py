"""Which trace a profile is beside, and which pages are of one profile: told by the kernels."""

from __future__ import annotations

from traceanalyzer.columns import frames
from traceanalyzer.evidence.kernel_counters.reading.collected import function_of
from traceanalyzer.model.tables import Tables

MOST = 0.5
"""Of another program's kernels a few are the same: those of a library that both use."""
_SAME = ("pid", "launch", "function", "blocks", "threads")


def ran(own: Tables, trace: Tables) -> bool | None:
    """Whether the trace ran most of the kernels that were profiled; None for a trace without kernels."""
    ops = trace.table("gpu_ops")
    code, names = frames.codes(ops.filter(frames.equals(ops, "kind", "kernel")), "name")
    used = {names[one] for one in set(code.tolist())}
    functions = {function_of(name) for name in used if name}
    if not functions:
        return None
    profiled = set(own.table("counted_launches")["function"].unique().drop_null().to_pylist())
    return bool(profiled) and len(profiled & functions) >= MOST * len(profiled)


def are_of_one_run(own: Tables, other: Tables) -> bool:
    """Whether two pages show mostly the same launches of the same processes."""
    one, two = (
        {*zip(*(tables.table("counted_launches")[name].to_pylist() for name in _SAME), strict=True)}
        for tables in (own, other)
    )
    return len(one & two) >= MOST * min(len(one), len(two))
