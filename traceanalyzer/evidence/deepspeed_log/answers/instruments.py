"""What measuring does to a run: which of DeepSpeed's instruments were on, and how often the host waits in the trace beside."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.evidence.deepspeed_log.answers.growth import EVENT_WAITS, calls_a_step, rising, waits_by_step
from traceanalyzer.evidence.deepspeed_log.derived_tables import INSTRUMENTS
from traceanalyzer.units import format_duration, format_share
from traceanalyzer.vocabulary.lines import COMPUTE, LEDGER_LINES, column, is_idle

WAITS = (
    *EVENT_WAITS,
    *("cudaDeviceSynchronize", "cudaStreamSynchronize", "hipDeviceSynchronize", "hipStreamSynchronize"),
)
Row = dict[str, Any]


def instruments(
    deepspeed_run: pa.Table, deepspeed_comms: pa.Table, steps: pa.Table, api_calls: pa.Table, step_ledger: pa.Table
) -> pa.Table:
    """One row a rank of which any instrument is known to have been on."""
    rows = []
    for run in deepspeed_run.to_pylist():
        if not (run["timers"] or run["comms"] or run["profiler"]):
            continue
        rank = run["rank"]
        comms = deepspeed_comms.filter(pc.equal(deepspeed_comms["rank"], rank))
        calls = [each for each in calls_a_step(comms, run["steps"]).values() if each >= 0.5]
        all_waits = waits_by_step(steps, api_calls, rank, WAITS)
        event_waits = waits_by_step(steps, api_calls, rank, EVENT_WAITS)
        traced = traced_steps(step_ledger, rank)
        row: Row = {
            "rank": rank,
            **{name: run[name] for name in ("timers", "comms", "profiler", "breakdown")},
            "collectives": round(sum(calls)) if calls else None,
            "step": run["total"] or traced["step"],
            "waits": _median(all_waits[:, 0]),
            "waiting": _median(all_waits[:, 1]),
            "looks": _median(event_waits[:, 0]),
            "traced_step": traced["step"],
            "busy": traced["busy"],
            "compute": traced["compute"],
        }
        more = event_waits[:, 0]
        added = round(float(np.median(np.diff(more)))) if run["comms"] and rising(more) else 0
        rows.append(row | {"words": _words(row, added)})
    return pa.Table.from_pylist(rows, INSTRUMENTS.schema)


def _words(row: Row, added: int) -> str | None:
    """What the timers and the comms logger do, with where a step goes by them or what the trace beside shows, in which each step has
    `added` more waits than the one before; None where neither was on."""
    logger = "the comms logger after each collective"
    if row["collectives"]:
        logger = f"the comms logger after each of {counted(row['collectives'], 'collective')} a step"
    who = " and ".join(["the timers themselves"] * row["timers"] + [logger] * row["comms"])
    if not who:
        return None
    verb = "waits" if who == logger else "wait"
    if row["waits"] and row["traced_step"] and row["busy"] is not None:
        return (
            f"DeepSpeed's measuring synchronises: {who} {verb} for the GPU. In the trace {counted(row['waits'], 'such call')} take "
            f"{format_duration(row['waiting'])} of a {format_duration(row['traced_step'])} step, in which the GPU is busy "
            f"{format_share(row['busy'])} of the time and computes {format_duration(row['compute'])}"
            + (
                f". They are {added:,} more in each step than in the one before: the comms logger goes through all earlier calls"
                if added
                else ""
            )
        )
    if row["breakdown"]:
        return f"{row['breakdown']}; {who} {verb} for the GPU"
    return f"DeepSpeed's measuring synchronises: {who} {verb} for the GPU"


def counted(many: int, what: str) -> str:
    """A number of things, in words."""
    return f"{many:,} {what}" if many == 1 else f"{many:,} {what}s"


def _median(values: Any) -> int | None:
    return round(float(np.median(values))) if len(values) else None


def traced_steps(step_ledger: pa.Table, rank: int) -> Row:
    """Of the complete steps in a trace: their median, the share in which the GPU is busy, and how much of one it computes. All None
    without any."""
    own = step_ledger.filter(pc.and_(pc.equal(step_ledger["rank"], rank), step_ledger["complete"]))
    if not own.num_rows:
        return {"step": None, "busy": None, "compute": None}
    long = own["end_ns"].to_numpy() - own["start_ns"].to_numpy()
    idle = sum(own[column(line)].to_numpy() for line in LEDGER_LINES if is_idle(line))
    whole = int(long.sum())
    return {
        "step": round(float(np.median(long))),
        "busy": 1 - float(np.sum(idle)) / whole if whole else None,
        "compute": round(float(np.median(own[column(COMPUTE.name)].to_numpy()))),
    }
