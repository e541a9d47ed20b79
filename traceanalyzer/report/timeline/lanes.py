"""What the timeline is made of: groups of lanes, lanes of rows, and where the tables behind them come from."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import field
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from traceanalyzer.columns import Ints, integers
from traceanalyzer.columns.in_blocks import in_a_row
from traceanalyzer.columns.spill import forget
from traceanalyzer.model.tables import Tables
from traceanalyzer.records import dataclass
from traceanalyzer.report.timeline.name_table import Names
from traceanalyzer.report.timeline.points import Points
from traceanalyzer.report.timeline.slices import Slices, make_slices
from traceanalyzer.result.sections import Lane as EvidenceLane

RankName = Callable[[int], str]
Key = tuple[int, ...]
Span = tuple[int, int]


@dataclass
class Lane:
    """One labelled lane of rows. A ledger covers its whole window and is drawn as shares when zoomed out; a counter has a unit."""

    label: str
    rows: Sequence[Slices | Points]
    kind: Literal["ledger", "slices", "counter"] = "slices"
    unit: str | None = None

    @property
    def content(self) -> str:
        """What is in it, as its label says; the same for all streams."""
        return "streams" if self.label.startswith("stream ") else self.label


@dataclass
class Group:
    """The lanes of one GPU (`device` set), of one host thread or of counters; `window` is that of its events, in the file's own ns.

    Of a `folded` one the page first shows the ledger only.
    """

    label: str
    rank: int
    device: int | None
    window: Span
    lanes: list[Lane] = field(default_factory=list)
    folded: bool = False

    @property
    def slices(self) -> list[Slices]:
        return [row for lane in self.lanes for row in lane.rows if isinstance(row, Slices)]

    @property
    def points(self) -> list[Points]:
        return [row for lane in self.lanes for row in lane.rows if isinstance(row, Points)]


@dataclass
class Source:
    """What all lanes are read from, and where they put their names and notes about what is left out.

    `lanes` are those of other kinds of evidence, `declared` the tables that lanes say they read; None: any.
    """

    tables: Tables
    rank_name: RankName
    names: Names = field(default_factory=Names)
    notes: list[str] = field(default_factory=list)
    lanes: Sequence[EvidenceLane] = ()
    declared: Collection[str] | None = None

    def table(self, name: str) -> pa.Table | None:
        """A table with rows, or None. Raises KeyError for one that no lane declares in its `TABLES`, or that there is not."""
        if self.declared is not None and name not in self.declared:
            raise KeyError(f"no lane declares that it reads '{name}'")
        return table_or_none(self.tables, name)

    def leave_out(self, count: int, what: str) -> None:
        """Note what is not shown, unless there is none of it."""
        self.notes += not_shown(count, what)


def not_shown(count: int, what: str) -> list[str]:
    """The note about that; none when there is none of it."""
    return [f"Not shown: {what} ({count:,})."] if count else []


def table_or_none(tables: Tables, name: str) -> pa.Table | None:
    """A table with rows, or None. Raises KeyError for a name that no table has: nothing is left out because of a misspelling."""
    # What was read of others need not stay in memory.
    forget()
    table = tables.table(name)
    return table if table.num_rows else None


def slices_of(
    table: pa.Table,
    rows: Ints | slice,
    name: NDArray[np.uint32],
    colour: NDArray[np.uint8],
    link: NDArray[np.uint32] | None = None,
) -> Slices:
    """The slices of some rows of a table; `name`, `colour` and `link` are of all of its rows."""
    start, end = integers(table, "start_ns"), integers(table, "end_ns")
    if not isinstance(rows, slice):  # most stand together, and then nothing has to be copied
        rows = in_a_row(rows)
    return make_slices(start[rows], end[rows], name[rows], colour[rows], None if link is None else link[rows])


def extent(lanes: list[Lane]) -> Span:
    """From the first start to the last end of what is in the lanes; (0, 0) when nothing is."""
    bounds = [_bounds(row) for lane in lanes for row in lane.rows if len(row)]
    return (min(low for low, _ in bounds), max(high for _, high in bounds)) if bounds else (0, 0)


def rank_spans(groups: list[Group]) -> dict[int, Span]:
    """For each rank of the tables from its first event to the end of its last one, in the file's own ns."""
    spans: dict[int, Span] = {}
    for group in groups:
        low, high = spans.get(group.rank, group.window)
        spans[group.rank] = min(low, group.window[0]), max(high, group.window[1])
    return spans


def _bounds(row: Slices | Points) -> Span:
    if isinstance(row, Points):
        return int(row.time[0]), int(row.time[-1])
    return int(row.start[0]), row.last
