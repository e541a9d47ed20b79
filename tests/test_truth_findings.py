"""What the rules find in traces with planted faults: every line of the corpus's own list of faults."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

import traceanalyzer as ta
from tests.support.places import CORPUS, needs_corpus
from traceanalyzer.result.document import Finding, Result

MOST_LEFT = 0.05
"""What a rule may still recover in the program without the fault, as a share of the window."""


def truth(section: str) -> dict[str, dict[str, Any]]:
    path = CORPUS / "TRUTH.yaml"
    return yaml.safe_load(path.read_text())[section] if path.is_file() else {}


@cache
def analysed(path: Path) -> Result:
    return ta.analyze(ta.load(path))


def trace(name: str) -> Path:
    return CORPUS / "kineto" / f"{name}.pt.trace.json.gz"


def recovered(finding: Finding) -> float:
    return finding.saving.recoverable_share or 0.0


def check_slow(result: Result, find: dict[str, Any]) -> None:
    findings = result.findings
    assert not [outcome for outcome in result.rules if outcome.outcome == "error"]
    if "first" in find:
        assert findings[0].rule in find["first"], [(f.rule, recovered(f)) for f in findings]
    assert set(find.get("some", ())) & {f.rule for f in findings} or "some" not in find
    assert not set(find.get("never", ())) & {f.rule for f in findings}
    if "names" in find:
        assert find["names"] in findings[0].message
    if "never_at_medium" in find:
        assert not [f.rule for f in findings if f.severity in ("medium", "high") and f.rule != "KRN005"]


@needs_corpus
@pytest.mark.parametrize("name", truth("kineto"))
def test_slow(name):
    check_slow(analysed(trace(f"{name}.slow")), truth("kineto")[name]["slow_find"])


@needs_corpus
@pytest.mark.parametrize("name", [name for name, entry in truth("kineto").items() if "fixed" in entry])
def test_fixed(name):
    entry, result = truth("kineto")[name], analysed(trace(f"{name}.fixed"))
    assert not [outcome for outcome in result.rules if outcome.outcome == "error"]
    for finding in result.findings:
        assert finding.rule not in entry.get("fixed_never", ()) or recovered(finding) <= MOST_LEFT
    assert not result.findings or result.findings[0].rule not in entry.get("fixed_never_first", ())


@needs_corpus
@pytest.mark.parametrize("name", truth("nsys"))
def test_nsys(name):
    check_slow(analysed(CORPUS / "nsys" / f"{name}.sqlite"), truth("nsys")[name]["slow_find"])
