"""Whether the same kernels take longer in a later part of a run: the GPU's clocks fell, or it was shared."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.columns.in_blocks import in_blocks
from traceanalyzer.derive.kernels.tables import KERNEL_PACE
from traceanalyzer.derive.trends import trend
from traceanalyzer.intervals import Array

Floats = npt.NDArray[np.float64]

ALONE = 0.9
"""A kernel beside which others run for more than the rest takes longer because of them."""
RUNS = 3
"""The same kernel must run so often in either part for its medians to be compared."""
SAMPLES = 3
"""So many samples of a clock tell how high it was in either part; logs hold one each 50 ms or second."""
PARTS = 20
"""The run is cut at the best of so many places."""
LEAST = 0.2
"""Either part is at least this share of the run."""
SLOWER = 1.1
"""From so many times as long on a kernel counts as slower; single kernels vary by a few percent."""
ALIKE = 1.15
"""Clocks slow all kernels down about alike: within so many times the median of all."""
WORTH = 0.05
"""Medians are looked at from this part on by which kernels take longer on average."""
_CLOCK = re.compile(r"^(?:GPC|SM|Graphics|GPU)\b.*\bClock", re.IGNORECASE)


def kernel_pace(kernels: pa.Table, counters: pa.Table) -> pa.Table:
    """One row per GPU on which kernels of the same name, grid and block ran often in either part, and took longer in the later one."""
    clocks = dict(_clocks(counters)) if counters.num_rows else {}
    rows = [row for key, mine in frames.split(kernels) if (row := _device(key, mine, clocks.get(key))) is not None]
    return pa.Table.from_pylist(rows, schema=KERNEL_PACE.schema)


def _clocks(counters: pa.Table) -> list[tuple[frames.Key, pa.Table]]:
    """The samples of the clock that the multiprocessors run at, by GPU."""
    wanted = frames.where(counters, "metric", lambda name: _CLOCK.search(name) is not None)
    table = counters.filter(pa.array(wanted & (frames.ints(counters, "device") != frames.NULL)))
    keys = (frames.ints(table, column) for column in ("rank", "device"))
    return [((key[0], key[1]), table.take(pa.array(rows))) for key, rows in frames.together(*keys)]


def alone(kernels: pa.Table) -> frames.Flags:
    """Of each kernel whether no other ran beside most of it."""
    length, own = frames.duration(kernels), frames.ints(kernels, "alone")
    found = np.empty(len(length), bool)
    for rows in in_blocks(len(length)):
        found[rows] = (own[rows] >= ALONE * length[rows]) & (length[rows] > 0)
    return found


def _device(key: frames.Key, kernels: pa.Table, clock: pa.Table | None) -> dict[str, object] | None:
    by_itself = alone(kernels)
    if np.count_nonzero(by_itself) < 2 * RUNS:
        return None
    kernels = frames.filtered(kernels.select(["name", "start_ns", "end_ns", "blocks", "threads"]), by_itself)
    length, start = frames.duration(kernels), frames.ints(kernels, "start_ns")
    name = frames.short_codes(kernels, "name")[0]
    same = frames.dense(name, *(frames.ints(kernels, column) for column in ("blocks", "threads")))
    low, high = int(start.min()), int(frames.ints(kernels, "end_ns").max())
    sums, time = _pace(same, start, length, low, high)
    cut, more = _best_cut(sums, time)
    if more < WORTH:
        return None
    later = (start - low) * PARTS // (high - low) >= cut
    before, after, weight, first = _medians(same, later, length)
    if not len(before):
        return None
    ratio = after / before
    middle = _weighted_median(ratio, weight)
    slower = ratio >= SLOWER
    alike = np.maximum(ratio / middle, middle / ratio) <= ALIKE
    since = int(start[later].min())
    speeds = [None, None] if clock is None else [_mean(clock, low, since), _mean(clock, since, high)]
    return {
        "rank": key[0],
        "device": key[1],
        "start_ns": since,
        "end_ns": high,
        "before": since - low,
        "names": len(np.unique(name[first])),
        "slower_names": len(np.unique(name[first[slower]])),
        "ratio": middle,
        "slower": float(weight[slower].sum() / weight.sum()),
        "alike": float(weight[alike].sum() / weight.sum()),
        "steady": trend((sums / np.maximum(time, 1))[time > 0]).steady,
        "larger": _larger(name, frames.ints(kernels, "blocks"), later, length),
        "lost": round(float(length[later].sum()) * max(1 - 1 / middle, 0.0)),
        "clock_before": speeds[0],
        "clock_after": speeds[1],
    }


def _pace(same: Array, start: Array, length: Array, low: int, high: int) -> tuple[Floats, Floats]:
    """By part of the run how much longer than others of their kind kernels take, as logarithms weighted by time, and that time.

    What is short varies most and matters least.
    """
    count = np.bincount(same)
    usual, sums, time = np.zeros(len(count)), np.zeros(PARTS), np.zeros(PARTS)
    for rows in in_blocks(len(length)):
        np.add.at(usual, same[rows], np.log(length[rows]))
    usual /= count
    for rows in in_blocks(len(length)):
        weighted = np.clip(np.log(length[rows]) - usual[same[rows]], -1, 1) * length[rows]
        part = (start[rows] - low) * PARTS // (high - low)
        np.add.at(sums, part, weighted)
        np.add.at(time, part, length[rows].astype(float))
    return sums, time


def _best_cut(sums: Floats, time: Floats) -> tuple[int, float]:
    """The part of the run from which on kernels take longest, against those of their kind before it, and the logarithm of how long."""
    cuts = np.arange(int(LEAST * PARTS), PARTS - int(LEAST * PARTS) + 1)
    sums, time = np.cumsum(sums), np.cumsum(time)
    done, left = time[cuts - 1], time[-1] - time[cuts - 1]
    more = (sums[-1] - sums[cuts - 1]) / np.maximum(left, 1) - sums[cuts - 1] / np.maximum(done, 1)
    more = np.where((done > 0) & (left > 0), more, -np.inf)
    return int(cuts[np.argmax(more)]), float(more.max())


def _median_of_each(group: Array, value: Array) -> Floats:
    """For each row the median of its group, of an even number the lower middle one. Groups are numbered from 0 on, without holes."""
    order = np.lexsort((value, group))
    size = np.bincount(group).astype(np.int64)
    first = np.cumsum(size) - size
    middles: Floats = value[order][first + (size - 1) // 2].astype(float)
    return middles[group]


def _medians(same: Array, later: frames.Flags, length: Array) -> tuple[Floats, Floats, Floats, Array]:
    """Of each kind of kernel that runs often enough in both parts: median before and after, time, and a row of it."""
    kinds = int(same.max()) + 1
    counts = np.stack([np.bincount(same[~later], minlength=kinds), np.bincount(same[later], minlength=kinds)])
    kept = np.flatnonzero((counts >= RUNS).all(axis=0))
    first = np.full(kinds, -1)
    first[same[::-1]] = np.arange(len(same) - 1, -1, -1)
    medians = _median_of_each(frames.dense(same, later.astype(np.int64)), length)
    ends = np.zeros((2, kinds))
    ends[later.astype(np.int64), same] = medians
    time = np.bincount(same, length, kinds).astype(float)
    return ends[0, kept], ends[1, kept], time[kept], first[kept]


def _larger(name: frames.Codes, blocks: Array, later: frames.Flags, length: Array) -> float:
    """Which part of the time is of kernels whose grids are larger in the later part, by name.

    Grids that stay the same may hide that data grew, since persistent kernels have as many blocks as the GPU has room for. Others,
    such as elementwise ones, then show it.
    """
    names = int(name.max()) + 1
    count = [np.maximum(np.bincount(name[part], minlength=names), 1) for part in (~later, later)]
    before, after = (
        np.bincount(name[part], np.maximum(blocks[part], 0), names) / number
        for part, number in zip((~later, later), count, strict=True)
    )
    time = np.bincount(name, length, names)
    return float(time[(before > 0) & (after >= SLOWER * before)].sum() / time.sum())


def _weighted_median(values: Floats, weights: Floats) -> float:
    order = np.argsort(values, kind="stable")
    done = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(done, done[-1] / 2)])


def _mean(clock: pa.Table, low: int, high: int) -> float | None:
    time = frames.ints(clock, "time_ns")
    inside = clock["value"].to_numpy()[(time >= low) & (time < high)]
    inside = inside[np.isfinite(inside)]
    return float(inside.mean()) if len(inside) >= SAMPLES else None
