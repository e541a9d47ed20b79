"""Checks rules without a trace: form, names, units, thresholds with reasons, and the tests that every rule must bring."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from traceanalyzer.engine.advice import AUDIENCES
from traceanalyzer.engine.rules.program import compile_rule
from traceanalyzer.engine.rules.rule import Problem, Rule
from traceanalyzer.engine.rules.rule_schema import CODE, ID, SLUG
from traceanalyzer.engine.rules.rulefile import read_rule
from traceanalyzer.engine.rules.scenario import Scenario
from traceanalyzer.errors import did_you_mean
from traceanalyzer.vocabulary.health import NOT_ALL_READ
from traceanalyzer.vocabulary.levels import CLEAN, FIRED


def lint_rules(files: Iterable[tuple[str, str]], shipped: Mapping[str, str] | None = None) -> list[Problem]:
    """Every problem of the rule files, given as (name, text), in the order of files and lines.

    `shipped` is {id: file} of the rules beside which they are to run; a rule in a file of that name is that rule itself.
    """
    problems: list[Problem] = []
    seen: dict[str, str] = {}
    for name, text in files:
        rule, found = read_rule(text, name)
        if rule is not None:
            found = [*found, *lint_rule(rule)]
            if rule.id in seen:
                found.append(rule.problem(("id",), f"the id {rule.id} is already that of {seen[rule.id]}"))
            if (file := (shipped or {}).get(rule.id)) and not Path(name).as_posix().endswith(file):
                found.append(taken_id(rule, file))
            seen.setdefault(rule.id, name)
        problems += sorted(found, key=lambda problem: (problem.line, problem.column))
    return problems


def taken_id(rule: Rule, file: str) -> Problem:
    """A user's rule has the id of a shipped one, which lies in `file`."""
    message = f"{rule.id} is the id of {file}, which ships with traceanalyzer; choose letters of your own"
    return rule.problem(("id",), f"{message} (and disable {rule.id} if yours replaces it)")


def lint_rule(rule: Rule, tests: bool = True) -> list[Problem]:
    """What is wrong with a rule that was read; `tests` says whether it must bring some."""
    problems = list(compile_rule(rule)[1])
    if rule.id and not re.fullmatch(ID, rule.id):
        problems.append(rule.problem(("id",), "an id is three capital letters and three digits, such as LCH001"))
    if rule.slug and not re.fullmatch(SLUG, rule.slug):
        problems.append(rule.problem(("slug",), "a slug is lower-case words joined by hyphens"))
    if rule.id in rule.after:
        problems.append(rule.problem(("after",), "a rule cannot come after itself"))
    return [*problems, *_words(rule), *(_tests(rule) if tests else [])]


def _words(rule: Rule) -> Iterator[Problem]:
    """Health codes and audiences that there are none of, and advice whose code has no end."""
    for key in ("healthy", "weakened_by"):
        for at, code in enumerate(getattr(rule.requires, key)):
            if not re.fullmatch(CODE, code):
                yield rule.problem(("requires", key, at), f"'{code}' is no health code; they look like {NOT_ALL_READ}")
    for at, step in enumerate(rule.recommend):
        for name in step.keys() - {"when", *AUDIENCES}:
            hint = did_you_mean(name, AUDIENCES) or f"; there are {', '.join(AUDIENCES)}"
            yield rule.problem(("recommend", at, name), f"unknown audience '{name}'{hint}")
        for name in (name for name in step.keys() - {"when"} if step[name].count("`") % 2):
            yield rule.problem(("recommend", at, name), "a backtick that none closes; code stands between two of them")


def _tests(rule: Rule) -> Iterator[Problem]:
    for test in rule.tests:
        try:
            Scenario(test.given)
        except ValueError as error:
            yield rule.problem(test.path, f"the rows make no trace: {error}")
    outcomes = {test.expect.outcome for test in rule.tests}
    if FIRED not in outcomes:
        yield rule.problem(("tests",), "no test must fire; add one with expect: fires or {level: ...}")
    if CLEAN not in outcomes:
        yield rule.problem(("tests",), "no test must stay silent; add one with expect: clean")
