"""Axes of a still picture: from plotly's words for them to where values lie, and which get a label."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceanalyzer.records import dataclass
from traceanalyzer.report.stills.drawing import literal, text_width

Floats = NDArray[np.float64]
Dict = dict[str, Any]
_TICKS = 6


@dataclass(frozen=True)
class Axis:
    """`low` to `high` are the ends in the axis's own scale: numbers, their logarithms, or places of categories."""

    title: str
    low: float
    high: float
    ticks: list[tuple[float, str]]
    is_log: bool = False
    is_visible: bool = True
    has_grid: bool = True
    places: dict[Any, int] = field(default_factory=dict)

    def share(self, values: Sequence[Any]) -> Floats:
        """Where values lie, from 0 at the low end to 1 at the high one; NaN for none."""
        if self.places:
            found = np.array([self.places.get(value, np.nan) for value in values], dtype=np.float64)
        else:
            found = np.array([np.nan if value is None else value for value in values], dtype=np.float64)
            if self.is_log:
                with np.errstate(divide="ignore", invalid="ignore"):
                    found = np.log10(found)
        shares: Floats = (found - self.low) / (self.high - self.low)
        return shares

    def shown(self, room: float, is_upright: bool) -> list[tuple[float, str]]:
        """The ticks as shares, every one or as many as `room` px have place for."""
        inside = [(at, text) for at, text in self.ticks if min(self.low, self.high) <= at <= max(self.low, self.high)]
        each = 14 if is_upright else max((text_width(text) for _, text in inside), default=0) + 10
        run = max(1, math.ceil(len(inside) * each / max(room, 1)))
        return [((at - self.low) / (self.high - self.low), text) for at, text in inside[::run]]


def axis_of(said: Dict, values: Sequence[Any], is_padded: bool) -> Axis:
    """The axis that a figure's layout describes, over `values`, which for categories are their names. `is_padded`: with some air."""
    title = literal(said.get("title", {}).get("text", ""))
    more: Dict = {"is_visible": said.get("visible", True), "has_grid": said.get("showgrid", True)}
    if said.get("type") == "category":
        places = {value: at for at, value in enumerate(dict.fromkeys(values))}
        low, high = said.get("range", (-0.5, len(places) - 0.5))
        if said.get("autorange") == "reversed":
            low, high = high, low
        return Axis(title, low, high, [(at, literal(value)) for value, at in places.items()], places=places, **more)
    is_log = said.get("type") == "log"
    known = np.array([value for value in values if value is not None], dtype=np.float64)
    if "range" in said:
        low, high = map(float, said["range"])
    else:
        low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
        if said.get("rangemode") == "tozero":
            low, high = min(low, 0.0), max(high, 0.0)
        air = (high - low or abs(high) or 1.0) * 0.05
        high += air if is_padded or high == low else 0
        low -= air if is_padded and low else 0
    if "tickvals" in said:
        places_of = [math.log10(value) if is_log else float(value) for value in said["tickvals"]]
        ticks = [(at, literal(str(text))) for at, text in zip(places_of, said["ticktext"], strict=True)]
    else:
        ticks = round_ticks(min(low, high), max(low, high))
    return Axis(title, low, high, ticks, is_log=is_log, **more)


def round_ticks(low: float, high: float) -> list[tuple[float, str]]:
    """At multiples of 1, 2 or 5 times a power of ten; none on an axis without length."""
    if high <= low:
        return []
    least = (high - low) / _TICKS
    power = 10.0 ** math.floor(math.log10(least))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= least * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [(at * step, f"{at * step:,.10g}") for at in range(first, last + 1)]
