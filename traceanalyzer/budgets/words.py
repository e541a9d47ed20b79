"""What was expected and what was found, in words."""

from __future__ import annotations

from collections.abc import Sequence

from traceanalyzer.budgets.assertions import Assertion
from traceanalyzer.budgets.readings import Together
from traceanalyzer.result.captures.capture import Capture
from traceanalyzer.result.captures.check import Reading
from traceanalyzer.units import NS, SHARE, format_count, format_share, format_value

_SIGNS = {"<=": "at most", "<": "less than", ">=": "at least", ">": "more than", "==": "exactly", "!=": "anything but"}


def expectation(assertion: Assertion, limit: float | None, found: float | None) -> str:
    """ "at most 20%", or "at most 11.2 ms (1.1 * baseline)"."""
    if assertion.rule:
        return "no finding that gains something"
    comparison = assertion.comparison
    right = assertion.text.split(comparison.sign, 1)[1].strip()
    if limit is None or comparison.constant:
        return f"{_SIGNS[comparison.sign]} {right}"
    return f"{_SIGNS[comparison.sign]} {figure_words(limit, comparison.unit, found)} ({right})"


def actual(assertion: Assertion, all_: Together, captures: Sequence[Capture], readings: Sequence[Reading]) -> str:
    """ "31%", or "31% (median of 3)"; empty where nothing was found."""
    if all_.found is None:
        return ""
    if assertion.rule:
        return _findings(assertion.rule, all_, captures, readings)
    words = figure_words(all_.found, assertion.comparison.unit, all_.limit)
    return f"{words} ({assertion.aggregate} of {len(captures)})" if len(captures) > 1 else words


def _findings(rule: str, all_: Together, captures: Sequence[Capture], readings: Sequence[Reading]) -> str:
    """ "2 findings, 31% of the time", or of several captures how many have any."""
    count = sum(bool(one.value) for one in readings)
    if not count:
        return "does not apply" if all_.reason else "none"
    if len(captures) > 1:
        return f"in {count} of {len(captures)} captures"
    share = captures[0].metrics.get(f"{rule}.share")
    words = f"{format_count(all_.found or 0)} finding{'' if all_.found == 1 else 's'}"
    return f"{words}, {format_share(share.value)} of the time" if share and share.value else words


def figure_words(value: float, unit: str, other: float | None = None) -> str:
    """A figure, with as many digits as it takes to tell it from another one."""
    words = format_value(value, unit)
    if other is None or other == value or format_value(other, unit) != words:
        return words
    if unit == SHARE:
        return f"{100 * value:.9g}%"
    return f"{value:,.12g} ns" if unit == NS else f"{value:,.12g}"
