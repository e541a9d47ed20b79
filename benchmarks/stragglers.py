"""The job replay beside ByteDance-Seed/StragglerAnalysis on the three jobs that they published: `python -m benchmarks.stragglers PATH`,
a checkout of that repository or a git directory of it. `make bench` does it where BENCH_STRAGGLERS names one.

Asked of each job, as in "Understanding Stragglers in Large Model Training Using What-if Analysis": how much slower its step is than
with every operation taking what its kind takes on the whole (S), and with that only of one stage, rank or kind of operation; how far
the step played without any pause of the host is from the recorded one; how much of the slowdown goes with the worst 3% of workers
(M_W) and with the last stage (M_S).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.measure import percent
from benchmarks.straggler_jobs import (
    LIKE_COMMUNICATION,
    Bools,
    Ints,
    Operations,
    Plan,
    delays,
    files_of,
    planned,
    read_job,
    transfers,
)

JOBS = ("AR", "SE", "ST")
MOST_APART = 2.0
"""Percent that the slowdowns may lie from theirs."""
_WORST_PERCENT = 3
Reals = npt.NDArray[np.float64]


class Job:
    """One published job: its step in ns on average, with what operations take replaced or not."""

    def __init__(self, name: str, operations: Operations) -> None:
        self.name, self.operations = name, operations
        self.plan: Plan = planned(operations)
        self.transfer = transfers(operations, self.plan)

    @cached_property
    def kinds(self) -> npt.NDArray[np.str_]:
        """Kinds of operation as their results have them: both sides of a direction of the pipeline are one."""
        kinds = self.operations.kind.astype("U32")
        for direction in ("forward", "backward"):
            kinds[np.isin(kinds, [f"{direction}-send", f"{direction}-recv"])] = f"{direction}-pp-comm"
        return kinds

    @cached_property
    def ideal(self) -> tuple[Ints, Ints]:
        """What each operation takes, and its transfer, where it is as all of its kind: their mean, of communication the median."""
        duration, transfer = self.operations.duration.copy(), self.transfer.copy()
        for kind in np.unique(self.operations.kind):
            at = self.operations.kind == kind
            middle = np.median if kind.endswith(LIKE_COMMUNICATION) else np.mean
            duration[at], transfer[at] = round(middle(duration[at])), round(middle(transfer[at]))
        return duration, transfer

    @cached_property
    def recorded(self) -> Ints:
        """Each step as it was recorded, from the first start to the last end."""
        step = np.unique(self.operations.step, return_inverse=True)[1]
        return _by_step(np.maximum, self.operations.end, step) - _by_step(np.minimum, self.operations.start, step)

    @cached_property
    def played(self) -> Ints:
        """Each step without pauses of the host."""
        return self.steps(self.operations.duration, self.transfer)

    @cached_property
    def without_stragglers(self) -> Ints:
        return self.steps(*self.ideal)

    @cached_property
    def played_as_recorded(self) -> Ints:
        pause = delays(self.operations, self.plan)
        return self.steps(self.operations.duration, self.transfer, pause)

    def steps(self, duration: Ints, transfer: Ints, pause: Ints | None = None) -> Ints:
        pause = np.zeros_like(duration) if pause is None else pause
        return _by_step(np.maximum, self.plan.ends(duration, transfer, pause), self.plan.step_of_end)

    def only(self, kept: Bools) -> float:
        """Their S_x: the step with what is `kept` as recorded and the rest ideal, to the ideal one."""
        duration, transfer = self.ideal
        own = self.steps(np.where(kept, self.operations.duration, duration), np.where(kept, self.transfer, transfer))
        return float(own.mean() / self.without_stragglers.mean())

    def recovered(self, mended: Bools) -> float:
        """Their M_x: the share of the slowdown that is gone with what is `mended` ideal."""
        duration, transfer = self.ideal
        own = self.steps(
            np.where(mended, duration, self.operations.duration), np.where(mended, transfer, self.transfer)
        )
        recorded, ideal = self.played.mean(), self.without_stragglers.mean()
        return float((recorded - own.mean()) / (recorded - ideal))


def _by_step(most: np.ufunc, times: Ints, step: Ints) -> Ints:
    """The largest or smallest of the times of each step."""
    order = np.argsort(step, kind="stable")
    return most.reduceat(times[order], np.flatnonzero(np.diff(step[order], prepend=-1)))  # type: ignore[no-any-return]


def stragglers(repository: Path) -> None:
    """Print what the replay and StragglerAnalysis say of each job."""
    read = files_of(repository)
    for name in JOBS:
        operations, theirs = read_job(read, name)
        job = Job(name, operations)
        size, steps = theirs["job_meta"]["world_size"], len(job.recorded)
        print(f"StragglerAnalysis, job {name}: {size} GPUs, {steps} steps, {len(job.plan.line):,} events")
        _steps(job, theirs)
        by_rank, by_stage = _slowdowns(job, theirs)
        stage = job.operations.stage
        score = np.minimum(by_rank[job.operations.rank], by_stage[stage])
        shares = {"Mw": _worst(job, score), "Ms": stage == stage.max()}
        for share, mended in shares.items():
            found, told = job.recovered(mended), json.loads(read(f"data/{share.lower()}-{name}.json"))[share]
            percent(f"{share} {found:.4f}, theirs {told:.4f}: apart", 100 * abs(found - told), MOST_APART)


def _steps(job: Job, theirs: Mapping[str, Any]) -> None:
    told, played = (np.array([*theirs[f"step_t_{name}"].values()]) for name in ("base", "nodelay"))
    most = round(100 * abs(np.median(1 - played / told)), 2)
    percent("replay error without pauses of the host, theirs at most", _error(job.played, job.recorded), most)
    percent("replay error with the pauses as recorded", _error(job.played_as_recorded, job.recorded), 1.0)
    _beside("slowdown S", job.played.mean() / job.without_stragglers.mean(), theirs["blocking_slowdown"])


def _error(played: Ints, recorded: Ints) -> float:
    """Of the median step, in percent."""
    return float(100 * abs(np.median(1 - played / recorded)))


def _beside(label: str, found: float, told: float) -> None:
    percent(f"{label} {found:.4f}, theirs {told:.4f}: apart", 100 * abs(found / told - 1), MOST_APART)


def _slowdowns(job: Job, theirs: Mapping[str, Any]) -> tuple[Reals, Reals]:
    """Prints those by stage, rank and kind of operation; returns those of ranks and of stages, by their numbers."""
    labels = {"stage": job.operations.stage, "dp_rank": job.operations.rank, "optype": job.kinds}
    numbers: dict[str, Reals] = {}
    for by, label in labels.items():
        told = {str(key): value for key, value in theirs[f"blocking_decompose_by_{by}"].items()}
        found = {key: job.only(label.astype(str) == key) for key in told}
        ours, their = (max(one, key=one.__getitem__) for one in (found, told))
        apart = max(abs(found[key] / told[key] - 1) for key in told)
        missed = "" if ours == their else "  MISSED"
        print(f"  worst {by}: {ours}, {found[ours]:.4f}; theirs {their}, {told[their]:.4f}{missed}")
        percent(f"slowdown by {by}, furthest apart", 100 * apart, MOST_APART)
        if by != "optype":
            numbers[by] = np.array([found[str(key)] for key in range(len(found))])
    return numbers["dp_rank"], numbers["stage"]


def _worst(job: Job, score: Reals) -> Bools:
    """Operations of the workers with the highest score, lower numbers first."""
    workers, first = np.unique(job.operations.worker, return_index=True)
    count = -(-len(workers) * _WORST_PERCENT // 100)
    return np.isin(job.operations.worker, workers[np.lexsort((workers, -score[first]))][:count])


if __name__ == "__main__":
    stragglers(Path(sys.argv[1]))
