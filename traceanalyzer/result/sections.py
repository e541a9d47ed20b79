"""Sections that a kind of evidence adds to the report, as plain data: the page draws them, and text and JSON can say them too.

Times are integer nanoseconds on the clock of the rank's tables, sizes are bytes, shares are fractions from 0 to 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Literal

from traceanalyzer import units
from traceanalyzer.records import dataclass

Unit = Literal[units.Unit, "text"]


@dataclass(frozen=True)
class Words:
    """A paragraph. Code in it stands between backticks."""

    text: str


@dataclass(frozen=True)
class Grid:
    """A small table: each column a heading and its unit, each row as many values; None where nothing is known."""

    title: str
    columns: Sequence[tuple[str, Unit]]
    rows: Sequence[Sequence[int | float | str | None]]


@dataclass(frozen=True)
class Mark:
    """A moment, or a stretch, with its name."""

    start_ns: int
    end_ns: int
    label: str


@dataclass(frozen=True)
class Levels:
    """Values over time: each holds from its time to the next one's.

    `times_ns` has n values, and so has each of `series`; `marks` are moments worth a label (a peak), `spans` stretches below (steps).
    Series lie one on top of the other or, where they are not `stacked` because their sum means nothing (clocks), are lines of
    their own, which have None where nothing is known. `axis` says what is counted where `unit` does not (MHz).
    """

    title: str
    unit: Unit
    times_ns: Sequence[int]
    series: Sequence[tuple[str, Sequence[int | float | None]]]
    marks: Sequence[Mark] = ()
    spans: Sequence[Mark] = ()
    stacked: bool = True
    axis: str = ""


@dataclass(frozen=True)
class Point:
    """One point of a Scatter; `weight`, such as a time in ns, is how large it is drawn."""

    label: str
    x: float
    y: float
    weight: float = 1.0


@dataclass(frozen=True)
class Scatter:
    """Points in a plane of logarithmic axes and lines over them, such as a roofline: all values are above 0.

    `x` and `y` are what the axes say, units in it ("FLOP per byte"); a line has a name and its points from left to right.
    """

    title: str
    x: str
    y: str
    points: Sequence[Point]
    lines: Sequence[tuple[str, Sequence[tuple[float, float]]]] = ()


@dataclass(frozen=True)
class Flame:
    """A tree of paths as an icicle: `paths` from the outermost frame to the innermost, each with what is its own."""

    title: str
    unit: Unit
    paths: Sequence[tuple[Sequence[str], int]]


Block = Words | Grid | Levels | Scatter | Flame


@dataclass(frozen=True)
class Lane:
    """Values over time for the timeline of one GPU, on the clock of its rank; absent where the clocks do not meet."""

    rank: int
    device: int
    label: str
    unit: Unit
    times_ns: Sequence[int]
    values: Sequence[int]


@dataclass(frozen=True)
class Section:
    """One section of the page. `name` is its anchor and unique; sections stand in the order of `order`, then of `name`."""

    name: str
    title: str
    blocks: Sequence[Block]
    lanes: Sequence[Lane] = field(default=())
    order: int = 100
