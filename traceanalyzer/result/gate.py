"""What passes and what fails: the exit code, and what the formats that a pipeline reads say of it."""

from __future__ import annotations

from traceanalyzer.exit_codes import FAILED, NOT_JUDGED, PASSED
from traceanalyzer.result.document import Result
from traceanalyzer.vocabulary.levels import MEDIUM, SEVERITIES

DAMAGED = MEDIUM
"""From this severity on, damage may hide what a gate looks for."""


def at_least(severity: str, least: str) -> bool:
    """Whether a severity is as high as another."""
    return SEVERITIES.index(severity) >= SEVERITIES.index(least)


def exit_code(result: Result, fail_on: str | None) -> int:
    """NOT_JUDGED when nothing could be judged, FAILED when a finding is severe enough, else PASSED.

    A gate is not passed by what is missing: with `fail_on`, a damaged trace without such a finding is not judged.
    """
    if not result.judged:
        return NOT_JUDGED
    if fail_on is None:
        return PASSED
    if any(at_least(finding.severity, fail_on) for finding in result.findings):
        return FAILED
    return NOT_JUDGED if any(at_least(note.severity, DAMAGED) for note in result.health) else PASSED
