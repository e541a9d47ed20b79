"""Where the parts of a job meet: who is who, which of their kernels belong together, and what each part is told of that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.analysis.survey import Survey
from traceanalyzer.columns import frames
from traceanalyzer.derive.ledger.shared import Portion, SharedGpu
from traceanalyzer.model.schema import HEALTH
from traceanalyzer.model.trace import Input, file_names
from traceanalyzer.ranks.collectives.clock_tables import CLOCK_OFFSETS
from traceanalyzer.ranks.collectives.tables import LATE_WINDOWS, MATCHES
from traceanalyzer.ranks.mpi.tables import MPI_MATCHES
from traceanalyzer.ranks.recordings.jobs import Jobs, jobs
from traceanalyzer.records import dataclass

if TYPE_CHECKING:
    from traceanalyzer.ranks.collectives.matches import Joined


@dataclass(frozen=True)
class GpuName:
    """What messages call the GPUs of one part: by rank, else by number and, among several files, the file's name."""

    before: str
    after: str

    def __call__(self, device: int) -> str:
        return f"{self.before}{device}{self.after}"


@dataclass(frozen=True)
class Brief:
    """What a part is told: its `kernels` as they were surveyed, their rows of `matches`, its calls as of `mpi_matches`, the windows in
    which others waited for it in either, what only all parts together say of its `health`, its name, and what other files leave to it
    of GPUs that they share.
    """

    kernels: pa.Table
    matches: pa.Table
    late_windows: pa.Table
    mpi_matches: pa.Table
    mpi_late_windows: pa.Table
    health: pa.Table
    name: GpuName
    portions: Mapping[frames.Key, Portion] = field(default_factory=dict)


@dataclass(frozen=True)
class Join:
    """One brief a part, in order; `health` is what is true of no single rank, `offsets` as of `clock_offsets`; `shared` are the GPUs of
    which several parts have portions."""

    briefs: list[Brief]
    jobs: Jobs
    health: pa.Table
    offsets: pa.Table
    shared: tuple[SharedGpu, ...] = ()


def join(surveys: Sequence[Survey]) -> Join:
    """Raises nothing: what does not fit together is not compared, and health says so."""
    inputs = [one.input for one in surveys]
    who = jobs(
        inputs, *(frames.concatenated([getattr(one, name) for one in surveys]) for name in ("windows", "devices"))
    )
    matches = {at: MATCHES.empty() for at in range(len(surveys))}
    windows, offsets, health = [LATE_WINDOWS.empty()], [CLOCK_OFFSETS.empty()], [who.health]
    mpi_calls, mpi_windows = [MPI_MATCHES.empty()], [LATE_WINDOWS.empty()]
    count = mpi_count = 0
    for group in _comparable(inputs, who):
        kernels = _of_whole_groups(
            frames.concatenated([surveys[at].kernels for at in group]), [inputs[at] for at in group]
        )
        calls = _mpi([surveys[at] for at in group])
        if calls is not None:
            found = _numbered_from(mpi_count, calls.matches)
            mpi_count += 2 * sum(surveys[at].mpi_parts.num_rows for at in group)
            mpi_calls.append(found)
            mpi_windows.append(_mpi_windows(found))
            health.append(calls.health)
        if not kernels.num_rows:
            offsets += [calls.offsets] if calls is not None else []
            continue
        # Only jobs that communicate pay for what this imports.
        from traceanalyzer.ranks.collectives.matches import join_ranks, late_windows

        windows_of = frames.concatenated([surveys[at].windows for at in group])
        told = join_ranks(kernels, [inputs[at] for at in group], windows_of)
        found = _numbered_from(count, told.matches)
        count += kernels.num_rows
        places = pairwise(accumulate((surveys[at].kernels.num_rows for at in group), initial=0))
        # Taken and not sliced: what is sent of a slice is the whole table.
        matches |= {
            at: found.take(pa.array(range(*place), pa.int64())) for at, place in zip(group, places, strict=True)
        }
        windows.append(late_windows(found))
        offsets.append(told.offsets)
        health.append(told.health)
    asked, notes, names = _by_rank(frames.concatenated(windows)), _by_rank(pa.concat_tables(health)), gpu_names(inputs)
    mpi_told, mpi_asked = _by_rank(frames.concatenated(mpi_calls)), _by_rank(frames.concatenated(mpi_windows))
    briefs = [
        Brief(
            surveys[at].kernels,
            matches[at],
            asked.get(one.ordinal, LATE_WINDOWS.empty()),
            mpi_told.get(one.ordinal, MPI_MATCHES.empty()),
            mpi_asked.get(one.ordinal, LATE_WINDOWS.empty()),
            notes.get(one.ordinal, HEALTH.empty()),
            names[one.ordinal],
        )
        for at, one in enumerate(inputs)
    ]
    return Join(briefs, who, notes.get(frames.NULL, HEALTH.empty()), frames.concatenated(offsets))


def brief_of(one: Survey) -> Brief:
    """What a part is told that is of no job, which others are."""
    late, name = LATE_WINDOWS.empty(), gpu_names([one.input], beside_others=True)[one.input.ordinal]
    return Brief(one.kernels, MATCHES.empty(), late, MPI_MATCHES.empty(), late, HEALTH.empty(), name)


def _mpi(surveys: Sequence[Survey]) -> Joined | None:
    """What the calls of MPI of one job tell together; None without any."""
    parts = frames.concatenated([one.mpi_parts for one in surveys])
    if not parts.num_rows:
        return None
    from traceanalyzer.ranks.mpi.mpi_matches import joined_calls

    return joined_calls(parts, [one.input for one in surveys])


def _mpi_windows(matches: pa.Table) -> pa.Table:
    from traceanalyzer.ranks.mpi.mpi_matches import late_windows

    return late_windows(matches)


def _of_whole_groups(kernels: pa.Table, inputs: Sequence[Input]) -> pa.Table:
    """Where ranks are missing and no trace says how large groups are, every group is taken to miss some of them.

    Else those that are here would pass for whole groups, and waiting for the missing ones for transfer.
    """
    size = max((one.world_size or 0 for one in inputs), default=0)
    known = kernels["group_size"].null_count < kernels.num_rows
    if known or len({one.rank for one in inputs}) >= size:
        return kernels
    at = kernels.schema.get_field_index("group_size")
    field = kernels.schema.field(at)
    return kernels.set_column(at, field, pa.array(np.full(kernels.num_rows, size), field.type))


def _comparable(inputs: Sequence[Input], who: Jobs) -> list[list[int]]:
    """Which parts are of one job, by their places; one that is not compared is alone."""
    groups: dict[tuple[bool, int], list[int]] = {}
    for at, one in enumerate(inputs):
        number = who.job[one.ordinal]
        groups.setdefault((number is None, at if number is None else number), []).append(at)
    return list(groups.values())


def _numbered_from(first: int, matches: pa.Table) -> pa.Table:
    """The instances numbered on from those of other jobs."""
    at = matches.schema.get_field_index("instance")
    return matches.set_column(at, matches.schema.field(at), pc.add(matches["instance"], first)) if first else matches


def _by_rank(table: pa.Table) -> dict[int, pa.Table]:
    return {rank: table.take(pa.array(rows)) for (rank,), rows in frames.together(frames.ints(table, "rank"))}


def gpu_names(inputs: Sequence[Input], beside_others: bool = False) -> dict[int, GpuName]:
    """By ordinal. A single file is named too where it is `beside_others` that have GPUs of these numbers."""
    ranks, files = Counter(one.rank for one in inputs), file_names(inputs)
    several = len(inputs) > 1 or beside_others
    return {one.ordinal: _gpu_name(one, ranks[one.rank] > 1, files[one.ordinal] if several else None) for one in inputs}


def _gpu_name(source: Input, doubled: bool, file: str | None) -> GpuName:
    of = f" of {file}" if file else ""
    if source.rank is not None:
        return GpuName(f"rank {source.rank} (GPU ", f"{of})" if doubled else ")")
    return GpuName("GPU ", of)
