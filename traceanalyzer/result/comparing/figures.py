"""What became of the figures that are compared by themselves: of the roofline, and what kinds of evidence measured."""

from __future__ import annotations

from collections.abc import Sequence

from traceanalyzer.names import capitalized
from traceanalyzer.records import dataclass
from traceanalyzer.result.captures.capture import Capture
from traceanalyzer.result.captures.figure import Figure
from traceanalyzer.result.captures.metrics import FIGURES, SHOWN, evidence_figures
from traceanalyzer.result.comparing.comparison import FigureChange
from traceanalyzer.units import format_value

_NAMED, _OWNERS = 3, 5


def figure_changes(base: Capture, new: Capture) -> list[FigureChange]:
    """One a figure of the roofline or of evidence that either side has, in the order of their declaration."""
    found: list[FigureChange] = []
    for name, one in ({name: FIGURES[name] for name in SHOWN} | dict(evidence_figures())).items():
        before, after = base.metrics.get(name), new.metrics.get(name)
        if before or after:
            values = (side.value if side else None for side in (before, after))
            found.append(FigureChange(name, one.about, one.unit, *values))
        if before and after:
            found += _by_owner(name, one, base, new)
    return found


def _by_owner(name: str, one: Figure, base: Capture, new: Capture) -> list[FigureChange]:
    """Whose part of a figure that both sides have changed most: few, and none that stayed as it was."""
    start = f"{name}["
    changes = []
    for own in dict.fromkeys([*base.metrics, *new.metrics]):
        if own.startswith(start):
            before, after = (float(side.metrics[own].value) if own in side.metrics else 0.0 for side in (base, new))
            about = f"{one.about}, of {own.removeprefix(start).removesuffix(']')}"
            changes.append(FigureChange(own, about, one.unit, before, after))
    changed = [change for change in changes if change.base != change.new]
    changed.sort(key=lambda change: -abs((change.new or 0) - (change.base or 0)))
    return changed[:_OWNERS]


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
    changed = [one for one in figures if one.base != one.new and "[" not in one.name]
    # What is new altogether weighs more than what grew.
    changed.sort(key=lambda one: one.base != 0)
    if not changed:
        return "No figure differs."
    said = "; ".join(f"{one.about}: {figure_words(one)}" for one in changed[:_NAMED])
    return f"{capitalized(said)}."


def _value(value: float | None, unit: str | None) -> str:
    return "nothing" if value is None else format_value(value, unit)
