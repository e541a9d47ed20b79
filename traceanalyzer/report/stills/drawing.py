"""Pieces of SVG: shapes as path data, texts, and how colours and hatchings are named. Nothing here carries a style of its own."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from itertools import count

from markupsafe import Markup, escape

from traceanalyzer.report.palette import BY_KEY

WIDTH = 660
"""Of a picture, in px: what a sheet of A4 or Letter has between its margins."""
_LETTER = 6.4
"""Px that a letter of a picture's text takes, on average."""


def number(value: float) -> str:
    """With one decimal at most, which is less than what a printer resolves."""
    return f"{value:.1f}".removesuffix(".0").replace("-0.", "-.") if value else "0"


def rectangle(x: float, y: float, width: float, height: float) -> str:
    return f"M{number(x)} {number(y)}h{number(width)}v{number(height)}h{number(-width)}z"


def polyline(points: Iterable[tuple[float, float]]) -> str:
    words = [f"{number(x)} {number(y)}" for x, y in points]
    return f"M{words[0]}L{' '.join(words[1:])}" if words else ""


def text_width(text: str) -> float:
    return len(text) * _LETTER


def cut_text(text: str, room: float) -> str:
    """As much of a text as `room` px hold."""
    letters = int(room / _LETTER)
    return text if len(text) <= letters else text[: max(letters - 1, 0)] + "…"


def literal(text: str) -> str:
    """A text of a figure, which is written as plotly reads it (see `charts.figure.text`), as it is meant."""
    return html.unescape(text)


def label(text: str, x: float, y: float, anchor: str = "", css: str = "") -> Markup:
    """A text whose baseline begins, or by `anchor` has its "middle" or "end", at (x, y)."""
    more = (f' text-anchor="{anchor}"' if anchor else "") + (f' class="{css}"' if css else "")
    return Markup(f'<text x="{number(x)}" y="{number(y)}"{more}>') + escape(text) + Markup("</text>")


def colour_class(colour: str) -> str:
    """The class that gives `--swatch` and a fill to a colour as a figure names it in `meta`: a key of the palette, or another."""
    return f"c-{BY_KEY[colour].css}" if colour in BY_KEY else f"c-{colour}"


class Drawing:
    """A picture of WIDTH by `height` px that grows piece by piece. `name` begins the ids of its pieces."""

    def __init__(self, name: str, height: float) -> None:
        self.name, self.height = name, height
        self._pieces: list[Markup] = []
        self._ids = count()

    def add(self, *pieces: Markup) -> None:
        self._pieces += pieces

    def grid(self, path: str) -> None:
        if path:
            self._pieces.append(Markup(f'<path class="grid" d="{path}"/>'))

    def line(self, path: str, colour: str, dash: str = "") -> None:
        dashes = {"dash": ' stroke-dasharray="6 4"', "dot": ' stroke-dasharray="2 3"'}.get(dash, "")
        self._pieces.append(Markup(f'<path class="{colour_class(colour)} line" d="{path}"{dashes}/>'))

    def fill(self, path: str, colour: str, opacity: float = 1) -> None:
        """A shape in a colour, with the hatching of that."""
        if not path:
            return
        css, faint = colour_class(colour), "" if opacity == 1 else f' fill-opacity="{opacity:g}"'
        if colour in BY_KEY and BY_KEY[colour].hatch:
            id_ = f"still-{self.name}-{next(self._ids)}"
            self._pieces.append(
                Markup(
                    f'<g class="{css}"{faint}><path id="{id_}" d="{path}"/></g>'
                    f'<use href="#{id_}" fill="url(#hatch-{BY_KEY[colour].css})"{faint}/>'
                )
            )
        else:
            self._pieces.append(Markup(f'<path class="{css}" d="{path}"{faint}/>'))

    def svg(self) -> Markup:
        """The whole. What it says stands beside it in words, so it is hidden from readers of the screen."""
        size = f'viewBox="0 0 {WIDTH} {number(self.height)}"'
        return (
            Markup(f'<svg class="still" {size} preserveAspectRatio="xMinYMin" aria-hidden="true">')
            + Markup("").join(self._pieces)
            + Markup("</svg>")
        )


def legend(drawing: Drawing, entries: Sequence[tuple[str, str, str]], x: float, y: float) -> None:
    """Entries (text, colour, path data of a mark around 0 0) in rows from (x, y) on."""
    for (text, colour, mark), (at, row) in zip(entries, _legend_places(entries, x), strict=True):
        base = y + 16 * row
        drawing.add(
            Markup(
                f'<path class="{colour_class(colour)}" transform="translate({number(at + 6)} {number(base - 4)})" d="{mark}"/>'
            )
        )
        drawing.add(label(text, at + 16, base))


def legend_rows(entries: Sequence[tuple[str, str, str]], x: float) -> int:
    """How many rows those take."""
    return _legend_places(entries, x)[-1][1] + 1 if entries else 0


def _legend_places(entries: Sequence[tuple[str, str, str]], x: float) -> list[tuple[float, int]]:
    """Where each begins, and in which row."""
    places: list[tuple[float, int]] = []
    at, row = x, 0
    for text, _, _ in entries:
        wide = text_width(text) + 34
        if at > x and at + wide > WIDTH:
            at, row = x, row + 1
        places.append((at, row))
        at += wide
    return places
