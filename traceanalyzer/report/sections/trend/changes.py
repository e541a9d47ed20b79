"""The changes of all series, the latest first."""

from __future__ import annotations

from typing import Any

from traceanalyzer.report.section import PageSection
from traceanalyzer.report.trend_context import TrendContext
from traceanalyzer.result.history.trend import name_of

MOST = 200


def _view(page: TrendContext) -> dict[str, Any] | None:
    found = [(one, shift, page.by_id[shift.after]) for one in page.trend.series for shift in one.shifts]
    found.sort(key=lambda row: -row[2].time_ns)
    rows = [
        {"series": name_of(one), "shift": shift, "after": after, "link": page.link(after)}
        for one, shift, after in found
    ]
    if not rows:
        return None
    return {"rows": rows[:MOST], "left": max(len(rows) - MOST, 0), "several": len(page.trend.series) > 1}


SECTION = PageSection(
    name="changes", page="trend", title="Changes", order=20, view=_view, template="trend-changes.html.j2"
)
