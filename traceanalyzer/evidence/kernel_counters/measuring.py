"""Figures of counters for comparisons and budgets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from traceanalyzer.model.tables import Tables
from traceanalyzer.names import comparable_name

MOST_KERNELS = 50
WAITING = ("grid", "tail", "occupancy", "contention", "latency")


def measure(tables: Tables) -> Mapping[str, int | float]:
    """As far as they are known. Times of a launch are those under the profiler, which are compared with each other only."""
    limits = tables.table("kernel_limits").to_pylist()
    found: dict[str, int | float] = {}
    for name in ("used", "occupancy"):
        known = [(row[name], row["weight"]) for row in limits if row[name] is not None]
        weight = sum(each for _, each in known)
        if known:
            found[name] = (
                sum(value * each for value, each in known) / weight if weight else sum(v for v, _ in known) / len(known)
            )
    if any(row["exposed"] is not None for row in limits):
        found["limited"] = sum(row["exposed"] or 0 for row in limits if row["limiter"] in WAITING)
    times: defaultdict[str, list[tuple[float, int]]] = defaultdict(list)
    for row in tables.table("kernel_profiles").to_pylist():
        if row["profiled_time"]:
            times[comparable_name(row["name"])].append((row["profiled_time"], row["launches"]))
    total = sum(time * launches for each in times.values() for time, launches in each)
    launches = sum(number for each in times.values() for _, number in each)
    if launches:
        found["profiled"] = round(total / launches)
        largest = sorted(times.items(), key=lambda one: (-sum(time * number for time, number in one[1]), one[0]))
        for kernel, each in largest[:MOST_KERNELS]:
            found[f"profiled[{kernel}]"] = round(
                sum(time * number for time, number in each) / sum(number for _, number in each)
            )
    return found
