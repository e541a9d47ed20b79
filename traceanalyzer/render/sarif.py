"""The result as SARIF 2.1.0 (OASIS, errata 01), as code scanning reads it.

Fingerprints hold neither times nor figures, so that the same program, recorded twice, gives the same ones.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import msgspec

from traceanalyzer.render.lines import printable
from traceanalyzer.render.md import marked
from traceanalyzer.render.md import text as markdown_text
from traceanalyzer.render.source_lines import line_in_repository
from traceanalyzer.result.advice import plain
from traceanalyzer.result.document import Finding, Result, RuleOutcome
from traceanalyzer.result.ranks import notes, rank_list
from traceanalyzer.result.settings import settings_sentence
from traceanalyzer.vocabulary.levels import COULD_NOT_JUDGE, ERROR, FIRED, HIGH, INFO, LOW, MEDIUM

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
MOST = 5_000
"""Code scanning on GitHub keeps so many results of a run."""
LIMIT = 9_500_000
"""And takes 10 MB, packed; so large a file need not be packed."""
LEVELS = {HIGH: "error", MEDIUM: "warning", LOW: "note", INFO: "note"}
LONGEST = 1_000
"""Titles and messages are cut to so many characters."""
ROOT = "%SRCROOT%"
NAME = "traceanalyzer"


def render_sarif(result: Result) -> bytes:
    """One run, as indented JSON ending in a newline.

    Each finding is a result; health, and the rules that could not judge, are notifications.
    """
    most = min(MOST, len(result.findings))
    while len(document := _document(result, most)) > LIMIT and most > 1:
        most //= 2
    return document


def _document(result: Result, most: int) -> bytes:
    known = {rule.rule for rule in result.rules}
    unknown = {finding.rule: finding.title for finding in result.findings if finding.rule not in known}
    rules = [*result.rules, *(RuleOutcome(rule, FIRED, None, title) for rule, title in unknown.items())]
    own: dict[str, list[Finding]] = {}
    for finding in result.findings:
        own.setdefault(finding.rule, []).append(finding)
    index = {rule.rule: number for number, rule in enumerate(rules)}
    marks = fingerprints(result.findings)[:most]
    version = result.tool.get("version")
    driver = {
        "name": result.tool.get("name", NAME),
        **({"semanticVersion": version} if version else {}),
        "rules": [_rule(rule, own.get(rule.rule, [])) for rule in rules],
    }
    run: dict[str, Any] = {
        "tool": {"driver": driver},
        "automationDetails": {"id": f"{NAME}/"},
        "invocations": [
            {
                "executionSuccessful": result.judged and all(rule.outcome != ERROR for rule in result.rules),
                "toolExecutionNotifications": [*_notifications(result, index, len(result.findings) - most)],
            }
        ],
        "results": [
            _result(finding, index[finding.rule], mark, result)
            for finding, mark in zip(result.findings, marks, strict=False)
        ],
        "columnKind": "unicodeCodePoints",
        "properties": {"headline": _line(result.verdict.headline), "boundBy": result.verdict.bound_by},
    }
    document = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"


def fingerprints(findings: list[Finding]) -> list[str]:
    """One for each finding: rule and GPU, and where several agree in these, their number."""
    seen: Counter[str] = Counter()
    found = []
    for finding in findings:
        what = f"{finding.rule}|{finding.scope.rank}|{finding.scope.device}"
        seen[what] += 1
        found.append(hashlib.sha256(f"{what}|{seen[what]}".encode("utf-8", "replace")).hexdigest()[:16])
    return found


def _rule(rule: RuleOutcome, own: list[Finding]) -> dict[str, Any]:
    """What a rule says of itself, and the advice of its `own` findings."""
    advice = list(dict.fromkeys(words for one in own for entry in one.recommend for words in entry.values()))
    title = _line(rule.title or rule.rule)
    why = _line(rule.why or title)
    wrong = [_line(words) for words in rule.false_positives]
    plain_advice = [_line(plain(words)) for words in advice]
    marked_advice = [f"- {marked(_line(words))}" for words in advice]
    sections = [
        ("Why", [why], _bullets([why])),
        ("What to change", plain_advice, marked_advice),
        ("False positives", wrong, _bullets(wrong)),
    ]
    said = [one for one in sections if one[1]]
    worst = own[0].severity if own else LOW
    return {
        "id": _line(rule.rule),
        "name": _pascal(own[0].slug if own else title),
        "shortDescription": {"text": title},
        "fullDescription": {"text": why},
        "help": {
            "text": "\n\n".join(f"{head}: " + "\n".join(lines) for head, lines, _ in said),
            "markdown": "\n\n".join("\n".join([f"**{head}**", "", *bullets]) for head, _, bullets in said),
        },
        "defaultConfiguration": {"level": LEVELS.get(worst, "note")},
        "properties": {"tags": ["performance"], "outcome": rule.outcome},
    }


def _bullets(lines: list[str]) -> list[str]:
    return [f"- {markdown_text(line)}" for line in lines]


def _result(finding: Finding, rule_index: int, mark: str, result: Result) -> dict[str, Any]:
    saving = finding.saving
    properties = {
        "severity": finding.severity,
        "confidence": finding.confidence,
        "rank": finding.scope.rank,
        "device": finding.scope.device,
        "recoverable_ns": saving.recoverable_ns,
        "recoverable_share": saving.recoverable_share,
        "per_step_ns": saving.per_step_ns,
        "predicted_speedup": saving.predicted_speedup,
        "predicted_speedup_range": saving.predicted_speedup_range,
        "prediction_note": saving.prediction_note,
        "speedup_ceiling": saving.speedup_ceiling,
        "place": _line(saving.place.name) if saving.place else None,
        "place_predicted_speedup": saving.place.predicted_speedup if saving.place else None,
    }
    return {
        "ruleId": _line(finding.rule),
        "ruleIndex": rule_index,
        "level": LEVELS.get(finding.severity, "note"),
        "message": {"text": _line(finding.message) or _line(finding.title)},
        "locations": [_location(finding, result)],
        "partialFingerprints": {"primaryLocationLineHash": f"{mark}:1", f"{NAME}/v1": mark},
        "properties": {name: value for name, value in properties.items() if value is not None},
    }


def _location(finding: Finding, result: Result) -> dict[str, Any]:
    """The line of the program, if its file may lie in the repository; else the trace that the finding is about."""
    if finding.source and (found := line_in_repository(finding.source)):
        place = {"artifactLocation": {"uri": _uri(found[0]), "uriBaseId": ROOT}, "region": {"startLine": found[1]}}
        function = {"name": _line(finding.source.function), "kind": "function"}
        return {"physicalLocation": place, "logicalLocations": [function]}
    inputs = [one for one in result.inputs if one.rank == finding.scope.rank] or result.inputs
    # GitHub refuses a result without a place, and a place without a line.
    uri = _uri(inputs[0].path) if inputs else "trace"
    return {"physicalLocation": {"artifactLocation": {"uri": uri}, "region": {"startLine": 1}}}


def _notifications(result: Result, index: dict[str, int], left: int) -> Iterator[dict[str, Any]]:
    for note in notes(result.health):
        whose = f" (ranks {rank_list(note.ranks)})" if note.ranks else ""
        yield _notification(f"{note.message}{whose}", LEVELS.get(note.severity, "note"), note.code, index)
    if settings := settings_sentence(result.settings):
        yield _notification(settings, "note", None, index)
    for rule in result.rules:
        if rule.outcome in (COULD_NOT_JUDGE, ERROR):
            level = "error" if rule.outcome == ERROR else "warning"
            words = f"{rule.rule} {rule.outcome.replace('_', ' ')}: {rule.reason or 'no reason given'}"
            yield _notification(words, level, rule.rule, index)
    if left > 0:
        yield _notification(
            f"{left:,} more findings, which give less, are only in the result as JSON", "note", None, index
        )


def _notification(words: str, level: str, rule: str | None, index: dict[str, int]) -> dict[str, Any]:
    about = {"associatedRule": {"id": _line(rule), "index": index[rule]}} if rule in index and rule else {}
    return {"level": level, "message": {"text": _line(words)}, **about}


def _line(words: str) -> str:
    return printable(" ".join(words.split())[:LONGEST])


def _pascal(words: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in re.findall(r"[A-Za-z0-9]+", words)) or "Rule"


def _uri(path: str) -> str:
    """A path as a reference (RFC 3986), in which a colon is no scheme's."""
    return quote(path.replace("\\", "/"), safe="/", errors="replace") or "trace"
