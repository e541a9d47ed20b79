"""One outcome a rule, from what it said of each part of a job, in the rule's own words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

from traceanalyzer.engine.language.message import written_names
from traceanalyzer.engine.rules.rule import Rule
from traceanalyzer.result.document import RuleOutcome
from traceanalyzer.vocabulary.levels import CLEAN, COULD_NOT_JUDGE, ERROR, FIRED, JUDGED, NOT_APPLICABLE

# What is said of the whole when parts disagree: the first that any of them says.
_PRECEDENCE = (ERROR, FIRED, CLEAN, COULD_NOT_JUDGE, NOT_APPLICABLE)


def merge_outcomes(parts: Sequence[Sequence[RuleOutcome]]) -> list[RuleOutcome]:
    """The outcomes of rules over several parts, each of which may have been judged by some of them, in the order of the first part."""
    by_rule: dict[str, list[RuleOutcome]] = {}
    for outcome in chain.from_iterable(parts):
        by_rule.setdefault(outcome.rule, []).append(outcome)
    return [_merged(outcomes) for outcomes in by_rule.values()]


def _merged(outcomes: Sequence[RuleOutcome]) -> RuleOutcome:
    whole = min(outcomes, key=lambda outcome: _PRECEDENCE.index(outcome.outcome))
    judged = whole.outcome in JUDGED
    unjudged = next((o.reason for o in outcomes if o.outcome == COULD_NOT_JUDGE), None)
    if judged and unjudged:
        return RuleOutcome(whole.rule, whole.outcome, f"some ranks were left out: {unjudged}")
    # A part that was judged says what was left out of it.
    speak = JUDGED if judged else (whole.outcome,)
    return RuleOutcome(
        whole.rule, whole.outcome, next((o.reason for o in outcomes if o.outcome in speak and o.reason), None)
    )


def in_own_words(outcome: RuleOutcome, rule: Rule) -> RuleOutcome:
    """The outcome with what the rule's file says of itself."""
    return replace(
        outcome,
        title=rule.title,
        why=rule.why,
        false_positives=list(rule.false_positives),
        metrics=dict(rule.metrics),
        claims=list(rule.claims),
        figures=figures_for_people(rule),
    )


def figures_for_people(rule: Rule) -> dict[str, str]:
    """The metrics that people are shown beside a finding, with words: those that the rule names, else those that its message writes."""
    written = (name for name in written_names(rule.message) if name in rule.metrics)
    return dict(rule.figures) or {name: name.replace("_", " ") for name in written}
