"""What a rule came to over all parts of a job."""

from __future__ import annotations

import pytest

from traceanalyzer.engine.library import load_rules
from traceanalyzer.engine.outcomes import in_own_words, merged
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
    (found,) = merged([[RuleOutcome("X", *one)] for one in parts])
    assert (found.outcome, found.reason) == whole


def test_outcomes_speak_in_the_rules_own_words():
    for rule in load_rules(()):
        found = in_own_words(RuleOutcome(rule.id, "clean", "why not"), rule)
        assert (found.outcome, found.reason, found.title, found.why) == ("clean", "why not", rule.title, rule.why)
        assert (tuple(found.false_positives), found.metrics) == (rule.false_positives, rule.metrics)
        assert found.title and found.why and found.false_positives
