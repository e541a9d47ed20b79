"""Captures held against assertions: the document of a check."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from traceanalyzer.budgets.assertions import OFF, Assertion
from traceanalyzer.budgets.readings import Together, judge_together, reading
from traceanalyzer.budgets.words import actual, expectation
from traceanalyzer.errors import ConfigError
from traceanalyzer.records import dataclass
from traceanalyzer.result.captures.capture import Capture
from traceanalyzer.result.captures.check import Check, CheckedCapture, Held
from traceanalyzer.result.captures.metrics import RULE_FIGURES, why_unjudged
from traceanalyzer.result.settings import Settings, settings_apart, settings_sentence
from traceanalyzer.result.verdict import unjudged_headline
from traceanalyzer.urls import url_of
from traceanalyzer.version import VERSION
from traceanalyzer.vocabulary.levels import COULD_NOT_JUDGE

REPORT = "report.html"


@dataclass(frozen=True)
class Given:
    """A capture and the place that the user named; `saved` when that is a baseline file."""

    capture: Capture
    place: str
    saved: bool


def baseline_for(assertions: Sequence[Assertion], baseline: Path | None, is_history: bool = False) -> Path | None:
    """The baseline, if any assertion reads it. Raises ConfigError when one does and there is none; a history says that itself."""
    needs = next((one for one in assertions if one.level != OFF and one.comparison.baseline), None)
    if needs is None:
        return None
    if baseline is None:
        raise ConfigError(
            f"{needs.place}: '{needs.text}': there is no baseline; name one with --baseline, or as `baseline` beside the budgets. "
            "`traceanalyzer baseline save TRACE -o baseline.json` makes one"
        )
    if not is_history and url_of(baseline) is None and not baseline.exists():
        raise ConfigError(
            f"{baseline}: there is no such baseline; `traceanalyzer baseline save TRACE -o {baseline}` makes one"
        )
    return baseline


def judge(
    given: Sequence[Given], assertions: Sequence[Assertion], baseline: Sequence[Capture], baseline_place: str | None
) -> Check:
    """Hold all captures against all assertions. A capture that is damaged or could not be judged passes no check."""
    captures = [one.capture for one in given]
    held = [_held(assertion, given, captures, baseline, baseline_place) for assertion in assertions]
    reasons = [f"{one.capture.name}: {why}" for one in given if (why := _unsound(one.capture))]
    errors = [one for one in held if one.level == "error"]
    reasons += [f"{one.text}: {one.reason}" for one in errors if one.outcome == COULD_NOT_JUDGE]
    broken = any(one.outcome == "failed" for one in errors)
    outcome = "failed" if broken else COULD_NOT_JUDGE if reasons else "passed"
    return Check(
        tool={"name": "traceanalyzer", "version": VERSION},
        outcome=outcome,
        headline=_headline(outcome, held, reasons),
        reasons=list(dict.fromkeys(reasons)),
        assertions=held,
        captures=[
            CheckedCapture(one.name, place.place, one.headline, one.damage, one.unjudged)
            for one, place in zip(captures, given, strict=True)
        ],
        baseline=baseline_place,
        notes=list(dict.fromkeys(_notes(captures, baseline))),
    )


def _notes(captures: Sequence[Capture], baseline: Sequence[Capture]) -> Iterator[str]:
    """By which measures captures were judged, where that is not as shipped or not as the baseline was."""
    for one in captures:
        if said := settings_sentence(one.settings or Settings()):
            yield f"{one.name}: {said}"
        if baseline and (said := settings_apart(baseline[0].settings, one.settings, "the baseline", one.name)):
            yield said


def _unsound(capture: Capture) -> str | None:
    """What keeps a capture from passing."""
    return why_unjudged(capture.unjudged) if capture.unjudged else next(iter(capture.damage), None)


def _held(
    assertion: Assertion,
    given: Sequence[Given],
    captures: Sequence[Capture],
    baseline: Sequence[Capture],
    baseline_place: str | None,
) -> Held:
    comparison = assertion.comparison
    off = assertion.level == OFF
    readings = [] if off else [reading(assertion, at, one, baseline) for at, one in enumerate(captures)]
    all_ = (
        Together(OFF, None, None, None, "switched off")
        if off
        else judge_together(assertion, readings, captures, baseline)
    )
    nearest = all_.nearest
    shown = given[nearest.capture] if nearest else None
    show, look_at = _show(assertion, all_, shown, baseline_place)
    return Held(
        text=assertion.text,
        level=assertion.level,
        place=assertion.place,
        rule=assertion.rule,
        outcome=all_.outcome,
        aggregate=assertion.aggregate,
        unit=comparison.unit,
        sign=comparison.sign,
        limit=all_.limit,
        found=all_.found,
        expected=expectation(assertion, all_.limit, all_.found),
        actual=actual(assertion, all_, captures, readings),
        capture=nearest.capture if nearest else None,
        where=nearest.where if nearest else None,
        message=_message(assertion, shown.capture) if shown and all_.outcome == "failed" else None,
        reason=all_.reason,
        show=show,
        look_at=look_at,
        readings=readings,
    )


def rule_of(assertion: Assertion) -> str | None:
    """The rule that an assertion is about, be it by one of its figures."""
    rule, dot, figure = assertion.comparison.name.partition(".")
    return rule if dot and figure in RULE_FIGURES and rule.isupper() else None


def _message(assertion: Assertion, capture: Capture) -> str | None:
    rule = rule_of(assertion)
    return next((problem.message for problem in capture.problems if problem.rule == rule), None)


def _show(
    assertion: Assertion, all_: Together, shown: Given | None, baseline: str | None
) -> tuple[str | None, str | None]:
    """The command that shows why an assertion does not pass, and what to open then."""
    if shown is None or all_.outcome not in ("failed", COULD_NOT_JUDGE) or shown.place == "-":
        return None, None
    place, rule = shlex.quote(shown.place), rule_of(assertion)
    if shown.saved:
        return f"traceanalyzer baseline show {place}", None
    if shown.capture.unjudged:
        return f"traceanalyzer doctor {place}", None
    if assertion.comparison.baseline and baseline:
        return f"traceanalyzer compare {shlex.quote(baseline)} {place}", None
    if rule and all_.outcome == "failed":
        return f"traceanalyzer report {place} -o {REPORT}", f"{REPORT}#finding={rule}"
    return f"traceanalyzer rules show {rule}" if rule else f"traceanalyzer analyze {place}", None


def _headline(outcome: str, held: Sequence[Held], reasons: Sequence[str]) -> str:
    count = sum(one.outcome != OFF for one in held)
    broken = [one for one in held if one.outcome == "failed"]
    errors, warned = (sum(one.level == level for one in broken) for level in ("error", "warn"))
    unjudged = sum(one.outcome == COULD_NOT_JUDGE for one in held)
    also = [f"{warned} only warned about" for _ in range(bool(warned))]
    also += [f"{unjudged} could not be judged" for _ in range(bool(unjudged))]
    if outcome == "failed":
        return f"Failed: {', '.join([f'{errors} of {_budgets(count)} {_are(errors)} broken', *also])}."
    if outcome == COULD_NOT_JUDGE:
        return unjudged_headline(reasons[0].rstrip("."))
    kept = count - warned - unjudged
    return f"Passed: {', '.join([f'{kept} of {_budgets(count)} {_are(kept)} kept', *also])}."


def _budgets(count: int) -> str:
    return "1 budget" if count == 1 else f"{count} budgets"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"
