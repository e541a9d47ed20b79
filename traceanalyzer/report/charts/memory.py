"""Device memory of one GPU over time, where its allocations were recorded."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import Ints, integers
from traceanalyzer.report.charts.figure import Chart, Dict, View, axis, layout, round_values, size_unit, time_unit
from traceanalyzer.report.charts.gpus import Gpus
from traceanalyzer.report.sections.words import format_duration
from traceanalyzer.report.timeline.lanes import table_or_none
from traceanalyzer.report.timeline.memory_levels import Level, memory_levels
from traceanalyzer.units import format_bytes, format_count, format_share
from traceanalyzer.vocabulary.lines import COMPUTE

MOST_POINTS = 500
NEAR = 0.3
"""From this share of the device's memory on its size is drawn too; below, it would press everything else to the ground."""
LINES: dict[Level, tuple[str, str]] = {
    "allocated": ("in use by the program", COMPUTE.name),
    "reserved": ("reserved by its allocator", "dim"),
    "driver": ("given out by the driver", COMPUTE.name),
}
"""Name and colour."""


def memory_chart(gpus: Gpus) -> Chart | None:
    devices = table_or_none(gpus.tables, "devices")
    sizes = {} if devices is None else {(row["rank"], row["device"]): row["memory"] for row in devices.to_pylist()}
    views: dict[int | None, View] = {}
    for number, events in gpus.rows("memory_events"):
        gpu = gpus.every[number]
        view = _view(gpus, number, events, sizes.get((gpu.rank, gpu.device)))
        if view is not None:
            views[number] = view
    return Chart("memory", "Device memory over time", views, wide=True) if views else None


def highest(time: Ints, values: Ints, bins: int) -> tuple[Ints, Ints]:
    """At most `bins` points of a step line, each the highest value of its stretch of time; those at hand where there are no more."""
    if len(time) <= bins:
        return time, values
    edges = np.linspace(time[0], time[-1] + 1, bins + 1)[:-1]
    first = np.unique(np.searchsorted(time, edges))
    first = first[first < len(time)]
    return time[first], np.maximum.reduceat(values, first)


def _view(gpus: Gpus, number: int, events: pa.Table, capacity: int | None) -> View | None:
    events = events.filter(events["bytes"].is_valid())
    if events.num_rows < 2 or len(events["process"].unique()) > 1:  # what several use at one time is on the timeline
        return None
    events = events.take(pa.array(np.argsort(integers(events, "time_ns"), kind="stable")))
    time = integers(events, "time_ns")
    if time[0] == time[-1]:  # what was allocated before a recording began is all noted at its beginning
        return None
    levels = memory_levels(events)
    if not levels:
        return None
    place = gpus.place(number, int(time[0]), int(time[-1]))
    shift = (0 if place is None else place.start) - int(time[0])
    peak = max(int(values.max()) for values in levels.values())
    unit, unit_name = size_unit(float(peak))
    time_scale, time_name = time_unit(float(max(abs(int(time[0]) + shift), abs(int(time[-1]) + shift))))
    data = [
        _line(*LINES[level], *_scaled(highest(time, values, MOST_POINTS), shift, time_scale, unit), unit_name)
        for level, values in levels.items()
    ]
    if capacity and peak >= NEAR * capacity:
        ends = [data[0]["x"][0], data[0]["x"][-1]]
        data.append(_line("memory of the device", "ink", ends, [round(capacity / unit, 4)] * 2, unit_name, "dash"))
    level, values = next(iter(levels.items()))
    of = f", {format_share(int(values.max()) / capacity)} of the device's {format_bytes(capacity)}" if capacity else ""
    caption = f"At most {format_bytes(int(values.max()))} is {LINES[level][0]}{of}."
    if len(time) > MOST_POINTS:
        each = format_duration((int(time[-1]) - int(time[0])) / MOST_POINTS)
        caption += f" Of {format_count(len(time))} events the highest of each {each} is drawn."
    x = axis(f"time{' since the timeline begins' if place else ''}, {time_name}", showgrid=False)
    y = axis(f"memory, {unit_name}", rangemode="tozero")
    return View(caption, data, layout(x, y, hovermode="x unified"))


def _scaled(points: tuple[Ints, Ints], shift: int, time_unit: float, unit: float) -> tuple[list[float], list[float]]:
    time, values = points
    return round_values(time + shift, time_unit, 6), round_values(values, unit)


def _line(name: str, colour: str, x: list[float], y: list[float], unit: str, dash: str = "solid") -> Dict:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "meta": colour,
        "x": x,
        "y": y,
        "line": {"shape": "hv", "width": 2, "dash": dash},
        "hovertemplate": f"%{{y:.4~r}} {unit}<extra>{name}</extra>",
    }
