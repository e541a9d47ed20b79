"""The charts as plotly's own figures, for notebooks: with colours, which the page would fill in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyzer.report.charts import Charts
from traceanalyzer.report.charts.figure import Dict
from traceanalyzer.report.palette import BY_KEY

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

GREYS = {"ink": "#1c2024", "dim": "#5a626b"}
"""Of words and of marks in the background, as on the page's light paper."""
HEAT = "Purples"


def notebook_figures(charts: Charts) -> dict[str, Figure]:
    """Every chart by its title, and of charts of one GPU or with choices also by that; what it says is the figure's title."""
    from plotly.graph_objects import Figure  # takes a second

    figures = {}
    for chart in charts.every:
        for gpu, view in chart.views.items():
            one = None if gpu is None else chart.choices[gpu] if chart.choices else charts.gpus[gpu].label
            name = chart.title if one is None else f"{chart.title} · {one}"
            layout = {
                **view.layout,
                "title": {"text": name, "subtitle": {"text": view.caption}},
                "template": "plotly_white",
            }
            layout["margin"] = {**layout["margin"], "t": 72}
            figures[name] = Figure([coloured(trace) for trace in view.data], layout)
    return figures


def coloured(trace: Dict) -> Dict:
    """A trace in the palette's colours on light paper; series are left to plotly, which has colours for them."""
    meta = trace["meta"]
    rest = {key: value for key, value in trace.items() if key != "meta"}
    if meta == "heat":
        return {**rest, "colorscale": HEAT}
    if trace.get("mode") == "text":
        return {**rest, "textfont": {"color": _colour(meta)}}
    own = [_colour(key) for key in meta] if isinstance(meta, list) else _colour(meta)
    if own is None:
        return rest
    made = {**rest, "marker": {**trace.get("marker", {}), "color": own}}
    if trace["type"] == "scatter":
        made["line"] = {**trace.get("line", {}), "color": own}
    return {**made, "fillcolor": own} if trace.get("stackgroup") else made


def _colour(key: str) -> str | None:
    """None of a series."""
    return GREYS.get(key) or (BY_KEY[key].light if key in BY_KEY else None)
