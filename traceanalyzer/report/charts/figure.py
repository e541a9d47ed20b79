"""What all figures share: how they travel to the page, their axes and units, and how names become text.

A figure is a plain dict in plotly's own schema, without colours: a trace's `meta` names its colour (a key of the palette, `series-1` to
`series-6`, `ink`, `dim` or `heat`), or one for each mark, and the page fills it in, light or dark.
"""

from __future__ import annotations

import html
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Literal

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from traceanalyzer.records import dataclass
from traceanalyzer.report.palette import SWATCHES, Swatch
from traceanalyzer.report.stills.chart import chart_still
from traceanalyzer.vocabulary.lines import cause_of_line, cause_words, is_idle

Dict = dict[str, Any]
Jump = tuple[int, int, int]
"""A stretch of the timeline: ns since its origin, and the group of lanes."""
MOST_MARKS = 2_000
"""Bars or points in one figure; more nobody tells apart, and each is an element of the page."""
SERIES = 6
_TIMES = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"))
_SIZES = ("B", "KiB", "MiB", "GiB", "TiB")


@dataclass(frozen=True)
class View:
    """One drawing of a chart. `caption` is its point in words; `jumps` are where its marks, by their number, lie on the timeline."""

    caption: str
    data: list[Dict]
    layout: Dict
    jumps: list[Jump | None] = field(default_factory=list)
    best: int | None = None
    """The mark that the chart's button shows on the timeline."""
    scale: tuple[str, str] | None = None
    """What the palest and the fullest colour of a heat map stand for."""


@dataclass(frozen=True)
class Chart:
    """A figure of the page: one view of everything, or one for each GPU that has data, by the GPU's number in the page's list; with
    `choices`, which a list beside it offers as `choose`, one for each of them by its place."""

    id: str
    title: str
    views: dict[int | None, View]
    size: Literal["small", "medium", "large", "huge"] = "medium"
    wide: bool = False
    best_words: str = ""
    """What that button says; none without words."""
    legend: list[Swatch] = field(default_factory=list)
    """The ledger lines in it, of all GPUs; other figures carry their legend themselves."""
    choose: str = ""
    choices: list[str] = field(default_factory=list)

    @property
    def first(self) -> View:
        return next(iter(self.views.values()))

    @property
    def still(self) -> Markup:
        """The first view as a picture, until it is drawn."""
        return chart_still(self.id, self.size, self.first.data, self.first.layout)


def text(name: str) -> str:
    """A name as plotly shows it literally: it reads a little HTML in every text, so what could be markup is written as entities."""
    return html.escape(" ".join(name.split()), quote=False)


def wrap_name(name: str, width: int = 80, most: int = 6) -> str:
    """A long name as lines of a hover label, still literal."""
    name = " ".join(name.split())
    lines = [name[at : at + width] for at in range(0, len(name), width)]
    if len(lines) > most:
        lines = [*lines[: most - 1], lines[most - 1][: width - 1] + "…"]
    return "<br>".join(map(text, lines))


def categories(names: Sequence[str]) -> list[str]:
    """Names for a category axis, where equal ones would be one: those get a number."""
    count = Counter(names)
    seen: Counter[str] = Counter()
    labels = []
    for name in names:
        seen[name] += 1
        labels.append(text(f"{name} ({seen[name]})" if count[name] > 1 else name))
    return labels


def in_words(swatch: Swatch) -> str:
    """A ledger line within a sentence: "Idle: input" is "idle (input)"."""
    if is_idle(swatch.key):
        return f"idle ({cause_words(cause_of_line(swatch.key))})"
    return swatch.label[0].lower() + swatch.label[1:]


def step_numbers(names: Sequence[str]) -> list[str]:
    """Names of steps for an axis: their numbers, where they differ in nothing else."""
    heads = {name.rstrip("0123456789") for name in names}
    if len(heads) > 1 or any(name in heads for name in names):
        return list(names)
    return [name[len(next(iter(heads))) :] for name in names]


def time_unit(longest: float) -> tuple[float, str]:
    """How many ns the unit has in which a time of `longest` ns is read, and the unit."""
    return next(((float(ns), unit) for ns, unit in _TIMES if longest >= ns), (1.0, "ns"))


def size_unit(largest: float) -> tuple[float, str]:
    """The same of bytes, in binary units."""
    power = next((p for p in range(len(_SIZES) - 1, 0, -1) if largest >= 1024**p), 0)
    return float(1024**power), _SIZES[power]


def round_values(values: NDArray[Any], unit: float = 1, digits: int = 4) -> list[Any]:
    """In that unit, with so many decimals; NaN becomes None, of which plotly draws nothing."""
    scaled = np.round(np.asarray(values, dtype=np.float64) / unit, digits)
    return [None if math.isnan(value) else value for value in scaled.tolist()]


def axis(title: str, **more: Any) -> Dict:
    return {"title": {"text": title, "standoff": 8}, "automargin": True, **more}


def size_axis(least: float, most: float) -> Dict:
    """A logarithmic axis of bytes, with ticks at powers of two."""
    low, high = int(np.log2(max(least, 1))) - 1, int(np.ceil(np.log2(max(most, 2)))) + 1
    step = next(s for s in (1, 2, 5, 10) if (high - low) / s <= 7 or s == 10)
    powers = range(max(low - low % step, 0), high + step + 1, step)
    units = [f"{2 ** (p % 10)} {_SIZES[min(p // 10, 4)]}" for p in powers]
    reach = [low * float(np.log10(2)), high * float(np.log10(2))]
    return axis("size", type="log", tickvals=[2.0**p for p in powers], ticktext=units, range=reach)


def log_axis(title: str, least: float, most: float) -> Dict:
    """A logarithmic axis of at least a decade, with ticks at 1, 2 and 5, or at powers of ten where there are many."""
    low, high = np.log10(least) - 0.15, np.log10(most) + 0.15
    air = max(1.0 - (high - low), 0) / 2
    reach = [float(low - air), float(high + air)]
    powers = range(int(np.floor(reach[0])), int(np.ceil(reach[1])) + 1)
    ticks = [digit * 10.0**power for power in powers for digit in ((1, 2, 5) if len(powers) <= 4 else (1,))]
    return axis(title, type="log", range=reach, tickvals=ticks, ticktext=[f"{tick:,.10g}" for tick in ticks])


def swatches_in(views: Mapping[int | None, View]) -> list[Swatch]:
    """The ledger lines that any of the views has a trace of, in the palette's order."""
    used = {trace["meta"] for view in views.values() for trace in view.data}
    return [swatch for swatch in SWATCHES if swatch.key in used]


def layout(x: Dict, y: Dict, **more: Any) -> Dict:
    return {
        "xaxis": x,
        "yaxis": y,
        "margin": {"l": 8, "r": 12, "t": 8, "b": 8},
        "legend": {
            "orientation": "h",
            "x": 0,
            "y": -0.22,
            "yanchor": "top",
            "traceorder": "normal",
            "itemsizing": "constant",
        },
        **more,
    }
