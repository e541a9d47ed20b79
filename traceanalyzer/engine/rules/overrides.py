"""What a user sets in place of a rule's defaults: thresholds, and whether it runs at all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from traceanalyzer.engine.language.kinds import TEXT, number
from traceanalyzer.engine.language.message import LONGEST_NAME, shorten
from traceanalyzer.engine.rules.rule import Param, Rule, literal_of
from traceanalyzer.errors import ConfigError, did_you_mean

Overrides = Mapping[str, Mapping[str, object]]


def parse_overrides(settings: Iterable[str]) -> dict[str, dict[str, object]]:
    """`["LCH001.short=50us"]` -> `{"LCH001": {"short": "50us"}}`. Raises ConfigError."""
    overrides: dict[str, dict[str, object]] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        rule, dot, param = name.strip().partition(".")
        if not (equals and dot and rule and param and value.strip()):
            raise ConfigError(f"'{setting}' does not set a threshold; write it as LCH001.short=50us")
        overrides.setdefault(rule, {})[param] = value.strip()
    return overrides


def with_overrides(rules: Iterable[Rule], overrides: Overrides) -> list[Rule]:
    """The rules with the user's thresholds. Raises ConfigError for an unknown rule or threshold and for a wrong unit."""
    by_id = {rule.id: rule for rule in rules}
    for rule_id, values in overrides.items():
        if rule_id not in by_id:
            raise ConfigError(f"there is no rule '{rule_id}'{did_you_mean(rule_id, by_id)}")
        rule = by_id[rule_id]
        params = {name: _overridden(rule, name, value) for name, value in values.items()}
        by_id[rule_id] = replace(rule, params={**rule.params, **params})
    return list(by_id.values())


def check_disabled(rules: Iterable[Rule], disabled: Mapping[str, str]) -> None:
    """Raises ConfigError when `disabled` ({rule id: where that was said}) names a rule that is not there."""
    ids = [rule.id for rule in rules]
    for rule_id, where in disabled.items():
        if rule_id not in ids:
            raise ConfigError(
                f"there is no rule '{rule_id}' to switch off, as said {where}{did_you_mean(rule_id, ids)}"
            )


def _overridden(rule: Rule, name: str, value: object) -> Param:
    if name not in rule.params:
        known = ", ".join(rule.params) or "none"
        raise ConfigError(
            f"rule {rule.id} has no threshold '{name}'{did_you_mean(name, rule.params)} (thresholds: {known})"
        )
    param = rule.params[name]
    literal, kind = literal_of(value)
    if kind not in (param.kind, number(None)) or kind.type != param.kind.type or _needs_unit(kind, param):
        shown = shorten(str(literal if kind == TEXT else value), LONGEST_NAME)
        raise ConfigError(f"{rule.id}.{name} is {param.kind}, but '{shown}' is {kind}")
    return replace(param, value=literal, default=param.value)


def _needs_unit(kind: object, param: Param) -> bool:
    # 0.05 is a fine share and 200 a fine count; 20 is no time.
    return kind == number(None) and param.kind.unit in ("ns", "bytes")
