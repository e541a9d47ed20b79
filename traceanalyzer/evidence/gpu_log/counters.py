"""What a log adds to a trace's sampled values: those of the GPUs that the trace used, around the time of its recording.

They are called so that no rule about a profiler's metrics of the GPU takes them for such: a sample here is of 50 ms or more.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.columns import frames
from traceanalyzer.evidence.gpu_log.answers.gpus import Floats, Log, Window, best_log, gpus_of, logs_of, matched
from traceanalyzer.intervals import Array
from traceanalyzer.model.schema import COUNTERS
from traceanalyzer.model.tables import Tables

# Measure -> what the counter is called, its unit, and how many of these one is.
COUNTED = {
    "sm_clock": ("SM clock (log)", "MHz", 1.0),
    "mem_clock": ("memory clock (log)", "MHz", 1.0),
    "power": ("power (log)", "W", 1.0),
    "temperature": ("temperature (log)", "°C", 1.0),
    "utilization": ("utilization (log)", "%", 100.0),
    "memory_used": ("memory used (log)", "bytes", 1.0),
    "processes": ("processes (log)", "", 1.0),
    "pcie_rx": ("received over PCIe (log)", "bytes/s", 1.0),
    "pcie_tx": ("sent over PCIe (log)", "bytes/s", 1.0),
    "sm_active": ("share of SMs active (log)", "%", 100.0),
    "tensor_active": ("share of tensor cores active (log)", "%", 100.0),
    "dram_active": ("share of time that memory moves data (log)", "%", 100.0),
}
_NAMES = [name for name, _, _ in COUNTED.values()]
_AROUND_NS = 2_000_000_000


def counters_with(own: Tables, trace: Tables) -> Mapping[str, pa.Table]:
    """The table `counters` with the samples of a log; of several logs of one GPU with those of the one that has most of them."""
    ops, samples, counters = trace.table("gpu_ops"), own.table("gpu_log_samples"), trace.table("counters")
    used = _windows(ops)
    if not used or not samples.num_rows:
        return {}
    names = [name for name in pc.unique(samples["log"]).to_pylist() if name]
    gpus = gpus_of(logs_of(samples, dict.fromkeys(names, True)))
    rank = samples["rank"][0].as_py()
    added = []
    for device, (gpu, _) in matched(gpus, used, trace.table("devices"), used).items():
        if gpu is None:
            continue
        log, _ = best_log(gpu)
        for measure, (name, unit, factor) in COUNTED.items():
            if not log.has(measure):
                continue
            rows = _rows(log, measure, used[device])
            there = _there(counters, device, name)
            if rows is None or len(rows[0]) <= int(there.sum()):
                continue
            counters = counters.filter(pa.array(~there))
            added.append(_table(rank, device, name, unit, rows[0], rows[1] * factor))
    return {"counters": frames.concatenated([counters, *added])} if added else {}


def _windows(ops: pa.Table) -> dict[int, Window]:
    """From the first operation of each GPU to the end of its last."""
    device, start, end = (frames.ints(ops, name) for name in ("device", "start_ns", "end_ns"))
    return {
        int(key[0]): (int(start[rows].min()), int(end[rows].max()))
        for key, rows in frames.together(device)
        if key[0] != frames.NULL
    }


def _rows(log: Log, measure: str, window: Window) -> tuple[Array, Floats] | None:
    values = log.of(measure)
    slack = max(2 * log.interval, _AROUND_NS)
    inside = np.isfinite(values) & (log.time >= window[0] - slack) & (log.time <= window[1] + slack)
    return (log.time[inside], values[inside]) if inside.any() else None


def _there(counters: pa.Table, device: int, name: str) -> frames.Flags:
    """Rows that another log of the same GPU has added."""
    found: frames.Flags = frames.equals(counters, "metric", name) & (frames.ints(counters, "device") == device)
    return found


def _table(rank: int, device: int, name: str, unit: str, time: Array, value: Floats) -> pa.Table:
    count = len(time)
    columns = {
        "rank": pa.repeat(rank, count),
        "process": pa.nulls(count, pa.int64()),
        "time_ns": pa.array(time),
        "device": pa.repeat(device, count),
        "metric": pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int32)), pa.array([name])),
        "unit": pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int32)), pa.array([unit])),
        "value": pa.array(value),
    }
    return pa.table([columns[field.name].cast(field.type) for field in COUNTERS.schema], schema=COUNTERS.schema)
