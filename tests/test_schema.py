"""The published JSON Schema of the result document is the one of the code, and real results keep to it."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import msgspec
import pytest

from traceanalyzer.result.document import Result

PUBLISHED = Path(__file__).parent.parent / "docs" / "result.schema.json"


def schema_text() -> str:
    """After an intended change of the document run: python -m tests.test_schema"""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **msgspec.json.schema(Result)}
    return json.dumps(schema, indent=2) + "\n"


def test_the_published_schema_is_current():
    assert PUBLISHED.read_text() == schema_text()


@pytest.mark.parametrize("golden", sorted((Path(__file__).parent / "golden").glob("*.json")), ids=lambda p: p.stem)
def test_results_keep_to_it(golden):
    document = json.loads(golden.read_text())
    jsonschema.validate(document, json.loads(PUBLISHED.read_text()))
    document["devices"][0]["window_ns"] = "long"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, json.loads(PUBLISHED.read_text()))


if __name__ == "__main__":
    PUBLISHED.write_text(schema_text())
