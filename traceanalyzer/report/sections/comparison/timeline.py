"""The timelines of both sides, one above the other."""

from __future__ import annotations

from typing import Any

from traceanalyzer.report.comparison_context import ComparisonContext
from traceanalyzer.report.section import PageSection
from traceanalyzer.report.sections.trace import timeline


def _view(page: ComparisonContext) -> dict[str, Any] | None:
    return None if page.timeline is None else {"timeline": page.timeline, "timeline_ranks": None}


SECTION = PageSection(
    name="timeline",
    page="comparison",
    title="Timelines",
    order=60,
    view=_view,
    styles=timeline.SECTION.styles,
    scripts=timeline.SECTION.scripts,
    by_slices=True,
)
