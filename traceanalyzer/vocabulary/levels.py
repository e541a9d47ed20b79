"""How much a finding or a note matters, how sure it is, and what a rule came to."""

from __future__ import annotations

from typing import Final, Literal

Severity = Literal["info", "low", "medium", "high"]
Confidence = Literal["low", "medium", "high"]
Outcome = Literal["fired", "clean", "not_applicable", "could_not_judge", "error"]

INFO: Final = "info"
LOW: Final = "low"
MEDIUM: Final = "medium"
HIGH: Final = "high"
SEVERITIES: tuple[Severity, ...] = (INFO, LOW, MEDIUM, HIGH)
"""From what is only said to what is grave."""
CONFIDENCES: tuple[Confidence, ...] = (LOW, MEDIUM, HIGH)

FIRED: Final = "fired"
CLEAN: Final = "clean"
NOT_APPLICABLE: Final = "not_applicable"
COULD_NOT_JUDGE: Final = "could_not_judge"
ERROR: Final = "error"
OUTCOMES: tuple[Outcome, ...] = (FIRED, CLEAN, NOT_APPLICABLE, COULD_NOT_JUDGE, ERROR)
JUDGED: tuple[Outcome, ...] = (FIRED, CLEAN)
"""Outcomes of rules that looked at all that they need."""
