"""Kernels by what they do: one row a compute kernel with what its name, its grid and its GPU say, and statistics by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceanalyzer.columns import distinct, frames
from traceanalyzer.columns.in_blocks import InBlocks, are_alike, in_blocks
from traceanalyzer.columns.lean import in_one, repeated
from traceanalyzer.derive.host.host import Host
from traceanalyzer.derive.kernels.kernel_names import Kernel, kernel_of
from traceanalyzer.derive.kernels.tables import KERNEL_STATS, KERNELS
from traceanalyzer.derive.launches.launches import launching_ranges
from traceanalyzer.intervals import Array, Spans, coverage, near, union
from traceanalyzer.model.schema import NAME

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
_EITHER = (False, True, None)
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
    code, names = frames.short_codes(found, "name")
    facts = _Facts(code, frames.ints(found, "start_ns"), frames.ints(found, "end_ns"), names)
    asked = facts.asked.take(code)
    operators = launching_ranges(frames.ints(found, "row")[asked], launches, host) if asked.any() else None
    capability, sms = _capability(gpu), gpu.get("sm_count") or 0
    made, sizes, shared = InBlocks(), _BlockSizes(warp), _shared(ops)
    for rows in in_blocks(count):
        made.add(_columns(found.slice(rows.start, rows.stop - rows.start), code[rows], facts, sizes, shared, sms))
    return frames.build(
        KERNELS,
        {
            **{name: _same(value, count) for name, value in zip(("rank", "device"), key, strict=True)},
            **{name: found[name] for name in ("process", "stream", "start_ns", "end_ns", "name")},
            "family": made.names("family", facts.families),
            "tensor_cores": _either(made.take("tensor_cores")),
            "precision": made.names("precision", facts.precisions),
            "compiler_fused": made.numbers("compiler_fused", pa.bool_()),
            "converts": made.numbers("converts", pa.bool_()),
            "operator": repeated(pa.nulls(1, NAME), count) if operators is None else _at(operators, asked),
            "blocks": made.numbers("blocks", pa.int64()),
            "sm_count": _same(sms or None, count),
            "fill": _shares(made.take("fill")) if sms else _same(None, count),
            "block": made.names("block", sizes.words),
            "threads": made.numbers("threads", pa.int64()),
            "lanes": _shares(made.take("lanes")),
            "warp": _same(warp or None, count),
            "runs": made.numbers("runs", pa.int64()),
            "alone": made.numbers("alone", pa.int64()),
            "compute_capability": _same(capability or None, count),
            "gpu_has_tensor_cores": _same(_has_tensor_cores(gpu, capability, facts.use_tensor_cores), count),
        },
    )


class _Facts:
    """What there is to say of the kernels of each name, by the name's code; `told` are the kernels that the names stand for."""

    def __init__(self, code: frames.Codes, start: Array, end: Array, names: list[str | None]) -> None:
        self.told = [kernel_of(name) if name else UNNAMED for name in names]
        self.runs, time = np.zeros(len(names), np.int64), np.zeros(len(names))
        for rows in in_blocks(len(code)):
            self.runs += np.bincount(code[rows], minlength=len(names))
            time += np.bincount(code[rows], end[rows] - start[rows], len(names))
        self.family, self.families = self._words(lambda kernel: kernel.family)
        self.precision, self.precisions = self._words(lambda kernel: kernel.precision)
        self.converts = _converts(time, self.told)
        self.asked = self.converts | self._each(kernel.family in _WITH_OPERATOR for kernel in self.told)
        self.compiler_fused = self._each(kernel.compiler_fused for kernel in self.told)
        self.tensor_cores = np.array([_EITHER.index(kernel.tensor_cores) for kernel in self.told], np.int8)
        self.use_tensor_cores = bool((self.runs[self.tensor_cores == _EITHER.index(True)] > 0).any())

    def _words(self, read: Callable[[Kernel], str | None]) -> tuple[frames.Codes, list[str]]:
        """What is read of each kernel that there is, as a place in the list of all that is read; -1 for None."""
        place: dict[str, int] = {}
        found = np.full(len(self.told), -1, np.int32)
        for at in np.flatnonzero(self.runs).tolist():
            word = read(self.told[at])
            if word is not None:
                found[at] = place.setdefault(word, len(place))
        return found, list(place)

    @staticmethod
    def _each(values: Iterable[bool]) -> frames.Flags:
        return np.fromiter(values, bool)


def _columns(
    ops: pa.Table, code: frames.Codes, facts: _Facts, sizes: _BlockSizes, shared: Spans, sms: int
) -> dict[str, npt.NDArray[Any]]:
    """Of some kernels what depends on more than their GPU: names as positions, numbers with `NULL` and shares with NaN."""
    start, end, grid = frames.ints(ops, "start_ns"), frames.ints(ops, "end_ns"), blocks(ops)
    alone, fill = end - start, {}
    if sms:
        fill["fill"] = grid / sms
        fill["fill"][grid == frames.NULL] = np.nan
    beside = near(shared, int(start.min()), int(end.max()))
    if len(beside[0]):
        alone -= coverage(start, end, beside)
    return {
        "family": facts.family.take(code),
        "precision": facts.precision.take(code),
        "tensor_cores": facts.tensor_cores.take(code),
        "compiler_fused": facts.compiler_fused.take(code),
        "converts": facts.converts.take(code),
        "runs": facts.runs.take(code),
        "blocks": grid,
        "alone": alone,
        **fill,
        **sizes.columns(_sizes(ops, "block")),
    }


def _either(values: npt.NDArray[np.int8]) -> pa.Array | pa.ChunkedArray:
    """Positions in `_EITHER` as truth values."""
    if are_alike(values):
        return _same(_EITHER[values[0]], len(values))
    return pa.array(values == _EITHER.index(True), mask=values == _EITHER.index(None))


def _shares(values: npt.NDArray[np.float64]) -> pa.Array | pa.ChunkedArray:
    """Shares, null where they are NaN."""
    if are_alike(values):
        return _same(None if np.isnan(values[0]) else float(values[0]), len(values))
    unknown = np.isnan(values)
    return pa.array(values, mask=unknown if unknown.any() else None)


def _at(operators: pa.DictionaryArray, asked: frames.Flags) -> pa.DictionaryArray:
    """The operators on the rows that were asked for, and null on all others."""
    place = np.cumsum(asked, dtype=np.int32)
    place -= 1
    return operators.take(pa.array(place, mask=~asked))


def _same(value: float | None, count: int) -> pa.Array | pa.ChunkedArray:
    """A column that says one thing of all rows."""
    return repeated(pa.array([value]), count)


def _converts(time: npt.NDArray[np.float64], told: list[Kernel]) -> frames.Flags:
    """Which kernels only change the order of a tensor's elements between NCHW and NHWC.

    Where convolutions are the main work, copies that change the order do the same, by a call of `contiguous` or the like. `time` is
    what all of the kernels take.
    """
    images, others = (
        sum(time[at] for at, kernel in enumerate(told) if kernel.family in families)
        for families in (("convolution", "depthwise"), ("matmul", "attention"))
    )
    return np.array([one.family == "layout" or (images > others and one.strided_copy) for one in told], bool)


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


def _sizes(ops: pa.Table, column: str) -> npt.NDArray[np.int32]:
    """A grid or block of each kernel by (kernel, axis), 0 where it was not recorded."""
    sizes = in_one(ops[column])
    flat = (sizes.fill_null([0, 0, 0]) if sizes.null_count else sizes).flatten()
    axes: npt.NDArray[np.int32] = (flat.fill_null(0) if flat.null_count else flat).to_numpy().reshape(-1, 3)
    return axes


def _product(sizes: npt.NDArray[np.int32]) -> Array:
    """How many there are in all, `NULL` where that was not recorded."""
    product = sizes[:, 0].astype(np.int64) * sizes[:, 1] * sizes[:, 2]
    return np.where(product > 0, product, frames.NULL)


class _BlockSizes:
    """The sizes of blocks, of which there are few, in the order in which they are met; `words` is how people write each, without
    trailing ones (16 × 16), None where it was not recorded."""

    def __init__(self, warp: int) -> None:
        self._warp = warp
        self._place: dict[tuple[int, ...], int] = {}
        self.words: list[str | None] = []

    def columns(self, sizes: npt.NDArray[np.int32]) -> dict[str, npt.NDArray[Any]]:
        """Of the blocks of some kernels the place of their words, `threads` and `lanes`."""
        code, sizes = _told_apart(sizes)
        threads = _product(sizes)
        unknown = threads == frames.NULL
        for one, no in zip(map(tuple, sizes.tolist()), unknown.tolist(), strict=True):
            if self._place.setdefault(one, len(self.words)) == len(self.words):
                self.words.append(None if no else " × ".join(map(str, _without_ones(one))))
        place = np.array([self._place[one] for one in map(tuple, sizes.tolist())], np.int32)
        lanes = threads / np.maximum(-(-threads // max(self._warp, 1)) * self._warp, 1)
        lanes[unknown | (not self._warp)] = np.nan
        return {"block": place.take(code), "threads": threads.take(code), "lanes": lanes.take(code)}


def _told_apart(sizes: npt.NDArray[np.int32]) -> tuple[frames.Codes, npt.NDArray[np.int32]]:
    """For each size its place among the distinct ones, and these in the order in which they come."""
    width = sizes.shape[1] * sizes.itemsize
    # As so many bytes they are hashed at once.
    found = pa.Array.from_buffers(pa.binary(width), len(sizes), [None, pa.py_buffer(sizes)]).dictionary_encode()
    distinct = np.frombuffer(found.dictionary.buffers()[1], np.int32, len(found.dictionary) * sizes.shape[1])
    return found.indices.to_numpy(), distinct.reshape(-1, sizes.shape[1])


def _without_ones(axes: tuple[int, ...]) -> tuple[int, ...]:
    last = max((at for at, size in enumerate(axes) if size != 1), default=0)
    return axes[: last + 1]


def _shared(ops: pa.Table) -> Spans:
    """When two or more kernels of the GPU run at once, communication included."""
    running = frames.equals(ops, "kind", "kernel", "graph")
    start, end = frames.ints(ops, "start_ns"), frames.ints(ops, "end_ns")
    firsts, lasts, reach = [start[:0]], [end[:0]], frames.NULL
    for rows in in_blocks(len(start)):
        first, last = (start[rows][running[rows]], end[rows][running[rows]])
        # Sorted by start, so a kernel begins together with others where the latest end before it lies behind its start.
        latest = np.maximum.accumulate(np.append(reach, last))
        together = np.flatnonzero(latest[:-1] > first)
        firsts.append(first[together])
        lasts.append(np.minimum(last, latest[:-1])[together])
        reach = int(latest[-1])
    return union(np.concatenate(firsts), np.concatenate(lasts))


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
