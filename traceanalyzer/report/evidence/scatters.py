"""Points in a plane of logarithmic axes with lines over them, as a chart: a roofline."""

from __future__ import annotations

import math
from collections.abc import Sequence

from traceanalyzer.report.charts.figure import (
    MOST_MARKS,
    SERIES,
    Chart,
    Dict,
    View,
    layout,
    log_axis,
    text,
    wrap_name,
)
from traceanalyzer.result.sections import Point, Scatter
from traceanalyzer.units import format_count

SMALLEST, LARGEST = 6.0, 26.0
"""How wide marks are, in px; their areas go with the weights in between."""
DASHES = ("solid", "dash", "dot")


def scatter_chart(scatter: Scatter, id_: str) -> Chart | None:
    """None without points. Raises ValueError for a value that a logarithmic axis does not have, or a weight below nothing."""
    if not scatter.points:
        return None
    places = [(one.x, one.y) for one in scatter.points] + [place for _, line in scatter.lines for place in line]
    if not all(math.isfinite(value) and value > 0 for place in places for value in place):
        raise ValueError(f"{scatter.title}: a logarithmic axis has no place for what is not above 0")
    if not all(math.isfinite(one.weight) and one.weight >= 0 for one in scatter.points):
        raise ValueError(f"{scatter.title}: a weight is below nothing")
    points = sorted(scatter.points, key=lambda one: -one.weight)
    shown = points[:MOST_MARKS]
    data = [_line(name, line, number) for number, (name, line) in enumerate(scatter.lines)]
    data.append(_marks(shown, scatter))
    x = log_axis(scatter.x, min(x for x, _ in places), max(x for x, _ in places))
    y = log_axis(scatter.y, min(y for _, y in places), max(y for _, y in places))
    drawn = layout(x, y, hovermode="closest", showlegend=bool(scatter.lines))
    return Chart(
        id_, scatter.title, {None: View(_caption(scatter, points, len(shown)), data, drawn)}, "large", wide=True
    )


def _line(name: str, line: Sequence[tuple[float, float]], number: int) -> Dict:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": text(name),
        "meta": "ink" if number == 0 else f"series-{1 + number % SERIES}",
        "x": [_rounded(x) for x, _ in line],
        "y": [_rounded(y) for _, y in line],
        "line": {"width": 2, "dash": DASHES[number % len(DASHES)]},
        "hoverinfo": "skip",
    }


def _marks(points: Sequence[Point], scatter: Scatter) -> Dict:
    """The heaviest first, so that lighter ones lie over them."""
    heaviest = max(points[0].weight, 1e-300)
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "",
        "meta": "series-1",
        "x": [_rounded(one.x) for one in points],
        "y": [_rounded(one.y) for one in points],
        "marker": {
            "symbol": "circle",
            "size": [round(max(SMALLEST, LARGEST * math.sqrt(one.weight / heaviest)), 1) for one in points],
            "opacity": 0.75,
        },
        "text": [
            f"{wrap_name(one.label)}<br>{text(scatter.x)}: {_written(one.x)}<br>{text(scatter.y)}: {_written(one.y)}"
            for one in points
        ],
        "hovertemplate": "%{text}<extra></extra>",
        "showlegend": False,
    }


def _caption(scatter: Scatter, points: Sequence[Point], shown: int) -> str:
    first = points[0]
    caption = f"{first.label}: {scatter.x} {_written(first.x)}, {scatter.y} {_written(first.y)}."
    if len(points) > 1:
        caption = f"The larger a point, the more it weighs. The largest is {caption}"
    if shown < len(points):
        caption += f" Of {format_count(len(points))} points the {format_count(shown)} largest are drawn."
    return caption


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


def _written(value: float) -> str:
    """With three digits, or all of a whole number."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
