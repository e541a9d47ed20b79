"""A rule as a page that a person can learn from (`traceanalyzer rules show`)."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from traceanalyzer.engine.rule import Param, Rule
from traceanalyzer.units import format_value

WIDTH = 100


def rule_page(rule: Rule) -> str:
    """Plain text: what the rule is for, when it fires, its thresholds, its false positives and its advice."""
    lines = [
        f"{rule.id} {rule.slug} ({rule.status}, {rule.category})",
        rule.title,
        "",
        *_wrap(rule.why, ""),
        *_section("Fires when", [e for e in (rule.where, rule.having) if e]),
        *_section("Thresholds", (f"{name} = {_value(param)}: {param.why}" for name, param in rule.params.items())),
        *_section("Claims", [", ".join(rule.claims)] if rule.claims else []),
        *_section("Not to be mistaken for", rule.false_positives),
        *_section(
            "What to do", (f"{k}: {text}" for advice in rule.recommend for k, text in advice.items() if k != "when")
        ),
        *_section("Read more", rule.references),
    ]
    return "\n".join(lines) + "\n"


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
    )
