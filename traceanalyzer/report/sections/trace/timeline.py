"""The timeline of all GPUs and host threads."""

from __future__ import annotations

from typing import Any

from traceanalyzer.report.context import ReportContext
from traceanalyzer.report.section import PageSection

SCRIPTS = (
    "timeline-data.js",
    "timeline-layout.js",
    "timeline-columns.js",
    "timeline-paint.js",
    "timeline-links.js",
    "timeline-search.js",
    "timeline-names.js",
    "timeline-hit.js",
    "timeline-details.js",
    "timeline-minimap.js",
    "timeline-selection.js",
    "timeline-input.js",
    "timeline-keys.js",
    "timeline.js",
    "timeline-start.js",
    "perfetto.js",
)
"""The last ones start it, and follow the address of a page without one too."""


def _view(page: ReportContext) -> dict[str, Any] | None:
    if page.timeline is None:
        return None
    return {"timeline": page.timeline, "timeline_ranks": page.timeline_ranks}


SECTION = PageSection(
    name="timeline", title="Timeline", order=40, view=_view, styles=("timeline.css",), scripts=SCRIPTS, by_slices=True
)
