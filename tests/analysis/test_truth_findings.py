"""What the rules find in traces with planted faults: every line of the corpus's own list of faults."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.places import CORPUS, needs_corpus
from tests.support.results import result_of
from traceanalyzer.result.document import Finding, Result

MOST_LEFT = 0.05
"""What a rule may still recover in the program without the fault, as a share of the window."""


def truth(section: str) -> dict[str, dict[str, Any]]:
    path = CORPUS / "TRUTH.yaml"
    return yaml.safe_load(path.read_text())[section] if path.is_file() else {}


def trace(section: str, name: str) -> Path:
    return CORPUS / section / (f"{name}.pt.trace.json.gz" if section == "kineto" else name)


SLOW = [(section, name) for section in ("kineto", "multirank") for name in truth(section)]
FIXED = [(section, name) for section, name in SLOW if "fixed" in truth(section)[name]]


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
    if "names_rank" in find:
        assert f"rank {find['names_rank']}" in findings[0].message.lower()
    if "never_at_medium" in find:
        assert not [f.rule for f in findings if f.severity in ("medium", "high") and f.rule != "KRN005"]


@needs_corpus
@pytest.mark.parametrize(("section", "name"), SLOW)
def test_slow(section, name):
    check_slow(result_of(trace(section, f"{name}.slow")), truth(section)[name]["slow_find"])


@needs_corpus
@pytest.mark.parametrize(("section", "name"), FIXED)
def test_fixed(section, name):
    entry, result = truth(section)[name], result_of(trace(section, f"{name}.fixed"))
    assert not [outcome for outcome in result.rules if outcome.outcome == "error"]
    for finding in result.findings:
        assert finding.rule not in entry.get("fixed_never", ()) or recovered(finding) <= MOST_LEFT
    assert not result.findings or result.findings[0].rule not in entry.get("fixed_never_first", ())


@needs_corpus
@pytest.mark.parametrize("name", truth("nsys"))
def test_nsys(name):
    check_slow(result_of(CORPUS / "nsys" / f"{name}.sqlite"), truth("nsys")[name]["slow_find"])
