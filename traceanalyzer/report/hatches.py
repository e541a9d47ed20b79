"""Hatchings: what tells kinds of time apart where colours do not, as filled paths in a tile that repeats.

The same paths serve the page's style (as masks), its drawings (as SVG patterns), the timeline's canvas and plotly.
"""

from __future__ import annotations

from urllib.parse import quote

from traceanalyzer.records import dataclass

STRENGTH = 0.45
"""How opaque a hatching is over its colour; it is black or white, as words on that colour are."""


@dataclass(frozen=True)
class Hatch:
    """`path` is SVG path data, filled within a square tile of `size` px."""

    path: str
    size: int = 8

    @property
    def mask(self) -> str:
        """The tile as an image in a style sheet, opaque where the path is."""
        side = self.size
        svg = f"<svg xmlns='http://www.w3.org/2000/svg' width='{side}' height='{side}'><path d='{self.path}'/></svg>"
        return f'url("data:image/svg+xml,{quote(svg, safe=chr(39) + " =:/")}")'


_RISING, _FALLING = "M0 8 8 0H6L0 6ZM8 8V6L6 8Z", "M8 6 2 0H0L8 8ZM2 8 0 6V8Z"
_FINE_RISING, _FINE_FALLING = "M0 4 4 0H2.8L0 2.8ZM4 4V2.8L2.8 4Z", "M4 2.8 1.2 0H0L4 4ZM1.2 4 0 2.8V4Z"
HATCHES = {
    "rising": Hatch(_RISING),
    "falling": Hatch(_FALLING),
    "crossed": Hatch(_RISING + _FALLING),
    "upright": Hatch("M3 0h2v8H3Z"),
    "level": Hatch("M0 3h8v2H0Z"),
    "grid": Hatch("M3 0h2v3h3v2H5v3H3V5H0V3h3Z"),
    "dots": Hatch("M2.5 2.5h3v3h-3Z"),
    "chequered": Hatch("M0 0h4v4H0ZM4 4h4v4H4Z"),
    "fine rising": Hatch(_FINE_RISING, 4),
    "fine falling": Hatch(_FINE_FALLING, 4),
    "fine crossed": Hatch(_FINE_RISING + _FINE_FALLING, 4),
    "fine upright": Hatch("M1 0h1v4H1Z", 4),
    "fine level": Hatch("M0 1h4v1H0Z", 4),
    "fine grid": Hatch("M1 0h1v1h2v1H2v2H1V2H0V1h1Z", 4),
    "fine chequered": Hatch("M0 0h2v2H0ZM2 2h2v2H2Z", 4),
    "diamonds": Hatch("M4 1 7 4 4 7 1 4Z"),
    "fine dots": Hatch("M1 1h2v2H1Z", 4),
}
