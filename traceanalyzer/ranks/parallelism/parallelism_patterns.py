"""Patterns of collectives within a step that only one kind of parallelism makes.

All take a frame of launches, one a row: `process` and `thread` (numbers that the ranges of the host share), `group`, `kind`,
`gathers` (an all-gather or reduce-scatter), `size` in bytes and `step` (`NULL` when not known), `time` in ns,
`backward` (launched within a backward pass).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL, Flags
from traceanalyzer.intervals import Array, latest_of, union

LAYER_BYTES = 1024
"""Activations of one token take more than this."""
LAYERS = 4
"""So many exchanges of one size in a forward pass are one or two for each layer; what a whole batch needs is one or two a step."""
GRADIENTS_BYTES = 1 << 20
"""A model that is worth several GPUs has more gradients than this."""


@dataclass(frozen=True)
class Ranges:
    """Host ranges of one sort, in any order."""

    process: Array
    thread: Array
    start: Array
    end: Array


def between_layers(calls: pd.DataFrame, products: Ranges) -> Flags:
    """Collectives of layers that are split over ranks: the forward pass has them between its matrix products, several a step.

    All-reduces count when they are of one size. All-gathers count with reduce-scatters, which no other forward pass has: that of
    sharded data parallelism only gathers.
    """
    calls = calls.sort_values(["group", "time"], kind="stable")
    forever = np.full(len(products.start), np.iinfo(np.int64).max)
    threads, times = calls["thread"].to_numpy(), calls["time"].to_numpy()
    product = pd.Series(latest_of(products.thread, products.start, forever, threads, times), calls.index)
    another = (product >= 0) & (product != product.groupby(calls["group"]).shift(fill_value=-1))
    layer = another & ~calls["backward"] & (calls["step"] != NULL) & (calls["size"] >= LAYER_BYTES)
    steps = calls["step"].where(layer).groupby(calls["group"]).transform("nunique").clip(lower=1)
    alike = layer.groupby([calls["group"], calls["kind"], calls["size"]]).transform("sum") >= LAYERS * steps
    often = layer.groupby([calls["group"], calls["kind"]]).transform("sum") >= LAYERS // 2 * steps
    both = calls["kind"].where(often & calls["gathers"]).groupby(calls["group"]).transform("nunique") == 2
    found: Flags = alike.where(~calls["gathers"], both).sort_index().to_numpy()
    return found


def after_backward(calls: pd.DataFrame, passes: Ranges, products: Ranges) -> Flags:
    """Megabytes sent after all of a backward pass and before the next matrix product: gradients or, in shards, parameters."""
    process, time, size = (calls[c].to_numpy() for c in ("process", "time", "size"))
    over, good = np.full(len(time), NULL), np.zeros(len(time), bool)
    for (one,), at in frames.together(process):
        low, high = union(*(ends[passes.process == one] for ends in (passes.start, passes.end)))
        begun = np.sort(products.start[products.process == one])
        # The last index is that of a time before which there is none.
        over[at] = np.append(high, NULL)[np.searchsorted(low, time[at], side="right") - 1]
        product = np.append(begun, NULL)[np.searchsorted(begun, time[at], side="right") - 1]
        good[at] = (over[at] != NULL) & (over[at] <= time[at]) & (product < over[at]) & (size[at] != NULL)
    total = pd.Series(np.where(good, size, 0)).groupby(frames.dense(process, over)).transform("sum")
    found: Flags = good & (total.to_numpy() >= GRADIENTS_BYTES)
    return found


def between_passes(calls: pd.DataFrame, passes: Ranges) -> Flags:
    """Sends and receives of pipeline stages: never within a backward pass, though in most steps passes run between them.

    Those of ring attention are in the backward pass as well as in the forward pass; what is sent once a step has none in between.
    """
    begun = np.zeros(len(calls), np.int64)
    for (one,), at in frames.together(calls["process"].to_numpy()):
        begun[at] = np.searchsorted(np.sort(passes.start[passes.process == one]), calls["time"].to_numpy()[at])
    calls = calls.assign(begun=begun)
    known = calls[calls["step"] != NULL].groupby(["group", "step"])["begun"]
    parted = (known.max() > known.min()).groupby("group").mean() > 0.5
    inside = calls.groupby("group")["backward"].transform("any")
    found: Flags = (calls["group"].map(parted).eq(True) & ~inside).to_numpy()
    return found
