"""Step times of one GPU, each with its ledger stacked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import Flags, Ints, integers
from traceanalyzer.intervals import coverage
from traceanalyzer.report.charts.figure import (
    MOST_MARKS,
    Chart,
    Dict,
    View,
    axis,
    categories,
    in_words,
    layout,
    round_values,
    step_numbers,
    swatches_in,
    text,
    time_unit,
)
from traceanalyzer.report.charts.gpus import Gpus
from traceanalyzer.report.palette import SWATCHES, Swatch
from traceanalyzer.report.parted import told_gpus
from traceanalyzer.report.sections.words import format_duration
from traceanalyzer.units import format_share
from traceanalyzer.vocabulary.lines import EXPOSED_COMMUNICATION, EXPOSED_TRANSFER, EXPOSED_WAIT, column

MOST_BARS = 160
FEW = 10
"""Fewer steps than these are not drawn wider."""
ONLY_END = "the recording holds only its end"
NOT_ALL = "the recording lacks work that it launched"


def steps_chart(gpus: Gpus) -> Chart | None:
    """None without two steps on any GPU."""
    parts, waits = dict(gpus.rows("exposed_parts")), dict(gpus.rows("exposed_waits"))
    views: dict[int | None, View] = {
        number: _view(gpus, number, _parted(steps, parts.get(number), waits.get(number)))
        for number, steps in gpus.rows("step_ledger")
        if steps.num_rows > 1
    }
    if not views:
        return None
    words = "Show the longest step on the timeline" if any(view.best is not None for view in views.values()) else ""
    return Chart("steps", "Time of each step", views, wide=True, best_words=words, legend=swatches_in(views))


def _view(gpus: Gpus, number: int, every: pa.Table) -> View:
    every = every.sort_by("start_ns")
    lines = _lines(every)
    durations = integers(every, "end_ns") - integers(every, "start_ns")
    run = -(-len(durations) // min(MOST_BARS, MOST_MARKS // max(len(lines), 1)))
    steps = every.take(pa.array(_longest(durations, run)))
    start, end = integers(steps, "start_ns"), integers(steps, "end_ns")
    length = end - start
    names = [
        name or f"step {index}"
        for name, index in zip(steps["name"].to_pylist(), steps["index"].to_pylist(), strict=True)
    ]
    unit, unit_name = time_unit(float(length.max()))
    labels = categories(step_numbers(names))
    cut = ~steps["complete"].to_numpy(zero_copy_only=False).astype(bool)
    labels = [f"{label} (cut off)" if one else label for label, one in zip(labels, cut.tolist(), strict=True)]
    data: list[Dict] = [_whole(steps, names, labels, length, unit)]
    for swatch in lines:
        ns = integers(steps, column(swatch.key))
        data.append(
            {
                "type": "bar",
                "name": swatch.label,
                "meta": swatch.key,
                "x": labels,
                "y": round_values(np.where(ns > 0, ns, np.nan), unit),
                "hovertemplate": f"%{{y:.4~r}} {unit_name}<extra>{swatch.label}</extra>",
            }
        )
    typical = _typical(every)
    if typical is not None:
        data.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": "typical step",
                "meta": "ink",
                "x": labels,
                "y": round_values(np.full(len(labels), typical), unit),
                "line": {"dash": "dash", "width": 1.5},
                "hoverinfo": "skip",
            }
        )
    jumps = gpus.jumps(number, start, end)
    best = int(np.argmax(np.where(cut, 0, length)))
    shown = jumps[best] is not None
    x = axis("step", type="category", showgrid=False, range=[-0.5, max(len(labels), FEW) - 0.5])
    return View(
        _caption(every, names[best], length[best], typical, steps.slice(best, 1), run, shown),
        data,
        layout(
            x,
            axis(f"time, {unit_name}", rangemode="tozero"),
            barmode="stack",
            bargap=0.12,
            hovermode="x unified",
            showlegend=False,
        ),
        jumps,
        best if shown else None,
    )


def _parted(steps: pa.Table, parts: pa.Table | None, waits: pa.Table | None) -> pa.Table:
    """The steps with exposed communication as waiting and transfer, where that is told of the GPU."""
    if not told_gpus(parts):
        return steps
    wait = np.zeros(steps.num_rows, np.int64)
    if waits is not None:
        spans = integers(waits, "start_ns"), integers(waits, "end_ns")
        wait = coverage(integers(steps, "start_ns"), integers(steps, "end_ns"), spans)
    exposed = integers(steps, EXPOSED_COMMUNICATION.column)
    parted = steps.drop_columns([EXPOSED_COMMUNICATION.column])
    for line, ns in ((EXPOSED_WAIT, wait), (EXPOSED_TRANSFER, exposed - wait)):
        parted = parted.append_column(line.column, pa.array(ns))
    return parted


def _lines(steps: pa.Table) -> list[Swatch]:
    """The ledger lines that any step has time on, in the palette's order."""
    columns = {swatch: column(swatch.key) for swatch in SWATCHES}
    return [
        swatch
        for swatch, column in columns.items()
        if column in steps.column_names and integers(steps, column).max() > 0
    ]


def _longest(durations: Ints, run: int) -> Ints:
    """Of each `run` steps the row of the longest."""
    padded = np.full(-(-len(durations) // run) * run, -1, dtype=np.int64)
    padded[: len(durations)] = durations
    rows: Ints = padded.reshape(-1, run).argmax(axis=1) + np.arange(0, len(padded), run)
    return rows


def _typical(steps: pa.Table) -> int | None:
    return next((value for value in steps["typical"].to_pylist() if value is not None), None)


def _begun_before(steps: pa.Table) -> Flags:
    """Of each step whether it is a first one without a mark, of which the recording holds only the end; others that are incomplete lack
    something that they launched.
    """
    unmarked = np.array([method == "repetition" for method in steps["method"].to_pylist()], dtype=bool)
    begun: Flags = unmarked & (integers(steps, "index") == 0)
    return begun


def _whole(steps: pa.Table, names: list[str], labels: list[str], length: Ints, unit: float) -> Dict:
    """An invisible trace that says what each step is: its name, its time, and why it is slow."""
    said = []
    columns: list[list[Any]] = [steps[name].to_pylist() for name in ("complete", "slow", "reason")]
    begun = _begun_before(steps).tolist()
    for name, ns, before, complete, slow, reason in zip(names, length.tolist(), begun, *columns, strict=True):
        more = "" if complete else f"<br>cut off: {ONLY_END if before else NOT_ALL}"
        more += f"<br>slow: {text(reason)}" if slow and reason else ""
        said.append(f"{text(name)}: {format_duration(ns)}{more}")
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "step",
        "meta": "ink",
        "x": labels,
        "y": round_values(length, unit),
        "marker": {"opacity": 0},
        "showlegend": False,
        "hovertext": said,
        "hovertemplate": "%{hovertext}<extra></extra>",
    }


def _caption(steps: pa.Table, name: str, ns: int, typical: int | None, longest: pa.Table, run: int, jumps: bool) -> str:
    largest = max(_lines(longest), key=lambda swatch: integers(longest, column(swatch.key))[0])
    spent = int(integers(longest, column(largest.key))[0])
    said = f"The longest step, {name}, takes {format_duration(ns)}, {format_share(spent / max(int(ns), 1))} of it {in_words(largest)}"
    usual = None if typical is None else format_duration(typical)
    said += f"; a typical one (dashed) takes {usual}." if usual and usual != format_duration(ns) else "."
    if run > 1:
        said += f" A bar is {run} steps and shows the longest of them, of {steps.num_rows:,} in all."
    if _begun_before(steps).any():
        said += " Of the first step the recording holds only the end: it is not compared."
    return said + (" Click a bar to see the step on the timeline." if jumps else "")
