"""Size against bandwidth, both logarithmic: of copies, and of collectives. Many alike are one point that says how many."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from traceanalyzer.columns import Ints, encoded, integers
from traceanalyzer.columns.frames import equals, flags
from traceanalyzer.columns.uniques import unique
from traceanalyzer.model.tables import Tables
from traceanalyzer.records import dataclass
from traceanalyzer.report.charts.figure import MOST_MARKS, SERIES, Chart, Dict, View, layout, log_axis, size_axis, text
from traceanalyzer.report.timeline.lanes import table_or_none
from traceanalyzer.units import format_bytes, format_count
from traceanalyzer.vocabulary.copies import way

Floats = NDArray[np.float64]
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x", "cross")
FINEST = 32
"""Cells to a doubling of size or bandwidth at first; fewer as long as more than MOST_MARKS of them are taken."""


@dataclass(frozen=True)
class Points:
    """Operations by kind (number in `kinds`), size in bytes and bandwidth in GB/s, all positive."""

    kinds: list[str]
    kind: Ints
    size: Floats
    bandwidth: Floats


def copies_chart(tables: Tables, shown_ranks: str | None = None) -> Chart | None:
    """Copies by direction. `shown_ranks` says whose they are, where that is not all ranks."""
    table = table_or_none(tables, "gpu_ops")
    if table is None:
        return None
    wanted = equals(table, "kind", "memcpy") & ~flags(table, "quarantined")
    table = table.select(["copy_kind", "start_ns", "end_ns", "bytes"]).filter(pa.array(wanted))
    index, kinds = encoded(table, "copy_kind")
    duration = integers(table, "end_ns") - integers(table, "start_ns")
    points, left = _points([*map(way, kinds), way(None)], index, table, duration)
    if points is None:
        return None
    total = int(integers(table, "bytes").clip(min=0).sum())
    caption = f"For {shown_ranks}. " if shown_ranks else ""
    caption += (
        f"{_count(points, 'copy moves', 'copies move')} {format_bytes(total)}. {_extremes(points, 'copies', left)}"
    )
    caption += " Small copies are slow because each has a fixed cost: the higher, the better."
    return _chart("copies", "Copies: size and bandwidth", points, "bandwidth, GB/s", caption + _left(left, "copies"))


def collectives_chart(tables: Tables) -> Chart | None:
    """Collectives of all ranks, each rank's part a point, by kind."""
    table = table_or_none(tables, "communication")
    if table is None:
        return None
    index, kinds = encoded(table, "kind")
    bandwidth = table["bus_bandwidth"].fill_null(0).to_numpy(zero_copy_only=False).astype(np.float64)
    points, left = _points([*kinds, "kind not recorded"], index, table, None, bandwidth)
    if points is None:
        return None
    caption = f"{_extremes(points, 'collectives', left)} Bus bandwidth is what the busiest link carries"
    unmatched = int((~table["transfer"].is_valid().to_numpy(zero_copy_only=False)).sum())
    if unmatched == table.num_rows:
        caption += "; how long ranks waited for late ones is not known and is not taken out, so it is a lower bound"
    else:
        caption += ", waiting for late ranks taken out"
    if 0 < unmatched < table.num_rows:
        of = f"{format_count(unmatched)} of {format_count(table.num_rows)} parts"
        caption += f"; how long {of} waited is not known: theirs is a lower bound"
    caption = f"{caption}." + _left(left, "parts of collectives")
    return _chart("collectives", "Collectives: size and bandwidth", points, "bus bandwidth, GB/s", caption)


def _points(
    kinds: list[str], index: Ints, table: pa.Table, duration: Ints | None, bandwidth: Floats | None = None
) -> tuple[Points | None, int]:
    """Those whose size and time are known, and how many are not. The last of `kinds` is for nulls."""
    size = integers(table, "bytes").astype(np.float64)
    if bandwidth is None:
        assert duration is not None
        bandwidth = size / np.maximum(duration, 1)
        bandwidth[duration <= 0] = 0
    good = (size > 0) & (bandwidth > 0)
    left = len(good) - int(good.sum())
    if not good.any():
        return None, left
    return Points(kinds, np.where(index < 0, len(kinds) - 1, index)[good], size[good], bandwidth[good]), left


def cells(points: Points, most: int = MOST_MARKS) -> list[tuple[int, float, float, int]]:
    """At most about `most` points: (kind, size, bandwidth, count), where those of one small cell are one, at their geometric mean."""
    x, y = np.log2(points.size), np.log2(points.bandwidth)
    fine = float(FINEST)
    while True:
        across, up = (np.floor(values * fine).astype(np.int64) for values in (x, y))
        across -= across.min()
        up -= up.min()
        width, height = int(across.max()) + 1, int(up.max()) + 1
        found, inverse = unique((points.kind * width + across) * height + up)
        if len(found) <= most or fine < 1e-3:
            break
        fine /= 2
    count = np.bincount(inverse)
    sizes, bandwidths = (2 ** (np.bincount(inverse, values) / count) for values in (x, y))
    kinds = found // (width * height)
    return list(zip(kinds.tolist(), sizes.tolist(), bandwidths.tolist(), count.tolist(), strict=True))


def _chart(id: str, title: str, points: Points, y_title: str, caption: str) -> Chart:
    marks = cells(points)
    data = []
    for number, kind in enumerate(_by_count(points)):
        mine = [mark for mark in marks if mark[0] == kind]
        data.append(_trace(points.kinds[kind], number, mine))
    if len(marks) < len(points.size):
        drawn = f"{format_count(len(points.size))} are drawn as {format_count(len(marks))} points"
        caption += f" The {drawn}; a larger one stands for several."
    y = log_axis(y_title, float(points.bandwidth.min()), float(points.bandwidth.max()))
    x = size_axis(float(points.size.min()), float(points.size.max()))
    return Chart(id, title, {None: View(caption, data, layout(x, y, hovermode="closest", showlegend=True))})


def _by_count(points: Points) -> list[int]:
    """Kinds that occur, the commonest first."""
    kinds, counts = np.unique(points.kind, return_counts=True)
    return [int(kind) for kind in kinds[np.lexsort((kinds, -counts))]]


def _trace(name: str, number: int, marks: list[tuple[int, float, float, int]]) -> Dict:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": f"{text(name)} ({format_count(sum(mark[3] for mark in marks))})",
        "meta": f"series-{number % SERIES + 1}",
        "x": [round(size) for _, size, _, _ in marks],
        "y": [float(f"{bandwidth:.4g}") for _, _, bandwidth, _ in marks],
        "marker": {
            "symbol": SYMBOLS[number % len(SYMBOLS)],
            "size": [round(7 + 2.2 * float(np.log2(count)), 1) for _, _, _, count in marks],
            "opacity": 0.75,
        },
        "hovertext": [
            f"{text(name)}<br>{format_bytes(size)} at {_gb(bandwidth)}"
            + (f"<br>{format_count(count)} of them" if count > 1 else "")
            for _, size, bandwidth, count in marks
        ],
        "hovertemplate": "%{hovertext}<extra></extra>",
    }


def _extremes(points: Points, what: str, unknown: int) -> str:
    """What the largest of them reach at the median. `unknown` is how many others there are, whose size is not known."""
    what += " of known size" if unknown else ""
    large = points.size >= points.size.max() / 2
    size, bandwidth = (float(np.median(values[large])) for values in (points.size, points.bandwidth))
    return f"The largest {what}, around {format_bytes(size)}, reach {_gb(bandwidth)} at the median."


def _count(points: Points, one: str, many: str) -> str:
    return f"{format_count(len(points.size))} {one if len(points.size) == 1 else many}"


def _left(left: int, what: str) -> str:
    return f" {format_count(left)} {what} of unknown size or time are not shown." if left else ""


def _gb(value: float) -> str:
    return f"{value:,.0f} GB/s" if value >= 100 else f"{value:.3g} GB/s"
