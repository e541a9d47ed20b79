"""The rules that stayed silent, what each looks for, and why it said nothing."""

from __future__ import annotations

from traceanalyzer.report.context import ReportContext
from traceanalyzer.report.section import PageSection
from traceanalyzer.result.document import Result, RuleOutcome
from traceanalyzer.vocabulary.levels import CLEAN, COULD_NOT_JUDGE, ERROR, NOT_APPLICABLE

OUTCOME_TITLES = {
    ERROR: "Failed: a fault in the rule",
    COULD_NOT_JUDGE: "Could not judge: the recording does not tell",
    NOT_APPLICABLE: "Not applicable: the recording holds nothing that they look at",
    CLEAN: "Looked, and found nothing",
}
"""In the order of the page: what asks for attention comes first."""


def silent_rules(result: Result) -> list[tuple[str, list[RuleOutcome]]]:
    """Rules that did not fire, by the title of their outcome; outcomes without rules are left out."""
    groups = [
        (title, [rule for rule in result.rules if rule.outcome == outcome]) for outcome, title in OUTCOME_TITLES.items()
    ]
    return [group for group in groups if group[1]]


SECTION = PageSection[ReportContext](
    name="rules", title="Rules", order=900, view=lambda page: {"silent": silent_rules(page.result)}
)
