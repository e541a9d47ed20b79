"""Sends and receives that share a kernel, as pipelines issue them.

`batch_isend_irecv` hands the library several at once, and one kernel serves them all. PyTorch describes none of them on that kernel:
their operators lie before the range `nccl:coalesced` in which the kernel is launched. A rank that waits much runs ahead on its host, so
that many of its kernels were launched before the capture; where its steps are alike, what is recorded tells those too.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL
from traceanalyzer.columns.grouped import Groups, text_codes
from traceanalyzer.intervals import Array, latest_of
from traceanalyzer.ranks.collectives.collective_names import kind_of
from traceanalyzer.ranks.collectives.told import Told
from traceanalyzer.ranks.groups.peers import BOTH, RECEIVE, SEND
from traceanalyzer.ranks.parallelism.parallelism_names import POINT_TO_POINT

COALESCED = "nccl:coalesced"

ALIKE = 0.75
"""How much of the time of kernels a step apart must be the same for these steps to be alike: waits vary by less from step to step, and
where a step is taken for its neighbour's, or cut short, its long waits lie beside short ones."""


def describe(told: Told, calls: pa.Table, host_ranges: pa.Table, collectives: pa.Table) -> None:
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
    # One that is not grouped has a range of its own inside.
    then = _first_after(of_range, start, of_asked, frames.ints(asked, "start_ns"))
    held = (then >= 0) & grouped[then] & (frames.ints(asked, "end_ns") <= start[then])
    asks = np.flatnonzero(held)
    if not len(asks):
        return
    some = np.flatnonzero(grouped)
    end, called = frames.ints(ranges, "end_ns"), frames.ints(calls, "start_ns")
    inside = latest_of(of_range[some], start[some], end[some], of_call, called)
    inside = np.where(inside >= 0, some[inside], -1)
    open_ = ~told.has_kind & (inside >= 0)
    # What a group holds is not told kernel by kernel where it took several.
    open_ &= np.bincount(inside[inside >= 0], minlength=len(start))[inside] == 1
    groups = Groups(then[asks])
    said = _groups(groups, asked.take(pa.array(asks)))
    at = groups.find(inside)
    rows = np.flatnonzero(open_ & (at >= 0))
    told.fill(rows, said, at[rows], [*said.texts, *said.numbers])


def _first_after(thread: Array, start: Array, of: Array, time: Array) -> Array:
    """For each (of, time) the first range of that thread that starts at that time or later, -1 without one."""
    found = np.full(len(of), -1, np.int64)
    for (one,), asking in frames.together(of):
        mine = np.flatnonzero(thread == one)
        mine = mine[np.argsort(start[mine], kind="stable")]
        found[asking] = np.append(mine, -1)[np.searchsorted(start[mine], time[asking])]
    return found


def _groups(groups: Groups, asked: pa.Table) -> Told:
    """What the operators of each group say together."""
    send = frames.equals(asked, "name", "send")
    size, peer = frames.ints(asked, "bytes"), frames.ints(asked, "peer")
    sends, receives = groups.count(send), groups.count(~send)
    kind = np.where(sends == 0, RECEIVE, np.where(receives == 0, SEND, BOTH)).astype(object)
    texts = {"kind": kind}
    for column in ("group", "group_ranks", "dtype"):
        code, values = text_codes(np.array(asked[column].to_pylist(), object))
        shared = _shared(groups, np.where(code < 0, NULL, code))
        texts[column] = np.array([*values, None], object)[np.where(shared == NULL, -1, shared)]
    numbers = {"group_size": _shared(groups, frames.ints(asked, "group_size"))}
    sized, whole = groups.all(size != NULL), groups.all(peer != NULL)
    put, got = (groups.sum(np.where(which & (size != NULL), size, 0)) for which in (send, ~send))
    numbers["bytes"] = np.where(sized, np.maximum(put, got), NULL)
    for column, own in (("in_bytes", put), ("out_bytes", got)):
        # As on a kernel that says it itself, a send and a receive have one size.
        numbers[column] = np.where(sized & (kind == BOTH), own, numbers["bytes"])
    for column, which in (("sends", send), ("receives", ~send)):
        lists: list[list[str]] = [[] for _ in range(len(groups))]
        for of, other in zip(groups.of[which].tolist(), peer[which].tolist(), strict=True):
            lists[of].append(str(other))
        listed = [f"[{', '.join(own)}]" if own and all_ else None for own, all_ in zip(lists, whole, strict=True)]
        texts[column] = np.array(listed, object)
    # Whom it waits for is whom it receives from.
    counts = (kind == SEND)[groups.of] | ~send
    numbers["peer"] = _shared(groups, np.where(counts, peer, NULL))
    return Told(texts, numbers)


def _shared(groups: Groups, values: Array) -> Array:
    """For each group the value that all its members have that have any; `NULL` without one."""
    there = values != NULL
    low, high = groups.min(np.where(there, values, np.iinfo(np.int64).max)), groups.max(values)
    return np.where(low == high, low, NULL)


def continue_back(told: Told, kernels: pa.Table, launched: Array, step: Array) -> None:
    """Fill in what kernels without a launch record hold, from the kernels of later steps on their stream.

    `launched`: when each was launched, `step` in which step, `NULL` where not known. Only where all steps of the record hold the same,
    a whole one is there, and the kernels take as long as those a step later.
    """
    name, names = frames.codes(kernels, "name")
    stream = frames.dense(
        *(frames.ints(kernels, key) for key in ("rank", "process", "device", "context", "stream")), name
    )
    kinds = told.texts["kind"]
    untold = ~told.has_kind & (launched == NULL)
    sends = frames.passing(name, names, lambda text: kind_of(text) in POINT_TO_POINT)
    if not (untold & sends).any():
        return
    columns = [c for c in (*told.texts, *told.numbers) if c != "sequence"]
    content = frames.dense(*(text_codes(told.texts[c])[0] if c in told.texts else told.numbers[c] for c in columns))
    paired = np.array([kind in POINT_TO_POINT for kind in kinds.tolist()], bool)
    start, duration = frames.ints(kernels, "start_ns"), frames.duration(kernels)
    for _, own in frames.together(stream):
        rows = own[np.argsort(start[own], kind="stable")]
        front = int(np.argmin(np.append(untold[rows], False)))
        if not front or not sends[rows[0]] or not paired[rows[front:]].all():
            continue
        if (launched[rows[front:]] == NULL).any():
            continue
        period = _period(content[rows[front:]], step[rows[front:]])
        if period and _alike(duration[rows], period, front):
            later = rows[front + np.arange(-front, 0) % period]
            told.fill(rows[:front], told, later, columns)
            paired[rows[:front]] = paired[later]


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
