"""What became of the findings."""

from __future__ import annotations

from typing import Any

from traceanalyzer.report.comparison_context import ComparisonContext
from traceanalyzer.report.section import PageSection
from traceanalyzer.report.sections.comparison_view import problem_groups
from traceanalyzer.report.sections.findings_view import FindingView


def _view(page: ComparisonContext) -> dict[str, Any]:
    groups = problem_groups(page.comparison.problems, _buttons(page.findings))
    return {"comparison": page.comparison, "groups": groups, "unit": page.unit}


def _buttons(views: list[tuple[str, FindingView]]) -> dict[str, list[tuple[str, int, int]]]:
    """For each rule, of each side the first finding that the timeline shows: as `ProblemView.shows`."""
    buttons: dict[str, dict[str, tuple[str, int, int]]] = {}
    for title, view in views:
        if view.first_place is not None:
            of_rule = buttons.setdefault(view.finding.rule, {})
            of_rule.setdefault(title, (f"Show in {title}", view.number, view.first_place))
    return {rule: list(of_rule.values()) for rule, of_rule in buttons.items()}


SECTION = PageSection(
    name="findings",
    page="comparison",
    title="Findings",
    order=40,
    view=_view,
    template="comparison-findings.html.j2",
)
