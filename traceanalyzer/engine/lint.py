"""Checks rules without a trace: form, names, units, thresholds with reasons, and the tests that every rule must bring."""

from __future__ import annotations

import re
from collections.abc import Iterable

from traceanalyzer.engine.program import compile_rule
from traceanalyzer.engine.rule import Problem, Rule
from traceanalyzer.engine.rulefile import read_rule

_ID = re.compile(r"[A-Z]{3}\d{3}")
_SLUG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def lint_rules(files: Iterable[tuple[str, str]]) -> list[Problem]:
    """Every problem of the rule files, given as (name, text), in the order of files and lines."""
    problems: list[Problem] = []
    seen: dict[str, str] = {}
    for name, text in files:
        rule, found = read_rule(text, name)
        if rule is not None:
            found = [*found, *_lint(rule)]
            if rule.id in seen:
                found.append(rule.problem(("id",), f"the id {rule.id} is already that of {seen[rule.id]}"))
            seen.setdefault(rule.id, name)
        problems += sorted(found, key=lambda problem: (problem.line, problem.column))
    return problems


def _lint(rule: Rule) -> list[Problem]:
    problems = list(compile_rule(rule)[1])
    if rule.id and not _ID.fullmatch(rule.id):
        problems.append(rule.problem(("id",), "an id is three capital letters and three digits, such as LCH001"))
    if rule.slug and not _SLUG.fullmatch(rule.slug):
        problems.append(rule.problem(("slug",), "a slug is lower-case words joined by hyphens"))
    if rule.id in rule.after:
        problems.append(rule.problem(("after",), "a rule cannot come after itself"))
    outcomes = {test.expect.outcome for test in rule.tests}
    if "fired" not in outcomes:
        problems.append(rule.problem(("tests",), "no test must fire; add one with expect: fires or {level: ...}"))
    if "clean" not in outcomes:
        problems.append(rule.problem(("tests",), "no test must stay silent; add one with expect: clean"))
    return problems
