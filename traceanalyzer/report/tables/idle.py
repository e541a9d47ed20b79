"""The longest idle stretches of the GPUs: when, why, what the host did, and what ended them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.columns import Ints, encoded, integers
from traceanalyzer.columns.frames import together
from traceanalyzer.columns.in_blocks import taken
from traceanalyzer.model.tables import Tables
from traceanalyzer.report.palette import BY_KEY
from traceanalyzer.report.tables.table import Column, DataTable, left_out, names
from traceanalyzer.report.timeline.lanes import table_or_none
from traceanalyzer.report.timeline.timeline import Layout
from traceanalyzer.units import format_share
from traceanalyzer.vocabulary.lines import UNATTRIBUTED, cause_of_line, cause_words, idle_line

_SHOWN = ["cause", "place", "range_name", "call_name", "previous_op_name", "next_op_name"]


def gaps(tables: Tables, timeline: Layout, shown: str, most: int) -> DataTable | None:
    """Idle stretches of the GPUs on the timeline, the longest first."""
    table = table_or_none(tables, "gaps")
    groups = {(g.rank, g.device): at for at, g in enumerate(timeline.groups) if g.device is not None}
    if table is None or not groups:
        return None
    start, end = integers(table, "start_ns"), integers(table, "end_ns")
    first, group = _stretches(table, start, end, groups)
    last = np.append(first[1:], len(start)) - 1
    length = end.take(last) - start.take(first)
    on_timeline = group >= 0
    ranked = length if on_timeline.all() else length[on_timeline]
    if not len(ranked):
        return None
    # Only what is as long as the last of these can be among them.
    least = np.partition(ranked, -most)[-most] if most < len(ranked) else 0
    at = np.flatnonzero(on_timeline & (length >= least))
    at = at[np.lexsort((start[first[at]], -length[at]))][:most]
    origin = np.array([timeline.origins[timeline.groups[g].rank] for g in group[at].tolist()], np.int64)
    begin, until = (start[first[at]] - origin).tolist(), (end[last[at]] - origin).tolist()
    # Of these alone the parts are looked at.
    parts_each = last[at] + 1 - first[at]
    begins = np.cumsum(parts_each) - parts_each
    inside = np.arange(int(parts_each.sum())) + np.repeat(first[at] - begins, parts_each)
    main, ascribed = _main_parts(
        begins, encoded(table.select(["cause"]).take(inside), "cause")[0], end[inside] - start[inside]
    )
    parts = table.select(_SHOWN).take(pa.array(inside[main]))
    causes = [BY_KEY.get(idle_line(cause), BY_KEY[UNATTRIBUTED.name]) for cause in _texts(parts, "cause")]
    shares = (ascribed / length[at]).tolist()
    doing = pc.coalesce(*(parts[c].cast(pa.string()) for c in ("place", "range_name", "call_name"))).to_pylist()
    several = len(groups) > 1
    labels = [timeline.groups[g].label for g in group[at].tolist()]
    columns = (
        Column("when", "duration", "Start, since the first event of the timeline", begin),
        *([Column("GPU", "text", "Which GPU stood idle", labels)] if several else ()),
        Column("length", "duration", "How long nothing ran on the GPU", length[at].tolist(), each=True),
        Column(
            "cause",
            "text",
            "The main cause; with its share of the stretch where there are several",
            [
                cause_words(cause_of_line(cause.key)) + (f" {format_share(share)}" if share < 0.995 else "")
                for cause, share in zip(causes, shares, strict=True)
            ],
        ),
        names("the host was in", "What the launching thread did in the longest part of that", doing),
        names("after", "The GPU operation before it", _texts(parts, "previous_op_name")),
        names("ended by", "The GPU operation that ended it", _texts(parts, "next_op_name")),
    )
    return DataTable(
        id="gaps",
        title="Idle stretches",
        note=left_out("longest", len(at), len(ranked), int(ranked.sum() - length[at].sum())) + shown,
        count=len(ranked),
        columns=columns,
        order=2 if several else 1,
        colours=[cause.css for cause in causes],
        swatch=3 if several else 2,
        ranges=list(zip(begin, until, group[at].tolist(), strict=True)),
    )


def _stretches(table: pa.Table, start: Ints, end: Ints, groups: dict[tuple[int, int], int]) -> tuple[Ints, Ints]:
    """The first row of each idle stretch, whose parts follow one another, and its group on the timeline (-1: none)."""
    new = np.ones(table.num_rows, np.bool_)
    np.not_equal(start[1:], end[:-1], out=new[1:])
    for column in ("rank", "device", "gap"):
        values = integers(table, column)
        if 0 not in values.strides:  # all of them have one value in memory
            new[1:] |= values[1:] != values[:-1]
    first = np.flatnonzero(new)
    group = np.full(len(first), -1, np.int64)
    for (rank, device), rows in together(*(taken(integers(table, column), first) for column in ("rank", "device"))):
        group[rows] = groups.get((rank, device), -1)
    return first, group


def _main_parts(first: Ints, cause: Ints, length: Ints) -> tuple[Ints, Ints]:
    """For each stretch, given by its first row, the longest part of the cause that most of it has, and the time of that cause."""
    stretch = np.repeat(np.arange(len(first)), np.diff(first, append=len(length)))
    _, together = np.unique(np.column_stack((stretch, cause)), axis=0, return_inverse=True)
    time = np.zeros(together.max() + 1, dtype=np.int64)
    np.add.at(time, together.ravel(), length)
    of_cause = time[together.ravel()]
    main: Ints = np.lexsort((-length, -of_cause, stretch))[first]
    return main, of_cause[main]


def _texts(table: pa.Table, column: str) -> list[str | None]:
    texts: list[str | None] = table[column].cast(pa.string()).to_pylist()
    return texts
