"""Who waited for whom in the collectives of a job, and what the one that came last was doing meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.derive import frames
from traceanalyzer.derive.busy import Busy
from traceanalyzer.derive.collectives import chains, lanes
from traceanalyzer.derive.tables import COLLECTIVE_WAITS
from traceanalyzer.intervals import Array, covered, covered_before, pieces, union
from traceanalyzer.model.trace import Input

JITTER = 0.01
"""Least spread of the ranks' compute, as a share of the median: below it they are alike, and a score of the rest means nothing."""
FEWEST = 3
"""Ranks that it takes to tell which one is unlike the others."""

Floats = npt.NDArray[np.float64]
Names = npt.NDArray[np.object_]


def collective_waits(
    communication: pa.Table,
    busy: dict[frames.Key, Busy],
    ledger: pa.Table,
    ledger_intervals: pa.Table,
    ledger_ops: pa.Table,
    gaps: pa.Table,
    inputs: Sequence[Input],
) -> pa.Table:
    """Every communication kernel, in the order of `communication`."""
    if not communication.num_rows:
        return COLLECTIVE_WAITS.empty()
    parts = communication.combine_chunks()
    start = frames.ints(parts, "start_ns")
    wait = pc.fill_null(parts["wait"], 0).to_numpy()
    known = parts["instance"].is_valid().to_numpy()
    late, longest = _late(parts, wait, known)
    arrived = np.where(known, start[late], 0)
    since = arrived - longest
    line, doing = _meanwhile(parts, known, late, since, arrived, (ledger_intervals, ledger_ops, gaps))
    imbalance, score = _compute(parts, busy, wait, known, late)
    names = {i.ordinal: f"rank {i.rank}" for i in inputs if i.rank is not None}
    who = zip(parts["late_rank"].to_pylist(), parts["late_device"].to_pylist(), strict=True)
    called = [None if device is None else names.get(rank, f"GPU {device}") for rank, device in who]
    same = ("rank", "device", "kind", "instance", "ranks", "certainty", "wait", "exposed_wait", "transfer", "spread")
    return frames.build(
        COLLECTIVE_WAITS,
        {c: parts[c] for c in (*same, "start_ns", "late_rank", "late_device")}
        | {"end_ns": start + wait, "late": pa.array(called, pa.string())}
        | {"late_start_ns": pa.array(since, mask=~known), "late_end_ns": pa.array(arrived, mask=~known)}
        | {"late_line": pa.array(line, pa.string()), "late_doing": pa.array(doing, pa.string())}
        | {"imbalance": pa.array(imbalance, mask=~known), "score": pa.array(score, from_pandas=True)}
        | {"job_window": np.full(len(start), _windows(ledger, parts))},
    )


def _late(parts: pa.Table, wait: Array, known: npt.NDArray[np.bool_]) -> tuple[Array, Array]:
    """For each part the row of the part that arrived last, which is the one that did not wait, and the longest wait for it."""
    instance = np.where(known, frames.ints(parts, "instance"), -1)
    late = np.arange(len(instance))
    longest = np.zeros(len(instance), np.int64)
    order = np.lexsort((wait, instance))
    order = order[instance[order] >= 0]
    if len(order):
        first = np.flatnonzero(np.diff(instance[order], prepend=-1))
        count = np.diff(np.append(first, len(order)))
        late[order] = np.repeat(order[first], count)
        longest[order] = np.repeat(wait[order[first + count - 1]], count)
    return late, longest


def _windows(ledger: pa.Table, parts: pa.Table) -> int:
    gpus = {key for key, _ in frames.groups(parts)}
    rows = zip(*(ledger[c].to_pylist() for c in ("rank", "device", "duration")), strict=True)
    return sum(duration for rank, device, duration in rows if (rank, device) in gpus)


def _compute(
    parts: pa.Table, busy: dict[frames.Key, Busy], wait: Array, known: npt.NDArray[np.bool_], late: Array
) -> tuple[Array, Floats]:
    """Which part of each wait is the last rank's longer compute, and how unlike the others' its compute is.

    Compared is the compute from the end of the first to the end of the last collective of a chain, times that all ranks share. Single
    collectives cannot be compared: a rank computes on under some that it waits in, and what it had no time for comes before the next.

    Score: 0.6745 (x - median) / max(MAD, floor), at least `FEWEST` ranks. Source: Iglewicz and Hoaglin, How to Detect and Handle
    Outliers, 1993.
    """
    lane = lanes(parts)
    end = frames.ints(parts, "end_ns")
    done = np.zeros(len(end), np.int64)
    for key, rows in frames.groups(parts):
        done[rows] = covered_before(end[rows], busy[key].compute)
    frame = pd.DataFrame({"chain": chains(parts), "lane": lane, "last": lane[late], "done": done, "wait": wait})
    by_lane = frame[known].groupby(["chain", "lane"])["done"]
    x = (by_lane.max() - by_lane.min()).astype(float)
    by_chain = x.groupby("chain")
    median = by_chain.transform("median")
    spread = (x - median).abs().groupby("chain").transform("median")
    score: pd.Series = 0.6745 * (x - median) / np.maximum(np.maximum(spread, JITTER * median), 1)
    score = score.where(by_chain.transform("size") >= FEWEST)
    own, last = (pd.MultiIndex.from_frame(frame[["chain", c]]) for c in ("lane", "last"))
    more = np.clip(x.reindex(last).to_numpy() - x.reindex(own).to_numpy(), 0, None)
    waited = frame["wait"].where(known, 0).groupby([frame["lane"], frame["last"]]).transform("sum").to_numpy()
    imbalance = wait * np.clip(np.nan_to_num(more) / np.maximum(waited, 1), 0, 1)
    return imbalance.astype(np.int64), np.where(known, score.reindex(last).to_numpy(), np.nan)


def _meanwhile(
    parts: pa.Table,
    known: npt.NDArray[np.bool_],
    late: Array,
    since: Array,
    until: Array,
    tables: tuple[pa.Table, pa.Table, pa.Table],
) -> tuple[Names, Names]:
    """On which ledger line the last rank spent most of the time that others waited for it, and what most of all such time went to."""
    line, doing = np.full(len(late), None, object), np.full(len(late), None, object)
    intervals, ops, gaps = tables
    keys = [(frames.ints(parts, "rank")[late], frames.ints(parts, "device")[late])]
    for rank, device in np.unique(np.stack(keys[0])[:, known & (until > since)], axis=1).T.tolist():
        rows = np.flatnonzero(known & (until > since) & (keys[0][0] == rank) & (keys[0][1] == device))
        mine = _of(intervals, rank, device)
        for at, name in _longest_lines(mine, since[rows], until[rows]):
            line[rows[at]] = name
        times = union(since[rows], until[rows])
        busiest = _top(_of(ops, rank, device), "name", *times)
        idlest = _top(_of(gaps, rank, device), "range_name", *times)
        for row in rows.tolist():
            doing[row] = idlest if str(line[row]).startswith("idle.") else busiest
    return line, doing


def _of(table: pa.Table, rank: int, device: int) -> pa.Table:
    return table.filter(pc.and_(pc.equal(table["rank"], rank), pc.equal(table["device"], device)))


def _longest_lines(intervals: pa.Table, start: Array, end: Array) -> Iterator[tuple[int, str]]:
    """For each span its position and the ledger line that covers most of it."""
    order = np.argsort(frames.ints(intervals, "start_ns"), kind="stable")
    code, names = frames.codes(intervals, "line")
    begin, stop = (frames.ints(intervals, c)[order] for c in ("start_ns", "end_ns"))
    # The intervals tile the window, so the one that a piece lies in is the last to begin before it does.
    row, low, high = pieces(start, end, (begin, stop))
    owner = code[order][np.searchsorted(begin, low, side="right") - 1]
    spent = pd.Series(high - low).groupby([row, owner]).sum()
    for at, name in spent.groupby(level=0).idxmax():
        yield at, names[name] or ""


def _top(table: pa.Table, column: str, start: Array, end: Array) -> str | None:
    """The name in `column` whose rows cover most of the spans."""
    code, names = frames.codes(table, column)
    time = covered(frames.ints(table, "start_ns"), frames.ints(table, "end_ns"), (start, end))
    spent = np.bincount(code, weights=time, minlength=len(names))[:-1]
    return names[int(spent.argmax())] if len(spent) and spent.max() > 0 else None
