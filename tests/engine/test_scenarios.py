"""The scenarios that ship with the rules: what the rules say of them, and how a test names one."""

from __future__ import annotations

import re

import pytest

from traceanalyzer.engine.rules.library import load_rules, rule_files
from traceanalyzer.engine.rules.lint import lint_rules
from traceanalyzer.engine.rules.page import rule_page
from traceanalyzer.engine.rules.rulefile import read_rule
from traceanalyzer.engine.rules.scenario import Scenario, run_test
from traceanalyzer.engine.rules.scenarios import named_scenarios
from traceanalyzer.engine.run import run_rules

RULES = load_rules()
# What a person would call the main fault of each; None for those that have none.
FAULT = {
    "healthy_training": None,
    "healthy_inference": None,
    "busy_many_kernels": None,
    "launch_bound": "LCH001",
    "input_bound": "INP001",
    "host_bound": "HST001",
    "untraced_host": "HST001",
    "synchronizing": "SYN001",
    "allocating": "MEM001",
    "copying_pageable": "CPY002",
    "communicating": "COM001",
    "gpu_work_missing": "TRC002",
}


def test_every_scenario_is_judged_here() -> None:
    assert list(named_scenarios()) == list(FAULT)
    assert all(scenario.about.endswith(".") for scenario in named_scenarios().values())


@pytest.mark.parametrize("name", FAULT)
def test_the_rules_together_find_its_fault_and_no_other(name: str) -> None:
    result = run_rules(RULES, Scenario(named_scenarios()[name].given))
    findings = [f.rule for f in result.findings if f.saving.recoverable_ns or f.rule.startswith("TRC")]
    assert findings == ([] if FAULT[name] is None else [FAULT[name]])
    assert not [outcome for outcome in result.outcomes if outcome.outcome == "error"]


@pytest.mark.parametrize("name", [name for name, fault in FAULT.items() if fault is None])
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_every_rule_is_silent_where_all_is_well(rule, name) -> None:
    result = run_rules([rule], Scenario(named_scenarios()[name].given))
    assert [finding.message for finding in result.findings] == []
    assert result.outcomes[0].outcome in ("clean", "not_applicable")


def test_the_healthy_run_is_judged_and_not_just_passed_over() -> None:
    result = run_rules(RULES, Scenario(named_scenarios()["healthy_training"].given))
    clean = {outcome.rule for outcome in result.outcomes if outcome.outcome == "clean"}
    assert {"INP001", "HST001", "LCH001", "SYN001", "MEM001", "CPY001", "CPY002", "COM001", "GAP001"} <= clean


def test_a_name_that_no_scenario_has() -> None:
    file = "rules/input/INP001-data-loader-stall.yaml"
    text = dict(rule_files())[file]
    wrong = text + "  - {given: launch_bond, expect: clean}\n"
    (problem,) = lint_rules([(file, wrong)])
    assert problem.message == "there is no scenario 'launch_bond'; did you mean 'launch_bound'?"
    assert problem.line == wrong.count("\n")
    assert lint_rules([(file, text + "  - {given: launch_bound, expect: clean}\n")]) == []


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("{gasp: []}", "unknown table 'gasp'; did you mean 'gaps'?"),
        ("{gaps: [{caus: input}]}", "'gaps' has no column 'caus'; did you mean 'cause'?"),
        ("{gaps: 3}", "a row of 'gaps' is a mapping of columns, not '3'"),
        ("{gaps: [{cause: input, duration: soon}]}", "'duration' of 'gaps' is a time, not 'soon'"),
        ("{gaps: [{cause: 5, duration: 1ms}]}", "'cause' of 'gaps' is a text, not '5'"),
        ("{gaps: [{cause: inputs, duration: 1ms}]}", "'cause' of 'gaps' is one of .*did you mean 'input'"),
        ("{gaps: [{cause: input, duration: 1e30}]}", "'duration' of 'gaps' cannot be 1e30"),
        ("{gaps: [{cause: input, repeat: 1000000000}]}", "with 'gaps' it has more than 100,000 rows"),
        ("{gaps: [{cause: input, duration: 2s}]}", "longer than the window of 1,000,000,000 ns"),
        ("{window: 5}", "a row of 'ledger' is a mapping"),
        ("{unavailable: all}", "'unavailable' is a mapping"),
    ],
)
def test_rows_that_make_no_trace_are_found_by_lint_and_test(given: str, says: str) -> None:
    file = "rules/input/INP001-data-loader-stall.yaml"
    text = dict(rule_files())[file] + f"  - {{given: {given}, expect: fires}}\n"
    (problem,) = lint_rules([(file, text)])
    assert re.search(says, problem.message) and problem.line == text.count("\n")
    rule, problems = read_rule(text, file)
    assert rule is not None and not problems
    assert re.search(says, run_test(rule, rule.tests[-1]) or "")
    assert rule_page(rule)
