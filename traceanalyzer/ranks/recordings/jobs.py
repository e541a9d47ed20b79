"""Who is with whom: which files may be compared, which ranks are missing or there twice, and which GPUs several files used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pyarrow as pa

from traceanalyzer.columns.frames import Key
from traceanalyzer.model.kinds import EVIDENCE, kinds_of
from traceanalyzer.model.trace import Input
from traceanalyzer.ranks.recordings import job_health
from traceanalyzer.ranks.recordings.recordings import (
    by_job,
    by_time,
    files_of,
    missing,
    repeated_ranks,
    shared_gpus,
    unplaced_gpus,
)
from traceanalyzer.records import dataclass


@dataclass(frozen=True)
class Jobs:
    """`health` has the schema of the event table; what is true of a whole job has no rank there.

    `job` is, by ordinal, the number of the recording that a file is of: only files of one number are compared. It is None for files of
    which another one of that recording says that it is the same rank (`doubled`): they are not compared at all. `world_size` and
    `missing` are of the job that most files are of; `missing` is empty where nobody can tell. `shared_gpus` are groups of
    (ordinal, device) that are one GPU, used at the same time.
    """

    health: pa.Table
    job: dict[int, int | None]
    world_size: int | None
    missing: tuple[int, ...]
    doubled: tuple[int, ...]
    shared_gpus: tuple[tuple[Key, ...], ...]


def jobs(inputs: Sequence[Input], ledger: pa.Table, devices: pa.Table | None = None) -> Jobs:
    """`ledger` has the windows of all files, `devices` is the event table; without it, no GPU is known to be shared."""
    beside = _beside_others(inputs)
    files = [file for file in files_of(inputs, ledger) if file.ordinal not in beside]
    parts = by_job(files)
    recordings = [by_time(part) for part in parts]
    job: dict[int, int | None] = dict.fromkeys(one.ordinal for one in inputs)
    doubled: set[int] = set()
    numbered = sorted((one for several in recordings for one in several), key=lambda one: one[0].ordinal)
    for number, recording in enumerate(numbered):
        twice = repeated_ranks(recording)
        doubled |= twice
        job |= {file.ordinal: None if file.rank in twice else number for file in recording}
    compared = [file for file in files if job[file.ordinal] is not None]
    shared = () if devices is None else shared_gpus(compared, devices)
    unplaced = () if devices is None else unplaced_gpus(compared, devices)
    return Jobs(
        health=job_health.health(inputs, files, recordings, shared, unplaced),
        job=job,
        world_size=parts[0][0].size if parts else None,
        missing=missing(parts[0]) if parts else (),
        doubled=tuple(sorted(doubled)),
        shared_gpus=shared,
    )


def _beside_others(inputs: Sequence[Input]) -> set[int]:
    """Ordinals of evidence of a rank that a trace, or other evidence, is of too: several witnesses of one rank are no ranks that are
    there twice. Two files of one kind are, unless a rank may have several of that kind."""
    times = Counter(one.format for one in inputs)
    speaks: dict[int, tuple[bool, int, str]] = {}
    for one in inputs:
        if one.rank is not None:
            own = (one.witness is None, times[one.format], one.format)
            speaks[one.rank] = max(own, speaks.get(one.rank, own))
    several = {kind.name for kind in kinds_of(EVIDENCE) if getattr(kind, "several", False)}
    spoken: set[int] = set()
    beside = set()
    for one in inputs:
        if one.witness is None or one.rank is None:
            continue
        if speaks[one.rank][2] != one.format or (one.format in several and one.rank in spoken):
            beside.add(one.ordinal)
        else:
            spoken.add(one.rank)
    return beside
