"""How long a step of the job would take if one rank were not late, the load were balanced, or communication cost less."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL, Flags, Key
from traceanalyzer.derive.replay.stretches import NEVER
from traceanalyzer.intervals import Array
from traceanalyzer.model.replayed import JobPrediction
from traceanalyzer.ranks.replay.play import JOINS, MARKS, Lines, Played, Scenario, play, play_all

MOST_QUICK = 400_000
"""Events of all lines."""


class JobReplay:
    """The lines of a job, to be played again. What is asked of it is None where they cannot be played."""

    def __init__(self, line_events: pa.Table) -> None:
        self._table = line_events

    @cached_property
    def lines(self) -> Lines | None:
        """None of a job without collectives."""
        met = self._table.num_rows > self._table["instance"].null_count
        return Lines.of(self._table) if met else None

    @property
    def quick(self) -> bool:
        """Whether it is played in no time; a job of hundreds of ranks takes a second."""
        return bool(self._table.num_rows <= MOST_QUICK)

    @cached_property
    def as_was(self) -> Played | None:
        return play(self.lines) if self.lines is not None else None

    def predict(self, scenarios: Sequence[Scenario]) -> list[JobPrediction | None]:
        """What a step of the job takes in each, of the lines that are not absent."""
        played = play_all(scenarios)
        return [self._predicted(one, then) for one, then in zip(scenarios, played, strict=True)]

    def without(self, gpu: Key) -> JobPrediction | None:
        """Had nobody ever waited for this (rank, device): the steps of the others."""
        return self._of(self.lacking(gpu))

    def balanced(self) -> JobPrediction | None:
        """Had all ranks of a group come to its collectives at once, with the same work in all: each at the mean of their times."""
        return self._of(self.even())

    def lacking(self, gpu: Key) -> Scenario | None:
        """The job of which nobody waits for this (rank, device); None where there are no others, or where that has no line."""
        lines = self.lines
        if lines is None:
            return None
        absent = (lines.rank == gpu[0]) & (lines.device == gpu[1])
        return Scenario(lines, absent=absent) if absent.any() and not absent.all() else None

    def even(self) -> Scenario | None:
        """The job with equal work for all ranks of a group."""
        return None if self.lines is None else Scenario(self.lines, balanced=True)

    def hiding(self) -> Scenario | None:
        """The job in which no GPU waits for a transfer: the most that overlap can give."""
        return None if self.lines is None else Scenario(self.lines, hidden=self.lines.kind == JOINS)

    def smaller(self, share: float) -> Scenario | None:
        """The job in which each transfer takes this share of its time."""
        lines = self.lines
        if lines is None:
            return None
        less = np.where(lines.transfer == NEVER, NEVER, np.rint(lines.transfer * share).astype(np.int64))
        return Scenario(replace(lines, transfer=less))

    def _of(self, scenario: Scenario | None) -> JobPrediction | None:
        return self.predict([scenario])[0] if scenario else None

    @cached_property
    def error(self) -> float | None:
        """How far off the replay of everything as it was is, as a share of the median step; without two steps, of the window."""
        lines, played = self.lines, self.as_was
        if lines is None or played is None:
            return None
        was, then = (_steps(lines, time) for time in (lines.time, played.time))
        return float(abs(np.median(then) - np.median(was)) / max(float(np.median(was)), 1.0)) if len(was) else None

    def _predicted(self, scenario: Scenario, played: Played | None) -> JobPrediction | None:
        lines, as_was = self.lines, self.as_was
        if played is None or lines is None or as_was is None:
            return None
        step, now = _length(lines, as_was.time, None)
        then_step, then = _length(lines, played.time, None if scenario.absent is None else ~scenario.absent)
        return JobPrediction(now, min(then, now), step is not None and then_step is not None)


def _step_marks(lines: Lines) -> tuple[Flags, Flags]:
    """The marks of steps, and those of the windows' ends."""
    mark = lines.kind == MARKS
    return mark & (lines.step != NULL), mark & (lines.step == NULL)


def _steps(lines: Lines, time: Array) -> Array:
    """All steps of all lines; without any, their windows."""
    steps, ends = _step_marks(lines)
    rows = np.flatnonzero(steps)
    same = np.diff(lines.line[rows]) == 0
    lengths = np.diff(time[rows])[same]
    return lengths if len(lengths) else time[ends]


def _length(lines: Lines, time: Array, counted: Flags | None) -> tuple[int | None, int]:
    """A step of the job, the mean of the line that takes longest, and that or else the longest window; of lines that are `counted`."""
    some = np.ones(len(lines), bool) if counted is None else counted
    steps, ends = _step_marks(lines)
    rows = np.flatnonzero(steps & some[lines.line])
    same = np.diff(lines.line[rows]) == 0
    if not same.any():
        return None, int(time[ends & some[lines.line]].max())
    of = lines.line[rows][1:][same]
    total = np.bincount(of, np.diff(time[rows])[same], len(lines)) / np.maximum(
        np.bincount(of, minlength=len(lines)), 1
    )
    return int(total.max()), int(total.max())


def most_waited_for(collective_waits: pa.Table, most: int) -> list[Key]:
    """The (rank, device) for which others waited longest with nothing else to do, at most so many; the longest waited for first."""
    rank, device, wait = (frames.ints(collective_waits, c) for c in ("late_rank", "late_device", "exposed_wait"))
    told = np.flatnonzero((rank != NULL) & (wait > 0))
    of = frames.together(rank[told], device[told])
    waited = sorted((-int(wait[told][rows].sum()), (one, other)) for (one, other), rows in of)
    return [gpu for _, gpu in waited[:most]]
