"""Which GPU of a log is which of a trace; and of several logs of one GPU the one that is judged, with what only the others have.

A log counts GPUs as the driver does, a trace as CUDA does in its process, where CUDA_VISIBLE_DEVICES may leave some out or order them
anew. So a GPU is told by its UUID where both say it, by its number only where the trace sees as many GPUs as the log has, else as the
only one, or as the only one that was at work while the trace was recorded.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import PurePath
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.evidence.gpu_log.reading.fields import MEASURES
from traceanalyzer.intervals import Array
from traceanalyzer.records import dataclass

Floats = npt.NDArray[np.float64]
BUSY = 0.1
"""A sample is one under load from this part of its time on in which kernels ran."""
_FIXED = (
    "sm_clock_max",
    "mem_clock_max",
    "power_limit",
    "power_limit_default",
    "memory_total",
    "pcie_gen_max",
    "pcie_width_max",
)
_DAY_NS = 86_400_000_000_000
_STALE_NS = 5_000_000_000
_NEAR_NS = 2_000_000_000
WHICH = "the log holds several GPUs, and nothing tells which of them the trace is of: neither ids, numbers nor load"
OTHERS = "the log is of other GPUs than the trace"
Window = tuple[int, int]


@dataclass(frozen=True)
class Log:
    """The samples of one GPU in one log, in the order of time; `measured` has NaN where nothing is known."""

    log: str
    tool: str
    gpu: int | None
    uuid: str | None
    bus: str | None
    model: str | None
    timed: bool
    on_clock: bool
    time: Array
    measured: Mapping[str, Floats]

    @property
    def interval(self) -> int:
        """Usual time from one sample to the next, in ns and at most a day; 0 of fewer than two."""
        apart = np.diff(self.time)
        apart = apart[apart > 0]
        return min(int(np.median(apart)), _DAY_NS) if len(apart) else 0

    def of(self, name: str) -> Floats:
        return self.measured.get(name, np.full(len(self.time), np.nan))

    def has(self, name: str) -> bool:
        return name in self.measured


@dataclass(frozen=True)
class Judged:
    """A GPU of a trace, or of a log alone, with the log that tells of it; `why` it cannot be judged."""

    rank: int
    device: int
    log: Log | None
    others: tuple[str, ...] = ()
    told_by: str = ""
    why: str | None = None
    window: Window | None = None
    name: str | None = None


@dataclass
class Gpu:
    """One GPU of some logs."""

    logs: list[Log] = field(default_factory=list)

    def first(self, name: str) -> Any:
        return next((found for log in self.logs if (found := getattr(log, name)) is not None), None)


def logs_of(samples: pa.Table, on_clock: Mapping[str, bool]) -> list[Log]:
    """Each GPU of each log; the samples are of one rank."""
    (log, logs), (tool, tools) = frames.codes(samples, "log"), frames.codes(samples, "tool")
    ids = [frames.codes(samples, name) for name in ("uuid", "bus", "model")]
    gpu = frames.ints(samples, "gpu")
    times = frames.ints(samples, "time_ns")
    timed = samples["timed"].to_numpy()
    columns = {name: samples[name].to_numpy() for name in MEASURES if samples[name].null_count < samples.num_rows}
    found = []
    for key, rows in frames.together(log, gpu, *(code for code, _ in ids[:2])):
        order = rows[np.argsort(times[rows], kind="stable")]
        _, once = np.unique(times[order], return_index=True)
        order = order[once]
        measured = {}
        for name in MEASURES:
            if name not in columns:
                continue
            values = columns[name][order]
            if np.isfinite(values).any():
                # As it was written, whose digits are fewer.
                measured[name] = np.round(values.astype(np.float64), 6)
        uuid, bus, model = (values[code[order[0]]] for code, values in ids)
        called = logs[key[0]] or ""
        found.append(
            Log(
                *(
                    called,
                    tools[tool[order[0]]] or "",
                    None if key[1] == frames.NULL else int(key[1]),
                    uuid,
                    bus,
                    model,
                ),
                bool(timed[order[0]]),
                on_clock.get(called, False),
                times[order],
                measured,
            )
        )
    return found


def clocks_told(placed: pa.Table, kind: str, rank: int) -> dict[str, bool]:
    """By name of a log whether its times are on the clock of the rank's trace."""
    found: dict[str, bool] = {}
    for row in placed.to_pylist():
        if row["kind"] == kind and row["rank"] == rank:
            name = PurePath(row["path"]).name
            found[name] = found.get(name, True) and bool(row["on_clock"])
    return found


def gpus_of(logs: Sequence[Log]) -> list[Gpu]:
    """The GPUs that the logs are of: the same where ids or, for want of them, numbers agree."""
    found: list[Gpu] = []
    for log in sorted(logs, key=lambda one: (one.uuid is None, one.gpu is None, one.gpu or 0)):
        same = [one for one in found if _may_be(log, one)]
        sure = [one for one in same if log.uuid is not None and one.first("uuid") == log.uuid] or same
        if len(sure) == 1 and log.log not in {other.log for other in sure[0].logs}:
            sure[0].logs.append(log)
        else:
            found.append(Gpu([log]))
    return sorted(found, key=lambda one: (one.first("gpu") is None, one.first("gpu") or 0, str(one.first("uuid"))))


def _may_be(log: Log, gpu: Gpu) -> bool:
    """Whether nothing contradicts that a log is of a GPU: ids, numbers, models, and what others measured of it at once."""
    for name in ("uuid", "bus", "gpu", "model"):
        mine, its = getattr(log, name), gpu.first(name)
        if name == "bus" and mine and its:
            mine, its = mine.lower()[-10:], its.lower()[-10:]
        if mine is not None and its is not None and mine != its:
            return False
        if name == "uuid" and mine is not None and mine == its:
            return True
    return not any(_disagree(log, other) for other in gpu.logs)


def _disagree(one: Log, other: Log) -> bool:
    """Whether two logs on one clock measured other powers at the same times, as those of two machines do."""
    if not (one.on_clock and other.on_clock and one.has("power") and other.has("power")):
        return False
    fine, coarse = (one, other) if len(one.time) >= len(other.time) else (other, one)
    at = np.searchsorted(fine.time, coarse.time, side="right") - 1
    near = (at >= 0) & (coarse.time - fine.time[np.maximum(at, 0)] <= 2 * max(fine.interval, 1))
    if near.sum() < 3:
        return False
    apart = np.abs(coarse.of("power")[near] - fine.of("power")[at[near]])
    reach = float(np.nanmax(fine.of("power")) - np.nanmin(fine.of("power")))
    return bool(np.nanmedian(apart) > max(0.1 * reach, 15.0))


def best_log(gpu: Gpu) -> tuple[Log, tuple[str, ...]]:
    """The log that is judged: of those on the trace's clock that say clocks and use, with the reasons if any does, the finest. Of the
    others it has what it lacks; they are named."""

    def worth(log: Log) -> tuple[Any, ...]:
        whole = log.has("utilization") and log.has("sm_clock")
        # Rates that differ by some percent are the same.
        rate = round(5 * math.log2(log.interval)) if log.interval else 1 << 62
        return (not log.on_clock, not log.timed, not whole, not log.has("reasons"), rate, -len(log.measured), log.log)

    first, *rest = sorted(gpu.logs, key=worth)
    measured = dict(first.measured)
    for log in rest:
        for name, values in log.measured.items():
            if name in measured:
                continue
            if name in _FIXED:
                measured[name] = np.full(len(first.time), float(np.nanmedian(values)))
            elif first.on_clock == log.on_clock and first.timed and log.timed:
                measured[name] = _as_of(first.time, log.time, values, log.interval)
    whose = {
        name: getattr(first, name) if getattr(first, name) is not None else gpu.first(name)
        for name in ("gpu", "uuid", "bus", "model")
    }
    return replace(first, measured=measured, **whose), tuple(log.log for log in rest)


def _as_of(when: Array, time: Array, values: Floats, interval: int) -> Floats:
    """The last value before each moment, unless it is older than two usual intervals and some seconds."""
    at = np.searchsorted(time, when, side="right") - 1
    fresh = (at >= 0) & (when - time[np.maximum(at, 0)] <= max(2 * interval, _STALE_NS))
    return np.where(fresh, values[np.maximum(at, 0)], np.nan)


def matched(
    gpus: Sequence[Gpu], used: Iterable[int], devices: pa.Table, windows: Mapping[int, Window]
) -> dict[int, tuple[Gpu | None, str]]:
    """For each GPU that a trace used the one of the log that it is, and what tells; None and why, where nothing does."""
    known = {row["device"]: row for row in devices.to_pylist()}
    used = sorted(used)
    found: dict[int, tuple[Gpu | None, str]] = {}
    for device in used:
        row = known.get(device, {})
        uuid, model = row.get("uuid"), row.get("name")
        fits = [one for one in gpus if _alike(one.first("model"), model)]
        with_id = [one for one in fits if uuid and _bare(one.first("uuid")) == _bare(uuid)]
        if with_id:
            found[device] = (with_id[0], "its id")
        elif not fits or (uuid and all(one.first("uuid") for one in fits)):
            found[device] = (None, OTHERS)
        elif len(fits) == 1 and len(used) == 1:
            found[device] = (fits[0], "being the only one")
        else:
            found[device] = _by_number(fits, device, len(known)) or _by_load(fits, used, windows.get(device))
    taken = [id(gpu) for gpu, _ in found.values() if gpu is not None]
    return {
        device: one if one[0] is None or taken.count(id(one[0])) == 1 else (None, WHICH)
        for device, one in found.items()
    }


def _by_number(gpus: Sequence[Gpu], device: int, visible: int) -> tuple[Gpu, str] | None:
    same = [one for one in gpus if one.first("gpu") == device]
    return (same[0], "its number") if len(same) == 1 and visible == len(gpus) > 1 else None


def _by_load(gpus: Sequence[Gpu], used: Sequence[int], window: Window | None) -> tuple[Gpu | None, str]:
    if len(used) != 1 or window is None:
        return None, WHICH
    busy = [one for one in gpus if any(_was_busy(log, window) for log in one.logs)]
    sure = all(any(log.on_clock and log.has("utilization") for log in one.logs) for one in gpus)
    return (busy[0], "being the only one at work then") if sure and len(busy) == 1 else (None, WHICH)


def _was_busy(log: Log, window: Window) -> bool:
    if not log.on_clock:
        return False
    inside = (log.time >= window[0]) & (log.time <= window[1] + _NEAR_NS)
    return bool((log.of("utilization")[inside] >= BUSY).any())


def _alike(logged: str | None, traced: str | None) -> bool:
    """Whether two names may be of one model: one may have its maker before it."""
    if not logged or not traced:
        return True
    mine, its = (name.lower().replace("nvidia", "").strip() for name in (logged, traced))
    return mine == its or mine in its or its in mine


def _bare(uuid: str | None) -> str:
    return (uuid or "").lower().removeprefix("gpu-").replace("-", "")


def judged_gpus(
    gpu_log_samples: pa.Table, placed_evidence: pa.Table, devices: pa.Table, windows: pa.Table
) -> list[Judged]:
    """Every GPU of every trace with its log, and of logs that are beside no trace every one of theirs."""
    found: list[Judged] = []
    traced: dict[int, dict[int, Window]] = {}
    for row in windows.select(["rank", "device", "start_ns", "end_ns"]).to_pylist():
        traced.setdefault(row["rank"], {})[row["device"]] = (row["start_ns"], row["end_ns"])
    ranks = frames.ints(gpu_log_samples, "rank")
    for (rank,), rows in frames.together(ranks):
        own = gpu_log_samples if len(rows) == gpu_log_samples.num_rows else gpu_log_samples.take(pa.array(rows))
        told = clocks_told(placed_evidence, "gpu_log", rank)
        gpus = gpus_of(logs_of(own, told))
        here = traced.get(rank)
        if here is None:
            for number, gpu in enumerate(gpus):
                log, others = best_log(gpu)
                found.append(Judged(rank, number if log.gpu is None else log.gpu, log, others))
            continue
        mine = devices.filter(pa.array(frames.ints(devices, "rank") == rank))
        for device, (one, why) in matched(gpus, here, mine, here).items():
            if one is None:
                found.append(Judged(rank, device, None, why=why, window=here[device]))
                continue
            log, others = best_log(one)
            found.append(Judged(rank, device, log, others, why, None, here[device]))
    return found
