"""A chart as a still picture: what plotly would draw of the same figure, without what only a screen needs.

It knows the kinds of traces that the figures of `charts/` have, and no others: bars (stacked upright, or lying, each with its words),
stacked areas, lines, marks and heat maps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from traceanalyzer.report.stills.axes import Axis, Floats, axis_of
from traceanalyzer.report.stills.drawing import (
    WIDTH,
    Drawing,
    cut_text,
    label,
    legend,
    legend_rows,
    literal,
    number,
    polyline,
    rectangle,
    text_width,
)

Dict = dict[str, Any]
HEIGHTS = {"small": 210, "medium": 290, "large": 470, "huge": 1120}
"""Of a figure by its size, in px, as on the screen."""
HEAT_LEVELS = 9
MOST_CELLS = (48, 64)
"""Rows and columns of a heat map; of more, several are one that shows the largest."""
MOST_LEFT = 150
_BAR, _EDGE = 0.88, 12
_SIDES = {"right": ("", 2), "left": ("end", -2), "center": ("middle", 0)}
"""By the way that a text goes from its place: its anchor, and how far off it is."""


def chart_still(name: str, size: str, data: Sequence[Dict], layout: Dict) -> Markup:
    """The picture of one figure: its data and layout are plotly's, without colours (see `charts.figure`)."""
    drawing = Drawing(name, HEIGHTS[size])
    x, y = _axes(data, layout)
    entries = _entries(data, layout)
    plot = _Plot(drawing, x, y, legend_rows(entries, _EDGE))
    plot.frame()
    base = np.zeros(0)
    for trace in data:
        if trace["type"] == "heatmap":
            plot.heat(trace)
        elif trace["type"] == "bar" and trace.get("orientation") == "h":
            plot.lying_bars(trace)
        elif trace["type"] == "bar" or trace.get("stackgroup"):
            amount = np.array([value or 0 for value in trace["y"]], dtype=np.float64)
            base = base if len(base) else np.zeros(len(amount))
            (plot.bars if trace["type"] == "bar" else plot.area)(trace, base, base + amount)
            base = base + amount
        elif trace["mode"] == "text":
            plot.words(trace)
        elif trace["mode"] == "lines":
            plot.line(trace)
        else:
            plot.marks(trace)
    legend(drawing, entries, _EDGE, plot.bottom + 46)
    return drawing.svg()


def _axes(data: Sequence[Dict], layout: Dict) -> tuple[Axis, Axis]:
    across = [value for trace in data for value in trace["x"]]
    stacked = [trace["y"] for trace in data if trace["type"] == "bar" or trace.get("stackgroup")]
    if layout["yaxis"].get("type") != "category" and stacked and data[0].get("orientation") != "h":
        sums = np.sum([[value or 0 for value in values] for values in stacked], axis=0).tolist()
        up = [*sums, *(value for trace in data if trace["y"] not in stacked for value in trace["y"])]
    else:
        up = [value for trace in data for value in trace["y"]]
    has_marks = any(trace.get("mode") == "markers" for trace in data)
    return axis_of(layout["xaxis"], across, has_marks), axis_of(layout["yaxis"], up, True)


def _entries(data: Sequence[Dict], layout: Dict) -> list[tuple[str, str, str]]:
    """Of the figure's own legend, where it has one: the names of lines and marks."""
    named = [trace for trace in data if trace.get("name") and trace.get("showlegend", True)]
    if layout.get("showlegend") is False or (len(named) < 2 and not layout.get("showlegend")):
        return []
    return [
        (
            literal(trace["name"]),
            trace["meta"],
            rectangle(-6, -1, 12, 2)
            if trace["mode"] == "lines"
            else _symbol(trace["marker"].get("symbol", "circle"), 4),
        )
        for trace in named
    ]


class _Plot:
    """The area between the axes, and what is drawn in it."""

    def __init__(self, drawing: Drawing, x: Axis, y: Axis, legend_rows: int) -> None:
        self.drawing, self.x, self.y = drawing, x, y
        self.top, self.right = 8.0, WIDTH - 12.0
        self.bottom = drawing.height - 40 - 16 * legend_rows
        self.upright = y.shown(self.bottom - self.top, True) if y.is_visible else []
        wide = max((text_width(text) for _, text in self.upright), default=0)
        self.left = min(wide, MOST_LEFT) + 10 + (16 if y.title and y.is_visible else 0) if y.is_visible else 4.0

    def at_x(self, values: Sequence[Any]) -> Floats:
        found: Floats = self.left + self.x.share(values) * (self.right - self.left)
        return found

    def at_y(self, values: Sequence[Any]) -> Floats:
        found: Floats = self.bottom - self.y.share(values) * (self.bottom - self.top)
        return found

    def frame(self) -> None:
        """Grid, labels and titles."""
        lines = ""
        for share, text in self.upright:
            y = self.bottom - share * (self.bottom - self.top)
            lines += f"M{number(self.left)} {number(y)}H{number(self.right)}" if self.y.has_grid else ""
            self.drawing.add(label(cut_text(text, MOST_LEFT), self.left - 6, y + 4, "end"))
        for share, text in self.x.shown(self.right - self.left, False):
            x = self.left + share * (self.right - self.left)
            lines += f"M{number(x)} {number(self.top)}V{number(self.bottom)}" if self.x.has_grid else ""
            self.drawing.add(label(text, x, self.bottom + 14, "middle"))
        self.drawing.grid(lines)
        self.drawing.add(label(self.x.title, (self.left + self.right) / 2, self.bottom + 30, "middle"))
        if self.y.title and self.y.is_visible:
            place = f"translate(11 {number((self.top + self.bottom) / 2)}) rotate(-90)"
            self.drawing.add(Markup(f'<g transform="{place}">') + label(self.y.title, 0, 0, "middle") + Markup("</g>"))

    def bars(self, trace: Dict, base: Floats, top: Floats) -> None:
        """Upright ones, each between two heights."""
        wide = abs(float(np.diff(self.at_x(trace["x"][:2]))[0])) if len(trace["x"]) > 1 else self.right - self.left
        wide *= _BAR
        x, low, high = self.at_x(trace["x"]) - wide / 2, self.at_y(base.tolist()), self.at_y(top.tolist())
        boxes = [
            rectangle(left, up, wide, down - up)
            for left, up, down in zip(x.tolist(), high.tolist(), low.tolist(), strict=True)
            if down - up >= 0.05
        ]
        self.drawing.fill("".join(boxes), trace["meta"])

    def lying_bars(self, trace: Dict) -> None:
        """Each with its words behind it, in a colour of its own."""
        unit = abs(float(np.diff(self.at_y([0, 1]))[0]))
        tall = unit * float(trace["width"])
        ends, middles = self.at_x(trace["x"]).tolist(), self.at_y(trace["y"]).tolist()
        for end, middle, words, colour in zip(ends, middles, trace["text"], trace["meta"], strict=True):
            self.drawing.fill(rectangle(self.left, middle - tall / 2, max(end - self.left, 0.5), tall), colour)
            self.drawing.add(label(literal(words), end + 4, middle + 4))

    def words(self, trace: Dict) -> None:
        """Texts that stand in the figure."""
        at, height = self.at_x(trace["x"]).tolist(), self.at_y(trace["y"]).tolist()
        places = trace["textposition"]
        for x, y, text, place in zip(
            at, height, trace["text"], [places] * len(at) if isinstance(places, str) else places, strict=True
        ):
            up, side = place.split(" ")
            anchor, off = _SIDES[side]
            self.drawing.add(label(literal(text), x + off, y - 6 if up == "top" else y + 4, anchor, css="ink"))

    def area(self, trace: Dict, base: Floats, top: Floats) -> None:
        """Between two lines of steps; each value holds until the next one's place."""
        x = self.at_x(trace["x"])
        shown = np.flatnonzero((top[:-1] - base[:-1]) > 0)
        if not len(shown):
            return
        low, high = self.at_y(base.tolist()), self.at_y(top.tolist())
        path = ""
        for run in np.split(shown, np.flatnonzero(np.diff(shown) > 1) + 1):
            edges = np.append(x[run], x[run[-1] + 1])
            there, back = _steps(edges, high[run]), _steps(edges, low[run])[::-1]
            path += polyline([*there, *back]) + "z"
        self.drawing.fill(path, trace["meta"])

    def line(self, trace: Dict) -> None:
        x, y = self.at_x(trace["x"]), self.at_y(trace["y"])
        is_steps = trace["line"].get("shape") == "hv"
        path = ""
        for piece in np.split(
            np.arange(len(x)), np.flatnonzero(np.isnan(x) | np.isnan(y))
        ):  # a line ends where there is no value
            run = piece[~np.isnan(x[piece] + y[piece])]
            points = (
                _steps(x[run], y[run][:-1]) if is_steps else list(zip(x[run].tolist(), y[run].tolist(), strict=True))
            )
            path += polyline(points) if len(points) > 1 else ""
        self.drawing.line(path, trace["meta"], trace["line"].get("dash", ""))

    def marks(self, trace: Dict) -> None:
        marker = trace["marker"]
        if marker.get("opacity") == 0:
            return
        x, y = self.at_x(trace["x"]), self.at_y(trace["y"])
        known = ~(np.isnan(x) | np.isnan(y))
        sizes = np.broadcast_to(np.asarray(marker.get("size", 6), dtype=np.float64), len(x))
        marks = np.unique(np.column_stack((x, y, sizes))[known].round(0), axis=0)
        symbol = marker.get("symbol", "circle")
        self.drawing.fill(
            "".join(_moved(_symbol(symbol, size / 2), a, b) for a, b, size in marks.tolist()), trace["meta"], 0.75
        )
        if "error_x" in trace:
            reach = trace["error_x"]["array"]
            low, high = (self.at_x([a + sign * e for a, e in zip(trace["x"], reach, strict=True)]) for sign in (-1, 1))
            bars = [
                f"M{number(a)} {number(up)}H{number(b)}M{number(a)} {number(up - 4)}v8M{number(b)} {number(up - 4)}v8"
                for a, b, up in zip(low.tolist(), high.tolist(), y.tolist(), strict=True)
            ]
            self.drawing.line("".join(bars), trace["meta"])

    def heat(self, trace: Dict) -> None:
        z = np.array([[np.nan if value is None else value for value in row] for row in trace["z"]], dtype=np.float64)
        z = _folded(_folded(z, MOST_CELLS[0]).T, MOST_CELLS[1]).T
        rows, columns = z.shape
        wide, tall = (self.right - self.left) / columns, (self.bottom - self.top) / rows
        gap = min(1.0, wide / 8, tall / 8)
        spread = max(trace["zmax"] - trace["zmin"], 1e-12)
        level = np.nan_to_num(np.rint((z - trace["zmin"]) / spread * (HEAT_LEVELS - 1)), nan=-1).clip(
            -1, HEAT_LEVELS - 1
        )
        for one in range(HEAT_LEVELS):
            cells = [
                rectangle(self.left + column * wide, self.top + row * tall, wide - gap, tall - gap)
                for row, column in np.argwhere(level == one).tolist()
            ]
            if cells:
                self.drawing.fill("".join(cells), f"heat-{one}")


def _steps(x: Floats, y: Floats) -> list[tuple[float, float]]:
    """The corners of a line that keeps each value of y from its place to the next; there is one place more than values."""
    across, up = np.repeat(x, 2)[1:-1], np.repeat(y, 2)
    return list(zip(across.tolist(), up.tolist(), strict=True))


def _folded(values: Floats, most: int) -> Floats:
    """At most so many rows, each the largest of several."""
    run = -(-len(values) // most)
    if run == 1:
        return values
    folded: NDArray[np.float64] = np.fmax.reduceat(values, np.arange(0, len(values), run), axis=0)
    return folded


def _moved(path: str, x: float, y: float) -> str:
    """Path data that begins with M, at another place."""
    return f"M{number(x)} {number(y)}m{path.removeprefix('M')}"


def _symbol(name: str, r: float) -> str:
    """A mark around 0 0, of which all but the first place is relative."""
    n, d = number(r), number(2 * r)
    thick = max(r * 0.7, 1)
    w, rest = number(thick), number(2 * r - thick)
    arm = number(r - thick / 2)
    return {
        "square": f"M-{n} -{n}h{d}v{d}h-{d}z",
        "diamond": f"M-{n} 0l{n} -{n} {n} {n} -{n} {n}z",
        "triangle-up": f"M-{n} {n}l{n} -{d} {n} {d}z",
        "cross": f"M-{n} -{number(thick / 2)}h{d}v{w}h-{d}zm{arm} -{arm}h{w}v{d}h-{w}z",
        "x": f"M-{n} -{n}h{w}l{rest} {d}h-{w}zm{rest} 0h{w}l-{rest} {d}h-{w}z",
        "line-ew-open": f"M-{n} -.5h{d}v1h-{d}z",
    }.get(name, f"M-{n} 0a{n} {n} 0 1 0 {d} 0a{n} {n} 0 1 0 -{d} 0z")
