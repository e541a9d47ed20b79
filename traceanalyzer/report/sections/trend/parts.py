"""Single lines of the ledger and single rules' findings that changed, the latest first."""

from __future__ import annotations

from typing import Any

from traceanalyzer.report.section import PageSection
from traceanalyzer.report.trend_context import TrendContext
from traceanalyzer.result.history.trend import name_of

MOST = 100


def _view(page: TrendContext) -> dict[str, Any] | None:
    rows = [
        {"series": name_of(one), "part": part, "after": page.by_id[part.after]}
        for one in page.trend.series
        for part in one.parts
    ]
    if not rows:
        return None
    rows.sort(key=lambda row: -row["after"].time_ns)  # type: ignore[attr-defined]
    return {"rows": rows[:MOST], "left": max(len(rows) - MOST, 0), "several": len(page.trend.series) > 1}


SECTION = PageSection(
    name="parts", page="trend", title="Lines and findings", order=35, view=_view, template="trend-parts.html.j2"
)
