"""The timeline's first view as a still picture: the lanes of GPUs and a few host threads, a column for every two pixels."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from markupsafe import Markup

from traceanalyzer.columns import Ints
from traceanalyzer.report.charts.figure import time_unit
from traceanalyzer.report.charts.use import bin_coverage
from traceanalyzer.report.palette import SWATCHES
from traceanalyzer.report.stills.axes import Floats, round_ticks
from traceanalyzer.report.stills.drawing import WIDTH, Drawing, cut_text, label, number, rectangle
from traceanalyzer.report.timeline.lanes import Group, Lane, Span
from traceanalyzer.report.timeline.slices import Slices
from traceanalyzer.units import format_count

GUTTER, AXIS, HEADING, GAP = 118, 18, 20, 4
HEIGHTS = {"ledger": 24, "slices": 13}
MOST_ROWS = 40
"""Rows of slices; what is below is not in the picture, which says so."""
COLUMN = 2.0
"""Px: in each the colours' shares are drawn."""
ROOM_FOR_WORDS = 46
SHADES = (0.4, 0.6, 0.8, 1.0)
"""Of a column of a lane, by how busy it is."""


def timeline_still(groups: Sequence[Group], names: Sequence[str], shown: Span) -> Markup:
    """A picture of the stretch `shown`, in ns since the origin, as which the rows of `groups` count too."""
    rows = [(group, lane, row) for group in groups for lane, row in _rows(group)]
    drawn = rows[:MOST_ROWS]
    places, height = _places(drawn)
    drawing = Drawing("timeline", height + (16 if len(rows) > len(drawn) else 0))
    _axis(drawing, shown, height)
    headed: Group | None = None
    for (group, lane, row), y in zip(drawn, places, strict=True):
        if group is not headed:  # two may be alike
            headed = group
            drawing.add(label(group.label, 2, y - GAP, css="ink"))
        if row is lane.rows[0]:
            drawing.add(label(cut_text(lane.label, GUTTER - 10), 10, y + HEIGHTS[lane.kind] / 2 + 4))
        (_ledger if lane.kind == "ledger" else _slices)(drawing, row, y, shown)
        if lane.kind != "ledger":
            _words(drawing, row, y, shown, names)
    if len(rows) > len(drawn):
        left = format_count(len(rows) - len(drawn))
        drawing.add(label(f"{left} more rows of slices are not in this picture.", 2, height + 11))
    return drawing.svg()


def _rows(group: Group) -> list[tuple[Lane, Slices]]:
    """The rows of a group that hold slices; of a folded one those of its ledger."""
    return [
        (lane, row)
        for lane in group.lanes
        if lane.kind == "ledger" or (lane.kind == "slices" and not group.folded)
        for row in lane.rows
        if isinstance(row, Slices) and len(row)
    ]


def _places(rows: Sequence[tuple[Group, Lane, Slices]]) -> tuple[list[float], float]:
    """Where each row begins, from the top, and where the last one ends."""
    places: list[float] = []
    y = float(AXIS)
    before: tuple[Group, Lane] | None = None
    for group, lane, _ in rows:
        y += HEADING + GAP if before is None or before[0] is not group else GAP if before[1] is not lane else 1
        places.append(y)
        y += HEIGHTS[lane.kind]
        before = group, lane
    return places, y + GAP


def _axis(drawing: Drawing, shown: Span, height: float) -> None:
    unit, unit_name = time_unit(float(max(abs(shown[0]), abs(shown[1]))))
    lines = ""
    for at, text in round_ticks(shown[0] / unit, shown[1] / unit):
        x = float(_at(np.array([at * unit]), shown)[0])
        lines += f"M{number(x)} {AXIS}V{number(height)}"
        words = f"{text} {unit_name}"
        drawing.add(label(words, x, AXIS - 6, "end" if x > WIDTH - 30 else "middle"))
    drawing.grid(lines)


def _at(times: Floats | Ints, shown: Span) -> Floats:
    found: Floats = GUTTER + (times - shown[0]) / max(shown[1] - shown[0], 1) * (WIDTH - GUTTER)
    return found


def _shares(row: Slices, shown: Span) -> tuple[list[int], Floats]:
    """The colours of a row, and of each which share of the columns it has."""
    edges = np.linspace(shown[0], shown[1], int((WIDTH - GUTTER) / COLUMN) + 1)
    colours = row.colours.tolist()
    amounts = [bin_coverage(row.start, row.duration, edges, np.flatnonzero(row.colour == colour)) for colour in colours]
    return colours, np.array(amounts) / max(edges[1] - edges[0], 1e-9)


def _ledger(drawing: Drawing, row: Slices, y: float, shown: Span) -> None:
    """Each column with its colours one above the other."""
    colours, shares = _shares(row, shown)
    high = HEIGHTS["ledger"]
    tops = np.rint(np.cumsum(shares, axis=0) * high)
    bases = np.vstack((np.zeros(tops.shape[1]), tops[:-1]))
    for colour, base, top in zip(colours, bases, tops, strict=True):
        boxes = [
            rectangle(GUTTER + first * COLUMN, y + high - up, (last - first) * COLUMN, up - low)
            for first, last, low, up in _runs(base, top)
            if up > low
        ]
        drawing.fill("".join(boxes), SWATCHES[colour].key)


def _slices(drawing: Drawing, row: Slices, y: float, shown: Span) -> None:
    """Each column in the colour that it has most of, as strong as it is busy."""
    colours, shares = _shares(row, shown)
    main, busy = shares.argmax(axis=0), shares.sum(axis=0).clip(0, 1)
    shade = np.ceil(busy * len(SHADES))
    for at, colour in enumerate(colours):
        for strength, opacity in enumerate(SHADES, 1):
            mine = ((main == at) & (shade == strength)).astype(np.float64)
            boxes = [
                rectangle(GUTTER + first * COLUMN, y, (last - first) * COLUMN, HEIGHTS["slices"])
                for first, last, _, is_mine in _runs(mine, mine)
                if is_mine
            ]
            drawing.fill("".join(boxes), SWATCHES[colour].key, opacity)


def _runs(*values: Floats) -> list[tuple[int, int, float, float]]:
    """Stretches of columns [first, last) over which both values stay, with these."""
    low, high = values
    changes = np.flatnonzero((np.diff(low) != 0) | (np.diff(high) != 0)) + 1
    bounds = [0, *changes.tolist(), len(low)]
    return [(first, last, float(low[first]), float(high[first])) for first, last in pairwise(bounds)]


def _words(drawing: Drawing, row: Slices, y: float, shown: Span, names: Sequence[str]) -> None:
    """The names of slices that are wide enough for them."""
    # Few are long enough, with a px to spare for what rounding takes.
    least = (ROOM_FOR_WORDS - 1) * max(shown[1] - shown[0], 1) / (WIDTH - GUTTER)
    row = row.take(np.flatnonzero(row.duration >= least))
    left = _at(row.start, shown).clip(GUTTER, WIDTH)
    wide = _at(row.end, shown).clip(GUTTER, WIDTH) - left
    for at in np.flatnonzero(wide >= ROOM_FOR_WORDS).tolist():
        css = f"on c-{SWATCHES[int(row.colour[at])].css}"
        drawing.add(
            label(cut_text(names[int(row.name[at])], float(wide[at]) - 8), float(left[at]) + 4, y + 10, css=css)
        )
