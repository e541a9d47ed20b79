"""The section of a log of GPUs in the report: the scorecard of each GPU, and clocks, power, temperature and use over time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import Array, Key
from traceanalyzer.evidence.gpu_log.answers.words import ENOUGH
from traceanalyzer.evidence.gpu_log.scorecard import FULL_MEMORY, USED, disagrees, standing_out
from traceanalyzer.model.tables import Tables
from traceanalyzer.result.document import Result
from traceanalyzer.result.sections import Block, Grid, Levels, Mark, Section, Unit, Words
from traceanalyzer.units import format_count, format_duration, format_share

Row = dict[str, Any]
_CHARTS: tuple[tuple[str, str, Unit, str], ...] = (
    ("SM clock", "sm_clock", "count", "MHz"),
    ("Power", "power", "count", "W"),
    ("Temperature", "temperature", "count", "°C"),
    ("Utilization", "utilization", "share", ""),
    ("Memory in use", "memory_used", "bytes", ""),
)
_COLUMNS: tuple[tuple[tuple[str, Unit], str], ...] = (
    (("Busy", "share"), "utilization"),
    (("Median clock, MHz", "count"), "clock"),
    (("Highest clock, MHz", "count"), "clock_max"),
    (("Held by power", "share"), "by_power"),
    (("Held by heat or hardware", "share"), "faults"),
    (("Power, W", "count"), "power"),
    (("Limit, W", "count"), "power_limit"),
    (("Hottest, °C", "count"), "temperature_most"),
    (("Memory filled", "share"), "memory_share"),
    (("Memory in use", "bytes"), "memory_used"),
    (("Processes", "count"), "processes"),
    (("Samples under load", "count"), "load_samples"),
)


def sections(result: Result, tables: Tables) -> Iterable[Section]:
    """One section for all GPUs of the logs; none without a log."""
    load = tables.table("gpu_load").to_pylist()
    if not load:
        return
    names = _names(load)
    lines = frames.by_device(tables.table("gpu_log_lines"))
    ledger = {(row["rank"], row["device"]): row for row in tables.table("ledger").to_pylist()}
    blocks: list[Block] = [Words(text) for text in _words(load, names) if text]
    judged = [row for row in load if row["samples"]]
    if judged:
        blocks.append(_grid(judged, names))
    # Only what is on one clock has one axis of time.
    for group in _together(judged):
        blocks += _charts(group, names, lines, ledger)
    yield Section("gpu-log", "Clocks, power and use", blocks, order=95)


def _names(load: Sequence[Row]) -> dict[Key, str]:
    ranks = {row["rank"] for row in load}
    found = {}
    for row in load:
        whose = f"rank {row['rank']}, " if len(ranks) > 1 and row["beside"] else ""
        file = f" ({row['log']})" if len(ranks) > 1 and not row["beside"] else ""
        found[row["rank"], row["device"]] = f"{whose}GPU {row['device']}{file}"
    return found


def _words(load: Sequence[Row], names: Mapping[Key, str]) -> Iterator[str]:
    for row in load:
        name = names[row["rank"], row["device"]]
        if row["unjudged"] and not row["load_samples"]:
            yield f"{name}: could not be judged: {row['unjudged']}."
    if far := standing_out([row for row in load if row["samples"]]):
        yield f"{far}."
    judged = [row for row in load if row["load_samples"]]
    if len(judged) == 1:
        yield " ".join(_scores(judged[0], names[judged[0]["rank"], judged[0]["device"]]))
    for row in judged[:1]:
        yield " ".join(_about(row))


def _scores(row: Row, name: str) -> Iterator[str]:
    """Whether the figures are as those of a GPU that is well used."""
    use = row["utilization"]
    if row["load_samples"] < ENOUGH:
        yield f"{name} {row['said_load']}."
    elif use is not None:
        well = (
            "as of one that is well used"
            if use >= USED
            else f"less than the {format_share(USED)} of one that is well used"
        )
        yield f"{name} is busy {format_share(use)} of the time while it has work: {well}."
        if disagrees(row):
            own = f"The trace's own work takes {format_share(row['traced'])} of its window"
            yield f"{own}: the log's use is of any process, and of other times too."
    share = row["memory_share"]
    if share is not None:
        room = "which leaves room" if share < FULL_MEMORY else "which is nearly full"
        yield f"Its memory is filled to {format_share(share)} at most, {room}."
    if row["temperature_most"] is not None:
        yield f"It is at most {format_count(row['temperature_most'])} °C warm."


def _about(row: Row) -> Iterator[str]:
    """How the log was taken, and what that means."""
    if row["timed"] and row["interval"]:
        yield f"A sample each {format_duration(row['interval'])} says nothing of what is shorter; use is a mean of up to a second."
    inside = row["trace_samples"]
    if row["beside"] and inside is not None and row["timed"]:
        yield (
            f"Of the {format_count(row['load_samples'])} samples under load {format_count(inside)} lie within the trace's window; "
            "the others are of the load around it."
        )
    if row["others"]:
        yield f"{row['log']} is judged; of {row['others']} only what it lacks is taken."
    if row["told_by"] and row["told_by"] != "its id":
        yield f"Which GPU of the log it is is told by {row['told_by']}."


def _grid(rows: Sequence[Row], names: Mapping[Key, str]) -> Grid:
    shown = [(column, name) for column, name in _COLUMNS if any(row[name] is not None for row in rows)]
    columns: list[tuple[str, Unit]] = [("GPU", "text"), *(column for column, _ in shown)]
    return Grid(
        "Each GPU under load",
        columns,
        [[names[row["rank"], row["device"]], *(_cell(row[name], unit) for (_, unit), name in shown)] for row in rows],
    )


def _cell(value: Any, unit: Unit) -> Any:
    """Clocks and power without the digits that nobody needs."""
    return round(value) if unit == "count" and value is not None else value


def _together(rows: Sequence[Row]) -> list[list[Row]]:
    """GPUs whose times can be compared: those of one log, or rank."""
    found: dict[int, list[Row]] = {}
    for row in rows:
        if row["timed"]:
            found.setdefault(row["rank"], []).append(row)
    return list(found.values())


def _charts(
    rows: Sequence[Row], names: Mapping[Key, str], lines: Mapping[Key, pa.Table], ledger: Mapping[Key, Row]
) -> Iterator[Levels]:
    keys = [(row["rank"], row["device"]) for row in rows]
    tables = [lines[key] for key in keys]
    times = np.unique(np.concatenate([frames.ints(table, "time_ns") for table in tables]))
    if len(times) < 2:
        return
    whose = f" of {names[keys[0]]}" if len(keys) == 1 else ""
    interval = max(row["interval"] for row in rows)
    spans = [
        Mark(row["start_ns"], row["end_ns"], "under load") for row in rows[:1] if row["load_samples"] and len(rows) == 1
    ]
    for title, column, unit, axis in _CHARTS:
        series = [
            (names[key].rpartition(", ")[2] if len(keys) > 1 else title, _on(times, table, column, interval))
            for key, table in zip(keys, tables, strict=True)
        ]
        if len(keys) == 1 and column == "power":
            series.append(("limit", _on(times, tables[0], "power_limit", interval)))
        known = [(name, values) for name, values in series if any(value is not None for value in values)]
        if known:
            marks = _recorded(rows, ledger, times) if column == "sm_clock" else []
            yield Levels(
                f"{title} over time{whose}", unit, times.tolist(), known, marks, spans, stacked=False, axis=axis
            )


def _recorded(rows: Sequence[Row], ledger: Mapping[Key, Row], times: Array) -> list[Mark]:
    """When the trace was recorded."""
    row = rows[0]
    window = ledger.get((row["rank"], row["device"]))
    if window is None or not row["on_clock"] or not times[0] <= window["start_ns"] <= times[-1]:
        return []
    return [Mark(window["start_ns"], min(window["end_ns"], int(times[-1])), "the trace")]


def _on(times: Array, table: pa.Table, column: str, interval: int) -> list[int | float | None]:
    """The values of one GPU at the moments of all: the last one before, unless that is old."""
    own = frames.ints(table, "time_ns")
    values = table[column].cast(pa.float64()).to_numpy()
    known = np.isfinite(values)
    own, values = own[known], values[known]
    if not len(own):
        return [None] * len(times)
    at = np.searchsorted(own, times, side="right") - 1
    old = np.append(np.diff(own), interval)
    fresh = (at >= 0) & (
        times - own[np.maximum(at, 0)] <= np.maximum(10 * interval, np.minimum(old[np.maximum(at, 0)], 60 * interval))
    )
    found = np.where(fresh, values[np.maximum(at, 0)], np.nan)
    return [None if np.isnan(value) else value for value in found.tolist()]
