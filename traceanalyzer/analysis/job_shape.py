"""The shape of a job in its section of the result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from traceanalyzer.catalog.catalog import Catalog
from traceanalyzer.columns import frames
from traceanalyzer.result.document import Device
from traceanalyzer.result.job import Job, RankSteps
from traceanalyzer.result.job_shape import (
    AxisTime,
    HostTime,
    Lateness,
    PersistentRank,
    PipelineShape,
    StageTime,
)

Ranks = Mapping[int, int | None]
"""The job's ranks by the tables'."""


def axes_of(tables: Catalog) -> list[AxisTime]:
    """Time lost by kind of parallelism; empty without communication."""
    parts = tables.table("exposed_parts")
    if not parts.num_rows:
        return []
    from traceanalyzer.ranks.shape.axes import axes

    keys = {key for key, _ in frames.groups(parts)}
    rows = zip(*(tables.table("ledger")[name].to_pylist() for name in ("rank", "device", "duration")), strict=True)
    windows = sum(duration for rank, device, duration in rows if (rank, device) in keys)
    return [AxisTime(**row) for row in axes(parts, windows)]


def lateness_of(tables: Catalog, steps: Sequence[RankSteps], ranks: Ranks) -> Lateness | None:
    """Whether waiting is anyone's doing; None where nothing matched."""
    communication = tables.table("communication")
    if not communication.num_rows:
        return None
    from traceanalyzer.ranks.shape.noise import expected_wait
    from traceanalyzer.ranks.waits.late_patterns import lateness

    found = lateness(communication, tables.table("collective_waits"))
    if found is None:
        return None
    late = [PersistentRank(**{**row, "rank": ranks.get(row["rank"])}) for row in found.pop("ranks")]
    own = np.array([row.step_ns for row in steps], np.float64) - np.array([row.wait_ns for row in steps], np.float64)
    noise = expected_wait(own) if own.ndim == 2 else None
    return Lateness(**found, noise_ns=noise, ranks=late)


def pipeline_of(tables: Catalog, ranks: Ranks) -> PipelineShape | None:
    """How the stages of pipelines compare; None without any of which two have complete steps."""
    communication = tables.table("communication")
    if not communication.num_rows:
        return None
    from traceanalyzer.ranks.shape.stages import stages_of
    from traceanalyzer.ranks.waits.pipelines import pipeline

    found = pipeline(communication)
    stages = (
        stages_of(found.ranks, tables.table("step_ledger"), tables.table("waited_intervals"))
        if len(found.ranks)
        else None
    )
    if stages is None:
        return None
    count, batches = (None if value == frames.NULL else value for value in (found.stages, found.micro_batches))
    times = zip(stages.gpus, stages.step, stages.compute, stages.wait, stages.idle, strict=True)
    return PipelineShape(
        stages=count,
        micro_batches=batches,
        schedule_share=round((count - 1) / (batches + count - 1), 6) if count and batches else None,
        interleaved=found.interleaved,
        empty_share=round(stages.empty_share, 6),
        wait_share=round(stages.wait_share, 6),
        uneven=stages.uneven,
        uneven_share=round(stages.uneven_share, 6),
        balanced_step_ns=stages.balanced_step,
        gpus=[StageTime(ranks.get(key[0]), key[1], *(int(time) for time in own)) for key, *own in times],
    )


def hosts_of_job(tables: Catalog, devices: Sequence[Device], keys: Sequence[frames.Key], job: Job) -> list[HostTime]:
    """The GPUs by host; empty where that is not known of all of them, or it is one. `keys` are those of `devices` in the tables."""
    from traceanalyzer.ranks.shape.hosts import hosts_of

    number = hosts_of(tables.table("processes"), [one for one in tables.value("inputs") if one.witness is None])
    if len(set(number.values())) < 2 or any(rank not in number for rank, _ in keys):
        return []
    late = {(one.rank, one.device): one.waited_ns for one in job.late_ranks}
    found = []
    for host in sorted(set(number.values())):
        own = [one for one, (rank, _) in zip(devices, keys, strict=True) if number[rank] == host]
        if not own:
            continue
        waits = [0 if not one.exposed_communication_ns else one.exposed_wait_ns for one in own]
        known = [wait for wait in waits if wait is not None]
        found.append(
            HostTime(
                number=host,
                ranks=sorted({rank for one in own for rank in one.used_by}),
                gpu_count=len(own),
                window_ns=sum(one.window_ns for one in own),
                compute_ns=sum(one.compute_ns for one in own),
                exposed_communication_ns=sum(one.exposed_communication_ns for one in own),
                exposed_wait_ns=sum(known) if len(known) == len(waits) else None,
                idle_ns=sum(one.idle_ns for one in own),
                caused_wait_ns=sum(late.get((one.rank, one.device), 0) for one in own),
            )
        )
    return found
