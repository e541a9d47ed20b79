"""Sends and receives that share a kernel, as pipelines issue them.

`batch_isend_irecv` hands the library several at once, and one kernel serves them all. PyTorch describes none of them on that kernel:
their operators lie before the range `nccl:coalesced` in which the kernel is launched. A rank that waits much runs ahead on its host, so
that many of its kernels were launched before the capture; where its steps are alike, what is recorded tells those too.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL
from traceanalyzer.intervals import Array, latest_of
from traceanalyzer.ranks.collectives.collective_names import kind_of
from traceanalyzer.ranks.collectives.peers import BOTH, RECEIVE, SEND
from traceanalyzer.ranks.parallelism.parallelism_names import POINT_TO_POINT

COALESCED = "nccl:coalesced"

ALIKE = 0.75
"""How much of the time of kernels a step apart must be the same for these steps to be alike: waits vary by less from step to step, and
where a step is taken for its neighbour's, or cut short, its long waits lie beside short ones."""


def describe(told: pd.DataFrame, calls: pa.Table, host_ranges: pa.Table, collectives: pa.Table) -> None:
    """Fill in what the operators say of kernels without arguments. `told` and `calls` have a row a kernel, as in `communication`."""
    asked = collectives.filter(pc.is_valid(collectives["thread"]))
    # What NCCL's own calls say is told elsewhere (`nccl_calls`).
    asked = asked.filter(pa.array(~frames.where(asked, "name", lambda name: name.startswith("nccl"))))
    ranges = host_ranges.filter(pa.array(frames.where(host_ranges, "name", lambda name: name.startswith("nccl:"))))
    grouped = frames.equals(ranges, "name", COALESCED)
    if not asked.num_rows or not grouped.any():
        return
    tables = (ranges, asked, calls)
    keys = ("rank", "process", "thread")
    thread = frames.dense(*(np.concatenate([frames.ints(table, key) for table in tables]) for key in keys))
    of_range, of_asked, of_call = np.split(thread, np.cumsum([table.num_rows for table in tables])[:-1])
    start = frames.ints(ranges, "start_ns")
    asks = pd.DataFrame({"thread": of_asked, "start": frames.ints(asked, "start_ns"), "row": np.arange(len(of_asked))})
    then = pd.DataFrame({"thread": of_range, "start": start, "range": np.arange(len(of_range))})
    asks = pd.merge_asof(
        asks.sort_values("start"), then.sort_values("start"), on="start", by="thread", direction="forward"
    )
    # One that is not grouped has a range of its own inside.
    asks = asks[asks["range"].notna()].astype({"range": np.int64}).sort_values("row")
    asks = asks[grouped[asks["range"]] & (frames.ints(asked, "end_ns")[asks["row"]] <= start[asks["range"]])]
    if asks.empty:
        return
    some = np.flatnonzero(grouped)
    end, called = frames.ints(ranges, "end_ns"), frames.ints(calls, "start_ns")
    inside = latest_of(of_range[some], start[some], end[some], of_call, called)
    inside = np.where(inside >= 0, some[inside], -1)
    open_ = told["kind"].isna().to_numpy() & (inside >= 0)
    # What a group holds is not told kernel by kernel where it took several.
    open_ &= np.bincount(inside[inside >= 0], minlength=len(start))[inside] == 1
    groups = _groups(asks["range"].to_numpy(), asked.take(pa.array(asks["row"].to_numpy())))
    rows = np.flatnonzero(open_ & np.isin(inside, groups.index))
    for column in groups:
        told.loc[rows, column] = groups[column].reindex(inside[rows]).to_numpy()


def _groups(group: Array, asked: pa.Table) -> pd.DataFrame:
    """What the operators of each group say together, by its number; those of one group follow each other."""
    send = frames.equals(asked, "name", "send")
    size, peer = frames.ints(asked, "bytes"), frames.ints(asked, "peer")
    sides = {
        side: pd.Series(np.where(which, 1, 0)).groupby(group).sum() for side, which in ((SEND, send), (RECEIVE, ~send))
    }
    told = pd.DataFrame(index=sides[SEND].index)
    told["kind"] = np.where(sides[SEND] == 0, RECEIVE, np.where(sides[RECEIVE] == 0, SEND, BOTH))
    for column in ("group", "group_ranks", "dtype"):
        told[column] = _shared(pd.Series(asked[column].to_pylist(), dtype=object), group)
    told["group_size"] = _shared(pd.Series(frames.ints(asked, "group_size")), group).fillna(NULL).astype(np.int64)
    known, whole = (pd.Series(column != NULL).groupby(group).all() for column in (size, peer))
    put, got = (pd.Series(np.where(which, size, 0)).groupby(group).sum() for which in (send, ~send))
    told["bytes"] = np.where(known, np.maximum(put, got), NULL)
    for column, own in (("in_bytes", put), ("out_bytes", got)):
        # As on a kernel that says it itself, a send and a receive have one size.
        told[column] = np.where(known & (told["kind"] == BOTH), own, told["bytes"])
    for column, which in (("sends", send), ("receives", ~send)):
        listed = pd.Series(peer[which].astype(str)).groupby(group[which]).agg(", ".join)
        told[column] = ("[" + listed + "]").reindex(told.index).where(whole).astype(object)
    # Whom it waits for is whom it receives from.
    counts = (told["kind"] == SEND).reindex(group).to_numpy() | ~send
    told["peer"] = _shared(pd.Series(peer).where(counts & (peer != NULL)), group).fillna(NULL).astype(np.int64)
    return told.astype({"kind": object})


def _shared(values: pd.Series, group: Array) -> pd.Series:
    """For each group the value that all its members have that have any; null without one."""
    known = values.groupby(group)
    return known.first().where(known.nunique() == 1)


def continue_back(told: pd.DataFrame, kernels: pa.Table, launched: Array, step: Array) -> None:
    """Fill in what kernels without a launch record hold, from the kernels of later steps on their stream.

    `launched`: when each was launched, `step` in which step, `NULL` where not known. Only where all steps of the record hold the same,
    a whole one is there, and the kernels take as long as those a step later.
    """
    name, names = frames.codes(kernels, "name")
    stream = frames.dense(
        *(frames.ints(kernels, key) for key in ("rank", "process", "device", "context", "stream")), name
    )
    untold = told["kind"].isna().to_numpy() & (launched == NULL)
    sends = frames.passing(name, names, lambda text: kind_of(text) in POINT_TO_POINT)
    if not (untold & sends).any():
        return
    columns = [c for c in told if c != "sequence"]
    content = frames.dense(*(pd.factorize(told[c])[0] for c in columns))
    start, duration = frames.ints(kernels, "start_ns"), frames.duration(kernels)
    for _, own in frames.together(stream):
        rows = own[np.argsort(start[own], kind="stable")]
        front = int(np.argmin(np.append(untold[rows], False)))
        if not front or not sends[rows[0]] or not told["kind"].iloc[rows[front:]].isin(POINT_TO_POINT).all():
            continue
        if (launched[rows[front:]] == NULL).any():
            continue
        period = _period(content[rows[front:]], step[rows[front:]])
        if period and _alike(duration[rows], period, front):
            later = rows[front + np.arange(-front, 0) % period]
            told.loc[rows[:front], columns] = told.loc[later, columns].to_numpy()


def _period(content: Array, step: Array) -> int | None:
    """After how many kernels they hold the same again: as many as each step launched or, without steps, the fewest that fit twice."""
    count = len(content)
    if (step != NULL).all() and count:
        sizes = np.unique(step, return_counts=True)[1]
        periods = [int(sizes[0])] if (sizes == sizes[0]).all() else []
    else:
        periods = [*range(1, count // 2 + 1)]
    return next((p for p in periods if (content[p:] == content[: count - p]).all()), None)


def _alike(duration: Array, period: int, front: int) -> bool:
    """Whether the kernels of the front take as long as those a period later."""
    # The first one may have begun before the capture did.
    own, later = duration[1:front], duration[period + 1 : period + front]
    return bool(np.minimum(own, later).sum() >= ALIKE * np.maximum(own, later).sum())
