"""The captures over time."""

from __future__ import annotations

from typing import Any

from traceanalyzer.report.section import PageSection
from traceanalyzer.report.trend_context import TrendContext


def _view(page: TrendContext) -> dict[str, Any] | None:
    charts = page.charts.every
    return {"charts": charts} if charts else None


SECTION = PageSection(
    name="times", page="trend", title="Charts", order=30, view=_view, styles=("charts.css",), scripts=("charts.js",)
)
