"""Steps that get longer over the run by DeepSpeed's timers, which phase does, and whether the comms logger explains it.

From DeepSpeed 0.18.4 on, the comms logger keeps the events of every call and adds up all of one operation again at each of its calls. A
step with c calls of an operation then looks at c x c events more than the step before it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.derive.trends import trend
from traceanalyzer.evidence.deepspeed_log.answers.phases import MAIN, NONE, Series, label_of
from traceanalyzer.evidence.deepspeed_log.answers.run import OUTSIDE_STEPS
from traceanalyzer.evidence.deepspeed_log.derived_tables import GROWTH
from traceanalyzer.units import format_count

LEAST = 10
"""Steps that are compared at least."""
WARM_UP = 3
"""Steps at the start that are not compared: they allocate, load and tune."""
MANY = 50
"""Waits for events in a step of a trace that no program makes of itself."""
EVENT_WAITS = ("cudaEventSynchronize", "hipEventSynchronize")
MORE, ALIKE = 1.1, 0.25
"""A phase that is so many times as long has grown; two grow alike whose growth differs by less than this part."""
Floats = npt.NDArray[np.float64]
Row = dict[str, Any]


def growth(
    deepspeed_series: dict[int, Series],
    deepspeed_comms: pa.Table,
    deepspeed_run: pa.Table,
    steps: pa.Table,
    api_calls: pa.Table,
) -> pa.Table:
    """One row a rank with enough timed steps."""
    rows = []
    for run in deepspeed_run.to_pylist():
        rank = run["rank"]
        found = deepspeed_series.get(rank, NONE).steps
        comms = deepspeed_comms.filter(pc.equal(deepspeed_comms["rank"], rank))
        if not found or len(found["fwd"]) < WARM_UP + LEAST:
            continue
        row = _row(found, run)
        visits = _visits(comms, run["steps"]) if run["cumulative"] else None
        each = (row["last"] - row["first"]) / (row["steps"] - 1) / visits if visits else None
        rows.append(
            {
                "rank": rank,
                **row,
                "visits": visits,
                "visit": None if each is None or each < 0 else round(each),
                "seen": _seen(waits_by_step(steps, api_calls, rank, EVENT_WAITS)) if visits else None,
            }
        )
    return pa.Table.from_pylist(rows, GROWTH.schema)


def _row(found: dict[str, Floats], run: Row) -> Row:
    compared = {name: values[WARM_UP:] for name, values in found.items()}
    total = sum(compared.values(), np.zeros(len(compared["fwd"])))
    whole = trend(total)
    parts = {name: trend(values) for name, values in compared.items()}
    most = max(MAIN, key=lambda name: parts[name].last - parts[name].first)
    return {
        "steps": len(total),
        "total": run["total"],
        "first": round(whole.first),
        "last": round(whole.last),
        "chance": whole.chance,
        "steady": whole.steady and whole.slope > 0,
        "label": label_of(most),
        "median": round(float(np.median(found[most]))),
        "phase_first": round(parts[most].first),
        "phase_last": round(parts[most].last),
        "dominates": most == run["phase"],
        "alike": _is_of_work(*(parts[name].last / max(parts[name].first, 1.0) for name in MAIN)),
    }


def _is_of_work(forward: float, backward: float, optimizer: float) -> bool:
    """Whether phases grow, to so many times their first length, as those of a step that has more to compute: the optimizer has not."""
    return min(forward, backward) > MORE and abs(forward / backward - 1) < ALIKE and optimizer < MORE


def calls_a_step(comms: pa.Table, steps: int) -> dict[str, float]:
    """By operation, but those that only start a run: calls of the last summary for each step of the log."""
    if not comms.num_rows or not steps:
        return {}
    last = comms.filter(pc.equal(comms["summary"], pc.max(comms["summary"]).as_py()))
    sums = last.group_by("op").aggregate([("calls", "sum")])
    each = zip(sums["op"].to_pylist(), sums["calls_sum"].to_pylist(), strict=True)
    return {op: calls / steps for op, calls in each if op not in OUTSIDE_STEPS}


def _visits(comms: pa.Table, steps: int) -> int | None:
    """Events of earlier calls that a step looks at more than the one before, by operations that come in every step."""
    calls = [round(each) for each in calls_a_step(comms, steps).values() if each >= 1]
    return sum(each * each for each in calls) if calls else None


def waits_by_step(steps: pa.Table, api_calls: pa.Table, rank: int, names: tuple[str, ...]) -> npt.NDArray[np.int64]:
    """How many calls of these names each marked step of a trace makes, and how long they take: one row a step."""
    marked = steps.filter(pc.equal(steps["rank"], rank)).sort_by("start_ns")
    if not marked.num_rows:
        return np.zeros((0, 2), np.int64)
    calls = api_calls.filter(
        pc.and_(pc.equal(api_calls["rank"], rank), pc.is_in(api_calls["name"].cast(pa.string()), pa.array(names)))
    )
    start = calls["start_ns"].to_numpy()
    took = calls["end_ns"].to_numpy() - start
    begin, end = marked["start_ns"].to_numpy(), marked["end_ns"].to_numpy()
    return np.array(
        [
            (int(inside.sum()), int(took[inside].sum()))
            for low, high in zip(begin, end, strict=True)
            for inside in [(start >= low) & (start < high)]
        ],
        np.int64,
    ).reshape(-1, 2)


def rising(counts: npt.NDArray[np.int64]) -> bool:
    """Whether waits for events get more from step to step, of which there are more than a program makes of itself."""
    return len(counts) > 1 and int(counts.min()) >= MANY and bool((np.diff(counts) > 0).all())


def _seen(waits: npt.NDArray[np.int64]) -> str | None:
    """What a trace shows of a logger that looks at all earlier events: waits for events that rise from step to step."""
    counts = waits[:, 0]
    if not rising(counts):
        return None
    told = [format_count(int(one)) for one in counts[:4]]
    return f"The steps in the trace beside wait for {', '.join(told[:-1])} and {told[-1]} events"
