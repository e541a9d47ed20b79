"""How a GPU did while it was under load: use, clocks and what held them down, power, heat, memory and its link."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceanalyzer.evidence.gpu_log.answers import words
from traceanalyzer.evidence.gpu_log.answers.gpus import BUSY, Floats, Judged, Log, Window
from traceanalyzer.evidence.gpu_log.answers.neighbours import Foreign, foreign_use, slow_kernels
from traceanalyzer.evidence.gpu_log.derived_tables import GPU_LOAD
from traceanalyzer.evidence.gpu_log.reading.fields import (
    APPLICATION,
    DISPLAY,
    GPU_IDLE,
    HW_SLOWDOWN,
    HW_THERMAL,
    POWER_BRAKE,
    POWER_CAP,
    SW_THERMAL,
    SYNC_BOOST,
)
from traceanalyzer.intervals import Array

Flags = npt.NDArray[np.bool_]
_PAUSE_NS, _PAUSE_SAMPLES = 10_000_000_000, 20
"""Load goes on over a pause of so long, or of so many samples."""
_MEAN_NS = 1_000_000_000
"""Use is a mean of up to so long before its sample."""
_FEW = 0.1
_STEP_MHZ = 15
"""Clocks of NVIDIA's GPUs go in steps of so much."""
_NO_USE = "the log does not say how busy the GPU was, so that load cannot be told from idling"
_IDLE_THEN = "the log shows no load at the time of the recording"
_NO_CLOCKS = "the log has no clocks"


def gpu_load(judged: Sequence[Judged], ledger: pa.Table, kernels: pa.Table, gpu_ops: pa.Table) -> pa.Table:
    """One row a GPU that a log may be of."""
    ledgers = {(row["rank"], row["device"]): row for row in ledger.to_pylist()}
    rows = []
    for one in judged:
        key = (one.rank, one.device)
        row: dict[str, Any] = {
            "rank": one.rank,
            "device": one.device,
            "unjudged": one.why,
            "beside": one.window is not None,
        }
        if one.log is not None:
            foreign = foreign_use(one, gpu_ops)
            row |= _row(one, one.log, ledgers.get(key), foreign) | slow_kernels(kernels, one)
        rows.append(row)
    working = {row["rank"] for row in rows if row.get("load_samples")}
    for row in rows:
        row["unused"] = row.get("load_samples") == 0 and not row["unjudged"] and row["rank"] in working
    return pa.Table.from_pylist(rows, schema=GPU_LOAD.schema)


def under_load(log: Log, window: Window | None) -> tuple[Flags, str | None]:
    """The samples of the load that is judged, and why there are none: of a log beside a trace on its clock, the load around that."""
    if not log.has("utilization"):
        return np.zeros(len(log.time), bool), _NO_USE
    busy = _lasting(log, log.of("utilization") >= BUSY)
    if window is None or not log.on_clock or not busy.any():
        return busy, None
    # Use is the mean of up to a second before.
    slack = 2 * log.interval + _MEAN_NS
    piece, first, last = _pieces(log, busy, max(_PAUSE_NS, _PAUSE_SAMPLES * log.interval))
    meets = (log.time[first] <= window[1] + slack) & (log.time[last] >= window[0] - slack)
    if not meets.any():
        return np.zeros(len(busy), bool), _IDLE_THEN
    found = np.zeros(len(busy), bool)
    found[np.flatnonzero(busy)[meets[piece]]] = True
    return found, None


def _pieces(log: Log, busy: Flags, pause: int) -> tuple[Array, Array, Array]:
    """Of each busy sample the number of its piece, and of each piece the first and the last sample; pauses are longer than `pause`."""
    at = np.flatnonzero(busy)
    piece = np.concatenate(([0], np.cumsum(np.diff(log.time[at]) > pause)))
    first = np.flatnonzero(np.diff(piece, prepend=-1))
    return piece, at[first], at[np.append(first[1:], len(at)) - 1]


def _lasting(log: Log, busy: Flags) -> Flags:
    """Without pieces that are shorter than what use is a mean of, as of work that ended before the log began, where they are few."""
    if not busy.any():
        return busy
    piece, first, last = _pieces(log, busy, max(_MEAN_NS, 2 * log.interval))
    brief = (log.time[last] - log.time[first] + log.interval < _MEAN_NS)[piece]
    if brief.mean() > _FEW:
        return busy
    found = busy.copy()
    found[np.flatnonzero(busy)[brief]] = False
    return found


def _row(one: Judged, log: Log, ledger: Mapping[str, Any] | None, foreign: Foreign) -> dict[str, Any]:
    load, why = under_load(log, one.window)
    count = int(load.sum())
    start = int(log.time[load][0]) if count else int(log.time[0])
    end = int(log.time[load][-1]) if count else int(log.time[-1])
    run = (log.time >= start) & (log.time <= end)
    inside = one.window is not None and log.on_clock
    row: dict[str, Any] = {
        "start_ns": start,
        "end_ns": end + log.interval,
        "gpu": log.gpu,
        "model": log.model,
        "log": log.log,
        "tool": log.tool,
        "others": ", ".join(one.others) or None,
        "told_by": one.told_by or None,
        "on_clock": log.on_clock,
        "timed": log.timed,
        "samples": len(log.time),
        "load_samples": count,
        "traced": ledger["busy"] / ledger["duration"] if ledger is not None and ledger["duration"] else None,
        "trace_samples": int((load & (log.time >= one.window[0]) & (log.time < one.window[1])).sum())
        if inside and one.window
        else None,
        "interval": log.interval,
        "unjudged": one.why or why,
        "reasons_known": log.has("reasons"),
        "clocks_known": log.has("sm_clock"),
        "utilization": _mean(log.of("utilization")[run]),
        "utilization_middle": _middle(log.of("utilization")[run]),
        "utilization_whole": _mean(log.of("utilization")),
        **_memory(log, run),
        "temperature": _middle(log.of("temperature")[load]),
        "temperature_most": _most(log.of("temperature")[load]),
        "power": _middle(log.of("power")[load]),
        "power_limit": _middle(log.of("power_limit")),
        "power_limit_default": _middle(log.of("power_limit_default")),
        **_clocks(log, load),
        **_links(log, load),
        **_processes(log, load),
        "ours": foreign.ours,
        "foreign_samples": foreign.samples,
        "foreign_judged": foreign.judged,
        "foreign_use": foreign.use,
    }
    row |= _cost(row, ledger)
    return row | words.sentences(row)


def _memory(log: Log, run: Flags) -> dict[str, Any]:
    used, total = _most(log.of("memory_used")[run]), _middle(log.of("memory_total"))
    return {
        "memory_used": None if used is None else round(used),
        "memory_total": None if total is None else round(total),
        "memory_share": used / total if used is not None and total else None,
    }


def _clocks(log: Log, load: Flags) -> dict[str, Any]:
    clock = log.of("sm_clock")
    said = _most(log.of("sm_clock_max"))
    seen = _seen(log)
    highest = max((one for one in (said, seen) if one is not None), default=None)
    middle = _middle(clock[load])
    found: dict[str, Any] = {
        "clock": middle,
        "clock_least": _least(clock[load]),
        "clock_max": highest,
        "clock_max_told": said is not None,
        "clock_share": middle / highest if middle and highest else None,
    }
    reasons = log.of("reasons")[load]
    known = np.isfinite(reasons)
    bits = np.where(known, reasons, 0).astype(np.int64)

    def held(mask: int, without: int = 0) -> float | None:
        return float((((bits & mask) != 0) & ((bits & without) == 0))[known].mean()) if known.any() else None

    found |= {
        "by_power": held(POWER_CAP),
        "by_heat": held(SW_THERMAL | HW_THERMAL),
        "by_brake": held(POWER_BRAKE),
        "by_slowdown": held(HW_SLOWDOWN, HW_THERMAL | POWER_BRAKE),
        "by_setting": held(APPLICATION | DISPLAY | SYNC_BOOST),
        "by_nothing": float((bits[known] == 0).mean()) if known.any() else None,
    }
    faulty = known & ((bits & (SW_THERMAL | HW_THERMAL | POWER_BRAKE | HW_SLOWDOWN)) != 0)
    found["faults"] = float(faulty[known].mean()) if known.any() else None
    found["fault_clock"] = _middle(clock[load][faulty])
    found["fault_temperature"] = _most(log.of("temperature")[load][faulty])
    return found


def _seen(log: Log) -> float | None:
    """The highest clock in the log, where nothing held it down then; of a log without reasons the highest of all."""
    clock, reasons = log.of("sm_clock"), log.of("reasons")
    free = np.isfinite(reasons) & ((np.nan_to_num(reasons).astype(np.int64) & ~GPU_IDLE) == 0)
    most, most_free = _most(clock), _most(clock[free])
    if not log.has("reasons"):
        return most
    return most if most is not None and most_free is not None and most_free >= most - _STEP_MHZ else None


def _links(log: Log, load: Flags) -> dict[str, Any]:
    """Current and highest generation and width. Without what a link can, the best that the log has seen is taken for it."""
    found: dict[str, Any] = {}
    for what in ("gen", "width"):
        now = log.of(f"pcie_{what}")
        can, told = _most(log.of(f"pcie_{what}_max")), log.has(f"pcie_{what}_max")
        best = max((one for one in (can, _most(now)) if one is not None), default=None)
        mine = now[load]
        mine = mine[np.isfinite(mine)]
        below = float((mine < best).mean()) if len(mine) and best is not None else None
        found |= {
            f"link_{what}": _middle(mine),
            f"link_{what}_max": best,
            f"link_{what}_told": told,
            f"link_{what}_below": below,
        }
    found["link_samples"] = int(
        np.isfinite(log.of("pcie_gen")[load]).sum() or np.isfinite(log.of("pcie_width")[load]).sum()
    )
    return found


def _processes(log: Log, load: Flags) -> dict[str, Any]:
    processes = log.of("processes")[load]
    processes = processes[np.isfinite(processes)]
    return {
        "processes": int(processes.max()) if len(processes) else None,
        "several": float((processes >= 2).mean()) if len(processes) else None,
        "process_samples": len(processes),
    }


def _cost(row: Mapping[str, Any], ledger: Mapping[str, Any] | None) -> dict[str, Any]:
    """What a step could take less at the highest clock, at most: its compute by the ratio of the clocks, and nothing of the rest."""
    share = row["clock_share"]
    if share is None:
        return {"faster": None, "step": None, "step_saving": None}
    lost = max(1.0 - share, 0.0)
    if ledger is None or not ledger["step_time"] or not ledger["duration"] or not row["on_clock"]:
        return {"faster": lost, "step": None, "step_saving": None}
    step = ledger["step_time"]
    return {"faster": lost, "step": step, "step_saving": round(step * lost * ledger["compute"] / ledger["duration"])}


def _known(values: Floats) -> Floats:
    return values[np.isfinite(values)]


def _mean(values: Floats) -> float | None:
    known = _known(values)
    return float(known.mean()) if len(known) else None


def _middle(values: Floats | Array) -> float | None:
    """The median; of an even number the upper one of the middle two, so that it is a value that was measured."""
    known = np.sort(values[np.isfinite(values)])
    return float(known[len(known) // 2]) if len(known) else None


def _most(values: Floats) -> float | None:
    known = _known(values)
    return float(known.max()) if len(known) else None


def _least(values: Floats) -> float | None:
    known = _known(values)
    return float(known.min()) if len(known) else None
