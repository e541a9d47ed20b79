"""The verdict, both sides, and whether they can be compared."""

from __future__ import annotations

from typing import Any

from traceanalyzer.report.comparison_context import ComparisonContext
from traceanalyzer.report.section import PageSection
from traceanalyzer.report.sections.comparison_view import main_cause
from traceanalyzer.result.comparing.words import advice, noise_words


def _view(page: ComparisonContext) -> dict[str, Any]:
    comparison = page.comparison
    return {
        "comparison": comparison,
        "cause": main_cause(comparison),
        "advice": advice(comparison) if comparison.outcome == "could_not_judge" else [],
        "sides": page.sides,
        "noise": noise_words(comparison),
    }


SECTION = PageSection(
    name="top",
    page="comparison",
    title="Verdict",
    order=10,
    view=_view,
    template="comparison-first.html.j2",
    styles=("comparison.css",),
    needs=("timeline",),
)
