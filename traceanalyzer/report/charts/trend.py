"""The captures of a history over time: how long a unit takes, on which level, where that goes and what is found."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from traceanalyzer.report.charts.figure import SERIES, Chart, Dict, View, axis, layout, round_values, text, time_unit
from traceanalyzer.report.palette import SWATCHES
from traceanalyzer.report.sections.words import day, format_duration
from traceanalyzer.result.history.entry import Entry
from traceanalyzer.result.history.trend import Series, name_of

MOST_POINTS = 400
"""Of more captures, several in a row are one point: their mean."""
_TICKS = 8
Group = tuple[Series, Sequence[Entry]]
"""A series with the entries of its captures, in the same order."""


def trend_charts(groups: Sequence[Group]) -> list[Chart]:
    """Each with a choice of the series, where there are several."""
    made = [
        _chart("level", "Time of a unit", groups, _level, large=True),
        _chart("lines", "Where the time goes", groups, _lines, large=True),
        _chart("findings", "Findings", groups, _findings),
        _chart("families", "Kinds of kernels", groups, _families),
    ]
    return [chart for chart in made if chart is not None]


def _chart(
    id: str, title: str, groups: Sequence[Group], make: Callable[[Group], View | None], large: bool = False
) -> Chart | None:
    views: dict[int | None, View] = {}
    for at, group in enumerate(groups):
        view = make(group) if group[1] else None
        if view is not None:
            views[at] = view
    if not views:
        return None
    choices = [name_of(series) for series, _ in groups]
    chart = Chart(id, title, views, wide=True, choose="Series", choices=choices)
    return replace(chart, size="large") if large else chart


def _level(group: Group) -> View:
    series, entries = group
    ns = np.array(series.unit_ns, np.float64)
    unit, unit_name = time_unit(float(ns.max()))
    noisy = {series.captures.index(id) for id in series.noisy}
    at, means = _binned(ns, [at for at in range(len(ns)) if at not in noisy])
    data: list[Dict] = []
    for number, stretch in enumerate(series.stretches):
        x = [stretch.first + 0.5, stretch.end + 0.5]
        for name, value, style in (
            ("level", stretch.mean_ns, {"width": 2}),
            ("nearly all captures", stretch.low_ns, {"width": 1, "dash": "dot"}),
            ("nearly all captures", stretch.high_ns, {"width": 1, "dash": "dot"}),
        ):
            if name != "level" and series.noise is None:
                continue
            data.append(
                {
                    "type": "scatter",
                    "mode": "lines",
                    "name": name,
                    "legendgroup": name,
                    "showlegend": number == 0 and value != stretch.high_ns,
                    "meta": "ink" if name == "level" else "dim",
                    "x": x,
                    "y": round_values(np.full(2, value), unit),
                    "line": style,
                    "hoverinfo": "skip",
                }
            )
    data.append(_marks("capture", "series-1", at + 1, means, unit, unit_name, [_said(entries, where) for where in at]))
    if noisy:
        where = np.array(sorted(noisy))
        data.append(
            _marks("noise", "series-2", where + 1, ns[where], unit, unit_name, [_said(entries, one) for one in where])
        )
    return View(
        f"{series.latest[:1].upper()}{series.latest[1:]}.", data, layout(_x(entries), axis(f"time, {unit_name}"))
    )


def _marks(name: str, meta: str, x: np.ndarray, ns: np.ndarray, unit: float, unit_name: str, said: list[str]) -> Dict:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "meta": meta,
        "x": x.tolist(),
        "y": round_values(ns, unit),
        "marker": {"size": 6},
        "hovertext": said,
        "hovertemplate": f"%{{hovertext}}: %{{y:.4~r}} {unit_name}<extra></extra>",
    }


def _said(entries: Sequence[Entry], at: int) -> str:
    entry = entries[int(at)]
    commit = entry.labels.get("commit")
    return text(f"{day(entry.time_ns)}, {entry.name}" + (f", commit {commit[:12]}" if commit else ""))


def _lines(group: Group) -> View | None:
    _, entries = group
    swatches = [one for one in SWATCHES if any(entry.lines.get(one.key) for entry in entries)]
    if not swatches:
        return None
    columns = {one.key: np.array([entry.lines.get(one.key, 0) for entry in entries], np.float64) for one in swatches}
    unit, unit_name = time_unit(float(np.sum(list(columns.values()), axis=0).max()))
    data = []
    for one in swatches:
        at, means = _binned(columns[one.key])
        data.append(
            {
                "type": "scatter",
                "mode": "lines",
                "stackgroup": "lines",
                "name": one.label,
                "meta": one.key,
                "x": (at + 1).tolist(),
                "y": round_values(means, unit),
                "line": {"width": 0.5},
                "hovertemplate": f"%{{y:.4~r}} {unit_name}<extra>{one.label}</extra>",
            }
        )
    moved = max(swatches, key=lambda one: abs(columns[one.key][-1] - columns[one.key][0]))
    change = columns[moved.key][-1] - columns[moved.key][0]
    caption = (
        f"From the first capture to the last, {moved.label.lower()} has {format_duration(abs(change))} "
        f"{'more' if change > 0 else 'less'} of a unit."
        if change
        else "The same on all lines."
    )
    return View(
        caption, data, layout(_x(entries), axis(f"time, {unit_name}", rangemode="tozero"), hovermode="x unified")
    )


def _findings(group: Group) -> View | None:
    _, entries = group
    titles = {one.rule: one.title for entry in entries for one in entry.findings if one.ns}
    columns = {rule: np.array([_of_rule(entry, rule) for entry in entries], np.float64) for rule in titles}
    return _named(entries, columns, {rule: f"{rule} {title}" for rule, title in titles.items()}, "accounts for")


def _of_rule(entry: Entry, rule: str) -> float:
    """What a rule's findings account for; not a number where it was not judged."""
    found = [one.ns or 0 for one in entry.findings if one.rule == rule]
    return float(sum(found)) if found or rule in entry.judged else float("nan")


def _families(group: Group) -> View | None:
    _, entries = group
    names = sorted({one.name for entry in entries for one in entry.families})
    found = [{one.name: one.ns for one in entry.families} for entry in entries]
    columns = {name: np.array([one.get(name, 0) for one in found], np.float64) for name in names}
    return _named(entries, columns, {name: name for name in names}, "take")


def _named(
    entries: Sequence[Entry], columns: Mapping[str, np.ndarray], words: Mapping[str, str], verb: str
) -> View | None:
    """A line for each of the names with most time."""
    kept = sorted(columns, key=lambda name: (-np.nansum(columns[name]), name))[:SERIES]
    if not kept or not any(np.nansum(columns[name]) for name in kept):
        return None
    unit, unit_name = time_unit(float(np.nanmax([np.nanmax(columns[name]) for name in kept])))
    data = []
    for number, name in enumerate(kept):
        at, means = _binned(columns[name])
        data.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": text(words[name]),
                "meta": f"series-{number + 1}",
                "x": (at + 1).tolist(),
                "y": round_values(means, unit),
                "line": {"width": 1.5},
                "hovertemplate": f"%{{y:.4~r}} {unit_name}<extra>{text(words[name])}</extra>",
            }
        )
    first = kept[0]
    caption = f"{words[first]}: {format_duration(np.nan_to_num(columns[first][-1]))} of a unit in the last capture"
    left = len(columns) - len(kept)
    caption += f"; {left} more with less time are not drawn." if left > 0 else "."
    return View(
        caption, data, layout(_x(entries), axis(f"time, {unit_name}", rangemode="tozero"), hovermode="x unified")
    )


def _binned(values: np.ndarray, rows: Sequence[int] | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Places and values of at most `MOST_POINTS` points; of several captures in a row the middle one's place and their mean."""
    at = np.arange(len(values)) if rows is None else np.array(rows, np.int64)
    run = -(-len(at) // MOST_POINTS) if len(at) else 1
    if run <= 1:
        return at, values[at]
    parts = np.arange(0, len(at), run)
    counts = np.diff([*parts, len(at)])
    return at[np.minimum(parts + run // 2, len(at) - 1)], np.add.reduceat(values[at], parts) / counts


def _x(entries: Sequence[Entry]) -> Dict:
    """An axis of captures by number, with the days of some of them."""
    ticks = np.unique(np.linspace(0, len(entries) - 1, min(_TICKS, len(entries))).astype(np.int64)).tolist()
    words = [day(entries[at].time_ns).partition(" ")[0] for at in ticks]
    return axis(
        "capture", tickvals=[at + 1 for at in ticks], ticktext=words, range=[0.5, len(entries) + 0.5], showgrid=False
    )
