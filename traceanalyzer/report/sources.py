"""What the page says of its input files and of the ranks that they hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import PurePosixPath, PureWindowsPath

from traceanalyzer.report.timeline import Timeline
from traceanalyzer.result.document import Result
from traceanalyzer.result.ranks import rank_list
from traceanalyzer.units import format_count


def input_names(result: Result) -> list[str]:
    """File names only: a path can name a person or a host."""
    return [PureWindowsPath(PurePosixPath(item.path).name).name for item in result.inputs]


def rank_namer(result: Result) -> Callable[[int], str]:
    """What to say before "GPU n" for a rank of the tables, which is the file's ordinal when the job's rank is not known."""
    known = {device.rank for device in result.devices if device.rank is not None}
    otherwise = "file {} · " if len(result.inputs) > 1 else ""
    return lambda rank: f"rank {rank} · " if rank in known else otherwise.format(rank)


def clock_offsets(result: Result) -> dict[int, int]:
    """How far the clock of each rank is ahead, in ns, for ranks that the result knows; two files of one rank keep their own clocks."""
    clocks = result.job.clocks if result.job else []
    count = Counter(clock.rank for clock in clocks)
    return {
        clock.rank: clock.offset_ns
        for clock in clocks
        if clock.rank is not None and clock.offset_ns is not None and count[clock.rank] == 1
    }


def rank_claims(result: Result) -> Counter[int]:
    """How many files say that they are a rank of the job, for each rank that any of them does."""
    return Counter(item.rank for item in result.inputs if item.rank is not None)


def timeline_ranks(result: Result, timeline: Timeline | None) -> str | None:
    """Which ranks the timeline shows, for example "8 of 512 ranks: 0-6, 300"; None when it shows all of them."""
    if timeline is None:
        return None
    known = {device.rank for device in result.devices if device.rank is not None}
    every, shown = len(result.inputs), {group.rank for group in timeline.groups}
    if known:
        every, shown = len(known), shown & known
    what = "ranks" if known else "files"
    return (
        f"{format_count(len(shown))} of {format_count(every)} {what}: {rank_list(shown, 16)}"
        if len(shown) < every
        else None
    )
