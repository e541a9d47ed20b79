"""Patterns of PyTorch operators that are known to waste work, found in names, order and input shapes of the recorded operators.

They are those that torch.profiler's pattern matcher looks for in a live process, as far as no rule sees them more directly: a data
loader without workers shows in its frames (INP001), an optimizer that loops over its parameters in its launches (LCH002), and matrix
products in full precision in the kernels that they run (KRN001).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.columns import frames
from traceanalyzer.derive.host.callers import Callers
from traceanalyzer.derive.operators.operator_patterns import FINDERS, LEADING, Found, role_of
from traceanalyzer.derive.operators.operators import GpuWork, Operators
from traceanalyzer.derive.operators.tables import OPERATOR_SHAPES, PATTERNS


def operator_shapes(host_ranges: pa.Table) -> pa.Table:
    """How many ranges of each rank carry input shapes; no row for a rank without any."""
    shaped = host_ranges.select(["rank"]).filter(pc.is_valid(host_ranges["shapes"]))
    rank, count = np.unique(frames.ints(shaped, "rank"), return_counts=True)
    return frames.build(OPERATOR_SHAPES, {"rank": rank, "count": count})


def patterns(host_ranges: pa.Table, callers: Callers, launches: pa.Table, ledger_ops: pa.Table) -> pa.Table:
    """Occurrences that started GPU work, sorted by (rank, process, thread, start); see PATTERNS."""
    # Each pattern has an operator of PyTorch in it, which a trace of many other names may lack.
    if not launches.num_rows or not pc.any(pc.starts_with(pc.unique(host_ranges["name"]).dictionary, "aten::")).as_py():
        return PATTERNS.empty()
    name, names = frames.codes(host_ranges, "name")
    role = np.array([role_of(value) for value in names], np.int64)[name]
    leading = np.isin(role, LEADING)
    if not leading.any():
        return PATTERNS.empty()
    row = frames.ints(ledger_ops, "row")
    copied = np.zeros(int(row.max(initial=-1)) + 1, bool)
    copied[row[frames.equals(ledger_ops, "copy_kind", "htod")]] = True
    inbound = copied[frames.ints(launches, "op")]
    launches = launches.select(["rank", "process", "thread", "start_ns", "device", "op_start_ns", "op_end_ns"])
    launchers = frames.together(*(frames.ints(launches, c) for c in ("rank", "process", "thread")))
    tables = []
    for (rank, process, thread), mine in launchers:
        rows = callers.threads.get((rank, process, thread), slice(0, 0))
        if not leading[rows].any():
            continue
        work = GpuWork.of(launches.take(pa.array(mine)), inbound[mine])
        operators = Operators(callers, rows, name[rows], role[rows], work)
        found = {pattern: find(operators) for pattern, find in FINDERS.items()}
        tables += [
            _table((rank, process, thread), pattern, occurrences, operators)
            for pattern, occurrences in found.items()
            if len(occurrences.at)
        ]
    order = [(column, "ascending") for column in ("rank", "process", "thread", "start_ns")]
    return frames.stack(PATTERNS, tables).sort_by(order)


def _table(who: frames.ThreadKey, pattern: str, found: Found, operators: Operators) -> pa.Table:
    gpu, count = operators.gpu, len(found.at)
    columns = {
        **{key: np.full(count, value) for key, value in zip(("rank", "process", "thread"), who, strict=True)},
        "device": frames.numbers(gpu.first_device(found.start)),
        "start_ns": found.start,
        "end_ns": found.end,
        "pattern": pa.array([pattern] * count, pa.string()),
        "operator": operators.callers.names(operators.row[found.at]),
        "count": found.count,
        "gpu_time": gpu.time(found.start, found.end),
        "detail": pa.array(found.detail, pa.string()),
        "source": operators.callers.sources(operators.row[found.at]),
    }
    return frames.build(PATTERNS, columns).filter(pa.array(gpu.count(found.start, found.end) > 0))
