"""Values over time as lines of their own, where a sum of them means nothing: clocks, power, temperatures."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceanalyzer.report.charts.figure import (
    SERIES,
    Chart,
    Dict,
    View,
    axis,
    layout,
    round_values,
    text,
    time_unit,
)
from traceanalyzer.report.evidence.levels import (
    ABOVE,
    BELOW,
    MOST_POINTS,
    MOST_SPANS,
    marked_moments,
    scale_of,
    stretches_below,
)
from traceanalyzer.result.sections import Levels
from traceanalyzer.units import format_count

DASHES = ("", "dash", "dot")
"""Of more lines than there are colours, the next ones with the same colours are dashed."""
MOST_LINES = SERIES * len(DASHES)
FROM_NOTHING = 0.5
"""Where a value is less than this share of the highest, the axis begins at nothing."""
Floats = NDArray[np.float64]


def lines_chart(levels: Levels, id_: str) -> Chart | None:
    """None where nothing was recorded. Raises ValueError for a series that is not as long as its times, or an infinite value."""
    times = np.asarray(levels.times_ns, dtype=np.int64)
    if len(times) < 2 or not levels.series:
        return None
    if any(len(series) != len(times) for _, series in levels.series):
        raise ValueError(f"{levels.title}: a series is not as long as its {len(times)} times")
    if (np.diff(times) < 0).any():
        raise ValueError(f"{levels.title}: its times do not ascend")
    values = np.array([[np.nan if value is None else value for value in series] for _, series in levels.series], float)
    if np.isinf(values).any():
        raise ValueError(f"{levels.title}: an infinite value")
    if np.isnan(values).all():
        return None
    names = [name for name, _ in levels.series]
    far = _furthest(values, MOST_LINES)
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    bottom = min(low, 0.0) if low < FROM_NOTHING * high else low
    tall = high - bottom or abs(high) or 1.0
    shown = _extremes(times, values[far], MOST_POINTS)
    unit, unit_name, write = scale_of(levels.unit, high)
    scale, time_name = time_unit(float(times[-1] - times[0]))

    def at(time: Any) -> list[Any]:
        return round_values(np.asarray(time, dtype=np.int64) - times[0], scale, 6)

    x = at(times[shown])
    looks = [(dash, f"series-{colour}") for dash, colour in product(DASHES, range(1, SERIES + 1))]
    data: list[Dict] = [
        _line(names[one], *look, x, round_values(values[one, shown], unit), unit_name or levels.axis)
        for one, look in zip(far.tolist(), looks, strict=False)
    ]
    data += stretches_below(levels.spans, at, (bottom + BELOW * tall) / unit, (int(times[0]), int(times[-1])))
    tops = np.fmax.reduce(values, axis=0)
    data += marked_moments(levels.marks, at, times, np.nan_to_num(tops, nan=low), ABOVE * tall / unit, unit)
    reach_words = f"At {write(low)}" if write(low) == write(high) else f"From {write(low)} to {write(high)}"
    caption = f"{reach_words}{_counted(levels)}."
    if len(names) > len(far):
        caption += f" Of {format_count(len(names))} lines those {len(far)} that are furthest from the others are drawn."
    if len(times) > len(shown):
        caption += (
            f" Of {format_count(len(times))} moments those with the lowest and the highest value of each stretch are drawn, "
            f"{format_count(len(shown))} of them."
        )
    if len(levels.spans) > MOST_SPANS:
        caption += f" Below: the first {MOST_SPANS} of {format_count(len(levels.spans))} stretches."
    reach = [(bottom + 3 * BELOW * tall) / unit, (high + 3 * ABOVE * tall) / unit]
    drawn = layout(
        axis(f"time since it begins, {time_name}", showgrid=False),
        axis(unit_name or levels.axis or "value", range=reach, fixedrange=True),
        hovermode="x unified",
        showlegend=True,
    )
    return Chart(id_, levels.title, {None: View(caption, data, drawn)}, wide=True)


def _counted(levels: Levels) -> str:
    return f" {levels.axis}" if levels.axis and levels.unit == "count" else ""


def _furthest(values: Floats, most: int) -> NDArray[np.int64]:
    """The lines that are furthest from the middle of all of them, at most so many, in their order."""
    if len(values) <= most:
        return np.arange(len(values))
    known = ~np.isnan(values).all(axis=0)
    away = np.abs(values[:, known] - np.nanmedian(values[:, known], axis=0))
    means = np.nansum(away, axis=1) / np.maximum((~np.isnan(away)).sum(axis=1), 1)
    return np.sort(np.argsort(-means, kind="stable")[:most])


def _extremes(times: NDArray[np.int64], values: Floats, most: int) -> NDArray[np.int64]:
    """The first and the last moment, and of each stretch of time those where a line is lowest and highest, or ends: about `most`."""
    if len(times) <= most:
        return np.arange(len(times))
    pieces = max(most // (2 * len(values)), 20)
    piece = ((times - times[0]) * np.float64(pieces) / max(int(times[-1] - times[0]), 1)).astype(np.int64)
    found = [np.array([0, len(times) - 1])]
    for line in values:
        missing = np.isnan(line)
        for key in (np.where(missing, np.inf, line), np.where(missing, np.inf, -line)):
            order = np.lexsort((key, piece))
            found.append(order[np.append(True, np.diff(piece[order]) > 0)])
        # A hole stays one: the first moment of each stretch at which nothing is known.
        holes = np.flatnonzero(missing)
        found.append(holes[np.append(True, np.diff(piece[holes]) > 0)] if len(holes) else holes)
    return np.unique(np.concatenate(found))


def _line(name: str, dash: str, colour: str, x: list[float], y: list[float], unit: str) -> Dict:
    line: Dict = {"width": 1.5, "shape": "hv"}
    return {
        "type": "scatter",
        "mode": "lines",
        "name": text(name),
        "meta": colour,
        "x": x,
        "y": y,
        "line": line | {"dash": dash} if dash else line,
        "hovertemplate": f"%{{y:,.5~r}} {text(unit)}<extra>{text(name)}</extra>",
    }
