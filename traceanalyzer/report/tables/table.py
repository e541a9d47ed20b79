"""One table of the page as data: columns of raw values, which tables.js sorts, filters, formats and copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from traceanalyzer.names import readable_name
from traceanalyzer.records import dataclass
from traceanalyzer.report.sections.words import format_duration
from traceanalyzer.units import BYTES, NS, SHARE, format_count

Kind = Literal["text", "count", "duration", "change", "bytes", "share", "rate", "ratio"]
UNITS: dict[Kind, str] = {"duration": NS, "change": NS, "bytes": BYTES, "share": SHARE, "rate": "GB/s"}
"""The units of the raw values; of times the page shows `Column.unit`."""
TIMES = ("duration", "change")
NAME_LIMIT = 65_536
"""Names stay whole, so that what is copied can be looked up elsewhere; what is longer than this is no name any more and is cut."""
MILLISECONDS_FROM = 10_000_000
"""Times are in ms where one of them is as long as this, else in µs: what is short keeps its digits."""


@dataclass(frozen=True)
class Column:
    """A column: its title, what its values are, and what it says (its tooltip).

    Values are text, or whole ns, bytes, GB/s, counts, fractions of 1 and ratios; None is "not known". A `change` is whole ns with a
    sign, and is ordered by how large it is. `short` has the texts to show where the values are too long to read; `at_least` marks
    those that are lower bounds. `each`: times of single events, not sums of many.
    """

    title: str
    kind: Kind
    about: str
    values: Sequence[Any]
    short: Sequence[str | None] | None = None
    at_least: Sequence[bool] | None = None
    each: bool = False
    is_name: bool = False

    @property
    def most(self) -> int:
        """The largest of its values, whatever their sign."""
        return max((abs(value) for value in self.values if value is not None), default=0)

    def payload(self, unit: str | None) -> dict[str, Any]:
        """`unit` is the one in which all of the column is shown; None where each value has its own."""
        data: dict[str, Any] = {
            "title": self.title,
            "kind": self.kind,
            "about": self.about,
            "values": list(self.values),
        }
        if unit:
            data["unit"] = unit
        if self.kind in UNITS:
            data["raw"] = UNITS[self.kind]
        if self.is_name:
            data["name"] = True
        if self.short is not None and any(self.short):
            data["short"] = list(self.short)
        if self.at_least is not None and any(self.at_least):
            data["atLeast"] = [row for row, least in enumerate(self.at_least) if least]
        return data


@dataclass(frozen=True)
class DataTable:
    """A table: `count` rows in all, of which the columns hold the first; they come in the order of column `order`.

    `note` says what the rows are and what is left out. `colours` has each row's swatch, which stands in the column `swatch`, and
    `ranges` the stretch of the timeline that a row is about: (from, to, group), in ns since the timeline's origin.
    """

    id: str
    title: str
    note: str
    count: int
    columns: tuple[Column, ...]
    order: int
    colours: Sequence[str] | None = None
    swatch: int = 0
    ranges: Sequence[tuple[int, int, int]] | None = None

    @property
    def rows(self) -> int:
        return len(self.columns[0].values)

    def unit(self, column: Column) -> str | None:
        """Sums of the table share one unit, times of single events another, so that figures can be compared at a glance."""
        if column.kind not in TIMES:
            return "GB/s" if column.kind == "rate" else None
        alike = (one.most for one in self.columns if one.kind in TIMES and one.each == column.each)
        return "ms" if max(alike) >= MILLISECONDS_FROM else "µs"

    def payload(self) -> dict[str, Any]:
        data: dict[str, Any] = {
            "id": self.id,
            "title": self.title,
            "order": self.order,
            "columns": [column.payload(self.unit(column)) for column in self.columns],
        }
        if self.colours is not None:
            data |= {"colours": list(self.colours), "swatch": self.swatch}
        if self.ranges is not None:
            data["ranges"] = [list(column) for column in zip(*self.ranges, strict=True)]
        return data


def names(title: str, about: str, values: Sequence[str | None], nameless: str | None = None) -> Column:
    """A column of names: whole, and with what a person reads of a C++ name. `nameless` stands for nulls."""
    full = [_cut(value) if value else nameless for value in values]
    short = [readable_name(value) if value else nameless for value in values]
    differing = [s if s != f else None for s, f in zip(short, full, strict=True)]
    return Column(title, "text", about, full, differing, is_name=True)


def _cut(text: str) -> str:
    return text if len(text) <= NAME_LIMIT else text[: NAME_LIMIT - 1] + "…"


def left_out(what: str, shown: int, count: int, total_ns: int) -> str:
    """The clause about rows that are not there: "The 1,000 with the largest totals; the other 52 add up to 3.4 ms. "."""
    if shown >= count:
        return ""
    rest = format_duration(total_ns)
    return f"The {format_count(shown)} {what}; the other {format_count(count - shown)} add up to {rest}. "
