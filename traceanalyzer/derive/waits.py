"""Who waited for whom in the collectives of a job, and what the one that came last was doing meanwhile."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.derive import frames
from traceanalyzer.derive.busy import Busy
from traceanalyzer.derive.collectives import chains, lanes
from traceanalyzer.derive.ranges import heaviest
from traceanalyzer.derive.tables.communication import COLLECTIVE_WAITS
from traceanalyzer.intervals import Array, Spans, covered, covered_before, overlaps, union
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


def _late(parts: pa.Table, wait: Array, known: frames.Flags) -> tuple[Array, Array]:
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
    parts: pa.Table, busy: dict[frames.Key, Busy], wait: Array, known: frames.Flags, late: Array
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
    known: frames.Flags,
    late: Array,
    since: Array,
    until: Array,
    tables: tuple[pa.Table, pa.Table, pa.Table],
) -> tuple[Names, Names]:
    """On which ledger line the last rank spent most of the time that others waited for it, and what most of all such time went to."""
    line, doing = np.full(len(late), None, object), np.full(len(late), None, object)
    waited = np.flatnonzero(known & (until > since))
    tiles, ops, gaps = (frames.by_device(table) for table in tables)
    for (rank, device), rows in frames.together(*(frames.ints(parts, c)[late[waited]] for c in ("rank", "device"))):
        mine, gpu = waited[rows], (rank, device)
        line[mine] = _longest_lines(tiles[gpu], since[mine], until[mine])
        times = union(since[mine], until[mine])
        busiest, idlest = _top(ops[gpu], "name", times), _top(gaps[gpu], "range_name", times)
        doing[mine] = [idlest if str(name).startswith("idle.") else busiest for name in line[mine]]
    return line, doing


def _longest_lines(tiles: pa.Table, start: Array, end: Array) -> list[str | None]:
    """The ledger line that covers most of each span; None outside the window, which the tiles cover in order."""
    code, names = frames.codes(tiles, "line")
    row, tile, low, high = overlaps(start, end, (frames.ints(tiles, "start_ns"), frames.ints(tiles, "end_ns")))
    return [None if at == frames.NULL else names[at] for at in heaviest(row, code[tile], high - low, len(start))[0]]


def _top(table: pa.Table, column: str, spans: Spans) -> str | None:
    """The name in `column` whose rows cover most of the spans."""
    return frames.top_name(table, column, covered(frames.ints(table, "start_ns"), frames.ints(table, "end_ns"), spans))
