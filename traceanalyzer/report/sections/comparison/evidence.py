"""What kinds of evidence measured, on both sides."""

from __future__ import annotations

from typing import Any

from traceanalyzer.report.comparison_context import ComparisonContext
from traceanalyzer.report.section import PageSection
from traceanalyzer.result.comparing.figures import figure_rows


def _view(page: ComparisonContext) -> dict[str, Any] | None:
    rows = figure_rows(page.comparison.figures)
    return {"rows": rows} if rows else None


SECTION = PageSection(
    name="evidence", page="comparison", title="Figures", order=35, view=_view, template="comparison-evidence.html.j2"
)
