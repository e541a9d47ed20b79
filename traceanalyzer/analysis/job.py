"""The job section of the result: what is said of all ranks together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from traceanalyzer.analysis.job_shape import axes_of, lateness_of, pipeline_of
from traceanalyzer.analysis.join import Join
from traceanalyzer.catalog.catalog import Catalog
from traceanalyzer.columns import frames
from traceanalyzer.result.job import Clock, CollectiveStats, Job, LateRank, Parallelism, RankSteps, StepMatrix
from traceanalyzer.result.job_replay import JobReplay, WithoutGpu

MOST_WITHOUT = 4
"""GPUs without which a job is played again."""


def job_of(tables: Catalog, join: Join, ranks: Mapping[int, int | None]) -> Job | None:
    """None for a single GPU that does not communicate. `ranks` are the job's by the tables'."""
    communication, users = tables.table("communication"), tables.table("ledger").num_rows
    gpus = users - sum(len(gpu.users) - 1 for gpu in join.shared)
    if users < 2 and not communication.num_rows:
        return None
    # Only jobs that communicate pay for what this imports.
    from traceanalyzer.ranks.collectives.recorded import shares
    from traceanalyzer.ranks.waits.side_by_side import collective_stats, late_ranks, step_matrix

    names, rows, lines_left = step_matrix(tables.table("step_ledger"), tables.table("waited_intervals"))
    steps = [RankSteps(**_with_job_rank(row, ranks)) for row in rows]
    collectives, left, left_exposed = collective_stats(communication)
    matched, outside, untold = shares(communication)
    return Job(
        world_size=join.jobs.world_size,
        ranks=sorted({rank for rank in ranks.values() if rank is not None}),
        missing_ranks=list(join.jobs.missing),
        doubled_ranks=list(join.jobs.doubled),
        gpu_count=gpus,
        matched_share=matched,
        parallelism=_parallelism(communication),
        clocks=_clocks(join.offsets, ranks),
        steps=StepMatrix(names, steps, lines_left),
        late_ranks=[LateRank(**_with_job_rank(row, ranks)) for row in late_ranks(tables.table("collective_waits"))],
        collectives=[CollectiveStats(**row) for row in collectives],
        collectives_left=left,
        collectives_left_exposed_ns=left_exposed,
        axes=axes_of(tables),
        lateness=lateness_of(tables, steps, ranks) if gpus > 1 else None,
        pipeline=pipeline_of(tables, ranks),
        outside_share=outside,
        untold_share=untold,
        at_least=bool((frames.ints(communication, "missing") > 0).any()),
        replay=_replay(tables, ranks),
    )


def _replay(tables: Catalog, ranks: Mapping[int, int | None]) -> JobReplay | None:
    """None where nothing matched, or where ranks would wait for each other in a circle."""
    if not tables.table("line_events").num_rows:
        return None
    from traceanalyzer.ranks.replay.what_if import most_waited_for

    job = tables.value("job_replay")
    late = most_waited_for(tables.table("collective_waits"), MOST_WITHOUT if job.quick else 1)
    changes = [job.hiding(), *((job.even(), job.smaller(0.5)) if job.quick else (None, None)), *map(job.lacking, late)]
    found = iter(job.predict([one for one in changes if one is not None]))
    hidden, even, half, *gone = (next(found) if one is not None else None for one in changes)
    if hidden is None:
        return None
    return JobReplay(
        step_ns=hidden.now,
        per_step=hidden.per_step,
        error=round(job.error or 0.0, 6),
        without=[
            WithoutGpu(ranks.get(rank), device, one.then)
            for (rank, device), one in zip(late, gone, strict=True)
            if one is not None
        ],
        balanced_step_ns=even.then if even else None,
        overlapped_step_ns=hidden.then,
        half_volume_step_ns=half.then if half else None,
    )


def _parallelism(communication: pa.Table) -> list[Parallelism]:
    if not communication.num_rows:
        return []
    from traceanalyzer.ranks.parallelism.parallel_groups import describe_job, process_groups

    return [
        Parallelism(
            kind=row["parallelism"] or "unknown",
            group_size=row["group_size"],
            group_count=row["groups"],
            collectives=row["kinds"],
            bytes_per_step=None if row["bytes_per_step"] is None else round(row["bytes_per_step"]),
        )
        for row in describe_job(process_groups(communication))
    ]


def _clocks(offsets: pa.Table, ranks: Mapping[int, int | None]) -> list[Clock]:
    rows = offsets.to_pylist()
    sharing = Counter(row["domain"] for row in rows)
    return [_clock(row, sharing[row["domain"]] > 1, ranks) for row in rows]


def _clock(row: dict[str, Any], compared: bool, ranks: Mapping[int, int | None]) -> Clock:
    offset = row["offset"] if compared else None
    return Clock(ranks.get(row["rank"]), offset, row["residual"], row["matched"])


def _with_job_rank(row: dict[str, Any], ranks: Mapping[int, int | None]) -> dict[str, Any]:
    return {**row, "rank": ranks.get(row["rank"])}
