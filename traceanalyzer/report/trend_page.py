"""A history as a page: one HTML file like the report."""

from __future__ import annotations

from collections.abc import Sequence

from traceanalyzer.report.registry import sections_of
from traceanalyzer.report.sections.glossary import GLOSSARY
from traceanalyzer.report.trend_context import TrendContext
from traceanalyzer.report.walk import Walk, Words
from traceanalyzer.result.history.entry import Entry
from traceanalyzer.result.history.trend import Trend


def render_trend_html(trend: Trend, entries: Sequence[Entry], *, title: str | None = None) -> bytes:
    """The page as UTF-8 HTML; the same history gives the same bytes. Its size grows with the number of series and hardly with that
    of captures."""
    words = Words("history", f"trend schema {trend.schema_version}", GLOSSARY)
    return Walk(sections_of("trend"), words).page(TrendContext(trend, entries, title), 0).page
