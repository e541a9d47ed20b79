"""Small inputs rebuilt from public reports, one wrong or missing answer each, and what must hold of the answer to each of them."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.places import CORPUS, needs_corpus
from tests.support.results import result_of
from traceanalyzer.exit_codes import NOT_JUDGED, PASSED
from traceanalyzer.render.text import render_text
from traceanalyzer.result.document import Finding

REPORTS = CORPUS / "reports"
TRUTH: dict[str, dict[str, Any]] = (
    yaml.safe_load((REPORTS / "TRUTH.yaml").read_text()) if (REPORTS / "TRUTH.yaml").is_file() else {}
)


def input_of(name: str) -> Path:
    return next(iter(sorted([*REPORTS.glob(f"{name}.*"), *REPORTS.glob(name)])))


def said(text: str, want: dict[str, Any], key: str) -> None:
    if key in want:
        assert re.search(want[key], text, re.IGNORECASE), text
    if f"{key}_not" in want:
        assert not re.search(want[f"{key}_not"], text, re.IGNORECASE), text


def predicted(findings: list[Finding]) -> None:
    """No prediction is above what its own finding may recover, unless the finding says which further time goes with it."""
    for one in findings:
        speedup, ceiling = one.saving.predicted_speedup, one.saving.speedup_ceiling
        if speedup and ceiling and not one.saving.prediction_note:
            assert speedup <= 1.03 * ceiling, one.rule


@needs_corpus
@pytest.mark.parametrize("name", TRUTH)
def test_report(name: str) -> None:
    want, path = TRUTH[name], input_of(name)
    result = result_of(path)
    text = render_text(result)
    findings = [one for one in result.findings if not one.rule.startswith("TRC")]
    rules = [one.rule for one in findings]
    shown = " ".join(re.sub(rf"\S*{re.escape(path.name)}", "INPUT", text).replace(name, "INPUT").split())
    said(result.verdict.headline, want, "headline")
    said(shown, want, "text")
    assert want.get("exit", PASSED) == (PASSED if result.judged else NOT_JUDGED) or "exit" not in want
    assert rules[:1] and rules[0] in want["first"] if "first" in want else True
    assert set(rules) & set(want.get("some", rules)) or "some" not in want
    assert not set(rules) & set(want.get("never", ()))
    if "speedup" in want:
        least, most = want["speedup"]
        assert least <= (findings[0].saving.predicted_speedup or 0) <= most
    for one in findings:
        least, most = want.get("rule_speedup", {}).get(one.rule, (0, float("inf")))
        assert least <= (one.saving.predicted_speedup or least) <= most, one.rule
    predicted(findings)
    lines = Counter(line.strip() for line in text.splitlines() if len(line.strip()) > 25)
    assert max(lines.values()) <= want.get("repeats", len(text))
