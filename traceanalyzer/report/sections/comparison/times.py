"""How long units of work took on either side."""

from __future__ import annotations

from typing import Any

from traceanalyzer.report.comparison_context import ComparisonContext
from traceanalyzer.report.section import PageSection


def _view(page: ComparisonContext) -> dict[str, Any] | None:
    charts = page.charts.every
    return {"charts": charts} if charts else None


SECTION = PageSection(
    name="times", page="comparison", title="Times", order=20, view=_view, styles=("charts.css",), scripts=("charts.js",)
)
