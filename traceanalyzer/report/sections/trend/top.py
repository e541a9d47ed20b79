"""What a history says, and the state of each of its series."""

from __future__ import annotations

from typing import Any

from traceanalyzer.report.section import PageSection
from traceanalyzer.report.trend_context import TrendContext
from traceanalyzer.result.history.trend import name_of


def _view(page: TrendContext) -> dict[str, Any]:
    series = [{"name": name_of(one), "series": one, "captures": len(one.captures)} for one in page.trend.series]
    return {"trend": page.trend, "series": series}


SECTION = PageSection(
    name="top", page="trend", order=10, view=_view, template="trend-first.html.j2", styles=("trend.css",)
)
