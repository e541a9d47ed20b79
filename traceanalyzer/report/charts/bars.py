"""Horizontal bars with their names above them: names can be long and pages narrow."""

from __future__ import annotations

from collections.abc import Sequence

from traceanalyzer.records import dataclass
from traceanalyzer.report.charts.figure import Dict, axis, layout, text

FEWEST = 4
"""Fewer bars than these are not drawn thicker."""


@dataclass(frozen=True)
class Bar:
    """`words` stand behind the bar, `hover` is ready for plotly (see `text` and `wrapped`); `colour` as in a trace's `meta`."""

    name: str
    value: float
    words: str
    hover: str
    colour: str


def bars(items: Sequence[Bar], title: str) -> tuple[list[Dict], Dict]:
    """Data and layout, the first bar on top."""
    places = list(range(len(items)))
    most = max(item.value for item in items)
    data: list[Dict] = [
        {
            "type": "bar",
            "orientation": "h",
            "meta": [item.colour for item in items],
            "x": [item.value for item in items],
            "y": places,
            "width": 0.38,
            "text": [text(item.words) for item in items],
            "textposition": "outside",
            "cliponaxis": False,
            "hovertext": [item.hover for item in items],
            "hovertemplate": "%{hovertext}<extra></extra>",
        },
        {
            "type": "scatter",
            "mode": "text",
            "meta": "ink",
            "x": [0 for _ in items],
            "y": [place - 0.42 for place in places],
            "text": [text(item.name) for item in items],
            "textposition": "middle right",
            "hoverinfo": "skip",
        },
    ]
    x = axis(title, range=[0, most * 1.32], fixedrange=True)
    y = {"range": [max(len(items), FEWEST) - 0.6, -0.8], "visible": False, "fixedrange": True}
    return data, layout(x, y, showlegend=False, hovermode="closest")
