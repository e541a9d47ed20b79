"""The published JSON Schema of a rule file is the one of the code, and the shipped rules keep to it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from traceanalyzer.engine.rules.library import rule_files
from traceanalyzer.engine.rules.rule_schema import rule_schema
from traceanalyzer.engine.rules.yamlfile import read_yaml

PUBLISHED = Path(__file__).parent.parent.parent / "docs" / "rule.schema.json"
RULES = dict(rule_files())
VALIDATOR = jsonschema.Draft202012Validator(rule_schema())


def schema_text() -> str:
    """After an intended change of the language or of a table run: python -m tests.engine.test_rule_schema"""
    return json.dumps(rule_schema(), indent=1, ensure_ascii=False) + "\n"


def test_the_published_schema_is_current() -> None:
    assert PUBLISHED.read_text(encoding="utf-8") == schema_text()


def test_it_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(rule_schema())


@pytest.mark.parametrize("name", RULES)
def test_the_shipped_rules_keep_to_it(name: str) -> None:
    VALIDATOR.validate(read_yaml(RULES[name]).data)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("id", "input1"),
        ("status", "ready"),
        ("from", "gasp"),
        ("claims", ["idle.inptu"]),
        ("limit", 0),
        ("havving", "true"),
        ("params", {"least": {"default": "5%"}}),
        ("tests", [{"given": "launch_bond", "expect": "fires"}]),
        ("tests", [{"given": {"gaps": [{"caus": "input"}]}, "expect": "fires"}]),
        ("tests", [{"given": {}, "expect": {"levle": "high"}}]),
    ],
)
def test_it_refuses_what_the_linter_refuses(key: str, value: Any) -> None:
    rule = read_yaml(RULES["rules/input/INP001-data-loader-stall.yaml"]).data
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate({**rule, key: value})


if __name__ == "__main__":
    PUBLISHED.write_text(schema_text(), encoding="utf-8")
