"""The rank x step matrix as coloured cells: step times, and how much of them is waiting. Large ones are folded, never sampled."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceanalyzer.result.document import Result
from traceanalyzer.result.gpus import gpu_namer, notable_gpus
from traceanalyzer.result.ranks import rank_list
from traceanalyzer.units import format_duration

MOST_ROWS, MOST_COLUMNS = 64, 40
ROWS_OF_THEIR_OWN = 16
"""GPUs that keep a row of their own in a folded matrix."""
WRITTEN_OUT = 12
"""Up to so many columns the cells have room for figures."""
SHADES = 10
LEAST_RANGE = 0.1
"""Step times that differ by less than this, to either side of the median, are not to look different."""
Floats = NDArray[np.float64]
Fold = Callable[[Floats], Any]


@dataclass(frozen=True)
class Cell:
    """One step, or several, on one GPU, or several: its shade from 0 to SHADES (None: nothing recorded), figure and explanation."""

    shade: int | None
    figure: str
    title: str


@dataclass(frozen=True)
class Row:
    label: str
    cells: list[Cell]


@dataclass(frozen=True)
class Heat:
    """One matrix: `low` and `high` are what the palest and the fullest shade stand for."""

    title: str
    low: str
    high: str
    rows: list[Row]


@dataclass(frozen=True)
class Matrix:
    """Both matrices, over the same rows and columns. `notes` say what was folded."""

    columns: list[str]
    heats: list[Heat]
    written_out: bool
    notes: list[str]


def step_matrix(result: Result) -> Matrix | None:
    """None without several GPUs that have steps in common."""
    steps = result.job.steps if result.job else None
    if steps is None or len(steps.rows) < 2 or not steps.names:
        return None
    times = np.array([row.step_ns for row in steps.rows], dtype=np.float64)
    waits = np.array([row.wait_ns for row in steps.rows], dtype=np.float64)
    namer = gpu_namer(result.devices)
    labels = [namer(row.rank, row.device) for row in steps.rows]
    columns, column_note, (times, waits) = _fold_columns(steps.names, times, waits)
    groups, row_note = _row_groups(result, times, waits)
    labels = [_group_label(result, labels, group) for group in groups]
    written_out = len(columns) <= WRITTEN_OUT
    heats = []
    known = times[~np.isnan(times)]
    if len(known):
        middle = float(np.median(known))
        low, high = (
            min(float(known.min()), middle * (1 - LEAST_RANGE)),
            max(float(known.max()), middle * (1 + LEAST_RANGE)),
        )
        heats.append(_heat("Time of each step", labels, columns, groups, times, (low, high), np.max))
    if np.nansum(waits):
        longest = float(np.nanmax(times)) if len(known) else float(np.nanmax(waits))
        title = f"{'Of that, waiting' if heats else 'Waiting'} for other ranks"
        heats.append(_heat(title, labels, columns, groups, waits, (0, longest), np.median))
    cut = (
        "Hatched cells are steps that the recording does not hold whole."
        if np.isnan(times).any() and len(known)
        else None
    )
    notes = [note for note in (cut, row_note, column_note) if note]
    return Matrix(_short(columns), heats, written_out, notes) if heats else None


def _fold_columns(names: list[str], *values: Floats) -> tuple[list[str], str | None, list[Floats]]:
    """At most MOST_COLUMNS columns; one of several steps has the largest value of them."""
    run = -(-len(names) // MOST_COLUMNS)
    if run == 1:
        return names, None, list(values)
    starts = list(range(0, len(names), run))
    folded = [np.fmax.reduceat(value, starts, axis=1) for value in values]
    labels = [f"{names[s]} to {names[min(s + run, len(names)) - 1]}" for s in starts]
    return labels, f"A column is up to {run} steps and shows the longest of them.", folded


def _row_groups(result: Result, times: Floats, waits: Floats) -> tuple[list[list[int]], str | None]:
    """The rows of the matrix, each as positions in its `rows`: of many GPUs those that differ most alone, the others by neighbours."""
    if len(times) <= MOST_ROWS:
        return [[at] for at in range(len(times))], None
    assert result.job
    waited = np.nansum(waits, axis=1)
    ends = {int(np.argmax(np.nan_to_num(times).max(axis=1))), int(np.argmin(waited)), int(np.argmax(waited))}
    notable = notable_gpus(result, ROWS_OF_THEIR_OWN - len(ends))
    keys = {(result.devices[at].rank, result.devices[at].device) for at in notable}
    alone = [at for at, row in enumerate(result.job.steps.rows) if at in ends or (row.rank, row.device) in keys]
    others = [at for at in range(len(times)) if at not in set(alone)]
    run = -(-len(others) // (MOST_ROWS - len(alone)))
    groups = [[at] for at in alone] + [others[first : first + run] for first in range(0, len(others), run)]
    return groups, (
        f"{len(alone)} GPUs have a row of their own: late ones and those that differ most. "
        f"Of the others, a row is up to {run} GPUs: the longest of their step times, the median of their waiting."
    )


def _group_label(result: Result, labels: list[str], group: list[int]) -> str:
    if len(group) == 1:
        return labels[group[0]]
    assert result.job
    ranks = {result.job.steps.rows[at].rank for at in group}
    if None in ranks:
        return f"{labels[group[0]]} to {labels[group[-1]]}"
    return f"ranks {rank_list([rank for rank in ranks if rank is not None], 1)}"


def _heat(
    title: str,
    labels: list[str],
    columns: list[str],
    groups: list[list[int]],
    values: Floats,
    scale: tuple[float, float],
    fold: Fold,
) -> Heat:
    rows = []
    for label, group in zip(labels, groups, strict=True):
        cells = [_cell(f"{label}, {name}", values[group, at], scale, fold) for at, name in enumerate(columns)]
        rows.append(Row(label, cells))
    return Heat(title, format_duration(scale[0]), format_duration(scale[1]), rows)


def _cell(what: str, values: Floats, scale: tuple[float, float], fold: Fold) -> Cell:
    known = values[~np.isnan(values)]
    if not len(known):
        return Cell(None, "", f"{what}: not recorded whole")
    value = float(fold(known))
    share = (value - scale[0]) / max(scale[1] - scale[0], 1)
    low, middle, high = (format_duration(float(end(known))) for end in (np.min, np.median, np.max))
    said = middle if low == high else f"{low} to {high}, median {middle}"
    return Cell(round(min(max(share, 0), 1) * SHADES), f"{value / 1e6:,.1f}", f"{what}: {said}")


def _short(names: list[str]) -> list[str]:
    """Names of steps for narrow columns: where they differ only in their number, the number."""
    numbers = [re.fullmatch(r"(\D*)(\d+)", name) for name in names]
    if all(numbers) and len({number[1] for number in numbers if number}) == 1:
        return [number[2] for number in numbers if number]
    return names
