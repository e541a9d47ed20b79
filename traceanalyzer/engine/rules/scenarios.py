"""The scenarios that travel with the rules: small traces by name, for the tests of rules (`given: launch_bound`)."""

from __future__ import annotations

from functools import cache
from typing import Any

from traceanalyzer.engine.rules.yamlfile import read_yaml
from traceanalyzer.records import dataclass
from traceanalyzer.resources import data_folder

FILE = "scenarios.yaml"


@dataclass(frozen=True)
class NamedScenario:
    """`about` is a sentence on what one would see on the timeline, `given` the rows of its tables."""

    about: str
    given: dict[str, Any]


@cache
def named_scenarios() -> dict[str, NamedScenario]:
    """Every shipped scenario by its name, in the order of the file."""
    text = (data_folder("rules") / FILE).read_text(encoding="utf-8")
    return {name: NamedScenario(entry["about"], entry["given"]) for name, entry in read_yaml(text).data.items()}
