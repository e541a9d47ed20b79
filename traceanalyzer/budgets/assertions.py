"""What entries of a budget ask for: comparisons of figures and rules that must find nothing, each checked before a trace is read."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from fnmatch import fnmatchcase

from traceanalyzer.budgets.expression import EXAMPLE, Comparison, compile_comparison
from traceanalyzer.config import Budgets, Entry
from traceanalyzer.engine.language.syntax import ExpressionError
from traceanalyzer.errors import ConfigError, did_you_mean
from traceanalyzer.records import dataclass
from traceanalyzer.result.captures.metrics import figure

OFF = "off"
NOTHING_TO_CHECK = (
    'nothing to check: no budget is set. Say --assert "idle_share <= 20%", or write "idle_share <= 20%" = "error" below '
    "[tool.traceanalyzer.check.budgets] in pyproject.toml"
)
_COMPARES = re.compile(r"[<>=!]")
_PATTERN = re.compile(r"[*?\[]")


@dataclass(frozen=True)
class Assertion:
    """`text` as it was written, or the id of the rule. Of a rule, `comparison` holds the number of its findings against none."""

    text: str
    level: str
    aggregate: str
    rule: str | None
    comparison: Comparison
    place: str


def assertions(budgets: Budgets, rules: Collection[str], aggregate: str) -> list[Assertion]:
    """Every assertion once, comparisons in the order they are written, then rules by id. Of two entries for one thing the later counts,
    and of those for one rule the one that names it rather than a pattern. `rules` are the ids of all rules, `aggregate` is for entries
    that do not say theirs.

    Raises ConfigError that says where the wrong entry stands: an unknown name, a wrong unit, or no entry at all.
    """
    if not budgets.entries:
        raise ConfigError(NOTHING_TO_CHECK)
    compared: dict[str, Assertion] = {}
    ruled: dict[str, Entry] = {}
    for entry in budgets.entries:
        if _COMPARES.search(entry.text):
            text = " ".join(entry.text.split())
            compared.pop(text, None)
            compared[text] = Assertion(
                text, entry.level, entry.aggregate or aggregate, None, _compiled(entry, rules), entry.place
            )
        else:
            for rule in _rules(entry, rules):
                if rule not in ruled or rule == entry.text or ruled[rule].text != rule:
                    ruled[rule] = entry
    found = [*compared.values(), *(_of_rule(rule, entry, aggregate) for rule, entry in sorted(ruled.items()))]
    if all(one.level == OFF for one in found):
        raise ConfigError(f"{found[0].place}: nothing to check: every budget is off")
    return found


def _of_rule(rule: str, entry: Entry, aggregate: str) -> Assertion:
    nothing = compile_comparison(f"{rule}.findings <= 0", [rule])
    return Assertion(rule, entry.level, entry.aggregate or aggregate, rule, nothing, entry.place)


def _compiled(entry: Entry, rules: Collection[str]) -> Comparison:
    try:
        return compile_comparison(entry.text, rules)
    except ExpressionError as error:
        raise _wrong(entry, f"{error} (column {error.column + 1})") from None


def _rules(entry: Entry, rules: Collection[str]) -> Iterable[str]:
    if entry.text in rules:
        return [entry.text]
    if _PATTERN.search(entry.text):
        if matching := [rule for rule in rules if fnmatchcase(rule, entry.text)]:
            return matching
        raise _wrong(entry, "no rule has such a name; `traceanalyzer rules list` lists them")
    if figure(entry.text, rules):
        raise _wrong(entry, f"what this figure is held against is missing; write a comparison, such as {EXAMPLE}")
    hint = did_you_mean(entry.text, rules) or "; `traceanalyzer rules list` lists the rules"
    raise _wrong(entry, f"neither a comparison, such as {EXAMPLE}, nor a rule{hint}")


def _wrong(entry: Entry, what: str) -> ConfigError:
    return ConfigError(f"{entry.place}: '{entry.text}': {what}")
