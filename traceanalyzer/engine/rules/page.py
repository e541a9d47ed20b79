"""A rule as a page that a person can learn from (`traceanalyzer rules show`)."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from typing import Any

from traceanalyzer.catalog.declarations import rule_tables
from traceanalyzer.engine.rules.rule import Param, Rule, RuleTest
from traceanalyzer.engine.rules.scenario import Scenario
from traceanalyzer.engine.rules.scenarios import named_scenarios
from traceanalyzer.engine.run import run_rules
from traceanalyzer.result.advice import plain
from traceanalyzer.units import format_duration, format_value
from traceanalyzer.vocabulary.levels import FIRED

WIDTH = 100
# What the levels of a rule without a ladder of its own are.
LADDER = "high from 25% of the window, medium from 10%, low from 3%, else info"


def rule_page(rule: Rule) -> str:
    """Plain text: what the rule is for, when it fires, its thresholds, what it claims, its false positives, its advice, an example."""
    lines = [
        f"{rule.id} {rule.slug} ({rule.status}, {rule.category})",
        rule.title,
        "",
        *_wrap(rule.why, ""),
        *_section("Reads", _reads(rule)),
        *_section("Fires when", _fires(rule)),
        *_section(
            f"Thresholds, such as --set {rule.id}.{next(iter(rule.params), '')}=...",
            (f"{name} = {_value(param)}: {param.why}" for name, param in rule.params.items()),
        ),
        *_section("Abstains when", _abstains(rule)),
        *_section("Claims", _claims(rule)),
        *_section("Not to be mistaken for", rule.false_positives),
        *_section("What to do", (advice for step in rule.recommend for advice in _advice(step))),
        *_section("Example", _example(rule)),
        *_section("Read more", rule.references),
    ]
    return "\n".join(lines) + "\n"


def _reads(rule: Rule) -> list[str]:
    spec = rule_tables().get(rule.source)
    source = f"{rule.source}: {spec.rows}" if spec else rule.source
    groups = f"one finding for each {' and '.join(rule.group_by)}" if rule.group_by else "one finding for all rows"
    return [source, groups]


def _fires(rule: Rule) -> list[str]:
    where = [f"rows that count: {rule.where}"] if rule.where else []
    having = [f"it fires when: {rule.having}"] if rule.having else ["it fires when there is such a row"]
    used = " ".join([rule.having or "", *(text for text, _ in rule.severity)])
    told = [f"{name} = {text}" for name, text in rule.metrics.items() if _mentions(used, name)]
    ladder = "; ".join(level if text.lower() == "true" else f"{level} when {text}" for text, level in rule.severity)
    return [*where, *having, *told, f"level: {ladder or LADDER}"]


def _abstains(rule: Rule) -> list[str]:
    requires = rule.requires
    tables = [f"the trace has no rows of {name}" for name in dict.fromkeys((rule.source, *requires.tables))]
    columns = [f"it does not say {', '.join(names)} of {table}" for table, names in requires.columns.items()]
    health = [f"health has {' or '.join(requires.healthy)}"] if requires.healthy else []
    weak = [f"and is less sure with {', '.join(requires.weakened_by)}"] if requires.weakened_by else []
    reasons = [f"{when}: {reason}" for when, reason in requires.abstain]
    return [*(tables if rule.category != "health" else []), *columns, *health, *reasons, *weak]


def _claims(rule: Rule) -> list[str]:
    if not rule.claims or not rule.saving:
        return []
    know = "knows" if len(rule.after) == 1 else "know"
    after = [f"after {', '.join(rule.after)}, which {know} better"] if rule.after else []
    saving = f"recovers {' '.join(rule.saving.recoverable.split())}, with {rule.saving.confidence} confidence"
    return [", ".join(rule.claims), *after, saving]


def _advice(step: Mapping[str, str]) -> list[str]:
    when = f" (when {step['when']})" if "when" in step else ""
    return [f"{name}{when}: {plain(text)}" for name, text in step.items() if name != "when"]


def _example(rule: Rule) -> list[str]:
    """The first test that fires, its rows and what the rule says of them."""
    for test in (test for test in rule.tests if test.expect.outcome == FIRED):
        try:
            found = run_rules([rule], Scenario(test.given)).findings
        except ValueError:
            continue
        if found:
            saved = found[0].saving.recoverable_ns
            gain = f", {format_duration(saved)} to gain" if saved else ""
            return [f"{test.name}: {_given(test)}", f"it says ({found[0].severity}{gain}): {found[0].message}"]
    return []


def _given(test: RuleTest) -> str:
    for name, scenario in named_scenarios().items():
        if scenario.given is test.given:
            return f"{name} ({scenario.about})"
    return "; ".join(f"{table}: {_rows(rows)}" for table, rows in test.given.items())


def _rows(rows: Any) -> str:
    listed = rows if isinstance(rows, list) else [rows]
    return " | ".join(_row(row) if isinstance(row, dict) else str(row) for row in listed)


def _row(row: dict[str, Any]) -> str:
    times = f"{row['repeat']} × " if "repeat" in row else ""
    return times + ", ".join(f"{name} {value}" for name, value in row.items() if name != "repeat")


def _mentions(text: str, name: str) -> bool:
    return name in text.replace("(", " ").replace(")", " ").split()


def _value(param: Param) -> str:
    if isinstance(param.value, bool | str):
        return str(param.value)
    return format_value(param.value, param.kind.unit)


def _section(title: str, entries: Iterable[str]) -> list[str]:
    found = [line for entry in entries for line in _wrap(entry, "- ")]
    return ["", title, *found] if found else []


def _wrap(text: str, bullet: str) -> list[str]:
    return textwrap.wrap(
        " ".join(text.split()),
        WIDTH,
        initial_indent=bullet,
        subsequent_indent=" " * len(bullet),
        break_long_words=False,
        break_on_hyphens=False,
    )
