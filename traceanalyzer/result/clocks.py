"""The clocks of a job's ranks, and the moment that is shown as 0."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from traceanalyzer.result.document import Result


def clock_offsets(result: Result) -> dict[int, int]:
    """How far the clock of each rank is ahead, in ns, for ranks that the result knows; two files of one rank keep their own clocks."""
    clocks = result.job.clocks if result.job else []
    count = Counter(clock.rank for clock in clocks)
    return {
        clock.rank: clock.offset_ns
        for clock in clocks
        if clock.rank is not None and clock.offset_ns is not None and count[clock.rank] == 1
    }


def origins(spans: Sequence[tuple[int, int]], ahead: Sequence[int]) -> tuple[list[int], bool]:
    """For recordings from one time to another, each on a clock that is so many ns `ahead` of the job's: the time on its own clock that
    is shown as 0, and whether that is one moment for all. It is when all of them overlap, else each begins at 0."""
    shown = [(first - by, last - by) for (first, last), by in zip(spans, ahead, strict=True)]
    start = min((first for first, _ in shown), default=0)
    shared = max((first for first, _ in shown), default=0) <= min((last for _, last in shown), default=0)
    return [(start if shared else first) + by for (first, _), by in zip(shown, ahead, strict=True)], shared
