"""Kernels by what they do: one row a compute kernel with what its name, its grid and its GPU say, and statistics by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceanalyzer.columns import distinct, frames
from traceanalyzer.columns.lean import repeated
from traceanalyzer.derive.host.host import Host
from traceanalyzer.derive.kernels.kernel_names import Kernel, kernel_of
from traceanalyzer.derive.kernels.tables import KERNEL_STATS, KERNELS
from traceanalyzer.derive.launches.launches import launching_ranges
from traceanalyzer.intervals import Array, coverage, union

UNNAMED = Kernel("other")
# Turing GPUs of this line have no tensor cores although their compute capability, 7.5, is that of those that do.
_WITHOUT_TENSOR_CORES = re.compile(r"GTX 16|\bMX\d|T[4-6]00\b|T1000", re.IGNORECASE)
# Whose operators rules ask for, beside conversions. Looking them up for every kernel would cost more than all else here.
_WITH_OPERATOR = ("matmul", "convolution")
_OF_OPS = ["process", "stream", "start_ns", "end_ns", "name", "grid", "block", "row"]
WARPS = {"nvidia": 32, "amd": 64}
"""Threads that run in step, by vendor: a warp (CUDA C++ Programming Guide, SIMT architecture), a wavefront of CDNA and GCN (HIP's
hardware model)."""
RDNA_WARP = 32
_RDNA = re.compile(r"Radeon (?:RX|PRO W)|\bgfx1\d", re.IGNORECASE)


def by_name(ops: pa.Table, read: Callable[[Kernel], Any], kind: type = object) -> npt.NDArray[Any]:
    """`read` of what each operation's name says about a kernel, worked out once a distinct name."""
    code, names = frames.codes(ops, "name")
    return np.array([read(kernel_of(name) if name else UNNAMED) for name in names], kind)[code]


def is_compute(ops: pa.Table) -> frames.Flags:
    """Where an operation is a compute kernel."""
    return frames.equals(ops, "kind", "kernel") & frames.equals(ops, "class", "compute")


def kernels(ledger_ops: pa.Table, devices: pa.Table, launches: pa.Table, host: Host, program: pa.Table) -> pa.Table:
    """One row per compute kernel on the ledger, sorted by (rank, device, start)."""
    gpus = {(r["rank"], r["device"]): r for r in devices.to_pylist()}
    vendors = set(program["name"].to_pylist()) & WARPS.keys()
    calls = frames.by_device(launches.select(["op", "rank", "device", "process", "thread", "start_ns"]))
    tables = [
        _device_kernels(key, ops, gpu := gpus.get(key, {}), calls[key], host, _warp(gpu, vendors))
        for key, ops in frames.split(ledger_ops)
    ]
    return frames.stack(KERNELS, [table for table in tables if table.num_rows])


def _device_kernels(
    key: frames.Key, ops: pa.Table, gpu: dict[str, Any], launches: pa.Table, host: Host, warp: int
) -> pa.Table:
    found = frames.filtered(ops.select(_OF_OPS), is_compute(ops))
    count = found.num_rows
    if not count:
        return KERNELS.empty()
    start, end = frames.ints(found, "start_ns"), frames.ints(found, "end_ns")
    code, names = frames.codes(found, "name")
    told = [kernel_of(name) if name else UNNAMED for name in names]

    def each(values: Iterable[bool]) -> frames.Flags:
        return np.fromiter(values, bool, len(told))[code]

    converts = _converts(code, told, end - start)
    asked = converts | each(kernel.family in _WITH_OPERATOR for kernel in told)
    operators = launching_ranges(frames.ints(found, "row")[asked], launches, host)
    capability, tensor_cores = _capability(gpu), each(kernel.tensor_cores is True for kernel in told)
    grid, sms = blocks(found), gpu.get("sm_count") or 0
    return frames.build(
        KERNELS,
        {
            **{name: _same(value, count) for name, value in zip(("rank", "device"), key, strict=True)},
            **{name: found[name] for name in ("process", "stream", "start_ns", "end_ns", "name")},
            "family": frames.names(code, [kernel.family for kernel in told]),
            "tensor_cores": pa.array(tensor_cores, mask=each(kernel.tensor_cores is None for kernel in told)),
            "precision": frames.names(code, [kernel.precision for kernel in told]),
            "compiler_fused": each(kernel.compiler_fused for kernel in told),
            "converts": converts,
            "operator": operators.take(pa.array(np.cumsum(asked) - 1, mask=~asked)),
            "blocks": frames.numbers(grid),
            "sm_count": _same(sms or None, count),
            "fill": pa.array(grid / sms, mask=grid == frames.NULL) if sms else _same(None, count),
            **_block(_sizes(found, "block"), warp),
            "warp": _same(warp or None, count),
            "runs": np.bincount(code, minlength=len(names))[code],
            "alone": end - start - _shared(ops, start, end),
            "compute_capability": _same(capability or None, count),
            "gpu_has_tensor_cores": _same(_has_tensor_cores(gpu, capability, bool(tensor_cores.any())), count),
        },
    )


def _same(value: int | None, count: int) -> pa.Array | pa.ChunkedArray:
    """A column that says one thing of all rows."""
    return repeated(pa.array([value]), count)


def _converts(code: Array, told: list[Kernel], length: Array) -> frames.Flags:
    """Where a kernel only changes the order of a tensor's elements between NCHW and NHWC.

    Where convolutions are the main work, copies that change the order do the same, by a call of `contiguous` or the like. `code` are
    places of the kernels in `told`.
    """
    time = np.bincount(code, length, len(told))
    images, others = (
        sum(time[at] for at, kernel in enumerate(told) if kernel.family in families)
        for families in (("convolution", "depthwise"), ("matmul", "attention"))
    )
    return np.array([one.family == "layout" or (images > others and one.strided_copy) for one in told], bool)[code]


def _capability(gpu: dict[str, Any]) -> int:
    """Compute capability times ten, as in sm_90; 0 when not recorded."""
    return 10 * (gpu.get("compute_major") or 0) + (gpu.get("compute_minor") or 0)


def _has_tensor_cores(gpu: dict[str, Any], capability: int, used: bool) -> bool | None:
    """Whether the GPU has tensor cores: by its capability, else because a kernel uses them; None when nothing says."""
    if used:
        return True
    if not capability:
        return None
    return capability >= 70 and not _WITHOUT_TENSOR_CORES.search(gpu.get("name") or "")


def _warp(gpu: dict[str, Any], vendors: set[str]) -> int:
    """Threads of a warp of this GPU; 0 where nothing says whose GPU it is."""
    if vendors == {"amd"} and _RDNA.search(gpu.get("name") or ""):
        return RDNA_WARP
    return WARPS[vendors.pop()] if len(vendors) == 1 else 0


def blocks(ops: pa.Table) -> Array:
    """Blocks of each kernel's grid, `NULL` where the grid was not recorded."""
    return _product(_sizes(ops, "grid"))


def _sizes(ops: pa.Table, column: str) -> Array:
    """A grid or block of each kernel by (kernel, axis), 0 where it was not recorded."""
    sizes = ops[column].combine_chunks()
    flat = sizes.flatten() if not sizes.null_count else sizes.fill_null([0, 0, 0]).flatten()
    axes: Array = flat.fill_null(0).to_numpy(zero_copy_only=False).reshape(-1, 3)
    return axes


def _product(sizes: Array) -> Array:
    """How many there are in all, `NULL` where that was not recorded."""
    product = sizes[:, 0].astype(np.int64) * sizes[:, 1] * sizes[:, 2]
    return np.where(product > 0, product, frames.NULL)


def _block(sizes: Array, warp: int) -> dict[str, pa.Array]:
    """What there is to say of blocks of these sizes, of which there are few: their size as people write it, without trailing ones
    (16 × 16), `threads` and `lanes`; null where it was not recorded."""
    code = frames.dense(*(axis.astype(np.int64) for axis in sizes.T))
    sizes = sizes[frames.firsts(code)]
    threads = _product(sizes)
    unknown = threads == frames.NULL
    words = [
        None if no else " × ".join(map(str, _without_ones(one)))
        for one, no in zip(sizes.tolist(), unknown, strict=True)
    ]
    lanes = threads / np.maximum(-(-threads // max(warp, 1)) * warp, 1)
    return {
        "block": frames.names(code, words),
        "threads": frames.numbers(threads[code]),
        "lanes": pa.array(lanes[code], mask=(unknown | (not warp))[code]),
    }


def _without_ones(axes: list[int]) -> list[int]:
    last = max((at for at, size in enumerate(axes) if size != 1), default=0)
    return axes[: last + 1]


def _shared(ops: pa.Table, start: Array, end: Array) -> Array:
    """For each interval, how many ns of it two or more kernels of the GPU run at once, communication included."""
    running = frames.equals(ops, "kind", "kernel", "graph")
    first, last = frames.ints(ops, "start_ns")[running], frames.ints(ops, "end_ns")[running]
    # Sorted by start, so a kernel begins together with others where the latest end before it lies behind its start.
    reach = np.maximum.accumulate(last)[:-1]
    return coverage(start, end, union(first[1:], np.minimum(last[1:], reach)))


def kernel_stats(ledger_ops: pa.Table) -> pa.Table:
    """One row per (rank, device, kernel name), the largest total first within each device; ties by name."""
    tables = []
    for key, device in frames.split(ledger_ops):
        window = int(frames.ints(device, "end_ns").max() - frames.ints(device, "start_ns").min())
        kernels = device.select(["name", "class", "start_ns", "end_ns"])
        kernels = frames.filtered(kernels, frames.equals(device, "kind", "kernel"))
        if kernels.num_rows:
            tables.append(_device_stats(key, kernels, window))
    return frames.stack(KERNEL_STATS, tables)


def _device_stats(key: frames.Key, kernels: pa.Table, window: int) -> pa.Table:
    name, names = frames.codes(kernels, "name")
    length = frames.duration(kernels)
    used, code = distinct(name, len(names))
    count = np.bincount(code)
    # The first of each name, written last.
    first = np.empty(len(used), np.int64)
    first[code[::-1]] = np.arange(len(code) - 1, -1, -1)
    total, longest = np.zeros(len(used), np.int64), np.zeros(len(used), np.int64)
    np.add.at(total, code, length)
    np.maximum.at(longest, code, length)
    order = np.array(sorted(range(len(used)), key=lambda i: (-total[i], names[used[i]] or "")), np.int64)
    kind = kernels["class"].take(pa.array(first[order]))
    families: list[str | None] = [
        "communication" if one == "communication" else kernel_of(names[code] or "").family
        for one, code in zip(kind.to_pylist(), used[order].tolist(), strict=True)
    ]
    return frames.build(
        KERNEL_STATS,
        {
            "rank": np.full(len(order), key[0]),
            "device": np.full(len(order), key[1]),
            "name": frames.names(used[order], names),
            "class": kind,
            "family": frames.names(np.arange(len(order)), families),
            "count": count[order],
            "total": total[order],
            "mean": total[order] // count[order],
            "longest": longest[order],
            "share": total[order] / max(window, 1),
        },
    )
