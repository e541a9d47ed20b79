"""The shipped rules: their form, their own tests, and how they share a trace among them."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from traceanalyzer.engine.rules.library import CLAIM_ORDER, load_rules, rule_files
from traceanalyzer.engine.rules.lint import lint_rules
from traceanalyzer.engine.rules.rule import Rule, RuleTest
from traceanalyzer.engine.rules.scenario import Scenario, run_test
from traceanalyzer.engine.run import EngineResult, run_rules

RULES = load_rules()
TESTS = [pytest.param(rule, test, id=f"{rule.id}: {test.name}") for rule in RULES for test in rule.tests]


def run(**given: Any) -> EngineResult:
    return run_rules(RULES, Scenario(given))


def test_the_shipped_rules_are_free_of_lint() -> None:
    assert [str(problem) for problem in lint_rules(rule_files())] == []


@pytest.mark.parametrize(("rule", "test"), TESTS)
def test_inline_tests(rule: Rule, test: RuleTest) -> None:
    assert run_test(rule, test) is None


def test_files_are_named_after_their_rules() -> None:
    for name, text in rule_files():
        assert name.rsplit("/", 1)[1].startswith(text.split("\n", 1)[0].removeprefix("id: ") + "-")


def test_every_rule_explains_itself() -> None:
    for rule in RULES:
        assert rule.title and rule.why and rule.false_positives and rule.references, rule.id
        assert all(len(step) > ("when" in step) for step in rule.recommend), rule.id


def test_rules_claim_in_the_order_of_the_catalogue() -> None:
    listed = [rule.id for rule in RULES if rule.id in CLAIM_ORDER]
    assert listed == [rule_id for rule_id in CLAIM_ORDER if rule_id in listed]


def test_a_copy_is_claimed_by_the_sharper_rule_and_the_wider_one_says_so() -> None:
    copy = {"copy_kind": "htod", "bytes": "128MiB", "pageable": True, "duration": "100ms", "pinned": "40ms"}
    first, second = run(copies=[{**copy, "repeat": 2}]).findings
    # Pinning makes the copies faster; the rest of them is still there.
    assert (first.rule, first.saving.recoverable_ns) == ("CPY002", 120_000_000)
    assert (second.rule, second.saving.recoverable_ns, second.severity) == ("CPY001", 0, "info")
    assert second.message.endswith("CPY002 already accounts for this time.")


def test_launches_take_the_short_gaps_and_the_host_rule_the_rest() -> None:
    launched = {"cause": "host_work", "next_op_duration": "3us", "api_name": "cudaLaunchKernel"}
    short = {**launched, "duration": "50us", "repeat": 4000}
    long = {**launched, "duration": "30ms", "repeat": 10, "range_name": "sort"}
    result = run(window={"duration": "1s"}, gaps=[short, long])
    recovered = {finding.rule: finding.saving.recoverable_ns for finding in result.findings}
    assert recovered == {"HST001": 300_000_000, "LCH001": 200_000_000}
    host = result.findings[0]
    assert {evidence.end_ns - evidence.start_ns for evidence in host.evidence} == {30_000_000}
    assert "already" not in host.message


def test_savings_never_exceed_the_window() -> None:
    causes = ["input", "memory_management", "synchronization", "host_work", "host_untraced", "dependency"]
    gaps = [{"cause": cause, "duration": "10ms", "next_op_duration": "3us", "repeat": 10} for cause in causes]
    result = run(window={"duration": "1s"}, gaps=gaps, copies=[{"copy_kind": "htod", "duration": "300ms"}])
    assert sum(finding.saving.recoverable_ns or 0 for finding in result.findings) <= 1_000_000_000
    assert {outcome.outcome for outcome in result.outcomes} <= {"fired", "clean", "not_applicable"}


def test_advice_follows_the_loader() -> None:
    def advice(loader: str) -> str:
        gaps = [{"cause": "input", "duration": "300ms", "range_name": f"enumerate(DataLoader)#{loader}.__next__"}]
        return run(gaps=gaps).findings[0].recommend[0]["pytorch"]

    assert "num_workers=0" in advice("_SingleProcessDataLoaderIter")
    assert "cannot keep up" in advice("_MultiProcessingDataLoaderIter")


def test_a_busy_trace_is_clean() -> None:
    assert run(window={"duration": "1s"}).findings == []


def test_two_gpus_have_two_findings() -> None:
    windows = [{"device": 0, "duration": "1s"}, {"device": 1, "duration": "1s"}]
    gaps = [{"cause": "input", "duration": f"{200 + 100 * gpu}ms", "device": gpu} for gpu in (0, 1)]
    findings = run(window=windows, gaps=gaps).findings
    assert [(finding.scope.device, finding.saving.recoverable_ns) for finding in findings] == [
        (1, 300_000_000),
        (0, 200_000_000),
    ]
    assert findings[0].message.startswith("GPU 1 is idle 30% of the time")


def test_rules_without_their_tests_are_the_same_otherwise() -> None:
    read = load_rules(tests=False)
    same = [one.name for one in fields(Rule) if one.name not in ("tests", "document")]
    assert not any(rule.tests for rule in read)
    for rule, other in zip(RULES, read, strict=True):
        assert [getattr(rule, name) for name in same] == [getattr(other, name) for name in same]
