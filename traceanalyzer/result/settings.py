"""What a user set that changes how a trace is judged, as far as it is not as shipped, and the words for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from traceanalyzer.records import dataclass
from traceanalyzer.units import COUNT, format_value

Value = int | float | str | bool
MOST_SAID = 6
"""So many settings stand in one sentence, and how many more there are."""


@dataclass(frozen=True)
class Threshold:
    """A threshold of a rule that is not its default: the `value` in effect, in `unit` (ns, bytes, share, count or null)."""

    rule: str
    name: str
    value: Value
    default: Value
    unit: str | None


@dataclass(frozen=True)
class Settings:
    """All empty where everything is as shipped. `disabled_rules` are ids of rules that were not run, `own_rules` the user's rules by
    id, each with the SHA-256 of what it says. `input_patterns` name more ranges that wait for input, `communication_patterns` more
    kernels that communicate."""

    thresholds: list[Threshold] = field(default_factory=list)
    disabled_rules: list[str] = field(default_factory=list)
    own_rules: dict[str, str] = field(default_factory=dict)
    input_patterns: list[str] = field(default_factory=list)
    communication_patterns: list[str] = field(default_factory=list)

    def said(self) -> dict[str, str]:
        """What is set, in words, by what it is of: {"INP001.least": "99% (default 20%)", "KRN005": "switched off"}."""
        return dict(self._said())

    def _said(self) -> Iterator[tuple[str, str]]:
        for one in self.thresholds:
            yield f"{one.rule}.{one.name}", effective(one)
        yield from ((rule, "switched off") for rule in self.disabled_rules)
        yield from ((rule, "a rule of your own") for rule in self.own_rules)
        for name in ("input_patterns", "communication_patterns"):
            if patterns := getattr(self, name):
                yield name, ", ".join(patterns)

    def of_rule(self, rule: str) -> str | None:
        """The thresholds of one rule that are not its defaults, as a clause; None without any."""
        said = [f"{one.name} = {effective(one)}" for one in self.thresholds if one.rule == rule]
        return f"judged with {', '.join(said)}" if said else None


def effective(one: Threshold) -> str:
    """The value in effect and the default: "99% (default 20%)"."""
    value, default = _shown(one.value, one.unit), _shown(one.default, one.unit)
    if value == default:  # rounded to the same
        value, default = (f"{exact} {one.unit or ''}".rstrip() for exact in (one.value, one.default))
    return f"{value} (default {default})"


def settings_sentence(settings: Settings) -> str | None:
    """One sentence without its stop on what is not as shipped; None where all is."""
    said = [_joined(name, words) for name, words in settings.said().items()]
    return f"Not judged with the defaults: {_cut(said)}" if said else None


def settings_apart(base: Settings | None, new: Settings | None, one: str = "BASE", another: str = "NEW") -> str | None:
    """In what two captures, called `one` and `another`, were judged by different measures; None where they were not.

    None stands for a capture that does not say it, which was saved before captures did.
    """
    if base is None or new is None:
        if base in (None, Settings()) and new in (None, Settings()):
            return None
        silent, known, other = (one, new, another) if base is None else (another, base, one)
        said = [_joined(*item) for item in (known or Settings()).said().items()]
        return f"{silent} does not say how it was judged, {other} with {_cut(said)}"
    before, after = base.said(), new.said()
    said = [
        f"{name} {before.get(name, 'as shipped')} in {one}, {after.get(name, 'as shipped')} in {another}"
        for name in dict.fromkeys([*before, *after])
        if before.get(name) != after.get(name)
    ]
    said += [
        f"the rule {rule} is another one in {one} than in {another}"
        for rule, sha256 in base.own_rules.items()
        if new.own_rules.get(rule, sha256) != sha256
    ]
    return f"not judged by the same measures: {_cut(said, '; ')}" if said else None


def _joined(name: str, words: str) -> str:
    return f"{name} {words}" if words in ("switched off", "a rule of your own") else f"{name} = {words}"


def _cut(said: list[str], comma: str = ", ") -> str:
    more = len(said) - MOST_SAID
    return comma.join(said[:MOST_SAID]) + (f" and {more} more" if more > 0 else "")


def _shown(value: Value, unit: str | None) -> str:
    return str(value) if isinstance(value, str | bool) else format_value(value, unit or COUNT)
