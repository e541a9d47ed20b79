"""What an importer is: what it is given, what it hands on.

An importer knows one format and nothing else: it turns one source into batches of event tables (`traceanalyzer.model.schema`, without
the `rank` column, which the pipeline adds once it knows who is who) and says what it met in `Sink.health`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from traceanalyzer.ingest.bytes.sources import Source
from traceanalyzer.model.trace import RankSource
from traceanalyzer.vocabulary.health import HealthCode
from traceanalyzer.vocabulary.levels import Severity

Progress = Callable[[int], None]
"""Called with the number of input bytes read since the last call."""


class Sink(Protocol):
    """Where an importer puts what it reads."""

    def add(self, table: str, batch: pa.Table | pa.RecordBatch) -> None:
        """Append rows to an event table. Columns may come in any order; absent ones become null. Never with `rank`."""

    def candidates(self, batch: pa.Table) -> None:
        """Rows that may be of `gpu_ops`, with `category` and `told` (`candidates.Candidates`), to be judged when all is there."""

    def health(
        self, code: HealthCode, severity: Severity, message: str, count: int = 1, example: str | None = None
    ) -> None:
        """Say what was met and what it means for the rules; the same code and message add up."""


@dataclass(frozen=True)
class FileFacts:
    """What a file says of itself.

    `process` is the process of the rows that were added without one (Kineto's GPU rows name a device, not a process).
    `clock_base_ns` + a table's time = nanoseconds since the epoch. `rank_source` is what told the rank, `job` what all files of one job
    say alike (`Input`). None when unknown. `several` says that the file holds several processes, so that no one rank is its own.
    `versions` are of the libraries and drivers that the recorded program ran on, by name. `traits` and `traced` are as in `Input`.
    `recorded_ns` is from when to when was recorded, in a table's time; `bounded` says that a capture range of the user's, or a cut made
    later, set these bounds.
    """

    producer: str
    process: int | None = None
    rank: int | None = None
    world_size: int | None = None
    clock_base_ns: int | None = None
    rank_source: RankSource | None = None
    job: str | None = None
    several: bool = False
    versions: Mapping[str, str] = field(default_factory=dict)
    traits: Collection[str] = ()
    traced: Collection[str] = ()
    recorded_ns: tuple[int, int] | None = None
    bounded: bool = False


class Importer(Protocol):
    """Reads one format. `format` is the name that goes into the result document."""

    format: str

    def sniff(self, source: Source) -> bool:
        """Whether the content (never the suffix) is of this format."""

    def read(self, source: Source, sink: Sink, progress: Progress) -> FileFacts:
        """Read it all. Raises InputError when nothing can be read."""
