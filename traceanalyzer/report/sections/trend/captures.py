"""The last captures, with links to their reports."""

from __future__ import annotations

from typing import Any

from traceanalyzer.report.section import PageSection
from traceanalyzer.report.trend_context import TrendContext
from traceanalyzer.result.history.trend import name_of

MOST = 200


def _view(page: TrendContext) -> dict[str, Any] | None:
    if not page.entries:
        return None
    names = {
        id: name_of(one) for one in page.trend.series for id in (*one.captures, *(left.id for left in one.left_out))
    }
    noisy = {id for one in page.trend.series for id in one.noisy}
    latest = list(page.entries)[::-1]
    return {
        "entries": latest[:MOST],
        "left": max(len(latest) - MOST, 0),
        "names": names,
        "links": {entry.id: page.link(entry) for entry in latest[:MOST]},
        "noisy": noisy,
        "several": len(page.trend.series) > 1,
        "unit": "step" if {entry.unit for entry in latest} <= {None, "step"} else "unit",
    }


SECTION = PageSection(
    name="captures", page="trend", title="Captures", order=40, view=_view, template="trend-captures.html.j2"
)
