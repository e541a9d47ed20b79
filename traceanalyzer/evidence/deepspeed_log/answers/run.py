"""A run as a whole: its ZeRO stage and sizes, where a step goes, and what was measured with."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.columns import frames
from traceanalyzer.evidence.deepspeed_log.answers.phases import MAIN, NONE, Series, label_of, of_one_rank
from traceanalyzer.evidence.deepspeed_log.derived_tables import RUN
from traceanalyzer.units import format_duration

CUMULATIVE_SINCE = (0, 18, 4)
"""DeepSpeed whose comms logger no longer forgets the events of a call before the next one of that operation."""
FASTEST = 1e12
"""Bytes a second that no link between GPUs moves one way."""
RISING_CALLS = 8
"""Latencies of single calls that never fall are no latencies of each."""
BEYOND = 1.5
"""So many times as long as all steps together, latencies of blocking calls inside of them cannot be."""
OUTSIDE_STEPS = ("broadcast", "barrier", "monitored_barrier", "log_summary_barrier", "init_process_group")
_ENDED = re.compile(r"(\d+)\.(\d+)\.(\d+)")
LEAST_BETWEEN = 5
"""Times from one step to the next of which the median says something."""
Row = dict[str, Any]


def run(
    deepspeed_series: dict[int, Series],
    deepspeed_progress: pa.Table,
    deepspeed_settings: pa.Table,
    deepspeed_comms: pa.Table,
    deepspeed_comm_calls: pa.Table,
    deepspeed_profiles: pa.Table,
    deepspeed_phases: pa.Table,
    deepspeed_module_costs: pa.Table,
) -> pa.Table:
    """One row a file, or rank that files are beside."""
    given = (
        *(deepspeed_progress, deepspeed_settings),
        *(deepspeed_comms, deepspeed_comm_calls, deepspeed_profiles),
    )
    ranks = sorted({*deepspeed_series, *(rank for table in given for rank in table["rank"].unique().to_pylist())})
    rows = []
    for rank in ranks:
        progress, settings, comms, calls, profiles, phases, modules = (
            table.filter(pc.equal(table["rank"], rank)) for table in (*given, deepspeed_phases, deepspeed_module_costs)
        )
        told = dict(zip(settings["name"].to_pylist(), settings["value"].to_pylist(), strict=True))
        profile = profiles.to_pylist()[-1] if profiles.num_rows else {}
        stage, zero = _stage(told, phases, comms, modules)
        own = deepspeed_series.get(rank, NONE)
        steps = own.steps
        speeds = progress["samples_per_second"].drop_null().to_numpy()
        cumulative, why = _cumulative(told.get("version"), comms, calls, steps)
        rows.append(
            {
                "rank": rank,
                "version": told.get("version"),
                "stage": stage,
                "zero": zero,
                "world_size": profile.get("world_size") or _number(told.get("world_size")),
                "accumulation": _number(told.get("gradient_accumulation_steps")) or _reports(profiles),
                "batch": profile.get("batch") or _number(told.get("train_micro_batch_size_per_gpu")),
                "steps": len(steps["fwd"]) if steps else 0,
                **_breakdown(own),
                "samples": float(np.median(speeds)) if len(speeds) else None,
                "between": round(float(np.median(own.between))) if len(own.between) >= LEAST_BETWEEN else None,
                "timers": bool(phases.num_rows) or _is_on(told.get("wall_clock_breakdown")),
                "comms": bool(comms.num_rows or calls.num_rows) or _is_on(told.get("comms_logger_enabled")),
                "profiler": bool(profiles.num_rows),
                "cumulative": cumulative,
                "why_cumulative": why,
            }
        )
    return pa.Table.from_pylist(rows, RUN.schema)


def _is_on(text: str | None) -> bool:
    """Whether a setting is true, as Python or JSON prints it."""
    return text is not None and text.lower() == "true"


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdigit() and len(text) < 12 else None


def _reports(profiles: pa.Table) -> int | None:
    """Micro-batches of the step that was profiled: the profiler reports after each. One report does not tell, since its own file
    keeps only the last."""
    steps = profiles["profile_step"].drop_null()
    alike = pc.sum(pc.equal(steps, steps[-1])).as_py() if len(steps) else 0
    return alike if alike and alike > 1 else None


def _breakdown(series: Series) -> Row:
    """Where a step goes, by its medians."""
    if not series.steps:
        return {"total": None, "phase": None, "label": None, "most": None, "breakdown": None}
    medians = {name: round(float(np.median(series.steps[name]))) for name in MAIN}
    total = round(float(np.median(sum(series.steps.values(), np.zeros(1)))))
    first, *rest = sorted(MAIN, key=lambda name: -medians[name])
    others = " and ".join(f"{label_of(name)} {format_duration(medians[name])}" for name in rest)
    name = label_of(first)
    said = (
        f"{name[:1].upper()}{name[1:]} takes {format_duration(medians[first])} of a {format_duration(total)} {series.unit}, {others} "
        f"(medians of {len(series.steps[first]):,} {series.unit}{'es' if series.unit.endswith('h') else 's'} by DeepSpeed's timers)"
    )
    return {"total": total, "phase": first, "label": name, "most": medians[first], "breakdown": said}


def _stage(told: Mapping[str, str], phases: pa.Table, comms: pa.Table, modules: pa.Table) -> tuple[int | None, str]:
    """The ZeRO stage and what told it: the configuration, else what only one stage does."""
    if (stage := _number(told.get("zero_optimization_stage"))) is not None and stage <= 3:
        return stage, f"ZeRO-{stage} (its configuration says so)" if stage else "no ZeRO (its configuration says so)"
    if (told.get("zero_enabled") or "").lower() == "false":
        return 0, "no ZeRO (its configuration says so)"
    names = set(phases["phase"].to_pylist())
    ops = set(comms["op"].to_pylist())
    if pc.any(modules["sharded"]).as_py():
        return 3, "ZeRO-3 (modules hold a shard of their parameters)"
    if "init_optimizer_state" in names or {"optimizer_step"} == {
        name for name in names if name.startswith("optimizer_")
    }:
        return 3, "ZeRO-3 (by the timers of its optimizer)"
    if {"optimizer_allgather", "optimizer_gradients"} <= names:
        scattered = any("reduce_scatter" in op for op in ops)
        return (
            (2, "ZeRO-2 (it scatters gradients)")
            if scattered
            else (None, "ZeRO-1 or 2 (by the timers of its optimizer)")
        )
    return None, "ZeRO stage not told"


def _cumulative(
    version: str | None, comms: pa.Table, calls: pa.Table, steps: Mapping[str, Any]
) -> tuple[bool | None, str | None]:
    """Whether each latency of the comms logger holds all earlier ones of its operation, and what tells that."""
    if not comms.num_rows and not calls.num_rows:
        return None, None
    for op, own in _by_op(calls):
        if len(own) >= RISING_CALLS:
            rising = bool((np.diff(own) >= 0).all() and own[-1] > 2 * own[0])
            return rising, f"the latencies that it prints of each {op} never fall" if rising else None
    if (found := _ENDED.match(version or "")) is not None:
        newer = tuple(int(part) for part in found.groups()) >= CUMULATIVE_SINCE
        return newer, f"DeepSpeed {version} sums them up" if newer else None
    last = comms.filter(pc.equal(comms["summary"], pc.max(comms["summary"]).as_py()))
    if _too_short_for_sums(last):
        return False, None
    inside = last.filter(pc.invert(pc.is_in(last["op"].cast(pa.string()), pa.array(OUTSIDE_STEPS))))
    # The mean leaves a tenth out at either end: one call that waits for minutes is not what it tells.
    latency = sum((row["average"] or 0) * row["calls"] for row in inside.select(["average", "calls"]).to_pylist())
    run_ns = float(sum(values.sum() for values in steps.values())) if steps else 0.0
    if run_ns and latency > BEYOND * run_ns:
        return True, (
            f"its collectives would have taken {format_duration(latency)}, and all {len(steps['fwd']):,} steps together took "
            f"{format_duration(run_ns)}"
        )
    return None, None


def _too_short_for_sums(lines: pa.Table) -> bool:
    """Whether a mean latency, were it that of sums, would leave less for a call than moving its message takes: the mean of
    sums is about half of the last one, and all calls share that."""
    calls = {op: sum(row["calls"] for row in rows) for op, rows in _lines_by_op(lines).items()}
    return any(
        row["average"] is not None and 4 * row["average"] / calls[op] < row["bytes"] / FASTEST * 1e9
        for op, rows in _lines_by_op(lines).items()
        for row in rows
        if calls[op] >= RISING_CALLS
    )


def _lines_by_op(lines: pa.Table) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in lines.to_pylist():
        found.setdefault(row["op"], []).append(row)
    return found


def _by_op(calls: pa.Table) -> list[tuple[str, Any]]:
    """The latencies of each operation in order, those of most calls first."""
    own = of_one_rank(calls)
    if not own.num_rows:
        return []
    code, names = frames.codes(own, "op")
    took = own["duration"].to_numpy()
    found = [(names[one], took[code == one]) for one in np.unique(code).tolist()]
    return sorted(found, key=lambda one: -len(one[1]))
