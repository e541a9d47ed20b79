"""Exposed communication by what it serves, each moment once, and how much of it is waiting for another rank."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL
from traceanalyzer.intervals import Array, Spans, coverage, intersect, subtract, union
from traceanalyzer.ranks.shape.tables import EXPOSED_PARTS
from traceanalyzer.vocabulary.lines import EXPOSED_COMMUNICATION

MOSTLY = 0.5
"""At least this share of a GPU's exposed communication must be told to part it into waiting and transfer: what has no counterpart
counts as transfer."""
Parts = tuple[int, int]
"""Waiting and transfer, in ns."""
Row = dict[str, Any]


def exposed_parts(ledger_intervals: pa.Table, communication: pa.Table, step_stats: pa.Table) -> pa.Table:
    """One row for each GPU and kind of parallelism. Of kernels that run at once the first counts until it is over, and of waits too."""
    kernels, steps = frames.by_device(communication), frames.by_device(step_stats)
    tables = []
    for key, tiles in frames.split(ledger_intervals):
        if key not in kernels:
            continue
        alone = tiles.filter(pa.array(frames.equals(tiles, "line", EXPOSED_COMMUNICATION.name)))
        spans = frames.ints(alone, "start_ns"), frames.ints(alone, "end_ns")
        tables.append(_of_gpu(key, spans, kernels[key], _complete(steps.get(key))))
    return frames.stack(EXPOSED_PARTS, tables)


def _complete(steps: pa.Table | None) -> tuple[Spans, int]:
    """The time of complete steps, and how many they are."""
    none = np.zeros(0, np.int64)
    if steps is None:
        return (none, none), 0
    whole = steps.filter(steps["complete"])
    return union(frames.ints(whole, "start_ns"), frames.ints(whole, "end_ns")), whole.num_rows


def _of_gpu(key: frames.Key, alone: Spans, kernels: pa.Table, steps: tuple[Spans, int]) -> pa.Table:
    order = np.argsort(frames.ints(kernels, "start_ns"), kind="stable")
    kernels = kernels.take(pa.array(order))
    start, end = frames.ints(kernels, "start_ns"), frames.ints(kernels, "end_ns")
    likely = frames.ints(kernels, "likely_wait")
    known = frames.ints(kernels, "wait")
    wait, told = np.maximum(np.maximum(known, likely), 0), (known != NULL) | (likely != NULL)
    waited = intersect(alone, union(start, start + wait))
    moving = subtract(alone, waited)
    within = steps[0]
    one = {
        "wait": _first_come(start, start + wait, waited),
        "transfer": _first_come(start, end, moving),
        "step_wait": _first_come(start, start + wait, intersect(waited, within)),
        "step_transfer": _first_come(start, end, intersect(moving, within)),
    }
    one["told"] = one["wait"] + np.where(told, one["transfer"], 0)
    served, kinds = frames.codes(kernels, "parallelism")
    codes, of = np.unique(served, return_inverse=True)
    sums = {name: np.bincount(of, values, len(codes)).astype(np.int64) for name, values in one.items()}
    exposed = sums["wait"] + sums["transfer"]
    parted = _is_told(int(sums["told"].sum()), int(exposed.sum()))
    return frames.build(
        EXPOSED_PARTS,
        {"rank": np.full(len(codes), key[0]), "device": np.full(len(codes), key[1])}
        | {"parallelism": pa.array([kinds[code] for code in codes.tolist()], pa.string())}
        | {"exposed": exposed, "wait": sums["wait"], "told": sums["told"]}
        | {"step_exposed": sums["step_wait"] + sums["step_transfer"], "step_wait": sums["step_wait"]}
        | {"steps": np.full(len(codes), steps[1]), "parted": np.full(len(codes), parted)},
    )


def _is_told(told: int, exposed: int) -> bool:
    return told > 0 and told >= MOSTLY * exposed


def _first_come(start: Array, end: Array, spans: Spans) -> Array:
    """How much of `spans` each interval covers that no earlier one does; they come sorted by their start."""
    low = np.maximum(start, np.maximum.accumulate(np.append(np.iinfo(np.int64).min, end))[:-1])
    return coverage(np.minimum(low, end), end, spans)


def gpu_parts(exposed_parts: pa.Table) -> dict[frames.Key, Parts]:
    """Waiting and transfer of each GPU; only of those for most of whose exposed communication that is told."""
    found = {}
    for key, rows in frames.groups(exposed_parts):
        exposed, wait = (int(frames.ints(exposed_parts, c)[rows].sum()) for c in ("exposed", "wait"))
        if frames.flags(exposed_parts, "parted")[rows].all():
            found[key] = wait, exposed - wait
    return found


def axes(exposed_parts: pa.Table, windows: int) -> list[Row]:
    """Time lost for each kind of parallelism, over all GPUs, that with most first; `windows` of all GPUs together, in ns.

    `wait_ns` and `transfer_ns` are null where most of it is not told; `per_step_ns` are means over complete steps of the GPUs that take
    part, null without any.
    """
    code, kinds = frames.codes(exposed_parts, "parallelism")
    rows = []
    for (one,), mine in frames.together(code):
        exposed, wait, told, in_steps, wait_in_steps, steps = (
            int(frames.ints(exposed_parts, c)[mine].sum())
            for c in ("exposed", "wait", "told", "step_exposed", "step_wait", "steps")
        )
        parted = _is_told(told, exposed)
        rows.append(
            {
                "parallelism": kinds[one] or "unknown",
                "gpu_count": len(mine),
                "exposed_ns": exposed,
                "wait_ns": wait if parted else None,
                "transfer_ns": exposed - wait if parted else None,
                "exposed_share": _share(exposed, windows),
                "wait_share": _share(wait, windows) if parted else None,
                "transfer_share": _share(exposed - wait, windows) if parted else None,
                "exposed_per_step_ns": in_steps // steps if steps else None,
                "wait_per_step_ns": wait_in_steps // steps if steps and parted else None,
                "transfer_per_step_ns": in_steps // steps - wait_in_steps // steps if steps and parted else None,
            }
        )
    return sorted(rows, key=lambda row: (-row["exposed_ns"], row["parallelism"]))


def _share(ns: int, whole: int) -> float:
    return round(ns / whole, 6) if whole else 0.0
