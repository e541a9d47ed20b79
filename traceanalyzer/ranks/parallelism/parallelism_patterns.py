"""Patterns of collectives within a step that only one kind of parallelism makes."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL, Flags
from traceanalyzer.columns.grouped import Groups
from traceanalyzer.intervals import Array, latest_of, union
from traceanalyzer.records import dataclass

LAYER_BYTES = 1024
"""Activations of one token take more than this."""
LAYERS = 4
"""So many exchanges of one size in a forward pass are one or two for each layer; what a whole batch needs is one or two a step."""
GRADIENTS_BYTES = 1 << 20
"""A model that is worth several GPUs has more gradients than this."""


@dataclass(frozen=True)
class Calls:
    """One value a launch of a collective: `process` and `thread` (numbers that the ranges of the host share), `group`, `kind`,
    `gathers` (an all-gather or reduce-scatter), `size` in bytes and `step` (`NULL` when not known), `time` in ns, `backward` (launched
    within a backward pass)."""

    process: Array
    thread: Array
    group: Array
    kind: Array
    gathers: Flags
    size: Array
    step: Array
    time: Array
    backward: Flags

    def take(self, rows: Array | Flags) -> Calls:
        return Calls(*(getattr(self, one.name)[rows] for one in fields(self)))


@dataclass(frozen=True)
class Ranges:
    """Host ranges of one sort, in any order."""

    process: Array
    thread: Array
    start: Array
    end: Array


def between_layers(calls: Calls, products: Ranges) -> Flags:
    """Collectives of layers that are split over ranks: the forward pass has them between its matrix products, several a step.

    All-reduces count when they are of one size. All-gathers count with reduce-scatters, which no other forward pass has: that of
    sharded data parallelism only gathers.
    """
    forever = np.full(len(products.start), np.iinfo(np.int64).max)
    product = latest_of(products.thread, products.start, forever, calls.thread, calls.time)
    by_group, by_kind = Groups(calls.group), Groups(frames.dense(calls.group, calls.kind))
    by_size = Groups(frames.dense(calls.group, calls.kind, calls.size))
    order = np.lexsort((calls.time, calls.group))
    same_group = np.append(False, np.diff(calls.group[order]) == 0)[: len(order)]
    before = np.full(len(order), -1, np.int64)
    before[order] = np.where(same_group, np.roll(product[order], 1), -1)
    layer = (product >= 0) & (product != before) & ~calls.backward & (calls.step != NULL) & (calls.size >= LAYER_BYTES)
    steps = np.maximum(by_group.distinct(calls.step, layer), 1)[by_group.of]
    alike = by_size.count(layer)[by_size.of] >= LAYERS * steps
    often = by_kind.count(layer)[by_kind.of] >= LAYERS // 2 * steps
    both = by_group.distinct(calls.kind, often & calls.gathers)[by_group.of] == 2
    return np.where(calls.gathers, both, alike)


def after_backward(calls: Calls, passes: Ranges, products: Ranges) -> Flags:
    """Megabytes sent after all of a backward pass and before the next matrix product: gradients or, in shards, parameters."""
    process, time, size = calls.process, calls.time, calls.size
    over, good = np.full(len(time), NULL), np.zeros(len(time), bool)
    for (one,), at in frames.together(process):
        low, high = union(*(ends[passes.process == one] for ends in (passes.start, passes.end)))
        begun = np.sort(products.start[products.process == one])
        # The last index is that of a time before which there is none.
        over[at] = np.append(high, NULL)[np.searchsorted(low, time[at], side="right") - 1]
        product = np.append(begun, NULL)[np.searchsorted(begun, time[at], side="right") - 1]
        good[at] = (over[at] != NULL) & (over[at] <= time[at]) & (product < over[at]) & (size[at] != NULL)
    one_pass = Groups(frames.dense(process, over))
    found: Flags = good & (one_pass.sum(np.where(good, size, 0))[one_pass.of] >= GRADIENTS_BYTES)
    return found


def between_passes(calls: Calls, passes: Ranges) -> Flags:
    """Sends and receives of pipeline stages: never within a backward pass, though in most steps passes run between them.

    Those of ring attention are in the backward pass as well as in the forward pass; what is sent once a step has none in between.
    """
    begun = np.zeros(len(calls.time), np.int64)
    for (one,), at in frames.together(calls.process):
        begun[at] = np.searchsorted(np.sort(passes.start[passes.process == one]), calls.time[at])
    of_group = Groups(calls.group)
    known = np.flatnonzero(calls.step != NULL)
    in_step = Groups(frames.dense(calls.group[known], calls.step[known]))
    parted = in_step.max(begun[known]) > in_step.min(begun[known])
    # Each step is counted in its group.
    steps = of_group.of[known][in_step.first]
    count = np.bincount(steps, minlength=len(of_group))
    mostly = np.bincount(steps, parted, len(of_group)) > 0.5 * count
    found: Flags = (mostly & ~of_group.any(calls.backward))[of_group.of]
    return found
