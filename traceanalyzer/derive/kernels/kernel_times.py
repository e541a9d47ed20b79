"""What kernels take on each GPU when they run alone: by that GPUs are told apart that are slower at the same work."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.derive.kernels.kernel_pace import alone
from traceanalyzer.derive.kernels.tables import KERNEL_TIMES

MOST = 50
"""Kernels kept of each GPU, those with most time."""


def kernel_times(kernels: pa.Table, devices: pa.Table) -> pa.Table:
    """Of each GPU the kernels (name, blocks, threads) with most time, the largest first. Only such as ran alone count."""
    described = {(row["rank"], row["device"]): row for row in devices.to_pylist()}
    tables = []
    for key, mine in frames.split(kernels):
        device = described.get(key, {})
        computing = int(frames.duration(mine).sum())
        single = frames.filtered(mine.select(["name", "start_ns", "end_ns", "blocks", "threads"]), alone(mine))
        sizes = (frames.ints(single, column) for column in ("blocks", "threads"))
        code = frames.dense(frames.codes(single, "name")[0], *sizes)
        first = frames.firsts(code)
        count = np.bincount(code, minlength=len(first))
        time = np.zeros(len(first), np.int64)
        np.add.at(time, code, frames.duration(single))
        most = np.argsort(-time, kind="stable")[:MOST]
        columns = {name: single[name].take(pa.array(first[most])) for name in ("name", "blocks", "threads")}
        own = {"rank": key[0], "device": key[1], "computing": computing}
        columns |= {name: np.full(len(most), value) for name, value in own.items()}
        columns |= {name: pa.repeat(pa.scalar(device.get(of), pa.string()), len(most)) for name, of in _OF_DEVICE}
        tables.append(frames.build(KERNEL_TIMES, columns | {"count": count[most], "time": time[most]}))
    return frames.stack(KERNEL_TIMES, tables)


_OF_DEVICE = (("uuid", "uuid"), ("gpu", "name"))
