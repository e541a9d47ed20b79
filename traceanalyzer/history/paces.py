"""How fast the GPUs of one capture are at the same work, beside each other."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.result.history.entry import Pace
from traceanalyzer.result.job import Job

ALIKE = 0.1
"""A kernel that runs oftener or less often by more than this share, and more than once, than on the middle GPU is other work."""
EVEN = frozenset({"all-reduce", "all-gather", "reduce-scatter", "broadcast", "barrier"})
"""Collectives of ranks with equal parts of the work."""
LEAST_PART = 0.25
"""The kernels that are compared are at least this share of what a GPU computes, else nothing is said of it."""


def paces_of(kernel_times: pa.Table | None, job: Job | None) -> list[Pace]:
    """Of each GPU of `kernel_times` how it is called and, where all GPUs of the `job` do the same work, how long it takes for its
    kernels, by what the middle GPU of its model takes for kernels of the same name, grid and block."""
    if kernel_times is None or not kernel_times.num_rows:
        return []
    gpus = [(key, rows.slice(0, 1).to_pylist()[0]) for key, rows in frames.split(kernel_times)]
    ratio = _ratios(kernel_times) if job and _alike(job) else {}
    numbers = [device for (_, device), _ in gpus]
    alone = len(set(numbers)) == len(numbers)
    return [
        # The number tells a GPU of a host only where no two GPUs of the capture have the same one.
        Pace(one["uuid"], device if alone else None, ratio.get((rank, device)))
        for (rank, device), one in gpus
    ]


def _alike(job: Job) -> bool:
    """Whether ranks work together only as those do that have equal parts: stages of a pipeline do not, and neither do experts."""
    kinds = {kind for one in job.parallelism for kind in one.collectives}
    return bool(kinds) and kinds <= EVEN


def _ratios(times: pa.Table) -> dict[frames.Key, float]:
    gpu = frames.dense(frames.ints(times, "rank"), frames.ints(times, "device"))
    work = frames.dense(
        *(frames.codes(times, name)[0] for name in ("gpu", "name")),
        *(frames.ints(times, name) for name in ("blocks", "threads")),
    )
    count, time = frames.ints(times, "count"), frames.ints(times, "time")
    # One row a GPU and kernel, one column a GPU: a job has some thousand of either at most.
    counts = np.zeros((int(work.max()) + 1, int(gpu.max()) + 1))
    means = np.full(counts.shape, np.nan)
    counts[work, gpu] = count
    means[work, gpu] = time / count
    usual = _middle(np.where(counts > 0, counts, np.nan))
    compared = (counts > 0) & (np.abs(counts - usual) <= np.maximum(ALIKE * usual, 1))
    compared[np.count_nonzero(compared, axis=1) < 2] = False
    means[~compared] = np.nan
    rows, own = np.nonzero(compared)
    taken = np.bincount(own, (counts * means)[rows, own], minlength=counts.shape[1])
    expected = np.bincount(own, (counts * _middle(means))[rows, own], minlength=counts.shape[1])
    first = frames.firsts(gpu)
    told = taken >= LEAST_PART * np.maximum(frames.ints(times, "computing")[first], 1)
    keys = zip(frames.ints(times, "rank")[first].tolist(), frames.ints(times, "device")[first].tolist(), strict=True)
    return {key: round(float(taken[at] / expected[at]), 6) for at, key in enumerate(keys) if told[at]}


def _middle(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The median of each row as a column, NaN where a row has no value."""
    some = ~np.isnan(rows).all(axis=1)
    found = np.full((len(rows), 1), np.nan)
    found[some, 0] = np.nanmedian(rows[some], axis=1)
    return found
