"""What one GPU did over time: the shares of its ledger lines, interval by interval."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from traceanalyzer.columns import Ints, ascending
from traceanalyzer.columns.in_blocks import in_blocks
from traceanalyzer.report.charts.figure import (
    Chart,
    Dict,
    Jump,
    View,
    axis,
    in_words,
    layout,
    round_values,
    swatches_in,
    time_unit,
)
from traceanalyzer.report.charts.gpus import Gpus
from traceanalyzer.report.palette import SWATCHES, Swatch
from traceanalyzer.report.parted import TABLES as PARTED
from traceanalyzer.report.parted import Tiles, tiles_by_gpu
from traceanalyzer.report.sections.words import format_duration
from traceanalyzer.report.timeline.lanes import table_or_none
from traceanalyzer.units import format_share
from traceanalyzer.vocabulary.lines import COMPUTE

BINS = 200


def use_chart(gpus: Gpus) -> Chart | None:
    intervals = table_or_none(gpus.tables, "ledger_intervals")
    if intervals is None:
        return None
    found = tiles_by_gpu(intervals, *(table_or_none(gpus.tables, name) for name in PARTED))
    views: dict[int | None, View] = {
        number: _view(gpus, number, tiles) for key, tiles in found if (number := gpus.number(key)) is not None
    }
    return Chart("use", "What the GPU did over time", views, wide=True, legend=swatches_in(views)) if views else None


def bin_coverage(
    start: Ints, length: Ints, edges: NDArray[np.float64], some: Ints, origin: int = 0
) -> NDArray[np.float64]:
    """How much of each bin some of the intervals, given by their positions, cover, in ns. All of them are sorted and do not overlap;
    edges count from `origin`."""
    if not len(some):
        return np.zeros(len(edges) - 1)
    # Starts and ends in turn are the times between which it is linear: of these only the ones around an edge are needed.
    whole = np.floor(edges).astype(np.int64) + origin
    begun = np.searchsorted(start, whole, side="right")
    last = np.maximum(begun - 1, 0)
    over = begun - ((begun > 0) & (start[last] + length[last] > whole))
    before = np.searchsorted(some, begun) + np.searchsorted(some, over) - 1
    row, is_end = np.divmod(ascending(np.clip(np.append(before, before + 1), 0, 2 * len(some) - 1)), 2)
    at = some[row]
    times = start[at] + length[at] * is_end - origin
    return np.diff(np.interp(edges, times, _passed(length, some, row) - length[at] * (1 - is_end)))


def _passed(length: Ints, some: Ints, row: Ints) -> Ints:
    """The length of some intervals, given by positions, up to and with each of these; `row` numbers them and ascends."""
    found, sum_before = np.empty(len(row), np.int64), 0
    for rows in in_blocks(len(some)):
        sums = np.cumsum(length.take(some[rows]))
        asked = slice(*np.searchsorted(row, (rows.start, rows.stop)))
        found[asked] = sums[row[asked] - rows.start] + sum_before
        sum_before += int(sums[-1])
    return found


def _view(gpus: Gpus, number: int, tiles: Tiles) -> View:
    start, end, line = tiles.start, tiles.end, tiles.line
    if (start[1:] < start[:-1]).any():
        order = np.argsort(start, kind="stable")
        start, end, line = start[order], end[order], line[order]
    length = end - start
    first, last = int(start[0]), int(end.max())
    window = max(last - first, 1)
    edges = np.linspace(0, window, min(BINS, window) + 1)
    amounts: list[tuple[Swatch, NDArray[np.float64]]] = []
    for swatch in SWATCHES:
        if swatch.key in tiles.lines:
            mine = np.flatnonzero(line == tiles.lines.index(swatch.key))
            amounts.append((swatch, bin_coverage(start, length, edges, mine, first)))
    place = gpus.place(number, first, last)
    shift = 0 if place is None else place.start
    unit, unit_name = time_unit(float(shift + window))
    times = round_values(edges + shift, unit, 6)
    width = np.diff(edges)
    data: list[Dict] = [_area(swatch, times, amount / width) for swatch, amount in amounts]
    loss = max(amounts, key=lambda one: 0 if one[0].key == COMPUTE.name else one[1].sum())
    computing = sum(amount.sum() for swatch, amount in amounts if swatch.key == COMPUTE.name) / window
    caption = f"{format_share(computing)} of {format_duration(window)} is compute"
    if loss[0].key != COMPUTE.name:
        caption += f"; the most of anything else, {format_share(loss[1].sum() / window)}, is {in_words(loss[0])}"
    caption += f". Shares are means over {format_duration(window / (len(edges) - 1))}."
    x = axis(f"time{' since the timeline begins' if place else ''}, {unit_name}", showgrid=False)
    y = axis("share of the time, %", range=[0, 100], fixedrange=True)
    bounds = (edges + shift).astype(np.int64).tolist()
    jumps: list[Jump | None] = [(low, high, place.group) for low, high in pairwise(bounds)] if place else []
    return View(caption, data, layout(x, y, hovermode="x unified", showlegend=False), [*jumps, *jumps[-1:]])


def _area(swatch: Swatch, times: list[float], share: NDArray[np.float64]) -> Dict:
    return {
        "type": "scatter",
        "mode": "lines",
        "stackgroup": "ledger",
        "name": swatch.label,
        "meta": swatch.key,
        "x": times,
        "y": round_values(np.append(share, share[-1]) * 100, 1, 2),
        "line": {"width": 0, "shape": "hv"},
        "hovertemplate": f"%{{y:.1f}}%<extra>{swatch.label}</extra>",
    }
