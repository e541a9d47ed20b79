"""What NCCL's own calls say of the kernels that they launch: kind, size and communicator.

A call outside of a group launches before it returns. Those of a group (`ncclGroupStart` to `ncclGroupEnd`, which nest) are launched
when the outermost one ends. What several calls ask for is put on a kernel only where it is the only one that they launched.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL
from traceanalyzer.columns.grouped import Groups, Names, known, text_codes
from traceanalyzer.intervals import Array, latest_of
from traceanalyzer.ranks.collectives.collective_names import kind_of
from traceanalyzer.ranks.collectives.told import Told
from traceanalyzer.ranks.groups.peers import BOTH, RECEIVE, SEND

PREFIX = "nccl"
START, END = "ncclGroupStart", "ncclGroupEnd"
_THREAD = ("rank", "process", "thread")
_SIZES = ("bytes", "in_bytes", "out_bytes")


def describe(told: Told, calls: pa.Table, host_ranges: pa.Table, collectives: pa.Table) -> None:
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
    units = Groups(unit)
    said = _units(units, asked)
    launched = np.bincount(inside[inside >= 0], minlength=int(unit.max()) + 1)
    place = units.find(inside)
    rows = np.flatnonzero(~told.has_kind & (place >= 0) & (inside >= 0))
    if not len(rows):
        return
    at = place[rows]
    alone = launched[inside[rows]] == 1
    # Several kernels of several calls: which is whose is not told.
    sure = alone | (units.size[at] == 1)
    told.fill(rows[sure], said, at[sure], ("kind", "group", "group_size"))
    told.fill(rows[alone], said, at[alone], _SIZES)


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


def _units(units: Groups, asked: pa.Table) -> Told:
    """What the calls of each unit say together; what they do not agree on is None, or `NULL`."""
    kinds = np.array([kind_of(name) for name in asked["name"].to_pylist()], object)
    send, receive = kinds == SEND, kinds == RECEIVE
    sends, receives = units.count(send), units.count(receive)
    one_way = np.where(receives == 0, SEND, np.where(sends == 0, RECEIVE, BOTH)).astype(object)
    kind = np.where(sends + receives == units.size, one_way, _sole_text(units, kinds))
    group = _sole_text(units, np.array(asked["group"].to_pylist(), object))
    size = frames.ints(asked, "group_size")
    group_size = np.where(units.min(size) == units.max(size), units.min(size), NULL)
    numbers = {"group_size": group_size}
    sure = known(kind) & known(group)
    for column in _SIZES:
        each = frames.ints(asked, column)
        numbers[column] = np.where(units.all(each != NULL) & sure, units.sum(np.where(each == NULL, 0, each)), NULL)
    both = (kind == BOTH) & (numbers["bytes"] != NULL)
    if both.any():
        each = frames.ints(asked, "bytes")
        for column, which in (("in_bytes", send), ("out_bytes", receive)):
            numbers[column] = np.where(both, units.sum(np.where(which, each, 0)), numbers[column])
        larger = np.maximum(numbers["in_bytes"], numbers["out_bytes"])
        numbers["bytes"] = np.where(both, larger, numbers["bytes"])
    return Told({"kind": kind, "group": group}, numbers)


def _sole_text(units: Groups, values: Names) -> Names:
    """For each unit the text that all its calls have; None where one has none or another."""
    code, texts = text_codes(values)
    low, high = units.min(code), units.max(code)
    return np.array([*texts, None], object)[np.where(low == high, low, -1)]
