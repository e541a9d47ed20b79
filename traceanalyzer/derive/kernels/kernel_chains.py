"""Chains of kernels that a compiler could fuse: neighbours on one stream that only read and write memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.columns.in_blocks import InBlocks, in_blocks
from traceanalyzer.columns.lean import repeated
from traceanalyzer.derive.kernels.kernel_names import kernel_of
from traceanalyzer.derive.kernels.kernels import UNNAMED, is_compute
from traceanalyzer.derive.kernels.lanes import by_stream
from traceanalyzer.derive.kernels.tables import KERNEL_CHAINS
from traceanalyzer.intervals import Array

# What a compiler fuses with its neighbours: a value of the result needs one value, or one row, of each input.
FUSIBLE = ("elementwise", "reduction", "normalization", "softmax", "copy", "random")


def kernel_chains(ledger_ops: pa.Table, step_stats: pa.Table) -> pa.Table:
    """One row per chain of at least two kernels, sorted by (rank, device, stream, start); no chain crosses into another step."""
    steps = {key: frames.ints(rows, "start_ns") for key, rows in frames.split(step_stats)}
    tables = [
        _device_chains(key, device, steps.get(key, np.empty(0, np.int64))) for key, device in frames.split(ledger_ops)
    ]
    return frames.stack(KERNEL_CHAINS, [table for table in tables if table.num_rows])


def _device_chains(key: frames.Key, ops: pa.Table, steps: Array) -> pa.Table:
    code, names = frames.short_codes(ops, "name")
    told = [kernel_of(name) if name else UNNAMED for name in names]
    fuses = np.array([kernel.family in FUSIBLE and not kernel.compiler_fused for kernel in told], bool)
    fusible = is_compute(ops)
    fusible &= fuses.take(code)
    start, end = frames.ints(ops, "start_ns"), frames.ints(ops, "end_ns")
    process, stream = frames.ints(ops, "process"), frames.ints(ops, "stream")
    made, count = InBlocks(), 0
    for some, begins in _whole_chains(ops, fusible, start, np.sort(steps)):
        size = np.diff(np.append(np.flatnonzero(begins), len(some)))
        rows, size = some[np.repeat(size > 1, size)], size[size > 1]
        if len(rows):
            of = rows[np.cumsum(size) - size]
            told_of = _told(size, end[rows] - start[rows], code[rows], len(names))
            spans = {"start_ns": start[of], "end_ns": np.maximum.reduceat(end[rows], np.cumsum(size) - size)}
            made.add({"process": process[of], "stream": stream[of], **spans, "kernels": size, **told_of})
            count += len(size)
    if not count:
        return KERNEL_CHAINS.empty()
    gpu = {name: repeated(pa.array([value]), count) for name, value in zip(("rank", "device"), key, strict=True)}
    own = {
        field.name: made.numbers(field.name, field.type)
        for field in KERNEL_CHAINS.schema
        if field.name not in (*gpu, "name")
    }
    return frames.build(KERNEL_CHAINS, {**gpu, **own, "name": made.names("name", names)})


def _told(size: Array, length: Array, name: frames.Codes, names: int) -> dict[str, npt.NDArray[Any]]:
    """What there is to say of chains of such sizes, each of at least two kernels, which take `length` and are called `name`."""
    first, chain = np.cumsum(size) - size, np.repeat(np.arange(len(size)), size)
    longest = np.maximum.reduceat(length, first)
    # The earliest of equals.
    top = np.flatnonzero(length == longest[chain])
    top = top[np.flatnonzero(np.diff(chain[top], prepend=-1))]
    others = length.copy()
    others[top] = -1
    pairs = np.sort(chain * names + name, kind="stable")
    distinct = pairs[np.append(True, pairs[1:] != pairs[:-1])] // names
    return {
        "distinct": np.bincount(distinct),
        "busy": np.add.reduceat(length, first),
        "longest_two": longest + np.maximum.reduceat(others, first),
        "name": name[top],
    }


def _whole_chains(
    ops: pa.Table, fusible: frames.Flags, start: Array, steps: Array
) -> Iterator[tuple[Array, frames.Flags]]:
    """The rows of kernels that can be fused, stream by stream, so many whole chains at once, and where in them each chain begins."""
    stream, order = by_stream(ops)
    before: tuple[int, ...] = (-1, -1, -1)
    held: list[tuple[Array, frames.Flags]] = []
    for block in in_blocks(len(fusible)):
        rows = np.arange(block.start, block.stop) if order is None else order[block]
        place = np.flatnonzero(fusible[rows])
        if not len(place):
            continue
        rows, place = rows[place], place + block.start
        # Neighbours in `rows` are so on their stream if nothing stands between them.
        places = place, stream[rows], np.searchsorted(steps, start[rows], side="right")
        apart = [np.diff(one, prepend=last) for one, last in zip(places, before, strict=True)]
        begins = (apart[0] > 1) | (apart[1] != 0) | (apart[2] != 0)
        before = tuple(int(one[-1]) for one in places)
        if len(firsts := np.flatnonzero(begins)):
            done, held = [*held, (rows[: firsts[-1]], begins[: firsts[-1]])], []
            yield _joined(done)
            rows, begins = rows[firsts[-1] :], begins[firsts[-1] :]
        held.append((rows, begins))
    if held:
        yield _joined(held)


def _joined(parts: list[tuple[Array, frames.Flags]]) -> tuple[Array, frames.Flags]:
    rows, begins = zip(*parts, strict=True)
    return np.concatenate(rows), np.concatenate(begins)
