"""What NCCL's own calls say of the kernels that they launch: kind, size and communicator.

A call outside of a group launches before it returns. Those of a group (`ncclGroupStart` to `ncclGroupEnd`, which nest) are launched
when the outermost one ends. What several calls ask for is put on a kernel only where it is the only one that they launched.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL
from traceanalyzer.intervals import Array, latest_of
from traceanalyzer.ranks.collectives.collective_names import kind_of
from traceanalyzer.ranks.collectives.peers import BOTH, RECEIVE, SEND

PREFIX = "nccl"
START, END = "ncclGroupStart", "ncclGroupEnd"
_THREAD = ("rank", "process", "thread")
_SIZES = ("bytes", "in_bytes", "out_bytes")


def describe(told: pd.DataFrame, calls: pa.Table, host_ranges: pa.Table, collectives: pa.Table) -> None:
    """Fill in what NCCL says of kernels without arguments. `told` and `calls` have a row a kernel, as in `communication`."""
    asked = collectives.filter(pc.is_valid(collectives["thread"]))
    asked = asked.filter(pa.array(frames.where(asked, "name", lambda name: name.startswith(PREFIX))))
    if not asked.num_rows:
        return
    groups = host_ranges.filter(pa.array(frames.equals(host_ranges, "name", START, END)))
    tables = (asked, groups, calls)
    thread = frames.dense(*(np.concatenate([frames.ints(table, key) for table in tables]) for key in _THREAD))
    of_asked, of_group, of_call = np.split(thread, np.cumsum([table.num_rows for table in tables])[:-1])
    start, end, called = (*(frames.ints(asked, c) for c in ("start_ns", "end_ns")), frames.ints(calls, "start_ns"))
    # Units of work that launch together: each call, or all calls of a group. Calls come first.
    unit = np.arange(asked.num_rows)
    inside = latest_of(of_asked, start, end, of_call, called)
    if groups.num_rows:
        ends, opened = _outermost(groups, of_group)
        end_start, end_end = (frames.ints(groups, c)[ends] for c in ("start_ns", "end_ns"))
        grouped = latest_of(of_group[ends], opened, end_start, of_asked, start)
        unit = np.where(grouped >= 0, len(unit) + grouped, unit)
        at = latest_of(of_group[ends], end_start, end_end, of_call, called)
        inside = np.where(at >= 0, len(start) + at, np.where(inside >= 0, unit[inside], -1))
    said = _units(unit, asked)
    launched = np.bincount(inside[inside >= 0], minlength=int(unit.max()) + 1)
    open_ = told["kind"].isna().to_numpy() & np.isin(inside, said.index) & (inside >= 0)
    rows = np.flatnonzero(open_)
    if not len(rows):
        return
    found = said.reindex(inside[rows])
    alone = launched[inside[rows]] == 1
    # Several kernels of several calls: which is whose is not told.
    sure = alone | (found["calls"].to_numpy() == 1)
    for column in ("kind", "group", "group_size"):
        told.loc[rows[sure], column] = found[column].to_numpy()[sure]
    for column in _SIZES:
        told.loc[rows[alone], column] = found[column].to_numpy()[alone]


def _outermost(groups: pa.Table, thread: Array) -> tuple[Array, Array]:
    """Rows of `groups` that end an outermost group, sorted by thread and start, and when each of these groups was opened."""
    start = frames.ints(groups, "start_ns")
    order = np.lexsort((start, thread))
    step = np.where(frames.equals(groups, "name", START), 1, -1)[order]
    ends: list[int] = []
    opened: list[int] = []
    for first, last in _runs(thread[order]):
        depth = np.cumsum(step[first:last])
        # A group that was open when recording began ends below 0: count from there.
        depth -= np.minimum(np.minimum.accumulate(depth), 0)
        begins = first + np.flatnonzero((depth == 1) & (step[first:last] > 0))
        closes = first + np.flatnonzero((depth == 0) & (step[first:last] < 0))
        at = np.searchsorted(begins, closes) - 1
        # Each end closes the group opened last, unless that has been closed.
        own = (at >= 0) & np.append(True, np.diff(at) > 0)
        ends += order[closes[own]].tolist()
        opened += start[order[begins[at[own]]]].tolist()
    return np.array(ends, np.int64), np.array(opened, np.int64)


def _runs(values: Array) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(values)) + 1
    return list(pairwise([0, *edges.tolist(), len(values)]))


def _units(unit: Array, asked: pa.Table) -> pd.DataFrame:
    """What the calls of each unit say together, by its number; what they do not agree on is null."""
    kinds = pd.Series([kind_of(name) for name in asked["name"].to_pylist()], dtype=object)
    told = pd.DataFrame({"calls": kinds.groupby(unit).size()})
    sends, receives = ((kinds == kind).groupby(unit).sum() for kind in (SEND, RECEIVE))
    alike = kinds.groupby(unit).nunique(dropna=False) == 1
    kind = kinds.groupby(unit).first().where(alike)
    told["kind"] = kind.where(
        sends + receives != told["calls"], np.where(receives == 0, SEND, np.where(sends == 0, RECEIVE, BOTH))
    )
    for column, values in (
        ("group", pd.Series(asked["group"].to_pylist(), dtype=object)),
        ("group_size", pd.Series(frames.ints(asked, "group_size")).replace(NULL, np.nan)),
    ):
        known = values.groupby(unit)
        told[column] = known.first().where((known.nunique() == 1) & (known.count() == told["calls"]))
    told["group_size"] = told["group_size"].fillna(NULL).astype(np.int64)
    for column in _SIZES:
        size = pd.Series(frames.ints(asked, column))
        whole = (size != NULL).groupby(unit).all() & told["kind"].notna() & told["group"].notna()
        told[column] = np.where(whole, size.groupby(unit).sum(), NULL)
    both = told["kind"] == BOTH
    if both.any():
        way = {"in_bytes": (kinds == SEND).to_numpy(), "out_bytes": (kinds == RECEIVE).to_numpy()}
        sized = frames.ints(asked, "bytes")
        for column, which in way.items():
            one_way = pd.Series(np.where(which, sized, 0)).groupby(unit).sum()
            told[column] = np.where(both & (told["bytes"] != NULL), one_way, told[column])
        told["bytes"] = np.where(
            both & (told["bytes"] != NULL), told[["in_bytes", "out_bytes"]].max(axis=1), told["bytes"]
        )
    return told
