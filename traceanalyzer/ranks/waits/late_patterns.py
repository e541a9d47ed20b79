"""Who is late in step after step, from the tables of a whole job."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL
from traceanalyzer.intervals import Array
from traceanalyzer.ranks.shape.lateness import JITTER, PATTERNS, PERSISTENT, RARE, Patterns, patterns
from traceanalyzer.records import dataclass

Gpu = list[Array]
"""Columns (rank, device)."""


@dataclass(frozen=True)
class LatePatterns:
    """`found` as of `patterns`, whose codes of GPUs are rows of `gpus`, (rank, device)."""

    found: Patterns
    gpus: Array


def late_patterns(communication: pa.Table, late: Gpu, bubble: frames.Flags) -> LatePatterns:
    """`late` is the GPU that is to blame for each kernel's wait; bubbles of pipelines are nobody's doing."""
    own = [frames.ints(communication, name) for name in ("rank", "device")]
    pairs = np.column_stack([np.concatenate(column) for column in zip(own, late, strict=True)])
    gpus, code = np.unique(pairs, axis=0, return_inverse=True)
    code = np.where(pairs[:, 0] == NULL, NULL, code.ravel())
    instance, step, exposed = (frames.ints(communication, name) for name in ("instance", "step", "exposed_wait"))
    judged = np.where(bubble, NULL, instance)
    count = len(instance)
    return LatePatterns(patterns(judged, step, code[:count], code[count:], exposed), gpus)


def lateness(communication: pa.Table, collective_waits: pa.Table) -> dict[str, Any] | None:
    """Exposed waiting by its pattern, and the GPUs that are persistently late; None where nothing matches outside of pipelines."""
    bubble = frames.flags(collective_waits, "bubble")
    matched = (frames.ints(collective_waits, "instance") != NULL) & ~bubble
    if not matched.any():
        return None
    late = [frames.ints(collective_waits, name) for name in ("late_rank", "late_device")]
    told = late_patterns(communication, late, bubble)
    waited = np.where(matched, np.maximum(frames.ints(collective_waits, "exposed_wait"), 0), 0)

    def of(which: frames.Flags) -> int:
        return int(waited[which].sum())

    parts = {name: of(told.found.pattern == PATTERNS.index(name)) for name in (PERSISTENT, RARE, JITTER)}
    persistent = told.found.pattern == PATTERNS.index(PERSISTENT)
    ranks = []
    for one in told.found.late:
        rank, device = told.gpus[one.gpu].tolist()
        mine = persistent & (late[0] == rank) & (late[1] == device)
        ranks.append(
            {
                "rank": rank,
                "device": device,
                "led_count": one.led,
                "step_count": one.occasions,
                "waited_ns": of(mine),
                "chance": float(f"{one.chance:.3g}"),
            }
        )
    return {
        "waited_ns": int(waited.sum()),
        **{f"{name}_ns": ns for name, ns in parts.items()},
        "untold_ns": int(waited.sum()) - sum(parts.values()),
        "step_count": told.found.occasions,
        "ranks": sorted(ranks, key=lambda row: (-row["waited_ns"], row["rank"], row["device"])),
    }
