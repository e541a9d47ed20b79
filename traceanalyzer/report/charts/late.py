"""Late ranks: how much later than the first each GPU arrives at each collective, and how much waiting each late rank causes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from traceanalyzer.columns import Ints, integers
from traceanalyzer.model.tables import Tables
from traceanalyzer.names import capitalized
from traceanalyzer.records import dataclass
from traceanalyzer.report.charts.bars import Bar, bars
from traceanalyzer.report.charts.figure import (
    MOST_MARKS,
    Chart,
    Dict,
    View,
    axis,
    layout,
    round_values,
    text,
    time_unit,
    wrap_name,
)
from traceanalyzer.report.charts.sizes import SYMBOLS
from traceanalyzer.report.palette import BY_KEY
from traceanalyzer.report.sections.words import format_duration
from traceanalyzer.report.timeline.lanes import RankName, table_or_none
from traceanalyzer.result.document import Result
from traceanalyzer.result.words.gpu_names import gpu_namer, gpu_of
from traceanalyzer.result.words.job import why_late
from traceanalyzer.units import format_count, format_share

NAMED = 5
"""GPUs that have a line of their own; the others share one."""
MOST_BARS = 12


@dataclass(frozen=True)
class Arrivals:
    """One row a part of a matched collective: the number of the collective in order of time, when it began in ns on the common clock,
    the GPU's number in `gpus`, and how many ns after the first GPU it arrived there."""

    gpus: list[tuple[int, int]]
    collective: Ints
    began: Ints
    gpu: Ints
    late: Ints


def arrivals(communication: pa.Table, ahead: Mapping[int, int]) -> Arrivals | None:
    """From the rows of `communication`; None where nothing was matched. `ahead` is how far ranks' clocks are ahead, in ns.

    Who waits least has come last, so that no clock is needed to say who is late by how much.
    """
    matched = communication.filter(pc.and_(pc.is_valid(communication["instance"]), pc.is_valid(communication["wait"])))
    if not matched.num_rows:
        return None
    _, instance = np.unique(integers(matched, "instance"), return_inverse=True)
    wait, rank, device = (integers(matched, column) for column in ("wait", "rank", "device"))
    ranks, at = np.unique(rank, return_inverse=True)
    start = integers(matched, "start_ns") - np.array([ahead.get(one, 0) for one in ranks.tolist()], dtype=np.int64)[at]
    most, first = np.zeros(instance.max() + 1, dtype=np.int64), np.full(instance.max() + 1, np.iinfo(np.int64).max)
    np.maximum.at(most, instance, wait)
    np.minimum.at(first, instance, start)
    order = np.argsort(first, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    keys, gpu = np.unique(np.column_stack((rank, device)), axis=0, return_inverse=True)
    gpus = [(int(one[0]), int(one[1])) for one in keys]
    return Arrivals(gpus, place[instance], first[order], gpu.ravel(), most[instance] - wait)


def arrivals_chart(result: Result, tables: Tables, rank_name: RankName, ahead: Mapping[int, int]) -> Chart | None:
    """None without matched collectives of several GPUs."""
    table = table_or_none(tables, "communication")
    found = None if table is None else arrivals(table, ahead)
    if found is None or len(found.gpus) < 2:
        return None
    total = np.zeros(len(found.gpus), dtype=np.int64)
    np.add.at(total, found.gpu, found.late)
    order = np.argsort(-total, kind="stable")
    named = order[: NAMED if len(order) > NAMED + 1 else NAMED + 1].tolist()
    rest = len(order) - len(named)
    count = len(found.began)
    run = -(-count // (MOST_MARKS // (len(named) + bool(rest))))
    unit, unit_name = time_unit(float(found.late.max()))
    time_scale, time_name = time_unit(float(found.began[-1] - found.began[0]))
    starts = np.arange(0, count, run)
    x = round_values(found.began[starts] - found.began[0], time_scale, 6)
    namer, known = gpu_namer(result.devices), {rank for one in result.devices for rank in one.used_by}
    names = [
        namer(rank, device) if rank in known else gpu_of(rank_name(rank), device)
        for rank, device in (found.gpus[number] for number in named)
    ]
    data = [
        _line(
            text(name),
            f"series-{place + 1}",
            SYMBOLS[place],
            x,
            _latest(found, found.gpu == number, starts),
            unit,
            unit_name,
        )
        for place, (name, number) in enumerate(zip(names, named, strict=True))
    ]
    if rest:
        others = ~np.isin(found.gpu, named)
        label = f"the latest of {format_count(rest)} others"
        data.append(_line(label, "dim", "line-ew-open", x, _latest(found, others, starts), unit, unit_name))
    caption = f"{_who_is_last(result)} 0 means that no GPU came before."
    if run > 1:
        caption += f" A point is the latest arrival at {run} collectives in a row."
    y = axis(f"after the first GPU, {unit_name}", rangemode="tozero")
    drawn = layout(
        axis(f"time since the first collective, {time_name}", showgrid=False), y, hovermode="x unified", showlegend=True
    )
    return Chart("arrivals", "How late each GPU comes to each collective", {None: View(caption, data, drawn)})


def _latest(found: Arrivals, mine: NDArray[np.bool_], starts: Ints) -> NDArray[np.float64]:
    """Of each run of collectives the latest arrival of these GPUs in ns; NaN where they take part in none."""
    late = np.full(len(found.began), -1, dtype=np.int64)
    np.maximum.at(late, found.collective[mine], found.late[mine])
    folded = np.maximum.reduceat(late, starts)
    return np.where(folded < 0, np.nan, folded)


def _line(
    name: str, colour: str, symbol: str, x: list[float], late: NDArray[np.float64], unit: float, unit_name: str
) -> Dict:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "meta": colour,
        "x": x,
        "y": round_values(late, unit),
        "marker": {"symbol": symbol, "size": 6},
        "hovertemplate": f"%{{y:.4~r}} {unit_name}<extra>{name}</extra>",
    }


def _who_is_last(result: Result) -> str:
    """The same figures as in the table of late ranks: of collectives for which others wait with nothing else to do."""
    if not result.job or not result.job.late_ranks:
        return "No GPU comes so late that another stands still for it."
    late = result.job.late_ranks[0]
    return (
        f"{capitalized(gpu_namer(result.devices)(late.rank, late.device))} causes most waiting: it comes last to "
        f"{format_count(late.late_count)} of {format_count(late.collective_count)} collectives, at most "
        f"{format_duration(late.max_late_ns)} after the first GPU."
    )


def late_bars_chart(result: Result) -> Chart | None:
    """What all others wait for each late rank. None without any."""
    late = [one for one in result.job.late_ranks if one.waited_ns > 0] if result.job else []
    if not late:
        return None
    namer = gpu_namer(result.devices)
    unit, unit_name = time_unit(float(late[0].waited_ns))
    items = []
    for one in late[:MOST_BARS]:
        name, words = namer(one.rank, one.device), f"{format_duration(one.waited_ns)}, {format_share(one.waited_share)}"
        hover = f"{wrap_name(f'{name} {why_late(one)}')}<br>{words} of all waiting"
        colour = one.line if one.line in BY_KEY else "dim"
        items.append(Bar(name, round(one.waited_ns / unit, 4), words, hover, colour))
    data, drawn = bars(items, f"others wait, {unit_name}")
    first = late[0]
    caption = (
        f"{capitalized(namer(first.rank, first.device))} causes {format_share(first.waited_share)} of all waiting: "
        f"{format_duration(first.waited_ns)}, summed over the GPUs that wait."
    )
    if len(late) > MOST_BARS:
        caption += f" {format_count(len(late) - MOST_BARS)} more cause less."
    views: dict[int | None, View] = {None: View(caption, data, drawn)}
    return Chart("late-bars", "Waiting that each GPU causes", views, "medium" if len(items) <= 6 else "large")
