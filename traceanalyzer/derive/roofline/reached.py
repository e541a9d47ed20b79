"""What the matrix work of each GPU reaches of what the GPU gives: by operator, and in all, a step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.columns import frames
from traceanalyzer.derive.kernels.kernels import by_name, is_compute
from traceanalyzer.derive.roofline.peaks import peaks_of
from traceanalyzer.derive.roofline.products import MATRIX
from traceanalyzer.derive.roofline.tables import PRODUCT_STATS, ROOFLINE
from traceanalyzer.intervals import Array, total, union

MOST = 100
"""Operators with their sizes that are told apart on each GPU, those with most time."""
_ALIKE = ("operator", "kind", "sizes", "assumed", "precision", "kernel")


def product_stats(products: pa.Table) -> pa.Table:
    """Of each GPU those with most time, the longest first."""
    tables = []
    for key, mine in frames.split(products):
        code = frames.dense(*(frames.codes(mine, name)[0] for name in _ALIKE), frames.ints(mine, "flops"))
        first = np.unique(code, return_index=True)[1]
        size, time = np.bincount(code), np.bincount(code, frames.ints(mine, "kernel_time")).astype(np.int64)
        roof = np.bincount(code, pc.fill_null(mine["roof_time"], 0).to_numpy())
        kept = np.argsort(-time, kind="stable")[:MOST]
        rows = mine.take(pa.array(first[kept]))
        time, size, roof = time[kept], size[kept], roof[kept]
        flops = frames.ints(rows, "flops")
        unknown = pc.is_null(rows["roof_time"]).to_numpy() | (time <= 0)
        columns = {name: rows[name] for name in (*_ALIKE, "flops", "moved", "peak", "intensity", "bound")}
        columns |= {"rank": np.full(len(kept), key[0]), "device": np.full(len(kept), key[1])}
        columns |= {"count": size, "kernel_time": time}
        columns |= {"tflops": flops * size / np.maximum(time, 1) / 1e3}
        columns |= {"roof_share": pa.array(roof / np.maximum(time, 1), mask=unknown)}
        tables.append(frames.build(PRODUCT_STATS, columns))
    return frames.stack(PRODUCT_STATS, tables)


def roofline(
    products: pa.Table,
    product_ops: pa.Table,
    ledger_ops: pa.Table,
    launches: pa.Table,
    devices: pa.Table,
    windows: pa.Table,
    step_ledger: pa.Table,
    step_ops: pa.Table,
) -> pa.Table:
    """One row per GPU with products, in the order of the ledger."""
    if not products.num_rows:
        return ROOFLINE.empty()
    gpus = {(row["rank"], row["device"]): row for row in devices.to_pylist()}
    spans = {
        (row["rank"], row["device"]): row["end_ns"] - row["start_ns"]
        for row in windows.select(["rank", "device", "start_ns", "end_ns"]).to_pylist()
    }
    launched = frames.ints(launches, "op")
    of_gpu, owned, steps, of_steps = (
        frames.by_device(table) for table in (products, product_ops, step_ledger, step_ops)
    )
    rows = []
    for key, ops in frames.split(ledger_ops):
        mine = of_gpu[key]
        if mine.num_rows:
            gpu = gpus.get(key, {})
            row = {"rank": key[0], "device": key[1], "gpu": gpu.get("name")}
            peaks = peaks_of(gpu.get("name"), gpu.get("sm_count"))
            row |= {"known_gpu": peaks is not None, "bandwidth": peaks.bytes_per_s if peaks else None}
            row |= (
                _times(mine, owned[key], ops, launched)
                | _sums(mine)
                | _of_steps(mine, steps[key], of_steps[key], spans[key])
            )
            rows.append(row)
    return pa.Table.from_pylist(rows, ROOFLINE.schema)


def _times(products: pa.Table, product_ops: pa.Table, ops: pa.Table, launched: Array) -> dict[str, Any]:
    """How long the GPU computes, does matrix work, and what of that is known; two kernels at once are one time."""
    compute = is_compute(ops)
    start, end, row = (frames.ints(ops, name) for name in ("start_ns", "end_ns", "row"))
    known = frames.among(row, frames.ints(product_ops, "op"))
    judged = products.filter(pc.is_valid(products["peak_time"]))
    of_judged = frames.among(frames.ints(product_ops, "range"), frames.ints(judged, "range"))
    matrix = known | (compute & by_name(ops, lambda kernel: kernel.family in MATRIX, bool))
    parts = {
        "compute_time": compute,
        "matrix_time": matrix,
        "known_time": known,
        "unknown_time": matrix & ~known & frames.among(row, launched),
        "judged_time": frames.among(row, frames.ints(product_ops, "op")[of_judged]),
    }
    return {name: total(union(start[which], end[which])) for name, which in parts.items()}


def _sums(products: pa.Table) -> dict[str, Any]:
    """What the products take, and in which precision most of their time goes."""
    judged = products.filter(pc.is_valid(products["peak_time"]))
    time = frames.ints(judged, "kernel_time")
    code, precisions = frames.codes(judged, "precision")
    by_precision = np.bincount(code, time, len(precisions))
    most = int(by_precision.argmax()) if judged.num_rows else -1
    peaks = judged["peak"].to_numpy()
    assumed = frames.where(products, "assumed", bool)
    return {
        "products": products.num_rows,
        "flops": int(frames.ints(products, "flops").sum()),
        "peak_time": int(frames.ints(judged, "peak_time").sum()),
        "roof_time": int(frames.ints(judged, "roof_time").sum()),
        "memory_time": int(time[frames.equals(judged, "bound", "memory")].sum()),
        "precision": precisions[most] if most >= 0 else None,
        "precision_share": float(by_precision[most] / max(time.sum(), 1)) if most >= 0 else None,
        "peak": float(peaks[code == most][0]) if most >= 0 else None,
        "assumed": int(assumed.sum()),
    }


def _of_steps(products: pa.Table, steps: pa.Table, step_ops: pa.Table, window: int) -> dict[str, Any]:
    """Time and work of the steps that are compared, or of the window."""
    compared = steps.filter(pc.is_valid(steps["excess"]))
    if not compared.num_rows:
        mine, time = products, window
    else:
        index = frames.ints(compared, "index")
        inside = frames.among(frames.ints(step_ops, "step"), index)
        mine = products.filter(pa.array(frames.among(frames.ints(products, "op"), frames.ints(step_ops, "op")[inside])))
        time = int(frames.duration(compared).sum())
    return {
        "steps": compared.num_rows,
        "step_time": time,
        "step_flops": int(frames.ints(mine, "flops").sum()),
        "step_peak_time": int(pc.sum(mine["peak_time"]).as_py() or 0),
    }
