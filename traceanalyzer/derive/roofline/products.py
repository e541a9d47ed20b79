"""Operators that multiply matrices, each with what its inputs take, and the kernels that did it.

Operators call each other (`linear` calls `addmm`), so only the innermost whose work is known counts, and each kernel is that of one
operator at most. What runs from a CUDA graph, or was launched by a library that no operator is recorded of, is of none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.columns import frames
from traceanalyzer.derive.host.callers import Callers
from traceanalyzer.derive.kernels.kernel_names import Kernel, kernel_of
from traceanalyzer.derive.kernels.kernels import by_name, is_compute
from traceanalyzer.derive.roofline.formulas import COMPILED, WITH_FORMULA, work_of
from traceanalyzer.derive.roofline.inputs import Work
from traceanalyzer.derive.roofline.peaks import Peaks, peaks_of
from traceanalyzer.derive.roofline.tables import PRODUCT_OPS, PRODUCTS
from traceanalyzer.intervals import Array

Floats = npt.NDArray[np.float64]
MATRIX = ("matmul", "matvec", "convolution", "depthwise", "attention")
"""Families of kernels that multiply matrices."""
_TEXTS = ("shapes", "dtypes", "arguments")


def product_ops(host_ranges: pa.Table, callers: Callers, ledger_ops: pa.Table, launches: pa.Table) -> pa.Table:
    """Which kernel is whose, sorted by (rank, device, range, op)."""
    row = _with_work(host_ranges)
    if not len(row) or not launches.num_rows:
        return PRODUCT_OPS.empty()
    compute = frames.ints(ledger_ops, "row")[is_compute(ledger_ops)]
    if not len(compute):
        return PRODUCT_OPS.empty()
    counted = np.zeros(host_ranges.num_rows, bool)
    counted[row] = True
    counted[callers.those_around(callers.parent[row])] = False
    calls = launches.select(["rank", "process", "thread", "start_ns", "device", "op"])
    calls = calls.filter(pa.array(frames.among(frames.ints(launches, "op"), compute)))
    inside = callers.around(*(frames.ints(calls, c) for c in ("rank", "process", "thread", "start_ns")))
    owner = callers.nearest(inside, counted)
    columns = {name: calls[name] for name in ("rank", "device", "op")} | {"range": owner}
    found = frames.build(PRODUCT_OPS, columns).filter(pa.array(owner >= 0))
    return found.sort_by([(column, "ascending") for column in ("rank", "device", "range", "op")])


def _with_work(host_ranges: pa.Table) -> Array:
    """The rows of operators whose work is known."""
    if "operator" not in pc.unique(host_ranges["category"]).to_pylist():
        return np.empty(0, np.int64)
    named = frames.where(host_ranges, "name", lambda name: name in WITH_FORMULA or name.startswith(COMPILED))
    named &= frames.equals(host_ranges, "category", "operator")
    named &= pc.or_(pc.is_valid(host_ranges["shapes"]), pc.is_valid(host_ranges["arguments"])).to_numpy()
    row = np.flatnonzero(named)
    which, works = _works(host_ranges, row)
    return row[np.array([one is not None for one in works], bool)[which]] if len(row) else row


def _works(host_ranges: pa.Table, row: Array) -> tuple[Array, list[Work | None]]:
    """Which of some works each of these rows has, and those."""
    mine = host_ranges.select(["name", *_TEXTS]).take(pa.array(row))
    texts = {name: mine[name].cast(pa.string()).combine_chunks().dictionary_encode() for name in ("name", *_TEXTS)}
    code = frames.dense(*(pc.fill_null(one.indices, -1).to_numpy().astype(np.int64) for one in texts.values()))
    first = np.unique(code, return_index=True)[1]
    distinct = pa.table({name: one.take(pa.array(first)).cast(pa.string()) for name, one in texts.items()})
    return code, [work_of(*(told[name] or "" for name in ("name", *_TEXTS))) for told in distinct.to_pylist()]


def products(host_ranges: pa.Table, product_ops: pa.Table, ledger_ops: pa.Table, devices: pa.Table) -> pa.Table:
    """One row per operator with a known work that launched compute kernels, sorted by (rank, device, start); see PRODUCTS."""
    if not product_ops.num_rows:
        return PRODUCTS.empty()
    owner = frames.ints(product_ops, "range")
    row = frames.ints(ledger_ops, "row")
    order = np.argsort(row, kind="stable")
    kernels = ledger_ops.take(pa.array(order[np.searchsorted(row[order], frames.ints(product_ops, "op"))]))
    return _table(host_ranges, kernels, owner, *_works(host_ranges, owner), devices)


def _table(
    host_ranges: pa.Table,
    kernels: pa.Table,
    owner: Array,
    which: Array,
    works: Sequence[Work | None],
    devices: pa.Table,
) -> pa.Table:
    """`kernels`, the `owner` of each and `which` of the works that has go together."""
    length = frames.duration(kernels)
    is_matrix = by_name(kernels, lambda kernel: kernel.family in MATRIX, bool)
    # Of each operator the longest of its kernels that do matrix work stands for it.
    order = np.lexsort((-length, ~is_matrix, owner))
    first = np.flatnonzero(np.diff(owner[order], prepend=-1))
    rows, size = owner[order][first], np.diff(np.append(first, len(order)))
    time = np.add.reduceat(length[order], first)
    longest = kernels.take(pa.array(order[first]))
    kind, kinds = _kinds(which[order[first]], works, longest, _gpus(devices))
    host = host_ranges.select(["process", "thread", "start_ns", "end_ns", "name"]).take(pa.array(rows))
    told = kinds.take(pa.array(kind))
    roof = told["roof_time"].to_numpy()
    table = frames.build(
        PRODUCTS,
        {
            "rank": longest["rank"],
            "device": longest["device"],
            **{name: host[name] for name in ("process", "thread", "start_ns", "end_ns")},
            "range": rows,
            "operator": host["name"],
            **{name: told[name] for name in kinds.column_names},
            "kernel": longest["name"],
            "op": longest["row"],
            "kernels": size,
            "kernel_time": time,
            "roof_share": pa.array(roof / np.maximum(time, 1), mask=np.isnan(roof) | (time <= 0)),
            **{name: _whole(told[name].to_numpy()) for name in ("peak_time", "roof_time")},
        },
    )
    return table.sort_by([(column, "ascending") for column in ("rank", "device", "start_ns", "op")])


def _kinds(
    which: Array, works: Sequence[Work | None], longest: pa.Table, gpus: Mapping[frames.Key, Peaks]
) -> tuple[Array, pa.Table]:
    """For each product which row of a table it has: one a work, kernel and GPU, with what does not depend on its time. Times are NaN
    where they are not known."""
    name, names = frames.codes(longest, "name")
    rank, device = (frames.ints(longest, column) for column in ("rank", "device"))
    kind = frames.dense(which, name, rank, device)
    rows = []
    for at in np.unique(kind, return_index=True)[1].tolist():
        work = cast(Work, works[which[at]])
        precision = _run_in(work.precision, names[name[at]] or "")
        peak, by_peak, by_memory = _limits(work, precision, gpus.get((int(rank[at]), int(device[at]))))
        is_known = not np.isnan(by_peak) and not np.isnan(by_memory)
        rows.append(
            {
                "kind": work.kind,
                "sizes": work.sizes,
                "assumed": work.assumed,
                "precision": precision,
                "flops": work.flops,
                "moved": work.moved,
                "peak": None if np.isnan(peak) else peak,
                "intensity": work.flops / work.moved if work.moved else None,
                "bound": ("memory" if by_memory > by_peak else "compute") if is_known else None,
                "peak_time": by_peak,
                "roof_time": np.nan if np.isnan(by_peak) else np.fmax(by_peak, by_memory),
            }
        )
    return kind, pa.Table.from_pylist(rows, _KINDS)


_KINDS = pa.schema(
    [
        *(pa.field(name, pa.string()) for name in ("kind", "sizes", "assumed", "precision", "bound")),
        *(pa.field(name, pa.int64()) for name in ("flops", "moved")),
        *(pa.field(name, pa.float64()) for name in ("peak", "intensity", "peak_time", "roof_time")),
    ]
)


def _gpus(devices: pa.Table) -> Mapping[frames.Key, Peaks]:
    found = {
        (row["rank"], row["device"]): peaks_of(row["name"], row["sm_count"])
        for row in devices.select(["rank", "device", "name", "sm_count"]).to_pylist()
    }
    return {key: peaks for key, peaks in found.items() if peaks}


@lru_cache(maxsize=1 << 16)
def _run_in(asked: str | None, name: str) -> str | None:
    """The precision that a kernel multiplies in: that of the operands, and by its name on which units, for what can run on several.

    Operands in FP32 are multiplied as TF32 where a program allows it, which only the kernel shows. None where it does not.
    """
    kernel = kernel_of(name) if name else Kernel("other")
    told = asked or kernel.precision
    if told in ("fp32", "tf32"):
        return _single(kernel, name)
    if told == "fp64":
        return None if kernel.tensor_cores is None else "fp64_matrix" if kernel.tensor_cores else "fp64"
    return told


def _single(kernel: Kernel, name: str) -> str | None:
    if kernel.precision == "tf32":
        return "tf32"
    if kernel.tensor_cores is None:
        return None
    if not kernel.tensor_cores:
        return "fp32"
    return "fp32_matrix" if name.startswith("Cijk_") else "tf32"


def _limits(work: Work, precision: str | None, peaks: Peaks | None) -> tuple[float, float, float]:
    """TFLOP/s of the precision, and the least time in ns by that and by the memory; NaN where not known."""
    if peaks is None:
        return np.nan, np.nan, np.nan
    peak = peaks.tflops.get(precision or "", np.nan)
    by_memory = np.nan if work.moved is None else work.moved / peaks.bytes_per_s * 1e9
    return peak, work.flops / (peak * 1e3), by_memory


def _whole(values: Floats) -> pa.Array:
    """In whole ns, null for NaN."""
    unknown = np.isnan(values)
    return pa.array(np.rint(np.where(unknown, 0, values)).astype(np.int64), mask=unknown)
