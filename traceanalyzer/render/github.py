"""The result as workflow commands of GitHub Actions: annotations of a run, and of source lines where they are known."""

from __future__ import annotations

from collections import Counter

from traceanalyzer.exit_codes import NOT_JUDGED
from traceanalyzer.render.findings import gain
from traceanalyzer.render.lines import printable
from traceanalyzer.render.source_lines import line_in_repository
from traceanalyzer.result.document import Finding, Result
from traceanalyzer.result.gate import at_least, exit_code
from traceanalyzer.result.ranks import notes
from traceanalyzer.result.settings import settings_sentence
from traceanalyzer.result.words.gain import is_of_all
from traceanalyzer.units import format_count
from traceanalyzer.vocabulary.levels import HIGH, MEDIUM

MOST = 10
"""GitHub shows so many annotations of each kind for a step."""
NO_MORE = 4_000
"""An annotation holds 4,096 characters."""
KINDS = ("error", "warning", "notice")
NAME = "traceanalyzer"


def render_github(result: Result, fail_on: str | None = None) -> str:
    """One line an annotation, ending in a newline: the headline, health, then the findings, at most `MOST` of each kind.

    With `fail_on` what fails the gate is an error and nothing else is; without it an error is a finding of high severity.
    """
    stops = exit_code(result, fail_on) == NOT_JUDGED
    written = [("error" if stops else "notice", command("error" if stops else "notice", result.verdict.headline, NAME))]
    for note in notes(result.health):
        kind = "warning" if at_least(note.severity, MEDIUM) else "notice"
        written.append((kind, command(kind, note.message, f"{note.code} Health of the trace")))
    if settings := settings_sentence(result.settings):
        written.append(("notice", command("notice", settings, NAME)))
    for rule in result.rules:
        if rule.outcome == "error":
            written.append(("warning", command("warning", rule.reason or "no reason given", f"{rule.rule} failed")))
    everywhere = is_of_all(result)
    written += [_finding(finding, _kind(finding.severity, fail_on), everywhere) for finding in result.findings]
    shown: Counter[str] = Counter()
    left: Counter[str] = Counter()
    lines = []
    for kind, line in written:
        # The last notice says how many more there are.
        if shown[kind] < (MOST - 1 if kind == "notice" else MOST):
            shown[kind] += 1
            lines.append(line)
        else:
            left[kind] += 1
    if left:
        counted = ", ".join(
            f"{format_count(left[kind])} {kind}{'s' if left[kind] > 1 else ''}" for kind in KINDS if left[kind]
        )
        lines.append(
            command("notice", f"and {counted} more; all of them are in the report and in the result as JSON", NAME)
        )
    return "\n".join(lines) + "\n"


def command(kind: str, message: str, title: str, at: tuple[str, int] | None = None) -> str:
    """A workflow command, with what would end its message or one of its properties escaped."""
    places = {"file": at[0], "line": str(at[1])} if at else {}
    properties = ",".join(f"{name}={_property(value)}" for name, value in (places | {"title": title}).items())
    return f"::{kind} {properties}::{_data(message)}"


def _finding(finding: Finding, kind: str, everywhere: bool) -> tuple[str, str]:
    words = f"{finding.message}\n{gain(finding, everywhere)}" if finding.saving.pays else finding.message
    return kind, command(kind, words, f"{finding.rule} {finding.title}", line_in_repository(finding.source))


def _kind(severity: str, fail_on: str | None) -> str:
    if at_least(severity, fail_on or HIGH):
        return "error"
    return "warning" if at_least(severity, MEDIUM) else "notice"


def _data(text: str) -> str:
    lines = "\n".join(printable(line) for line in text[:NO_MORE].splitlines())
    return lines.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
