"""The step times of two traces on one axis."""

from __future__ import annotations

import numpy as np

from traceanalyzer.report.charts.figure import Chart, Dict, View, axis, layout, round_values, time_unit
from traceanalyzer.report.sections.words import format_duration
from traceanalyzer.result.comparing.comparison import Comparison, Side

HEIGHT = 0.3
"""How far dots lie from the middle of their side's row, which is 1 from the other's."""
NEAR = 0.15
"""Sides whose means differ by less than this share are drawn without the zero of the axis."""
_GOLDEN = 0.618034


def samples_chart(comparison: Comparison) -> Chart | None:
    """A dot a unit of work; None without any on either side."""
    sides = [("BASE", comparison.base, comparison.noise.base), ("NEW", comparison.new, comparison.noise.new)]
    every = [ns for _, side, _ in sides for ns in side.samples_ns]
    if not every:
        return None
    what = comparison.new.unit or comparison.base.unit or "unit"
    unit, unit_name = time_unit(float(max(every)))
    data: list[Dict] = []
    for row, (title, side, spread) in enumerate(sides):
        colour = f"series-{row + 1}"
        if side.samples_ns:
            data.append(_dots(title, side, -row, colour, what, unit))
        if side.unit_ns is not None:
            data.append(_mean(title, side.unit_ns, spread, -row, what, unit))
    near = comparison.step is not None and comparison.step.ratio is not None and abs(comparison.step.ratio - 1) < NEAR
    x = axis(f"time of one {what}, {unit_name}", rangemode="normal" if near else "tozero")
    y = {
        "tickvals": [0, -1],
        "ticktext": [title for title, _, _ in sides],
        "range": [-1.6, 0.6],
        "fixedrange": True,
        "showgrid": False,
        "automargin": True,
    }
    view = View(_caption(comparison, what, near), data, layout(x, y, showlegend=False, hovermode="closest"))
    return Chart("samples", f"Time of each {what}", {None: view}, size="small", wide=True)


def _dots(title: str, side: Side, row: int, colour: str, what: str, unit: float) -> Dict:
    """Dots of one side, spread evenly over its row so that equal times stay apart."""
    order = np.arange(1, len(side.samples_ns) + 1)
    at = row + (np.mod(order * _GOLDEN, 1) * 2 - 1) * HEIGHT
    said = [f"{title}, {what} {number}: {format_duration(ns)}" for number, ns in enumerate(side.samples_ns, 1)]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": title,
        "meta": colour,
        "x": round_values(np.array(side.samples_ns), unit),
        "y": round_values(at, digits=3),
        "marker": {"size": 7, "opacity": 0.7},
        "hovertext": said,
        "hovertemplate": "%{hovertext}<extra></extra>",
    }


def _mean(title: str, mean: int, spread: float | None, row: int, what: str, unit: float) -> Dict:
    """The mean as a stroke across the row, and the spread of single times around it."""
    varied = "" if spread is None else f", give or take {format_duration(mean * spread)}"
    trace: Dict = {
        "type": "scatter",
        "mode": "markers",
        "name": f"{title}, mean",
        "meta": "ink",
        "x": round_values(np.array([mean]), unit),
        "y": [row],
        "marker": {"size": 11, "symbol": "diamond"},
        "hovertext": [f"{title}, mean {what}: {format_duration(mean)}{varied}"],
        "hovertemplate": "%{hovertext}<extra></extra>",
    }
    if spread is not None:
        trace["error_x"] = {
            "type": "data",
            "array": round_values(np.array([mean * spread]), unit),
            "thickness": 2,
            "width": 8,
        }
    return trace


def _caption(comparison: Comparison, what: str, near: bool) -> str:
    """The figures of both sides, and what the marks are."""
    said = []
    for title, side in (("BASE", comparison.base), ("NEW", comparison.new)):
        if side.unit_ns is not None:
            span = (
                f" ({format_duration(min(side.samples_ns))} to {format_duration(max(side.samples_ns))})"
                if side.samples_ns
                else ""
            )
            said.append(f"{title} takes {format_duration(side.unit_ns)} on average{span}")
    words = "; ".join(said) + ". " if said else ""
    step = comparison.step
    if step is not None and step.ratio is not None and step.low is not None and step.high is not None:
        words += f"NEW takes {step.ratio:.3g} times as long as BASE, between {step.low:.3g} and {step.high:.3g}. "
    words += f"A dot is one {what}, a diamond the mean with the spread of single ones."
    return words + (" The axis does not begin at 0." if near else "")
