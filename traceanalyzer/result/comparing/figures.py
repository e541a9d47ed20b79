"""What became of the figures that kinds of evidence measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from traceanalyzer.names import capitalized
from traceanalyzer.result.captures.capture import Capture
from traceanalyzer.result.captures.metrics import evidence_figures
from traceanalyzer.result.comparing.comparison import FigureChange
from traceanalyzer.units import format_value

_NAMED = 3


def figure_changes(base: Capture, new: Capture) -> list[FigureChange]:
    """One a figure of evidence that either side has, in the order of their declaration."""
    found = []
    for name, one in evidence_figures().items():
        before, after = base.metrics.get(name), new.metrics.get(name)
        if before or after:
            values = (side.value if side else None for side in (before, after))
            found.append(FigureChange(name, one.about, one.unit, *values))
    return found


@dataclass(frozen=True)
class FigureRow:
    """A figure in words, for a table. `change` is the relative change, "same", or on which side alone it is known."""

    about: str
    base: str
    new: str
    change: str


def figure_rows(figures: Sequence[FigureChange]) -> list[FigureRow]:
    """One a figure."""
    return [FigureRow(one.about, _cell(one.base, one.unit), _cell(one.new, one.unit), _change(one)) for one in figures]


def _cell(value: float | None, unit: str | None) -> str:
    return "–" if value is None else format_value(value, unit)


def _change(one: FigureChange) -> str:
    if one.base is None or one.new is None:
        return f"only in {'BASE' if one.new is None else 'NEW'}"
    return "same" if one.base == one.new else _relative(one.base, one.new)


def _relative(base: float, new: float) -> str:
    return f"{(new - base) / abs(base):+.1%}" if base else ""


def figure_words(one: FigureChange) -> str:
    """ "2.1 GiB instead of 1.4 GiB (+50%)"."""
    if one.base is None or one.new is None:
        known = one.base if one.new is None else one.new
        return f"{_value(known, one.unit)}, {_change(one)}"
    if one.base == one.new:
        return f"{_value(one.new, one.unit)} on both sides"
    change = f" ({relative})" if (relative := _relative(one.base, one.new)) else ""
    return f"{_value(one.new, one.unit)} instead of {_value(one.base, one.unit)}{change}"


def figures_headline(figures: list[FigureChange]) -> str:
    """The first sentence on two sides of evidence alone."""
    changed = [one for one in figures if one.base != one.new]
    if not changed:
        return "No figure differs."
    said = "; ".join(f"{one.about}: {figure_words(one)}" for one in changed[:_NAMED])
    return f"{capitalized(said)}."


def _value(value: float | None, unit: str | None) -> str:
    return "nothing" if value is None else format_value(value, unit)
