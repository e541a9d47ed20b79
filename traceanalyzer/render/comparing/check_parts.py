"""What all formats of a check share."""

from __future__ import annotations

from traceanalyzer.result.captures.check import Check, Held
from traceanalyzer.units import format_value
from traceanalyzer.vocabulary.levels import COULD_NOT_JUDGE


def sections(check: Check) -> list[tuple[str, list[Held]]]:
    """Assertions by what they came to, the gravest first; without those that nothing fell to."""
    failed = [one for one in check.assertions if one.outcome == "failed"]
    found = {
        "broken": [one for one in failed if one.level == "error"],
        "warned": [one for one in failed if one.level != "error"],
        "could not judge": [one for one in check.assertions if one.outcome == COULD_NOT_JUDGE],
        "kept": [one for one in check.assertions if one.outcome == "passed"],
        "off": [one for one in check.assertions if one.outcome == "off"],
    }
    return [(title, held) for title, held in found.items() if held]


def where(check: Check, one: Held) -> str:
    """The GPU that an assertion is broken on and, of several captures, which one that is."""
    told = len(check.captures) > 1 and one.capture is not None and one.outcome == "failed"
    place = check.captures[one.capture or 0].place if told else None
    return ", ".join(filter(None, (place, one.where)))


def several(check: Check, one: Held) -> list[str]:
    """What each of several captures says, such as "run1 31%"; none of a single one."""
    if len(check.captures) < 2:
        return []
    return [
        f"{check.captures[reading.capture].place} "
        f"{'not known' if reading.value is None else format_value(reading.value, one.unit)}"
        for reading in one.readings
    ]
