"""What the timeline's scripts know of the findings: where their evidence lies, and what they say."""

from __future__ import annotations

from typing import Any

from traceanalyzer.report.sections.findings_view import EvidenceView, FindingView


def page_data(findings: list[FindingView]) -> dict[str, Any]:
    """`evidence` of each finding that has a place on the timeline, by its number: [from, to, group, label] an item, in ns since the
    origin, None where it has no place; `findings` says of the same [title, severity, message, gain]; `keys` is each finding's number by
    its key, and `rules` the first finding of each rule."""
    placed = {str(view.number): view for view in findings if view.first_place is not None}
    return {
        "evidence": {number: [_item(item) for item in view.evidence] for number, view in placed.items()},
        "findings": {number: _words(view) for number, view in placed.items()},
        "keys": {view.key: view.number for view in findings},
        "rules": {view.finding.rule: view.number for view in reversed(findings)},
    }


def _item(item: EvidenceView) -> list[Any] | None:
    place = item.place
    return None if place is None else [place.start, place.end, place.group, item.label]


def _words(view: FindingView) -> list[str | None]:
    finding = view.finding
    return [
        f"{finding.rule} {finding.title}",
        finding.severity,
        finding.message,
        view.gain.words if view.gain else None,
    ]
