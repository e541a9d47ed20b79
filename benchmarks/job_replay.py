"""What it costs to find the collectives of many ranks and to play the job again: 512 ranks with 1,000 collectives each, made up.

Only what the ranks do together is measured. What each of them tells, its part of `communication_kernels` and of `line_events`, is made
where its trace is.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np
import pyarrow as pa

from benchmarks.measure import ratio
from tests.support.made_up_jobs import made_up
from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL
from traceanalyzer.derive.replay.replay import NEVER
from traceanalyzer.ranks.collectives.matches import join_ranks
from traceanalyzer.ranks.replay.play import ISSUES, JOINS, KINDS, MARKS
from traceanalyzer.ranks.replay.tables import LINE_EVENTS
from traceanalyzer.ranks.replay.what_if import JobReplay

RANKS, COLLECTIVES = 512, 1_000
GROUPS = {"of all ranks": None, "every other one of eight": 8}
MADE, JOINED, PLAYED = range(3)
Out = TypeVar("Out")


def job_replay() -> None:
    """Print what joining and playing cost, and how much more memory they take than what they are given."""
    for groups, group in GROUPS.items():
        print(f"{RANKS:,} ranks with {COLLECTIVES:,} collectives each, {groups}")
        (given, _, _), (*_, joined), (peak, *spent) = (_measured(until, group) for until in (MADE, JOINED, PLAYED))
        print(f"  joined in {joined:.1f} s CPU, joined and played in {spent[0]:.1f} s wall, {spent[-1]:.1f} s CPU")
        ratio("joining and playing to 5 s", spent[-1] / 5, 1.0)
        ratio("more memory to 1 GB", (peak - given) / 1e9, 1.0)


def _measured(until: int, group: int | None) -> list[float]:
    """Peak memory in bytes, and wall and CPU seconds, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.job_replay", str(until), str(group or 0)]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [float(number) for number in told.split()]


def _work(until: int, group: int | None) -> None:
    job = made_up(RANKS, COLLECTIVES, group=group)
    wall = cpu = 0.0

    def timed(function: Callable[[], Out]) -> Out:
        nonlocal wall, cpu
        began, used = time.monotonic(), time.process_time()
        result = function()
        wall, cpu = wall + time.monotonic() - began, cpu + time.process_time() - used
        return result

    if until >= JOINED:
        joined = timed(lambda: join_ranks(job.kernels, job.inputs))
    if until >= PLAYED:
        replay = JobReplay(line_events(job.kernels, joined.matches))
        if timed(lambda: replay.error) != 0:
            raise ValueError("what was made up is not what is played")
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, wall, cpu)


def line_events(kernels: pa.Table, matches: pa.Table) -> pa.Table:
    """Of ranks that wait for each of their collectives, and compute in between."""
    instance, transfer = (frames.ints(matches, name) for name in ("instance", "transfer"))
    matched = np.flatnonzero((instance != NULL) & (transfer != NULL))
    rank, start, end = (frames.ints(kernels, name)[matched] for name in ("rank", "start_ns", "end_ns"))
    transfer = transfer[matched]
    begins = np.diff(rank, prepend=-1) != 0
    origin = start[begins][np.cumsum(begins) - 1]
    last = np.flatnonzero(np.diff(rank, append=-1))
    # Each collective is handed over and waited for; a mark ends the line.
    at = np.concatenate((np.arange(len(rank)), np.arange(len(rank)), last))
    kind = np.repeat((ISSUES, JOINS, MARKS), (len(rank), len(rank), len(last)))
    order = np.lexsort((kind, at))
    at, kind = at[order], kind[order]
    mark = kind == MARKS
    computed = np.where(begins, 0, start - np.append(0, end[:-1]))
    work = np.full((len(at), 3, 3), NEVER)
    work[:, 0, 0] = work[:, 1, 1] = 0
    work[:, 2, 2] = np.where(kind == ISSUES, computed[at], 0)
    missing = {column.name: pa.nulls(len(at), column.type) for column in LINE_EVENTS.columns}
    told = {
        "rank": rank[at],
        "device": np.zeros(len(at), np.int64),
        "kind": frames.names(kind, KINDS),
        "instance": frames.numbers(np.where(mark, NULL, instance[matched][at])),
        "work": pa.FixedSizeListArray.from_arrays(pa.array(work.reshape(-1)), 9),
        "met": frames.numbers(np.where(mark, NULL, (end - transfer - origin)[at])),
        "transfer": frames.numbers(np.where(mark, NULL, transfer[at])),
        "free": np.zeros(len(at), bool),
        "time": (np.where(kind == ISSUES, start[at], end[at]) - origin[at]),
        "origin": origin[at],
    }
    return frames.build(LINE_EVENTS, missing | told)


if __name__ == "__main__":
    _work(int(sys.argv[1]), int(sys.argv[2]) or None) if len(sys.argv) > 1 else job_replay()
