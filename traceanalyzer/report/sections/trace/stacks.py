"""Where the time goes, by call stack."""

from __future__ import annotations

from typing import Any

from traceanalyzer.report.context import ReportContext
from traceanalyzer.report.section import PageSection
from traceanalyzer.report.trees.view import call_trees_view


def _view(page: ReportContext) -> dict[str, Any] | None:
    if page.tables is None:
        return None
    bound_by = page.result.verdict.bound_by
    trees = call_trees_view(page.forest, page.tables, page.rank_name, page.budget.nodes, bound_by)
    return {"call_trees": trees, "timeline_ranks": page.timeline_ranks} if trees else None


SECTION = PageSection(
    name="stacks",
    title="Stacks",
    order=50,
    view=_view,
    template="trees.html.j2",
    styles=("trees.css",),
    scripts=("trees-data.js", "trees-paint.js", "trees-words.js", "icicle.js", "trees.js"),
    needs=("timeline",),
)
