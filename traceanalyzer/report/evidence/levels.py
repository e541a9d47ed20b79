"""Values over time as a chart: one series on top of the other, marks above them, and stretches (steps) below."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    size_unit,
    text,
    time_unit,
    wrap_name,
)
from traceanalyzer.report.sections.words import format_duration
from traceanalyzer.result.sections import Levels, Mark, Unit
from traceanalyzer.units import format_bytes, format_count, format_share

MOST_POINTS = 500
"""Times of one chart: of more, that with the highest sum of each stretch."""
MOST_SPANS, NAMED_SPANS = 200, 12
BELOW, ABOVE = -0.05, 0.05
"""Where stretches and labels of marks lie, as shares of the highest sum."""
OTHERS = "others"
NARROW, LETTER = 280, 7
"""How wide the chart is on a phone, and a letter of its labels, in px: what has room there has room everywhere."""


def levels_chart(levels: Levels, id_: str) -> Chart | None:
    """None where nothing was recorded. Raises ValueError for a series that is not as long as its times."""
    times = np.asarray(levels.times_ns, dtype=np.int64)
    if len(times) < 2 or not levels.series:
        return None
    values = np.array([np.asarray(series, dtype=np.int64) for _, series in levels.series])
    if values.shape[1] != len(times):
        raise ValueError(f"{levels.title}: {values.shape[1]} values at {len(times)} times")
    if (np.diff(times) < 0).any():
        raise ValueError(f"{levels.title}: its times do not ascend")
    sums = values.sum(axis=0)
    highest = int(np.argmax(sums))
    shown = highest_moments(times, sums, MOST_POINTS)
    unit, unit_name, write = scale_of(levels.unit, int(sums[highest]))
    scale, time_name = time_unit(float(times[-1] - times[0]))
    peak = max(int(sums[highest]), 1)

    def at(time: Any) -> list[Any]:
        return round_values(np.asarray(time, dtype=np.int64) - times[0], scale, 6)

    data = [
        _area(name, colour, at(times[shown]), round_values(series[shown], unit), unit_name)
        for name, colour, series in _stacked([name for name, _ in levels.series], values)
    ]
    data += stretches_below(levels.spans, at, BELOW * peak / unit, (int(times[0]), int(times[-1])))
    data += marked_moments(levels.marks, at, times, sums, ABOVE * peak / unit, unit)
    # A height that is reached again and again, or from the beginning on, has no moment.
    top = sums == sums[highest]
    once = highest > 0 and int((np.diff(top.astype(np.int8)) == 1).sum()) == 1
    caption = f"At most {write(int(sums[highest]))}"
    caption += f", {format_duration(int(times[highest] - times[0]))} after it begins." if once else "."
    if len(times) > len(shown):
        caption += f" Of {format_count(len(times))} moments those with the highest sum are drawn, {format_count(len(shown))} of them."
    if len(levels.spans) > MOST_SPANS:
        caption += f" Below: the first {MOST_SPANS} of {format_count(len(levels.spans))} stretches."
    x = axis(f"time since it begins, {time_name}", showgrid=False)
    y = axis(unit_name or "value", range=[3 * BELOW * peak / unit, (1 + 3 * ABOVE) * peak / unit], fixedrange=True)
    drawn = layout(x, y, hovermode="x unified", showlegend=True)
    return Chart(id_, levels.title, {None: View(caption, data, drawn)}, size="large", wide=True)


def highest_moments(times: NDArray[np.int64], sums: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """The first and the last moment, and of each stretch of time that with the highest sum."""
    if len(times) <= most:
        return np.arange(len(times))
    edges = np.linspace(times[0], times[-1] + 1, most - 1)[:-1]
    first = np.unique(np.searchsorted(times, edges))
    first = first[first < len(times)]
    length = np.diff(first, append=len(times))
    tops = np.flatnonzero(sums == np.repeat(np.maximum.reduceat(sums, first), length))
    stretch = np.repeat(np.arange(len(first)), length)[tops]
    tops = tops[np.append(True, stretch[1:] != stretch[:-1])]
    return np.unique(np.concatenate(([0], tops, [len(times) - 1])))


def _stacked(names: Sequence[str], values: NDArray[np.int64]) -> list[tuple[str, str, NDArray[np.int64]]]:
    """Name, colour and values of each series as given; of many those that are highest at any time, and the others together on top."""
    count = SERIES if len(names) <= SERIES else SERIES - 1
    largest = sorted(np.argsort(-values.max(axis=1), kind="stable")[:count].tolist())
    found = [(names[one], f"series-{number}", values[one]) for number, one in enumerate(largest, 1)]
    rest = np.delete(values, largest, axis=0)
    return [*found, (f"{len(rest)} {OTHERS}", "dim", rest.sum(axis=0))] if len(rest) else found


def scale_of(unit: Unit, most: float) -> tuple[float, str, Callable[[float], str]]:
    """How many of the values' own are one of the axis, what the axis's unit is called, and how a value reads."""
    if unit == "bytes":
        return *size_unit(float(most)), format_bytes
    if unit == "ns":
        return *time_unit(float(most)), format_duration
    if unit == "share":
        return 0.01, "%", format_share
    return 1.0, "", format_count


def _area(name: str, colour: str, x: list[float], y: list[float], unit: str) -> Dict:
    return {
        "type": "scatter",
        "mode": "lines",
        "stackgroup": "levels",
        "name": text(name),
        "meta": colour,
        "x": x,
        "y": y,
        "line": {"width": 0, "shape": "hv"},
        "hovertemplate": f"%{{y:.4~r}} {unit}<extra>{text(name)}</extra>",
    }


def stretches_below(
    spans: Sequence[Mark], at: Callable[[Any], list[Any]], height: float, ends_of: tuple[int, int]
) -> list[Dict]:
    """Stretches as lines, each a little shorter than it is so that neighbours can be told apart; few ones with their names, as far as
    these have room between the first and the last moment drawn."""
    first = list(spans[:MOST_SPANS])
    if not first:
        return []
    whole = max(one.end_ns for one in first) - min(one.start_ns for one in first)
    ends = [one.end_ns - min((one.end_ns - one.start_ns) // 10, whole // 250) for one in first]
    starts, level = at([one.start_ns for one in first]), round(height, 4)
    line: Dict = {
        "type": "scatter",
        "mode": "lines",
        "name": "",
        "meta": "ink",
        "x": [value for pair in zip(starts, at(ends), strict=True) for value in (*pair, None)],
        "y": [value for _ in first for value in (level, level, None)],
        "line": {"width": 3},
        "hovertemplate": "%{text}<extra></extra>",
        "text": [words for one in first for words in (wrap_name(one.label), wrap_name(one.label), "")],
        "showlegend": False,
    }
    if len(spans) > NAMED_SPANS:
        return [line]
    named = _names_below(first, *ends_of)
    moments, names, places = zip(*named, strict=True) if named else ((), (), ())
    return [line, _texts(at(moments), [round(2.1 * height, 4)] * len(named), names, places)]


def _names_below(spans: Sequence[Mark], first: int, last: int) -> list[tuple[int, str, str]]:
    """The names of stretches that have room between two moments: where each is, its text and which way it goes from there.

    Where they have not, all but the first are without the words that they have in common: step 0, 1, 2.
    """
    names = [_brief(one.label) for one in spans]
    if all(_width(name, first, last) <= one.end_ns - one.start_ns for one, name in zip(spans, names, strict=True)):
        return [(one.start_ns, name, "middle right") for one, name in zip(spans, names, strict=True)]
    before = {name.rpartition(" ")[0] for name in names}
    common = len(before.pop()) if len(before) == 1 else 0
    found: list[tuple[int, str, str]] = []
    free = first
    for one, name in zip(spans, names, strict=True):
        short = name[common:].lstrip() or name
        end = one.start_ns + _width(short, first, last)
        if not found and end - _width(name, first, last) >= first:
            found.append((end, name, "middle left"))
            free = end
        elif one.start_ns >= free:
            shown = short if found else name
            found.append((one.start_ns, shown, "middle right"))
            free = one.start_ns + _width(shown, first, last)
    return found


def _width(name: str, first: int, last: int) -> int:
    """How much of the time between two moments a label takes, in ns."""
    return (len(name) * LETTER + LETTER) * (last - first) // NARROW


def _towards_the_middle(marks: Sequence[Mark], first: int, last: int) -> list[str]:
    """Which way the labels of marks go, so that none is cut off at an edge."""
    return [
        "top right"
        if one.start_ns + (width := _width(_brief(one.label), first, last)) <= last
        else "top left"
        if one.start_ns - width >= first
        else "top center"
        for one in marks
    ]


def _brief(name: str) -> str:
    return name if len(name) <= 40 else name[:39] + "…"


def marked_moments(
    marks: Sequence[Mark],
    at: Callable[[Any], list[Any]],
    times: NDArray[np.int64],
    sums: NDArray[Any],
    above: float,
    unit: float,
) -> list[Dict]:
    """Moments as marks on the sum (of lines the highest value) that holds then, each with its name; a stretch with a line over it."""
    if not marks:
        return []
    starts = np.array([one.start_ns for one in marks], dtype=np.int64)
    ends = np.array([one.end_ns for one in marks], dtype=np.int64)
    held = sums[np.clip(np.searchsorted(times, starts, side="right") - 1, 0, len(times) - 1)]
    heights = [round(float(value) / unit + above / 3, 4) for value in held]
    names = [one.label for one in marks]
    traces: list[Dict] = [
        {
            "type": "scatter",
            "mode": "markers",
            "name": "",
            "meta": "ink",
            "x": at(starts),
            "y": heights,
            "marker": {"symbol": "diamond", "size": 9},
            "hovertemplate": "%{text}<extra></extra>",
            "text": [wrap_name(name) for name in names],
            "showlegend": False,
        },
        _texts(at(starts), heights, names, _towards_the_middle(marks, int(times[0]), int(times[-1]))),
    ]
    long = np.flatnonzero(ends > starts)
    if len(long):
        low, high = at(starts[long]), at(ends[long])
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": "",
                "meta": "ink",
                "x": [value for pair in zip(low, high, strict=True) for value in (*pair, None)],
                "y": [value for one in long.tolist() for value in (heights[one], heights[one], None)],
                "line": {"width": 2},
                "hoverinfo": "skip",
                "showlegend": False,
            }
        )
    return traces


def _texts(x: list[Any], y: list[float], names: Sequence[str], places: Sequence[str]) -> Dict:
    return {
        "type": "scatter",
        "mode": "text",
        "name": "",
        "meta": "ink",
        "x": x,
        "y": y,
        "text": [text(_brief(name)) for name in names],
        "textposition": list(places),
        "hoverinfo": "skip",
        "showlegend": False,
        "cliponaxis": False,
    }
