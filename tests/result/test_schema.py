"""The published JSON Schemas of our documents are those of the code, and real documents keep to them."""

from __future__ import annotations

import json
from inspect import cleandoc
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from tests.support.comparisons import baseline, capture, comparison, refused
from traceanalyzer.result.captures.baseline_file import baseline_bytes
from traceanalyzer.result.captures.capture import Baseline
from traceanalyzer.result.captures.check import Check
from traceanalyzer.result.comparing.comparison import Comparison
from traceanalyzer.result.document import Result

DOCS = Path(__file__).parents[2] / "docs"
DOCUMENTS: dict[str, type] = {"result": Result, "baseline": Baseline, "comparison": Comparison, "check": Check}
"""What is published, by the name of the file: docs/NAME.schema.json."""
GOLDEN = sorted((Path(__file__).parents[1] / "golden").glob("*.json"))


def place_of(name: str) -> Path:
    return DOCS / f"{name}.schema.json"


def schema_text(name: str) -> str:
    """After an intended change of a document run: python -m tests.result.test_schema"""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **alike(msgspec.json.schema(DOCUMENTS[name]))}
    return json.dumps(schema, indent=2) + "\n"


def alike(schema: Any) -> Any:
    """As all releases of msgspec write it: some indent descriptions as the code does, some say that a list is empty by default."""
    if isinstance(schema, list):
        return [alike(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: alike(value) for key, value in schema.items() if key != "default" or value not in ([], {})}
    return kept | {"description": cleandoc(text)} if isinstance(text := kept.get("description"), str) else kept


def published(name: str) -> dict[str, Any]:
    schema: dict[str, Any] = json.loads(place_of(name).read_text())
    return schema


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_published_schema_is_current(name):
    assert place_of(name).read_text() == schema_text(name)


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda p: p.stem)
def test_results_keep_to_it(golden):
    document = json.loads(golden.read_text())
    jsonschema.validate(document, published("result"))
    document["devices"][0]["window_ns"] = "long"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, published("result"))


def test_baselines_keep_to_it():
    document = json.loads(baseline_bytes(baseline(capture(), capture("second.json", 18_000_000))))
    jsonschema.validate(document, published("baseline"))
    document["captures"][1]["unit"]["time"]["mean_ns"] = "long"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, published("baseline"))


@pytest.mark.parametrize("made", [comparison(), refused()], ids=["compared", "refused"])
def test_comparisons_keep_to_it(made):
    document = json.loads(made.to_json())
    jsonschema.validate(document, published("comparison"))
    document["base"]["unit_ns"] = "long"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, published("comparison"))


if __name__ == "__main__":
    for name in DOCUMENTS:
        place_of(name).write_text(schema_text(name))
