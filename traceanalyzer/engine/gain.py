"""What a fix gives sets the order of the findings and their severity."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from traceanalyzer.result.document import Finding
from traceanalyzer.vocabulary.levels import HIGH, INFO, LOW, MEDIUM, SEVERITIES

# The share of the window from which a saving has a level; below the last it is info.
LADDER = ((0.25, HIGH), (0.10, MEDIUM), (0.03, LOW))

HEALTH = "TRC"
ALIKE = 0.01
"""Gains are estimates; a hundredth of the largest makes no difference."""


def level(share: float) -> str:
    """The severity of what saves this share of the window."""
    return next((name for least, name in LADDER if share >= least), INFO)


def by_gain(findings: Iterable[Finding]) -> list[Finding]:
    """The findings by the time that a fix saves, the most first; those about the trace's health come last.

    Of gains that are `ALIKE`, that on one GPU comes before what it does to the others: a checkpoint before the barrier in which they
    wait for it.
    """
    found = list(findings)
    unit = max((f.saving.gain_ns for f in found), default=0.0) * ALIKE or 1.0
    return sorted(
        found,
        key=lambda f: (
            -round(f.saving.gain_ns / unit),
            f.saving.gpu_count > 1,
            -f.saving.gain_ns,
            f.rule.startswith(HEALTH),
            -SEVERITIES.index(f.severity),
            f.rule,
            _key(f.scope.rank),
            _key(f.scope.device),
        ),
    )


def level_findings(findings: Iterable[Finding], own_ladders: Collection[str]) -> list[Finding]:
    """The findings with the severity of what a fix gives; rules with a ladder of their own are never above that ladder.

    What claims no time keeps its level: memory, health.
    """
    return [replace(finding, severity=_level(finding, finding.rule in own_ladders)) for finding in findings]


def _level(finding: Finding, own_ladder: bool) -> str:
    if finding.saving.recoverable_ns is None or (own_ladder and not finding.saving.recoverable_ns):
        return finding.severity
    gained = level(finding.saving.gain_share)
    return min(gained, finding.severity, key=SEVERITIES.index) if own_ladder else gained


def _key(number: int | None) -> int:
    return -1 if number is None else number
