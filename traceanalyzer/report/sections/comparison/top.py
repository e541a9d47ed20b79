"""The verdict, both sides, and whether they can be compared."""

from __future__ import annotations

from typing import Any

from traceanalyzer.report.comparison_context import ComparisonContext
from traceanalyzer.report.section import PageSection
from traceanalyzer.report.sections.comparison_view import main_cause
from traceanalyzer.result.comparing.words import advice, noise_words
from traceanalyzer.vocabulary.levels import COULD_NOT_JUDGE, HIGH, INFO


def _view(page: ComparisonContext) -> dict[str, Any]:
    comparison = page.comparison
    return {
        "comparison": comparison,
        "cause": main_cause(comparison),
        "advice": advice(comparison) if comparison.outcome == COULD_NOT_JUDGE else [],
        "sides": page.sides,
        "noise": noise_words(comparison),
        "grave": HIGH,
        "harmless": INFO,
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
