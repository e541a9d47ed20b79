"""What the sections of the page of a history are made from."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property

from markupsafe import Markup

from traceanalyzer.records import dataclass
from traceanalyzer.report.charts import Charts
from traceanalyzer.report.charts.trend import Group, trend_charts
from traceanalyzer.report.packing import inline_json
from traceanalyzer.report.sections.page_data import page_data
from traceanalyzer.report.timeline.timeline import Timeline
from traceanalyzer.result.history.entry import Entry
from traceanalyzer.result.history.trend import Trend

_LINK = re.compile(r"https?://|[^:/\\\x00-\x20][^:\\]*$")
"""Browsers leave out blanks and control characters before a link."""


@dataclass
class TrendContext:
    """Of a history: what it comes to, and all of its entries. There is no timeline."""

    trend: Trend
    entries: Sequence[Entry]
    given_title: str | None
    timeline: Timeline | None = None

    @property
    def title(self) -> str:
        return self.given_title or "History"

    @property
    def tool(self) -> Mapping[str, str]:
        return self.trend.tool

    @cached_property
    def by_id(self) -> dict[str, Entry]:
        return {entry.id: entry for entry in self.entries}

    def link(self, entry: Entry) -> str | None:
        """Where the report of a capture is, if that is a page of the web or a file beside the history: a history may come from
        anybody."""
        if entry.report is None or not _LINK.match(entry.report):
            return None
        return entry.report

    @cached_property
    def groups(self) -> list[Group]:
        """The series, each with the entries of its captures."""
        return [(series, [self.by_id[id] for id in series.captures]) for series in self.trend.series]

    @cached_property
    def charts(self) -> Charts:
        return Charts([], [], trend_charts(self.groups), [])

    @cached_property
    def page_data(self) -> Markup:
        return inline_json(page_data([]))
