"""What the tables themselves say about the health of the trace, added to what the importer met."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.columns import frames
from traceanalyzer.derive.host.host import is_driver_overhead
from traceanalyzer.derive.launches.earlier_work import WORTH_SAYING, earlier_work_notes
from traceanalyzer.derive.launches.launches import MOST_GPUS, crowded_launches
from traceanalyzer.derive.recording.too_little import too_little
from traceanalyzer.derive.replay.profiler_cost import FRAME_NS, ProfilerCost
from traceanalyzer.intervals import clip, total, union
from traceanalyzer.model.schema import HEALTH
from traceanalyzer.model.trace import Input
from traceanalyzer.units import format_count, format_duration, format_share
from traceanalyzer.vocabulary.health import (
    CLOCKS_DISAGREE,
    GPU_WORK_MISSING,
    IMPOSSIBLE_TIMES,
    PROFILER_COST,
    RANKS_IN_DOUBT,
    TOO_LITTLE,
)
from traceanalyzer.vocabulary.levels import HIGH, LOW, MEDIUM

MISSING_SHARE = 0.02
"""A single launch may be under way when a recording ends, and one may fail. More of them than this are lost records: idle time is
too long then, and a step without its last operations too short."""
MOST_MISSING_SHARE = 0.5
"""With this many missing, what is left of the GPU's work says nothing of the run."""
_CROWD = (
    f"one thread launches on more than {MOST_GPUS} GPUs: what it did while each of them was idle is not told, so the idle time before "
    "these operations has no cause; record one process for each GPU"
)


def health(
    recorded_health: pa.Table,
    gpu_ops: pa.Table,
    ledger_ops: pa.Table,
    launch_calls: pa.Table,
    clocks: pa.Table,
    launches: pa.Table,
    overheads: pa.Table,
    steps: pa.Table,
    gaps: pa.Table,
    windows: pa.Table,
    api_calls: pa.Table,
    host_ranges: pa.Table,
    inputs: Sequence[Input],
    profiler_cost: ProfilerCost,
) -> pa.Table:
    """The importer's rows, TRC002 for each rank whose launches left no operations, TRC007 for one with no sound operation,
    TRC005 for one whose clocks disagree, TRC006 for one with more GPUs than a thread is asked about, TRC004 for one that the profiler
    or its recording of Python stacks slowed, TRC010 for one that shows too little, or in which work from before it may have run.

    The first two make the verdict impossible (high) when no rank has GPU work, and when most of one rank's is missing; the last does
    where next to nothing of a rank is there.
    """
    recorded, launched = _count(gpu_ops), _count(launch_calls)
    lost = _count(launch_calls, pc.invert(pc.or_(launch_calls["answered"], launch_calls["queued"])))
    sound, costs, judged_windows = (frames.by_rank(table) for table in (ledger_ops, overheads, windows))
    little = too_little(ledger_ops, api_calls, host_ranges, steps, inputs)
    threads = _launching(launches)
    worst = LOW if sound else HIGH
    hidden = recorded_health["rank"].filter(pc.equal(recorded_health["severity"], HIGH)).to_pylist()
    rows = [_disagreement(row) for row in clocks.to_pylist()]
    rows += [
        _row(rank, RANKS_IN_DOUBT, LOW, _CROWD, count)
        for rank, count in _count(launches, pa.array(crowded_launches(launches))).items()
    ]
    for rank in sorted(recorded.keys() | launched.keys()):
        count, missing = recorded[rank], lost[rank]
        if count and rank not in sound:
            message = "every GPU operation has impossible times or no device: nothing is left to judge"
            rows.append(_row(rank, IMPOSSIBLE_TIMES, worst, message, count))
        elif not count:
            message = "the trace has kernel launches but no GPU activity at all: the GPU side was not recorded"
            rows.append(_row(rank, GPU_WORK_MISSING, worst, message, launched[rank]))
        elif missing > MOST_MISSING_SHARE * launched[rank]:
            message = "most kernel launches left no usable kernel in the trace: the GPU did more than it shows"
            rows.append(_row(rank, GPU_WORK_MISSING, HIGH, message, missing))
        elif missing > max(1, MISSING_SHARE * launched[rank]):
            message = (
                f"{format_share(missing / launched[rank])} of the kernel launches left no kernel in the trace: GPU time is "
                "under-counted, and a step may look faster than it was"
            )
            rows.append(_row(rank, GPU_WORK_MISSING, MEDIUM, message, missing))
        # Where nothing can be judged, it is no matter that it is little or slow.
        if rank in sound and rank not in hidden and not _hides(rows, rank):
            rows += [_row(rank, *little[rank])] if rank in little else []
            judged = _judged(judged_windows[rank])
            rows += _slowed(rank, judged, costs[rank])
            rows += _stacks(rank, judged, threads[rank], profiler_cost)
    rows += [row for row in earlier_work_notes(gaps, windows) if not _hides(rows, row["rank"])]
    noted = soften(recorded_health, recorded.keys()) if sound else recorded_health
    return pa.concat_tables([noted, pa.Table.from_pylist(rows, schema=HEALTH.schema)])


def _hides(rows: list[dict[str, object]], rank: object) -> bool:
    """Whether one of these notes makes judging a rank impossible."""
    return any(row["severity"] == HIGH for row in rows if row["rank"] == rank)


def _count(table: pa.Table, which: pa.Array | pa.ChunkedArray | None = None) -> Counter[int]:
    """How many rows each rank has, all of them or `which`; by rank."""
    ranks = pc.value_counts(table["rank"] if which is None else table["rank"].filter(which))
    return Counter(dict(sorted((one["values"], one["counts"]) for one in ranks.to_pylist())))


def _judged(windows: pa.Table) -> tuple[int, int]:
    """From the first to the last moment that is judged, of the windows of one rank."""
    return int(frames.ints(windows, "start_ns").min()), int(frames.ints(windows, "end_ns").max())


def _slowed(rank: int, judged: tuple[int, int], overheads: pa.Table) -> list[dict[str, object]]:
    """TRC004 of one rank, which has operations."""
    low, high = judged
    window = high - low
    lost, count = _profiler_time(overheads, low, high)
    if not lost or lost < WORTH_SAYING * window:
        return []
    message = (
        f"the profiler itself was at work for {format_share(lost / window)} of the time ({format_duration(lost)}): "
        "what the host did looks slower than it is without a profiler"
    )
    return [_row(rank, PROFILER_COST, LOW, message, count)]


def _launching(launches: pa.Table) -> defaultdict[int, list[frames.ThreadKey]]:
    """The launching threads of each rank."""
    result: defaultdict[int, list[frames.ThreadKey]] = defaultdict(list)
    columns = [frames.ints(launches, c) for c in ("rank", "process", "thread")]
    for at in frames.firsts(frames.dense(*columns)).tolist():
        rank, process, thread = (int(column[at]) for column in columns)
        result[rank].append((rank, process, thread))
    return result


def _stacks(
    rank: int, judged: tuple[int, int], threads: list[frames.ThreadKey], profiler_cost: ProfilerCost
) -> list[dict[str, object]]:
    """TRC004 of one rank whose Python stacks were recorded, which has operations."""
    low, high = judged
    count = profiler_cost.frame_count(threads, low, high)
    cost = min(count * FRAME_NS, high - low)
    if not cost or cost < WORTH_SAYING * (high - low):
        return []
    message = (
        f"recording Python stacks cost the host about {format_duration(cost)}, {format_share(cost / (high - low))} of the time "
        f"({format_count(count)} frames): what it did looks slower than it is; stacks tell the lines, and a recording without them "
        "the times"
    )
    return [_row(rank, PROFILER_COST, LOW, message, count)]


def _profiler_time(overheads: pa.Table, low: int, high: int) -> tuple[int, int]:
    """ns of [low, high) in which the profiler worked for itself, and in how many rows."""
    own = ~frames.where(overheads, "name", is_driver_overhead)
    spans = union(frames.ints(overheads, "start_ns")[own], frames.ints(overheads, "end_ns")[own])
    return total(clip(spans, low, high)), int(own.sum())


def soften(notes: pa.Table, recorded: Iterable[int]) -> pa.Table:
    """Health rows. What a rank without any GPU work, which are all but `recorded`, says of that hides nothing of the others' work; nor
    does one that shows too little, beside others that show enough. What is said without a rank is of all."""
    severity, rank = notes["severity"], notes["rank"]
    grave = pc.equal(severity, HIGH)
    little = pc.and_(grave, pc.equal(notes["code"], TOO_LITTLE))
    working = set(recorded)
    absent = pc.invert(pc.is_in(rank, pa.array(sorted(working), pa.int32())))
    hides_nothing = pc.and_(pc.is_valid(rank), absent)
    if working - set(rank.filter(little).to_pylist()):
        hides_nothing = pc.or_(hides_nothing, little)
    severity = pc.if_else(pc.and_(hides_nothing, grave), LOW, severity)
    return notes.set_column(notes.schema.get_field_index("severity"), "severity", severity)


def _disagreement(row: dict[str, int]) -> dict[str, object]:
    """What clocks that disagree mean for the rules, for a row of `clocks`."""
    if row["late"]:
        message = (
            f"the GPU's clock runs away from the host's, by {format_duration(row['most_late'])} or more: what the host did "
            "while the GPU was idle cannot be told, so idle time has no cause; profile only once in a process"
        )
        return _row(row["rank"], CLOCKS_DISAGREE, MEDIUM, message, row["late"])
    message = (
        f"GPU operations begin before the calls that launched them, by up to {format_duration(row['most_early'])}: "
        "idle time before these operations has no cause, and causes shorter than that are uncertain"
    )
    return _row(row["rank"], CLOCKS_DISAGREE, LOW, message, row["early"])


def _row(rank: int, code: str, severity: str, message: str, count: int) -> dict[str, object]:
    return {"rank": rank, "code": code, "severity": severity, "message": message, "count": count, "example": None}
