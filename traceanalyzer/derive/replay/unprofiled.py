"""How long steps would take without the profiler, on each GPU and for the ranks of a job together."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.derive.replay.tables import UNPROFILED_STEPS
from traceanalyzer.derive.replay.whatif import WhatIf

IN_STEP = 1.05
"""Ranks that communicate and whose mean steps differ by less go through their steps together."""


def unprofiled_steps(what_if: WhatIf, step_stats: pa.Table) -> pa.Table:
    """Of every GPU of which that can be told."""
    rows = []
    for (rank, device), _ in frames.groups(step_stats):
        step = what_if.unprofiled((rank, device))
        if step is not None:
            rows.append(
                dict(
                    zip(
                        UNPROFILED_STEPS.schema.names,
                        (rank, device, step.now, step.then, step.least, step.most),
                        strict=True,
                    )
                )
            )
    return pa.Table.from_pylist(rows, schema=UNPROFILED_STEPS.schema)


def job_unprofiled_steps(unprofiled: pa.Table, communicating: pa.Table) -> pa.Table:
    """The same for a job; `communicating` has the ranks that communicate.

    A rank by itself keeps the time in which it waits for others. That is theirs, and shrinks with it: the rank whose step shrinks most
    is the one that waits least, which is who the others wait for. So steps that ranks go through together take as long as on that one.
    """
    joins = frames.among(frames.ints(unprofiled, "rank"), frames.ints(communicating, "rank"))
    order = np.lexsort((frames.ints(unprofiled, "step"), joins))
    table, joins = unprofiled.take(pa.array(order)), joins[order]
    step, then = frames.ints(table, "step"), frames.ints(table, "unprofiled")
    apart = np.ones(len(step), bool)
    apart[1:] = ~joins[:-1] | (step[1:] >= IN_STEP * step[:-1])
    group = np.cumsum(apart) - 1
    # Of each group the row that is left with least.
    first = np.lexsort((then, group))[np.flatnonzero(apart)]
    for name in ("unprofiled", "least", "most"):
        shared = frames.ints(table, name)[first][group]
        table = table.set_column(table.schema.get_field_index(name), table.schema.field(name), pa.array(shared))
    return table
