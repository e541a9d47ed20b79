"""Which sides have no timeline, said where it would stand."""

from __future__ import annotations

from typing import Any

from traceanalyzer.report.comparison_context import ComparisonContext
from traceanalyzer.report.section import PageSection


def _view(page: ComparisonContext) -> dict[str, Any] | None:
    sides = [side.title for side in page.compared if side.tables is None]
    return {"without_timeline": sides} if sides else None


SECTION = PageSection(name="without-timeline", page="comparison", order=61, view=_view)
