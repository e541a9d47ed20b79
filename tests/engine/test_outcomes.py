"""What a rule came to over all parts of a job."""

from __future__ import annotations

from dataclasses import replace

import pytest

from traceanalyzer.engine.outcomes import in_own_words, merge_outcomes
from traceanalyzer.engine.rules.library import load_rules
from traceanalyzer.result.document import RuleOutcome


@pytest.mark.parametrize(
    ("parts", "whole"),
    [
        ([("clean", None), ("fired", None)], ("fired", None)),
        ([("not_applicable", "no copies"), ("clean", None)], ("clean", None)),
        ([("not_applicable", "no copies"), ("could_not_judge", "no steps")], ("could_not_judge", "no steps")),
        ([("fired", None), ("could_not_judge", "no steps")], ("fired", "some ranks were left out: no steps")),
        (
            [("fired", None), ("clean", "some ranks were left out: damage")],
            ("fired", "some ranks were left out: damage"),
        ),
        ([("fired", None), ("error", "ValueError: x"), ("could_not_judge", "y")], ("error", "ValueError: x")),
        ([("not_applicable", "a"), ("not_applicable", "b")], ("not_applicable", "a")),
    ],
)
def test_one_outcome_of_many(parts, whole):
    (found,) = merge_outcomes([[RuleOutcome("X", *one)] for one in parts])
    assert (found.outcome, found.reason) == whole


def test_outcomes_speak_in_the_rules_own_words():
    for rule in load_rules(()):
        found = in_own_words(RuleOutcome(rule.id, "clean", "why not"), rule)
        assert (found.outcome, found.reason, found.title, found.why) == ("clean", "why not", rule.title, rule.why)
        assert (tuple(found.false_positives), found.metrics) == (rule.false_positives, rule.metrics)
        assert found.title and found.why and found.false_positives


def test_figures_for_people_are_named_by_the_rule():
    """Steps of a calculation stay out; every shipped rule says which of its metrics tell a person something, and in which words."""
    for rule in load_rules(()):
        assert rule.figures and list(in_own_words(RuleOutcome(rule.id, "fired", None), rule).figures) == list(
            rule.figures
        )
    (host,) = [rule for rule in load_rules(()) if rule.id == "HST001"]
    assert not {"alike", "usual", "in_phase"} & in_own_words(RuleOutcome("HST001", "fired", None), host).figures.keys()


def test_without_figures_those_that_the_message_writes_are_shown():
    (rule,) = [rule for rule in load_rules(()) if rule.id == "HST001"]
    found = in_own_words(RuleOutcome(rule.id, "fired", None), replace(rule, figures={}))
    assert found.figures == {"share": "share", "longest": "longest"}
