"""What a fix gives sets the order of the findings and their severity."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
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
    wait for it. So does one that gives a larger share of that GPU's time than all others gain by not waiting for it.
    """
    found = list(findings)
    gains = {id(f): _gain(f, found) for f in found}
    unit = max(gains.values(), default=0.0) * ALIKE or 1.0
    return sorted(
        found,
        key=lambda f: (
            -round(gains[id(f)] / unit),
            f.saving.gpu_count > 1,
            -gains[id(f)],
            f.rule.startswith(HEALTH),
            -SEVERITIES.index(f.severity),
            f.rule,
            _key(f.scope.rank),
            _key(f.scope.device),
        ),
    )


def _gain(finding: Finding, found: Sequence[Finding]) -> float:
    """What a finding gives in ns; of one about others that wait for a GPU no more than the cause on that GPU gives, where that is as
    much of a share: windows are not equally long."""
    own = finding.saving
    if own.gpu_count == 1 or finding.scope.rank is None:
        return own.gain_ns
    causes = (f.saving for f in found if f.saving.gpu_count == 1 and f.scope == finding.scope)
    gains = [cause.gain_ns for cause in causes if cause.gain_share >= own.gain_share]
    return min(own.gain_ns, max(gains)) if gains else own.gain_ns


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
