"""The captures over time."""

from __future__ import annotations

from typing import Any

from traceanalyzer.report.section import PageSection
from traceanalyzer.report.trend_context import TrendContext


def _view(page: TrendContext) -> dict[str, Any] | None:
    charts = page.charts.every
    return {"charts": charts} if charts else None


SECTION = PageSection(
    name="charts",
    page="trend",
    title="Over time",
    order=30,
    view=_view,
    template="trend-charts.html.j2",
    styles=("charts.css",),
    scripts=("charts.js",),
)
