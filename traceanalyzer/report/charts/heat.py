"""The rank x step matrix as heat maps: step times, and how much of them is waiting, each on its own scale."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from traceanalyzer.names import capitalized
from traceanalyzer.report.charts.figure import (
    Chart,
    Dict,
    View,
    axis,
    categories,
    layout,
    round_values,
    step_numbers,
    time_unit,
)
from traceanalyzer.report.sections.words import format_duration
from traceanalyzer.result.document import Result
from traceanalyzer.result.gpus import late_ranks
from traceanalyzer.result.ranks import rank_list
from traceanalyzer.result.words.gpu_names import gpu_namer

MOST_ROWS, MOST_COLUMNS = 1024, 200
ROWS_OF_THEIR_OWN = 16
"""Late ranks that keep a row of their own where the others are folded."""
LEAST_RANGE = 0.05
"""Step times that differ by less than this, to either side of the median, are not to look different."""
ROOMY = 40
"""Up to so many rows or columns there is a line between the cells."""
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Matrix:
    """Times of GPUs (rows) by steps (columns) in ns, NaN where not recorded; `notes` say what was folded."""

    rows: list[str]
    columns: list[str]
    times: Floats
    waits: Floats
    notes: str


def heat_charts(result: Result, gpu_names: Sequence[str] | None = None) -> list[Chart]:
    """None without several GPUs that have steps in common. `gpu_names` are those of `result.devices`."""
    matrix = step_matrix(result, gpu_names)
    if matrix is None:
        return []
    charts = []
    known = matrix.times[~np.isnan(matrix.times)]
    if len(known):
        middle = float(np.median(known))
        low = min(float(known.min()), middle * (1 - LEAST_RANGE))
        high = max(float(known.max()), middle * (1 + LEAST_RANGE))
        charts.append(_chart("step-heat", "Step times, GPU by GPU", matrix, matrix.times, (low, high), "took"))
    if np.nansum(matrix.waits):
        scale = (0.0, float(np.nanmax(matrix.waits)))
        charts.append(
            _chart("wait-heat", "Waiting for other ranks in each step", matrix, matrix.waits, scale, "waited")
        )
    return charts


def step_matrix(result: Result, gpu_names: Sequence[str] | None = None) -> Matrix | None:
    steps = result.job.steps if result.job else None
    if steps is None or len(steps.rows) < 2 or not steps.names:
        return None
    times = np.array([row.step_ns for row in steps.rows], dtype=np.float64)
    waits = np.array([row.wait_ns for row in steps.rows], dtype=np.float64)
    namer = gpu_namer(result.devices)
    labels = [namer(row.rank, row.device) for row in steps.rows]
    if gpu_names and len(gpu_names) == len(labels):
        labels = list(gpu_names)
    notes = []
    groups = _row_groups(result)
    if len(groups) < len(labels):
        notes.append(
            "Late ranks have a row of their own; of the others a row is several GPUs: the longest of their step times, the median of "
            "their waiting."
        )
        labels = [_group_label(result, labels, group) for group in groups]
        times, waits = _folded(times, groups, np.nanmax), _folded(waits, groups, np.nanmedian)
    run = -(-len(steps.names) // MOST_COLUMNS)
    names = step_numbers(steps.names)
    if run > 1:
        notes.append(f"A column is up to {run} steps and shows the longest of them.")
        starts = list(range(0, len(names), run))
        names = [f"{names[s]} to {names[min(s + run, len(names)) - 1]}" for s in starts]
        times, waits = (np.fmax.reduceat(value, starts, axis=1) for value in (times, waits))
    return Matrix(labels, categories(names), times, waits, " ".join(notes))


def _row_groups(result: Result) -> list[list[int]]:
    """The rows of the matrix as positions in its `rows`: of too many GPUs late ones alone, the others by neighbours."""
    assert result.job
    rows = result.job.steps.rows
    if len(rows) <= MOST_ROWS:
        return [[at] for at in range(len(rows))]
    late = {(one.rank, one.device) for one in late_ranks(result)[:ROWS_OF_THEIR_OWN]}
    alone = [at for at, row in enumerate(rows) if (row.rank, row.device) in late]
    others = [at for at, row in enumerate(rows) if (row.rank, row.device) not in late]
    run = -(-len(others) // (MOST_ROWS - len(alone)))
    return [[at] for at in alone] + [others[first : first + run] for first in range(0, len(others), run)]


def _folded(values: Floats, groups: list[list[int]], fold: Callable[..., Any]) -> Floats:
    """Each group of rows as one; NaN where none of them has a value."""
    folded = np.full((len(groups), values.shape[1]), np.nan)
    for at, group in enumerate(groups):
        known = ~np.isnan(values[group]).all(axis=0)
        if known.any():
            folded[at, known] = fold(values[group][:, known], axis=0)
    return folded


def _group_label(result: Result, labels: list[str], group: list[int]) -> str:
    if len(group) == 1:
        return labels[group[0]]
    assert result.job
    ranks = {result.job.steps.rows[at].rank for at in group}
    if None in ranks:
        return f"{labels[group[0]]} to {labels[group[-1]]}"
    return f"ranks {rank_list([rank for rank in ranks if rank is not None], 1)}"


def _chart(id: str, title: str, matrix: Matrix, values: Floats, scale: tuple[float, float], verb: str) -> Chart:
    unit, unit_name = time_unit(scale[1])
    digits = max(3 - int(np.log10(max(scale[1] / unit, 1))), 0)  # four figures of the largest: large matrices are heavy
    gap = 1 if max(values.shape) <= ROOMY else 0.01  # any gap at all keeps every cell sharp
    heat: Dict = {
        "type": "heatmap",
        "meta": "heat",
        "z": [round_values(row, unit, digits) for row in values],
        "x": matrix.columns,
        "y": categories(matrix.rows),
        "zmin": round(scale[0] / unit, 4),
        "zmax": round(max(scale[1], scale[0] + 1) / unit, 4),
        "xgap": gap,
        "ygap": gap,
        "showscale": False,
        "hoverongaps": False,
        "hovertemplate": f"%{{y}}, step %{{x}}: {verb} %{{z:.4~r}} {unit_name}<extra></extra>",
    }
    x = axis("step", type="category", showgrid=False)
    y = axis("", type="category", autorange="reversed", showgrid=False)
    caption = _caption(matrix, values, verb)
    if np.isnan(values).any():
        caption += " Empty cells are steps that the recording does not hold whole."
    if matrix.notes:
        caption += f" {matrix.notes}"
    size: Literal["small", "medium", "large", "huge"] = (
        "small" if len(values) <= 8 else "medium" if len(values) <= 24 else "large"
    )
    if len(values) > 128:
        size = "huge"
    ends = (format_duration(scale[0]), format_duration(scale[1]))
    return Chart(id, title, {None: View(caption, [heat], layout(x, y, hovermode="closest"))}, size, scale=ends)


def _caption(matrix: Matrix, values: Floats, verb: str) -> str:
    least, middle, most = (format_duration(float(end(values))) for end in (np.nanmin, np.nanmedian, np.nanmax))
    if verb == "took":
        return f"Steps take from {least} to {most}, {middle} at the median."
    whole = np.nansum(values, axis=1)
    least_waiting = capitalized(matrix.rows[int(whole.argmin())])
    in_all = float(whole.min())
    amount = (
        f"{format_duration(in_all)} in {'all these steps' if values.shape[1] > 1 else 'this step'}"
        if in_all
        else "not at all"
    )
    return f"GPUs wait up to {most} in a step, {middle} at the median. {least_waiting} waits least: {amount}."
