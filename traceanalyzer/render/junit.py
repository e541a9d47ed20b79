"""The result as JUnit XML: one test case a rule, and one that asks whether the trace could be judged at all."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from traceanalyzer.exit_codes import NOT_JUDGED
from traceanalyzer.render.findings import gain
from traceanalyzer.result.advice import plain
from traceanalyzer.result.document import Finding, Result, RuleOutcome
from traceanalyzer.result.gate import at_least, exit_code
from traceanalyzer.result.ranks import notes
from traceanalyzer.result.words.gain import is_of_all
from traceanalyzer.result.words.gpu_names import gpu_name
from traceanalyzer.vocabulary.levels import MEDIUM

USUAL = MEDIUM
"""A finding fails its rule from this severity on, where nothing else is asked for."""
MOST = 20
"""Findings of one rule that are written out."""
NAME = "traceanalyzer"
_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render_junit(result: Result, fail_on: str | None = None) -> bytes:
    """UTF-8 XML. Rules fail with findings of at least `fail_on`; what `exit_code` does not let pass does not pass here either."""
    own: dict[str, list[Finding]] = {}
    for finding in result.findings:
        own.setdefault(finding.rule, []).append(finding)
    suite = ElementTree.Element("testsuite", name=NAME)
    _trace(suite, result, fail_on)
    everywhere = is_of_all(result)
    for rule in result.rules:
        _case(suite, rule, own.pop(rule.rule, []), fail_on or USUAL, everywhere)
    for rule_id, findings in own.items():
        _case(suite, RuleOutcome(rule_id, "fired", None, findings[0].title), findings, fail_on or USUAL, everywhere)
    return document(suite)


def document(suite: ElementTree.Element) -> bytes:
    """UTF-8 XML of a suite, with its cases counted."""
    suites = ElementTree.Element("testsuites", name=suite.get("name", NAME))
    suites.append(suite)
    for counted in (suites, suite):
        counted.set("tests", str(len(suite)))
        for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            if counted is suite or tag != "skipped":
                counted.set(attribute, str(len(suite.findall(f"testcase/{tag}"))))
    ElementTree.indent(suites)
    written: bytes = ElementTree.tostring(suites, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def _trace(suite: ElementTree.Element, result: Result, fail_on: str | None) -> None:
    """Whether the trace could be judged: an error where it could not, or where damage may hide what the gate looks for."""
    case = ElementTree.SubElement(suite, "testcase", classname=f"{NAME}.trace", name="The trace can be judged")
    health = "\n".join(f"{note.code} ({note.severity}): {note.message}" for note in notes(result.health))
    if exit_code(result, fail_on) == NOT_JUDGED:
        why = (
            result.verdict.headline
            if not result.judged
            else "The trace is damaged, which may hide what the gate looks for."
        )
        _say(case, "error", why, health or why)
    elif health:
        ElementTree.SubElement(case, "system-out").text = _legal(health)


def _case(suite: ElementTree.Element, rule: RuleOutcome, findings: list[Finding], least: str, everywhere: bool) -> None:
    family = (re.match(r"[A-Za-z]+", rule.rule) or ["rules"])[0]
    name = _legal(f"{rule.rule} {rule.title}".strip())
    case = ElementTree.SubElement(suite, "testcase", classname=f"{NAME}.{family}", name=name)
    failing = [finding for finding in findings if at_least(finding.severity, least)]
    if failing:
        first = failing[0]
        more = f" (and {len(failing) - 1} more)" if len(failing) > 1 else ""
        _say(
            case,
            "failure",
            f"{first.severity}: {first.message}{more}",
            _written_out(failing, everywhere),
            first.severity,
        )
    elif rule.outcome == "error":
        _say(case, "error", rule.reason or "no reason given")
    elif rule.outcome in ("not_applicable", "could_not_judge"):
        words = f"{rule.outcome.replace('_', ' ')}: {rule.reason or 'no reason given'}"
        ElementTree.SubElement(case, "skipped", message=_legal(words))
    if len(failing) < len(findings):
        below = _written_out([finding for finding in findings if finding not in failing], everywhere)
        ElementTree.SubElement(case, "system-out").text = f"Below {least}, so not counted as a failure:\n{below}"


def _say(case: ElementTree.Element, tag: str, message: str, text: str = "", kind: str | None = None) -> None:
    element = ElementTree.SubElement(case, tag, message=_legal(message), type=kind or tag)
    element.text = _legal(text or message)


def _written_out(findings: list[Finding], everywhere: bool) -> str:
    lines = []
    for finding in findings[:MOST]:
        where = gpu_name(finding.scope.rank, finding.scope.device) or "the whole job"
        lines.append(f"[{finding.severity}] {where}: {finding.message}\n  {gain(finding, everywhere)}")
    advice = dict.fromkeys(words for finding in findings for entry in finding.recommend for words in entry.values())
    left = len(findings) - MOST
    return _legal(
        "\n".join([*lines, *([f"and {left:,} more"] if left > 0 else []), *(f"-> {plain(words)}" for words in advice)])
    )


def _legal(text: str) -> str:
    """The text without the characters that XML 1.0 does not allow (2.2)."""
    return _ILLEGAL.sub("?", text)
