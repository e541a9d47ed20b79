"""What each rank does in a step, and what one does more of than the others: extra kernels, by name, and extra time, by ledger line."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.intervals import Array
from traceanalyzer.ranks.waits.tables import EXCESS, EXTRA_WORK, RANK_WORK
from traceanalyzer.vocabulary.lines import EXPOSED_COMMUNICATION, LEDGER_LINES, column

Floats = npt.NDArray[np.float64]

MOST_NAMES = 256
"""Names kept of each rank, those with most time: what travels to the comparison must stay small."""
ALIKE = 0.05
"""Ranks whose numbers of operations differ by less than this share do the same, though libraries choose kernels by size."""
JITTER = 0.01
"""Least share of a GPU's work that counts as more: no two ranks take exactly as long for the same."""
SAME_STEP = 1.5
"""Ranks that wait for each other in every step take equally long for it. Where one takes so many times longer, its steps are others."""


def rank_work(ledger_ops: pa.Table, step_stats: pa.Table) -> pa.Table:
    """Computing, copies and memsets of each GPU by name, per complete step; nothing of a GPU without such steps."""
    steps = frames.by_device(step_stats)
    tables = [_per_step(key, ops, steps[key].filter(steps[key]["complete"])) for key, ops in frames.split(ledger_ops)]
    return frames.stack(RANK_WORK, tables)


def _per_step(key: frames.Key, ops: pa.Table, steps: pa.Table) -> pa.Table:
    if not steps.num_rows:
        return RANK_WORK.empty()
    first, last = int(frames.ints(steps, "start_ns").min()), int(frames.ints(steps, "end_ns").max())
    start = frames.ints(ops, "start_ns")
    counts = (start >= first) & (start < last) & ~frames.equals(ops, "class", "communication")
    code, names = frames.codes(ops, "name")
    times = np.bincount(code[counts], frames.duration(ops)[counts], len(names)).astype(np.int64)
    number = np.bincount(code[counts], minlength=len(names))
    most = np.argsort(-times, kind="stable")[:MOST_NAMES]
    most = most[number[most] > 0]
    return frames.build(
        RANK_WORK,
        {"rank": np.full(len(most), key[0]), "device": np.full(len(most), key[1])}
        | {"name": frames.names(most, names), "count": number[most] / steps.num_rows}
        | {"time": times[most] // steps.num_rows},
    )


def extra_work(rank_work: pa.Table) -> pa.Table:
    """For each GPU the name of which it has most time beyond the median GPU; `rank_work` holds those of the whole job.

    Of two GPUs the median is the one that has less.
    """
    lane = frames.dense(*(frames.ints(rank_work, c) for c in ("rank", "device")))
    lanes = int(lane.max()) + 1 if len(lane) else 0
    if lanes < 2:
        return EXTRA_WORK.empty()
    name = frames.codes(rank_work, "name")[0]
    time, number = frames.ints(rank_work, "time"), rank_work["count"].to_numpy()
    more_time, more = beyond_median(name, lane, time, lanes), beyond_median(name, lane, number, lanes)
    order = np.lexsort((name, -more_time, lane))
    best = order[np.unique(lane[order], return_index=True)[1]]
    worth = JITTER * np.bincount(lane, time, lanes)[lane[best]]
    best = best[more_time[best] > worth]
    rows, longer = pa.array(best), _longer(lane, time, number, lanes)
    return frames.build(
        EXTRA_WORK,
        {c: rank_work[c].take(rows) for c in ("rank", "device", "name")}
        | {"count": more[best], "time": more_time[best].astype(np.int64)}
        | {"longer": pa.array(longer[lane[best]], from_pandas=True)},
    )


def _longer(lane: Array, time: Array, number: Floats, lanes: int) -> Floats:
    """For each lane how many times as long its operations take as the median lane's; NaN where it has more or fewer of them."""
    took, count = np.bincount(lane, time, lanes), np.bincount(lane, number, lanes)
    median = np.sort(took)[(lanes - 1) // 2], np.median(count)
    alike = np.abs(count - median[1]) <= ALIKE * median[1]
    return np.where(alike, took / max(median[0], 1), np.nan)


def excess(step_ledger: pa.Table) -> pa.Table:
    """For each GPU the ledger line on which it spends most time a step beyond the median GPU; `step_ledger` is that of the whole job.

    Communication is left out, because who has less to do waits longer. GPUs that have more of nothing are left out, and those of which
    what counts as a step is not what it is on the others.
    """
    gpus = [(key, steps.filter(steps["complete"])) for key, steps in frames.split(step_ledger)]
    gpus = [(key, steps) for key, steps in gpus if steps.num_rows]
    length = np.array([frames.duration(steps).mean() for _, steps in gpus])
    usual = _low_median(length)
    alike = np.flatnonzero((length <= SAME_STEP * usual) & (usual <= SAME_STEP * length))
    if len(alike) < 2:
        return EXCESS.empty()
    gpus, length = [gpus[at] for at in alike], length[alike]
    lines = [line for line in LEDGER_LINES if line != EXPOSED_COMMUNICATION.name]
    mean = np.array([[frames.ints(steps, column(line)).mean() for line in lines] for _, steps in gpus])
    more = mean - _low_median(mean)
    line = np.argmax(more, axis=1)
    time = more[np.arange(len(gpus)), line].astype(np.int64)
    keep = np.flatnonzero(time > JITTER * length)
    return frames.build(
        EXCESS,
        {"rank": np.array([gpus[at][0][0] for at in keep], np.int64)}
        | {"device": np.array([gpus[at][0][1] for at in keep], np.int64)}
        | {"line": frames.names(line[keep], lines), "time": time[keep]},
    )


def _low_median(values: Floats) -> Floats:
    """Along the first axis; of an even number the lower middle one, so of two GPUs the one that has less. 0 of none."""
    return np.sort(values, axis=0)[(len(values) - 1) // 2] if len(values) else np.zeros(())


def beyond_median(name: Array, lane: Array, value: Array, lanes: int) -> Array:
    """Each row's value less the median over all lanes of its name, where a lane without a row has 0."""
    order = np.lexsort((value, name))
    first = np.flatnonzero(np.diff(name[order], prepend=-1))
    size = np.diff(np.append(first, len(order)))
    # The absent lanes' zeros come before the values; of an even number the lower middle one is taken.
    middle = (lanes - 1) // 2 - (lanes - size)
    median = np.where(middle < 0, 0, value[order][np.minimum(first + np.maximum(middle, 0), len(order) - 1)])
    beyond = np.empty(len(value), np.result_type(value, median))
    beyond[order] = value[order] - np.repeat(median, size)
    return beyond
