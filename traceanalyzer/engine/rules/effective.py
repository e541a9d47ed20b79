"""The settings in effect: what of the rules, and of what they read, is not as shipped."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec

from traceanalyzer.config import Config
from traceanalyzer.engine.rules.library import shipped_ids
from traceanalyzer.engine.rules.rule import Rule
from traceanalyzer.result.settings import Settings, Threshold


def settings_of(config: Config, rules: Sequence[Rule]) -> Settings:
    """What `config` made of the `rules`, as of `examine.rules_for`. The order in which they were given does not count."""
    shipped, by_id = shipped_ids(), sorted(rules, key=lambda rule: rule.id)
    return Settings(
        thresholds=[
            Threshold(rule.id, name, param.value, param.default, param.kind.unit)
            for rule in by_id
            for name, param in rule.params.items()
            if param.default is not None and param.default != param.value
        ],
        disabled_rules=sorted(config.disable),
        own_rules={rule.id: _digest(rule) for rule in by_id if rule.id not in shipped},
        input_patterns=sorted(set(config.input_patterns)),
        communication_patterns=sorted(set(config.communication_patterns)),
    )


def _digest(rule: Rule) -> str:
    return hashlib.sha256(msgspec.json.encode(rule.document.data, order="sorted")).hexdigest()
