"""The first sentence of a comparison."""

from __future__ import annotations

from collections.abc import Sequence

from traceanalyzer.result.comparing.comparison import Change, ProblemChange
from traceanalyzer.result.comparing.noise import LEAST
from traceanalyzer.units import format_duration, format_share
from traceanalyzer.vocabulary.levels import COULD_NOT_JUDGE
from traceanalyzer.vocabulary.lines import line_words

TIMES = 1.5
"""From here on one says how many times, below it by how many percent."""
UNCLEAR = 0.05
"""Where so much lies within the noise, that it is nothing has not been shown."""
WORTH_NAMING = 0.25
"""A finding or line explains a change if it is at least this share of it."""
UNITS = {"step": "a step", "repetition": "once through the kernels that repeat", "capture": "for the same kernels"}


def headline(
    outcome: str,
    reason: str | None,
    step: Change | None,
    lines: Sequence[Change],
    problems: Sequence[ProblemChange],
) -> str:
    """What came out, in figures, and what most of it is."""
    if outcome == COULD_NOT_JUDGE or step is None or not step.base_ns or not step.new_ns or not step.ratio:
        return f"Could not compare: {reason or 'there is no work to compare'}."
    unit = UNITS[step.name]
    now, was = format_duration(step.new_ns), format_duration(step.base_ns)
    if outcome == "no_change":
        first = "No change" if abs(step.ratio - 1) < UNCLEAR else "No change that is more than noise"
        return f"{first}: {now} {unit} in NEW, {was} in BASE ({_within(step)})."
    cause = _cause(outcome, step, lines, problems)
    return f"NEW {_how_much(outcome, step)}: {now} {unit} instead of {was}" + (f"; {cause}." if cause else ".")


def _within(step: Change) -> str:
    assert step.ratio is not None
    if step.ratio == 1:
        return "the same"
    change = _signed(step.ratio - 1)
    if step.low is not None and step.high is not None and (step.low < 1 - LEAST or step.high > 1 + LEAST):
        return f"{change}; by the noise it may be {_signed(step.low - 1)} to {_signed(step.high - 1)}"
    return f"{change}; less than {format_share(LEAST)} is no change"


def _how_much(outcome: str, step: Change) -> str:
    """In words that follow "NEW"."""
    assert step.ratio and step.low is not None and step.high is not None
    faster = outcome == "faster"
    factor = 1 / step.ratio if faster else step.ratio
    ends = (1 / step.high, 1 / max(step.low, 1e-9)) if faster else (step.low, step.high)
    if factor >= TIMES:
        between = "" if _times(ends[0]) == _times(ends[1]) else f" ({_times(ends[0])} to {_times(ends[1])})"
        return (
            f"is {_times(factor)} times as fast{between}"
            if faster
            else f"takes {_times(factor)} times as long{between}"
        )
    shares = [format_share(abs(end - 1)) for end in ((step.high, step.low) if faster else (step.low, step.high))]
    between = "" if shares[0] == shares[1] else f" ({shares[0]} to {shares[1]})"
    return f"takes {format_share(abs(step.ratio - 1))} {'less' if faster else 'more'} time{between}"


def _times(factor: float) -> str:
    return f"{factor:.0f}" if factor >= 20 else f"{factor:.1f}" if factor >= 3 else f"{factor:.2f}"


def _signed(share: float) -> str:
    return ("+" if share > 0 else "-" if share < 0 else "") + format_share(abs(share))


def _cause(outcome: str, step: Change, lines: Sequence[Change], problems: Sequence[ProblemChange]) -> str | None:
    """The finding that explains most of the change, else the ledger line that changed most."""
    wanted = ("fixed", "better") if outcome == "faster" else ("new", "worse")
    sign = -1 if outcome == "faster" else 1
    least = WORTH_NAMING * abs(step.change_ns)
    changes = [(sign * ((one.new_ns or 0) - (one.base_ns or 0)), one) for one in problems if one.state in wanted]
    ns, problem = max(changes, key=lambda pair: pair[0], default=(0, None))
    if problem and ns >= least:
        return f"{problem.state}: {problem.title} ({problem.rule}), {format_duration(ns)}"
    moved = [line for line in lines if sign * line.change_ns >= least]
    if moved:
        line = max(moved, key=lambda one: sign * one.change_ns)
        return f"{format_duration(abs(line.change_ns))} {'less' if sign < 0 else 'more'} on {line_words(line.name)}"
    return None
