"""What each capture says to one assertion, and what several captures say together."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from statistics import median

from traceanalyzer.budgets.assertions import Assertion
from traceanalyzer.budgets.expression import Lookup, UnknownFigureError
from traceanalyzer.records import dataclass
from traceanalyzer.result.captures.capture import Capture, Value
from traceanalyzer.result.captures.check import Reading
from traceanalyzer.result.captures.metrics import figures_of, is_of_a_step, why_missing
from traceanalyzer.result.comparing.alike import unlike, unlike_work
from traceanalyzer.vocabulary.levels import COULD_NOT_JUDGE, NOT_APPLICABLE

_HOLDS: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    "<": operator.lt,
    ">=": operator.ge,
    ">": operator.gt,
    "==": operator.eq,
    "!=": operator.ne,
}
# What passes whatever the limit is; nothing does for == and !=.
_BEST = {"<=": -math.inf, "<": -math.inf, ">=": math.inf, ">": math.inf}


@dataclass(frozen=True)
class Together:
    """What all captures come to: `outcome`, the value and the limit as far as they are known, the reading that is nearest to breaking
    the assertion, and why it could not be judged."""

    outcome: str
    found: float | None
    limit: float | None
    nearest: Reading | None
    reason: str | None


def reading(assertion: Assertion, number: int, capture: Capture, baseline: Sequence[Capture]) -> Reading:
    """What the capture of this number says."""
    comparison = assertion.comparison
    look = _lookup([capture], baseline)
    value = limit = where = reason = None
    try:
        one, reason = _of_rule(assertion.rule, capture) if assertion.rule else (_figure(capture, comparison.name), None)
        value, where = one.value, one.where
        limit = comparison.limit(look)
    except UnknownFigureError as unknown:
        reason = str(unknown)
    return Reading(number, value, limit, where, reason)


def judge_together(
    assertion: Assertion, readings: Sequence[Reading], captures: Sequence[Capture], baseline: Sequence[Capture]
) -> Together:
    """Judge all readings. An assertion that holds or not, depending on what is not known, could not be judged."""
    sign = assertion.comparison.sign
    known = [
        (_margin(sign, one.value, one.limit), one)
        for one in readings
        if one.value is not None and one.limit is not None
    ]
    unknown = next((one for one in readings if one.value is None or one.limit is None), None)
    nearest = max(known, key=lambda pair: pair[0])[1] if known else unknown
    try:
        if not known or nearest is None:
            raise UnknownFigureError((unknown.reason if unknown else None) or "it says nothing")
        found, limit = nearest.value, nearest.limit
        if assertion.aggregate == "median":
            found, limit = _median(assertion, readings, captures, baseline)
        if not _HOLDS[sign](found or 0.0, limit or 0.0):
            return Together("failed", found, limit, nearest, nearest.reason)
        if unknown:
            raise UnknownFigureError(unknown.reason)
    except UnknownFigureError as why:
        return Together(COULD_NOT_JUDGE, None, None, nearest, str(why))
    return Together("passed", found, limit, nearest, nearest.reason)


def _median(
    assertion: Assertion, readings: Sequence[Reading], captures: Sequence[Capture], baseline: Sequence[Capture]
) -> tuple[float, float]:
    """The median of all values, those that are not known taken for the best that they can be, and what it is held against.

    Raises UnknownFigureError where that tells nothing.
    """
    told = (unlike(captures[0], one, captures[0].name, one.name) for one in captures[1:])
    if why := next(filter(None, told), None):
        raise UnknownFigureError(f"a median of different machines says nothing: {why}")
    best = _BEST.get(assertion.comparison.sign)
    values = [best if one.value is None else one.value for one in readings]
    if None in values:
        raise UnknownFigureError(next(one.reason for one in readings if one.value is None))
    return median([value for value in values if value is not None]), assertion.comparison.limit(
        _lookup(captures, baseline)
    )


def _margin(sign: str, value: float, limit: float) -> float:
    """How near to breaking the comparison, the nearest being largest."""
    if sign in ("<", "<="):
        return value - limit
    if sign in (">", ">="):
        return limit - value
    return abs(value - limit) if sign == "==" else -abs(value - limit)


def _lookup(captures: Sequence[Capture], baseline: Sequence[Capture]) -> Lookup:
    """Figures as medians over the captures, and those of the baseline as medians over its own."""

    def look(name: str, of_baseline: bool) -> float:
        if not of_baseline:
            return median(_figure(capture, name).value for capture in captures)
        for capture in captures:
            why = unlike(baseline[0], capture, "it", "the capture")
            if is_of_a_step(name):
                why = why or unlike_work(baseline[0], capture, "it", "the capture")
            if why:
                raise UnknownFigureError(f"the baseline does not compare: {why}")
        try:
            if damaged := next((one for one in baseline if one.damage), None):
                raise UnknownFigureError(damaged.damage[0])
            return median(_figure(capture, name).value for capture in baseline)
        except UnknownFigureError as unknown:
            raise UnknownFigureError(f"the baseline says nothing of {name}: {unknown}") from None

    return look


def _figure(capture: Capture, name: str) -> Value:
    if not capture.unjudged and (found := figures_of(capture).get(name)):
        return found
    raise UnknownFigureError(why_missing(capture, name))


def _of_rule(rule: str, capture: Capture) -> tuple[Value, str | None]:
    """The number of findings of a rule. What a rule does not apply to has none, and the reason says so."""
    if not capture.unjudged and capture.outcomes.get(rule) == NOT_APPLICABLE:
        return Value(0, "count"), capture.reasons.get(rule, "it does not apply")
    return _figure(capture, f"{rule}.findings"), None
