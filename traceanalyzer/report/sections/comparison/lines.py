"""Where the difference comes from, line by line of the ledger."""

from __future__ import annotations

from typing import Any

from traceanalyzer.report.comparison_context import ComparisonContext
from traceanalyzer.report.section import PageSection
from traceanalyzer.report.sections.comparison_view import line_views, sum_of_lines


def _view(page: ComparisonContext) -> dict[str, Any] | None:
    lines = line_views(page.comparison)
    if not lines:
        return None
    return {"lines": lines, "sum": sum_of_lines(page.comparison), "sides": page.sides, "unit": page.unit}


SECTION = PageSection(
    name="lines", page="comparison", title="Difference", order=30, view=_view, template="comparison-lines.html.j2"
)
