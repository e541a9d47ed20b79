"""What kind of work the kernels and copies of one GPU are, and which kernels take most of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from traceanalyzer.columns import Ints, encoded, integers, short_encoded
from traceanalyzer.columns.frames import equals, flags
from traceanalyzer.names import readable_name
from traceanalyzer.report.charts.bars import Bar, bars
from traceanalyzer.report.charts.figure import Chart, View, text, time_unit, wrap_name
from traceanalyzer.report.charts.gpus import Gpus
from traceanalyzer.report.kinds import FAMILIES
from traceanalyzer.report.palette import GPU_OP_KEYS, kernel_key
from traceanalyzer.report.sections.words import format_duration
from traceanalyzer.units import format_count, format_share
from traceanalyzer.vocabulary.lines import UNATTRIBUTED

MOST_BARS = 12
NAME_LENGTH = 52
OTHER_WORK = {"memcpy": "copies", "memset": "memsets", "graph": "CUDA graphs, kernels not recorded"}
Amount = tuple[str, int, int, str]
"""Name, summed time in ns, count, and colour."""


def kinds_chart(gpus: Gpus) -> Chart | None:
    """Families of kernels, with what is no kernel: copies, memsets, and graphs whose kernels were not recorded."""
    amounts: dict[int, list[Amount]] = {}
    for number, stats in gpus.rows("kernel_stats"):
        amounts.setdefault(number, []).extend(_families(stats))
    for number, ops in gpus.rows("gpu_ops"):
        amounts.setdefault(number, []).extend(_other_work(ops))
    views: dict[int | None, View] = {number: _kinds_view(found) for number, found in sorted(amounts.items()) if found}
    return Chart("kinds", "GPU time by kind of work", views, "large") if views else None


def top_kernels_chart(gpus: Gpus) -> Chart | None:
    views: dict[int | None, View] = {number: _top_view(stats) for number, stats in gpus.rows("kernel_stats")}
    return Chart("top-kernels", "Kernels by total time", views, "large") if views else None


def _families(stats: pa.Table) -> list[Amount]:
    index, families = encoded(stats, "family")
    total, count = (_sums(integers(stats, column), index, len(families)) for column in ("total", "count"))
    found = []
    for at, family in [*enumerate(families), (-1, "other")]:
        if total[at]:
            found.append((FAMILIES.get(family, family), int(total[at]), int(count[at]), kernel_key(family)))
    return found


def _other_work(ops: pa.Table) -> list[Amount]:
    index, kinds = short_encoded(ops, "kind")
    rows = np.flatnonzero(equals(ops, "kind", *OTHER_WORK) & ~flags(ops, "quarantined"))
    duration = integers(ops, "end_ns")[rows] - integers(ops, "start_ns")[rows]
    total, count = (_sums(values, index[rows], len(kinds)) for values in (duration, np.ones_like(duration)))
    return [
        (OTHER_WORK[kind], int(total[at]), int(count[at]), GPU_OP_KEYS[kind])
        for at, kind in enumerate(kinds)
        if kind in OTHER_WORK and total[at]
    ]


def _sums(values: Ints, index: NDArray[np.integer[Any]], count: int) -> Ints:
    """Sums by index; one more at the end for nulls (index -1)."""
    sums = np.zeros(count + 1, dtype=np.int64)
    np.add.at(sums, index, values)
    return sums


def _kinds_view(amounts: list[Amount]) -> View:
    amounts = _merged(amounts)
    whole = max(sum(ns for _, ns, _, _ in amounts), 1)
    most = len(amounts) if len(amounts) == MOST_BARS + 1 else MOST_BARS
    shown, rest = amounts[:most], amounts[most:]
    if rest:
        colour = UNATTRIBUTED.name
        shown.append((f"{len(rest)} more", sum(one[1] for one in rest), sum(one[2] for one in rest), colour))
    unit, unit_name = time_unit(float(shown[0][1]))
    items = []
    for name, ns, count, colour in shown:
        words = f"{format_duration(ns)}, {format_share(ns / whole)}"
        hover = f"{text(name)}: {words}<br>{format_count(count)} operation{'s' if count > 1 else ''}"
        items.append(Bar(name, round(ns / unit, 4), words, hover, colour))
    data, layout = bars(items, f"time, {unit_name}")
    share = format_share(shown[0][1] / whole)
    caption = f"Of {format_duration(whole)} of GPU operations, added up over all streams, {share} is {shown[0][0]}."
    return View(caption, data, layout)


def _merged(amounts: list[Amount]) -> list[Amount]:
    """Largest first, each name once."""
    found: dict[str, Amount] = {}
    for name, ns, count, colour in amounts:
        _, more_ns, more_count, _ = found.get(name, ("", 0, 0, ""))
        found[name] = (name, ns + more_ns, count + more_count, colour)
    return sorted(found.values(), key=lambda one: (-one[1], one[0]))


def _top_view(stats: pa.Table) -> View:
    whole = max(int(integers(stats, "total").sum()), 1)
    order = [("total", "descending"), ("name", "ascending")]
    plain = stats.set_column(stats.schema.get_field_index("name"), "name", stats["name"].cast(pa.string()))
    rows = plain.select(["name", "class", "total", "count", "longest"]).sort_by(order).slice(0, MOST_BARS).to_pylist()
    unit, unit_name = time_unit(float(rows[0]["total"]))
    items = []
    for row in rows:
        name = row["name"] or "(unnamed)"
        words = f"{format_duration(row['total'])}, {format_share(row['total'] / whole)}"
        often = f"{format_count(row['count'])} times" if row["count"] > 1 else "once"
        more = f"{often}, at most {format_duration(row['longest'])}"
        items.append(
            Bar(
                readable_name(name, NAME_LENGTH),
                round(row["total"] / unit, 4),
                words,
                f"{wrap_name(name)}<br>{words}; {more}",
                kernel_key(row["class"]),
            )
        )
    data, layout = bars(items, f"time, {unit_name}")
    first = readable_name(rows[0]["name"] or "(unnamed)", NAME_LENGTH)
    caption = f"{first} takes {format_share(rows[0]['total'] / whole)} of the kernels' time."
    if stats.num_rows > len(rows):
        together = format_share(sum(row["total"] for row in rows) / whole)
        caption += f" These {len(rows)} of {format_count(stats.num_rows)} kernels take {together} of it."
    return View(caption, data, layout)
