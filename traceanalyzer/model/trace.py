"""A trace in memory: the event tables of one or more files, and where they came from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import field
from functools import cached_property
from pathlib import PurePath
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from traceanalyzer.model.table_specs import table_specs
from traceanalyzer.records import dataclass

if TYPE_CHECKING:
    import pandas as pd


EPOCH_NS = 10**18
"""Times beyond this (September 2001) count from 1970 even if the file names no clock base: no machine has run for 31 years."""
RankSource = Literal["content", "environment", "name"]
Role = Literal["trace", "beside", "series"]
"""What a file is to a job: a part of it; something beside a part; something that spans captures."""
Clock = Literal["trace", "epoch", "local", "none"]


@dataclass(frozen=True)
class Witness:
    """What a file of evidence, which is no trace, says of whose it is; see `ingest.contract.Marks`."""

    role: Role
    host: str | None = None
    pids: tuple[int, ...] = ()
    gpus: tuple[str, ...] = ()
    clock: Clock = "none"
    clock_error_ns: int | None = None


@dataclass(frozen=True)
class Input:
    """One file. `ordinal` is the value of the tables' `rank` column: the rank where one file says it, else a free number.

    `clock_base_ns` + a time in the tables = nanoseconds since the epoch; None when the file does not say. `rank_source` is what told
    the rank: the content of the file, the environment that it recorded, or only its name. `job` is a text that all files of one job
    share (library and version of the process groups), None when the file does not say. `copies` counts the files of the same rank and
    content that were left out. `versions` are of the libraries and drivers that the program ran on, by name, where the file says it.
    `traits` are what executables and libraries tell of the program (`model.programs`), `traced` the kinds of events that the profiler
    was told to record or did record, as it calls them (`cuda`, `osrt`, `mpi`, `samples`).
    `recorded_ns` is from when to when was recorded, in the tables' time, None where the file does not say; `bounded` says that the
    user's capture range, or a cut made later, set these bounds. `witness` is what evidence says of whose it is, None for a trace.
    """

    path: str
    sha256: str
    bytes: int
    format: str
    producer: str
    rank: int | None
    world_size: int | None
    ordinal: int
    clock_base_ns: int | None
    rank_source: RankSource | None = None
    job: str | None = None
    copies: int = 0
    versions: dict[str, str] = field(default_factory=dict)
    traits: tuple[str, ...] = ()
    traced: tuple[str, ...] = ()
    recorded_ns: tuple[int, int] | None = None
    bounded: bool = False
    witness: Witness | None = None


@dataclass(frozen=True)
class Trace:
    """Event tables by name (see `traceanalyzer.model.schema`); a table that no file filled is there and empty."""

    inputs: tuple[Input, ...]
    tables: dict[str, pa.Table]

    def table(self, name: str) -> pa.Table:
        """The event table `name`. Raises KeyError with the known names for another."""
        if name in self.tables:
            return self.tables[name]
        if (spec := table_specs().get(name)) is not None:
            return spec.empty()
        raise KeyError(f"no table '{name}'; the tables are {', '.join(table_specs())}")

    def to_pandas(self, name: str) -> pd.DataFrame:
        """The event table `name` as a pandas DataFrame (names as categoricals)."""
        return self.table(name).to_pandas()  # type: ignore[no-any-return]

    def rank_of(self, ordinal: int) -> int | None:
        """The job's rank behind a value of the `rank` column, None when no file says it. Two files may say the same one."""
        return self._ranks.get(ordinal)

    @cached_property
    def _ranks(self) -> dict[int, int | None]:
        return {i.ordinal: i.rank for i in self.inputs}


def rank_names(inputs: Sequence[Input]) -> dict[int, str]:
    """What to call the files that have a rank, by ordinal: "rank 3", or "rank 3 in b.json" where several files say that they are it."""
    count = Counter(i.rank for i in inputs)
    files = file_names(inputs)
    return {
        i.ordinal: f"rank {i.rank}" + (f" in {files[i.ordinal]}" if count[i.rank] > 1 else "")
        for i in inputs
        if i.rank is not None
    }


def file_names(inputs: Sequence[Input]) -> dict[int, str]:
    """The shortest end of each path that only one file has, by ordinal: the name alone where that is enough."""
    names = {i.ordinal: PurePath(i.path).parts or (i.path,) for i in inputs}
    most = max(map(len, names.values()), default=0)
    found: dict[int, str] = {}
    for length in range(1, most + 1):
        ends = {ordinal: str(PurePath(*parts[-length:])) for ordinal, parts in names.items() if ordinal not in found}
        count = Counter(ends.values())
        found |= {ordinal: end for ordinal, end in ends.items() if count[end] == 1 or length == most}
    return found
