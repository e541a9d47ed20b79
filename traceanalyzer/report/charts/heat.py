"""The rank x step matrix as heat maps: step times, waiting and lines of the ledger, each on its own scale."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from traceanalyzer.names import capitalized
from traceanalyzer.records import dataclass
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
from traceanalyzer.vocabulary.lines import line_words

MOST_ROWS, MOST_COLUMNS = 1024, 200
ROWS_OF_THEIR_OWN = 16
"""Late ranks that keep a row of their own where the others are folded."""
LEAST_RANGE = 0.05
"""Step times that differ by less than this, to either side of the median, are not to look different."""
ROOMY = 40
"""Up to so many rows or columns there is a line between the cells."""
TOOK, WAITED = "took", "waited"
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Matrix:
    """Times of GPUs (rows) by steps (columns) in ns, NaN where not recorded; `lines` are those of the ledger, `notes` say what was
    folded or left out."""

    rows: list[str]
    columns: list[str]
    times: Floats
    waits: Floats
    lines: dict[str, Floats]
    notes: str


def heat_charts(result: Result, gpu_names: Sequence[str] | None = None) -> list[Chart]:
    """None without several GPUs that have steps in common. `gpu_names` are those of `result.devices`."""
    matrix = step_matrix(result, gpu_names)
    if matrix is None:
        return []
    charts = []
    known = matrix.times[~np.isnan(matrix.times)]
    waits = bool(np.nansum(matrix.waits))
    views: list[tuple[str, View]] = []
    if len(known):
        middle = float(np.median(known))
        low = min(float(known.min()), middle * (1 - LEAST_RANGE))
        high = max(float(known.max()), middle * (1 + LEAST_RANGE))
        views.append(("step time", _view(matrix, matrix.times, (low, high), TOOK)))
    if waits:
        views.append(("waiting for other ranks", _view(matrix, matrix.waits, _from_zero(matrix.waits), WAITED)))
    for line, values in matrix.lines.items():
        if np.nansum(values):
            views.append((line_words(line), _view(matrix, values, _from_zero(values), line_words(line))))
    if len(known):
        size, choices = _size(len(matrix.rows)), [words for words, _ in views]
        by_place: dict[int | None, View] = {at: view for at, (_, view) in enumerate(views)}
        title = "Step times, GPU by GPU" if len(views) == 1 else "Steps, GPU by GPU"
        charts.append(Chart("step-heat", title, by_place, size, choose="Time on", choices=choices))
    if waits:
        view = _view(matrix, matrix.waits, _from_zero(matrix.waits), WAITED)
        charts.append(Chart("wait-heat", "Waiting for other ranks in each step", {None: view}, _size(len(matrix.rows))))
    return charts


def _from_zero(values: Floats) -> tuple[float, float]:
    return 0.0, float(np.nanmax(values))


def _size(rows: int) -> Literal["small", "medium", "large", "huge"]:
    if rows > 128:
        return "huge"
    return "small" if rows <= 8 else "medium" if rows <= 24 else "large"


def step_matrix(result: Result, gpu_names: Sequence[str] | None = None) -> Matrix | None:
    steps = result.job.steps if result.job else None
    if steps is None or len(steps.rows) < 2 or not steps.names:
        return None
    times = np.array([row.step_ns for row in steps.rows], dtype=np.float64)
    waits = np.array([row.wait_ns for row in steps.rows], dtype=np.float64)
    every = steps.rows[0].lines_ns
    lines = {
        line: np.array([row.lines_ns[line] for row in steps.rows], dtype=np.float64)
        for line in every
        if all(line in row.lines_ns for row in steps.rows)
    }
    namer = gpu_namer(result.devices)
    labels = [namer(row.rank, row.device) for row in steps.rows]
    if gpu_names and len(gpu_names) == len(labels):
        labels = list(gpu_names)
    notes = []
    groups = _row_groups(result)
    if len(groups) < len(labels):
        notes.append(
            "Late ranks have a row of their own; of the others a row is several GPUs: the longest of their step times, the median of "
            "all else."
        )
        labels = [_group_label(result, labels, group) for group in groups]
        times, waits = _folded(times, groups, np.nanmax), _folded(waits, groups, np.nanmedian)
        lines = {line: _folded(values, groups, np.nanmedian) for line, values in lines.items()}
    run = -(-len(steps.names) // MOST_COLUMNS)
    names = step_numbers(steps.names)
    if run > 1:
        notes.append(f"A column is up to {run} steps and shows the longest of them.")
        starts = list(range(0, len(names), run))
        names = [f"{names[s]} to {names[min(s + run, len(names)) - 1]}" for s in starts]
        times, waits = (np.fmax.reduceat(value, starts, axis=1) for value in (times, waits))
        lines = {line: np.fmax.reduceat(values, starts, axis=1) for line, values in lines.items()}
    if steps.lines_left:
        left = ", ".join(line_words(line) for line in steps.lines_left)
        notes.append(f"There is no room for lines on which steps differ less: {left}.")
    return Matrix(labels, categories(names), times, waits, lines, " ".join(notes))


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


def _view(matrix: Matrix, values: Floats, scale: tuple[float, float], what: str) -> View:
    """`what` is "took", "waited" or the words for a line of the ledger."""
    unit, unit_name = time_unit(scale[1])
    digits = max(3 - int(np.log10(max(scale[1] / unit, 1))), 0)  # four figures of the largest: large matrices are heavy
    gap = 1 if max(values.shape) <= ROOMY else 0.01  # any gap at all keeps every cell sharp
    verb = what if what in (TOOK, WAITED) else f"{what},"
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
    caption = _caption(matrix, values, what)
    if np.isnan(values).any():
        caption += " Empty cells are steps that the recording does not hold whole."
    if matrix.notes:
        caption += f" {matrix.notes}"
    ends = (format_duration(scale[0]), format_duration(scale[1]))
    return View(caption, [heat], layout(x, y, hovermode="closest"), scale=ends)


def _caption(matrix: Matrix, values: Floats, what: str) -> str:
    least, middle, most = (format_duration(float(end(values))) for end in (np.nanmin, np.nanmedian, np.nanmax))
    if what == TOOK:
        return f"Steps take from {least} to {most}, {middle} at the median."
    if what != WAITED:
        row, column = np.unravel_index(int(np.nanargmax(values)), values.shape)
        where = f"{matrix.rows[row]}, step {matrix.columns[column]}"
        return f"{capitalized(what)}: up to {most} in a step ({where}), {middle} at the median."
    whole = np.nansum(values, axis=1)
    least_waiting = capitalized(matrix.rows[int(whole.argmin())])
    in_all = float(whole.min())
    amount = (
        f"{format_duration(in_all)} in {'all these steps' if values.shape[1] > 1 else 'this step'}"
        if in_all
        else "not at all"
    )
    return f"GPUs wait up to {most} in a step, {middle} at the median. {least_waiting} waits least: {amount}."
