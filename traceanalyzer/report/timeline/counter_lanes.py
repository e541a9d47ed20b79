"""The lanes of values over time: memory and sampled counters, of a GPU or of the host."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.columns import MISSING, encoded, integers
from traceanalyzer.columns.frames import row_groups
from traceanalyzer.report.timeline.lanes import Group, Key, Lane, Source, Span, extent, rank_spans
from traceanalyzer.report.timeline.memory_levels import Level, memory_levels
from traceanalyzer.report.timeline.points import make_points, within
from traceanalyzer.result.sections import Unit
from traceanalyzer.result.words.gpu_names import gpu_of, part_of

TABLES = ("counters", "memory_events")
"""What these lanes read."""
BYTES = "bytes"
UNITS: dict[Unit, tuple[str, float]] = {
    "bytes": (BYTES, 1),
    "ns": ("ns", 1),
    "share": ("%", 100),
    "count": ("", 1),
    "text": ("", 1),
}
"""What the page calls the units of lanes of evidence, and how many of its own one is."""
MEMORY: dict[Level, str] = {"allocated": "memory allocated", "reserved": "memory reserved", "driver": "driver memory"}


def add_counters(source: Source, groups: list[Group]) -> list[Group]:
    """Put the memory of the GPUs that are shown into their groups; returns new groups for sampled counters.

    Only what was recorded from the first start to the last end of the rank's other events is kept.
    """
    spans = rank_spans(groups)
    gpus = {(group.rank, group.device): group for group in groups if group.device is not None}
    memory, counters = _with_evidence(_memory_lanes(source, spans), source, spans), _counter_lanes(source, spans)
    recorded = {key for key in memory.keys() | counters.keys() if key[1] != MISSING}
    unused = {key for key in recorded - gpus.keys() if any(rank == key[0] for rank, _ in gpus)}
    source.leave_out(len(unused), "counters of GPUs on which nothing of this program ran")
    added = []
    for key in sorted((memory.keys() | counters.keys()) - unused):
        lanes = counters.get(key, [])
        if key in gpus:
            gpus[key].lanes += memory.get(key, [])
        else:
            lanes = memory.get(key, []) + lanes
        if lanes:
            owner = gpu_of(source.rank_name(key[0]), None if key[1] == MISSING else key[1])
            label = part_of(owner, "counters")
            added.append(Group(label, key[0], None, spans.get(key[0]) or extent(lanes), lanes))
    return added


def _with_evidence(lanes: dict[Key, list[Lane]], source: Source, spans: Mapping[int, Span]) -> dict[Key, list[Lane]]:
    """The lanes with those of other kinds of evidence, as far as they lie within what is shown of their rank."""
    outside = 0
    for one in source.lanes:
        points = make_points(
            np.asarray(one.times_ns, np.int64), np.asarray(one.values, np.float64) * UNITS[one.unit][1]
        )
        if one.rank in spans:
            points = within(points, *spans[one.rank])
        outside += not len(points)
        if len(points):
            lane = Lane(one.label, [points], "counter", UNITS[one.unit][0])
            lanes.setdefault((one.rank, one.device), []).append(lane)
    source.leave_out(outside, "lanes of other evidence that has no time in common with this recording")
    return lanes


def _counter_lanes(source: Source, spans: Mapping[int, Span]) -> dict[Key, list[Lane]]:
    """By (rank, device) one lane a metric; those that are 0 all the time are left out."""
    table = source.table("counters")
    if table is None:
        return {}
    metric, metrics = encoded(table, "metric")
    unit, units = encoded(table, "unit")
    table = table.append_column("metric_code", pa.array(metric)).append_column("unit_code", pa.array(unit))
    time, value = integers(table, "time_ns"), pc.fill_null(table["value"], np.nan).to_numpy()
    keys = list(row_groups(table, ("rank", "device", "process", "metric_code", "unit_code")))
    unit_of = {key: "" if key[4] == MISSING else units[key[4]] for key, _ in keys}
    short = {key: _without_unit(metrics[key[3]], unit_of[key]) for key, _ in keys}
    sharing = Counter((*key[:2], label) for key, label in short.items())
    lanes: dict[Key, list[Lane]] = {}
    zero = 0
    for key, rows in keys:
        points = make_points(time[rows], value[rows])
        if key[0] in spans:
            points = within(points, *spans[key[0]])
        if not len(points):
            continue
        if not points.value.any():
            zero += 1
            continue
        label = short[key] if sharing[*key[:2], short[key]] == 1 else metrics[key[3]]
        lanes.setdefault(key[:2], []).append(Lane(label, [points], "counter", unit_of[key]))
    source.leave_out(zero, "counters that are 0 all the time")
    return lanes


def _without_unit(metric: str, unit: str) -> str:
    """A metric without the unit that ends its name in brackets, since the lane says that."""
    return metric.removesuffix(f"[{unit}]").rstrip() or metric


def _memory_lanes(source: Source, spans: Mapping[int, Span]) -> dict[Key, list[Lane]]:
    """By (rank, device) what the allocator says is allocated and reserved or, without that, what the driver has given out."""
    table = source.table("memory_events")
    if table is None:
        return {}
    table = table.filter(pc.and_(pc.is_valid(table["device"]), pc.is_valid(table["bytes"])))
    table = table.take(pa.array(np.argsort(integers(table, "time_ns"), kind="stable")))
    lanes: dict[Key, list[Lane]] = {}
    keys = list(row_groups(table, ("rank", "device", "process")))
    sharing = Counter(key[:2] for key, _ in keys)
    for (rank, device, process), rows in keys:
        whose = f" · process {process}" if sharing[rank, device] > 1 else ""
        mine = table.take(pa.array(rows))
        time = integers(mine, "time_ns")
        start, end = spans.get(rank, (int(time[0]), int(time[-1])))
        upto = int(np.searchsorted(time, end, side="right"))
        for level, values in memory_levels(mine).items() if upto else ():
            # What is in use stays so until the next event.
            points = make_points(
                np.append(time[:upto], end), np.append(values[:upto], values[upto - 1]).astype(np.float64)
            )
            lane = Lane(MEMORY[level] + whose, [within(points, start, end)], "counter", BYTES)
            lanes.setdefault((rank, device), []).append(lane)
    return lanes
