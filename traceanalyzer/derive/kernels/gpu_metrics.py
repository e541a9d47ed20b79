"""Sampled GPU metrics joined with what ran when they were sampled: one row per metric and per kernel, copy or GPU.

A sample tells the mean over the time from its time stamp to the next one: on a real capture (H100, nsys 2025.3, every 100 us) "SMs
Active" agrees with where kernels ran then (correlation 0.97) and not with the time before (0.82). So it says something of a kernel only
where kernels of that name ran for nearly all of that time. Of samples that are slower than the kernels, only what all kernels together
do can be told, and not even that with gaps between.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.derive.kernels.metric_names import KINDS, metric_of
from traceanalyzer.derive.kernels.metric_tables import GPU_METRICS
from traceanalyzer.intervals import Array, Spans, coverage, total, union
from traceanalyzer.records import dataclass

Floats = npt.NDArray[np.float64]

WHOLLY = 0.9
"""A sample is of what ran for this part of its time: the rest of it changes a mean little."""
NEAR = 0.75
"""From this part of its peak on a memory or a link is near it: protocol, refresh and turning around take the rest (STREAM and its like
reach 80 to 93 %)."""
LATE = 2
"""A sample that is followed by none for so many usual intervals stands before lost ones, and tells of one interval only."""
MOST_NAMES = 50
"""Names that are told apart on each GPU, those with most time."""


def gpu_metrics(counters: pa.Table, ledger_ops: pa.Table, windows: pa.Table) -> pa.Table:
    """One row per GPU, metric and what ran; nothing of GPUs on which nothing ran."""
    samples = {key: list(_samples(counters.take(pa.array(rows)))) for key, rows in _by_gpu(counters)}
    spans = {
        (row["rank"], row["device"]): (row["start_ns"], row["end_ns"])
        for row in windows.select(["rank", "device", "start_ns", "end_ns"]).to_pylist()
    }
    found = [
        _table(key, rows)
        for key, ops in frames.split(ledger_ops)
        if (rows := [row for one in samples.get(key, ()) for row in _rows(one, list(_ran(ops, spans[key])))])
    ]
    return frames.stack(GPU_METRICS, found)


def _by_gpu(counters: pa.Table) -> Iterator[tuple[frames.Key, Array]]:
    device = frames.ints(counters, "device")
    known = np.flatnonzero(device != frames.NULL)
    for key, rows in frames.together(frames.ints(counters, "rank")[known], device[known]):
        yield (key[0], key[1]), known[rows]


@dataclass(frozen=True)
class _Samples:
    """The samples of one kind of metric: the times that they are about, and their values as shares."""

    kind: str
    recorded: str
    start: Array
    end: Array
    value: Floats
    interval: int


def _samples(counters: pa.Table) -> Iterator[_Samples]:
    """What is measured on one GPU, in the order of KINDS; kinds with fewer than two samples are left out."""
    (metric, names), (unit, units) = frames.codes(counters, "metric"), frames.codes(counters, "unit")
    time, value = frames.ints(counters, "time_ns"), counters["value"].to_numpy()
    usable = (time != frames.NULL) & np.isfinite(value)
    told: dict[str, list[tuple[bool, str, Array]]] = {}
    for (name, its), every in frames.together(metric, unit):
        text, rows = names[name], every[usable[every]]
        measured = metric_of(text, units[its]) if text else None
        if text and measured and len(rows):
            told.setdefault(measured.kind, []).append((measured.whole, text, rows))
    for kind in (kind for kind in KINDS if kind in told):
        wholes = [one for one in told[kind] if one[0]]
        parts = wholes[:1] or told[kind]
        rows = np.concatenate([rows for _, _, rows in parts])
        when, place = np.unique(time[rows], return_inverse=True)
        if len(when) > 1:
            interval = int(np.median(np.diff(when)))
            apart = np.append(np.diff(when), interval)
            end = when + np.where(apart > LATE * interval, interval, apart)
            much: Floats = np.bincount(place, value[rows] / 100)  # type: ignore[assignment]
            yield _Samples(kind, parts[0][1], when, end, much, interval)


@dataclass(frozen=True)
class _Ran:
    """When something ran: its kind as in GPU_METRICS, its name, and its time."""

    ran: str
    name: str | None
    spans: Spans


def _ran(ops: pa.Table, window: tuple[int, int]) -> Iterator[_Ran]:
    start, end = frames.ints(ops, "start_ns"), frames.ints(ops, "end_ns")
    kernel, compute = frames.equals(ops, "kind", "kernel"), frames.equals(ops, "class", "compute")
    yield _Ran("window", None, (np.array(window[:1]), np.array(window[1:])))
    yield _Ran("compute", None, union(start[kernel & compute], end[kernel & compute]))
    code, names = frames.codes(ops, "name")
    kinds = {
        "kernel": kernel & compute,
        "communication": kernel & ~compute,
        "memcpy": frames.equals(ops, "kind", "memcpy"),
    }
    for ran, mine in kinds.items():
        time = np.bincount(code[mine], (end - start)[mine], len(names))
        for name in np.argsort(-time, kind="stable")[:MOST_NAMES].tolist():
            if time[name]:
                rows = mine & (code == name)
                yield _Ran(ran, names[name], union(start[rows], end[rows]))


def _rows(samples: _Samples, every: list[_Ran]) -> Iterator[dict[str, object]]:
    length = samples.end - samples.start
    for one in every:
        inside = coverage(samples.start, samples.end, one.spans)
        counts = inside >= WHOLLY * length
        # That there are samples, and none of them is about it, is worth knowing of all kernels together.
        if not counts.any() and one.ran != "compute":
            continue
        weight, value = length[counts], samples.value[counts]
        at = int(np.argmax(one.spans[1] - one.spans[0])) if len(one.spans[0]) else None
        yield {
            "start_ns": None if at is None else int(one.spans[0][at]),
            "end_ns": None if at is None else int(one.spans[1][at]),
            "metric": samples.kind,
            "recorded": samples.recorded,
            "ran": one.ran,
            "name": one.name,
            "ran_time": total(one.spans),
            "samples": int(counts.sum()),
            "time": int(weight.sum()),
            "mean": float(np.average(value, weights=weight)) if len(weight) else None,
            "median": float(np.median(value)) if len(weight) else None,
            "near": int(weight[value >= NEAR].sum()),
            "interval": samples.interval,
        }


def _table(key: frames.Key, rows: list[dict[str, object]]) -> pa.Table:
    return pa.Table.from_pylist([{"rank": key[0], "device": key[1], **row} for row in rows], schema=GPU_METRICS.schema)
