"""What a kind of file is, what an importer of traces is given, and what it hands on.

An importer knows one format and nothing else: it turns one source into batches of event tables (`traceanalyzer.model.schema`, without
the `rank` column, which the pipeline adds once it knows who is who) and says what it met in `Sink.health`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from traceanalyzer.ingest.bytes.kinds import Conversion
from traceanalyzer.ingest.bytes.source import Source
from traceanalyzer.model.schema import TableSpec
from traceanalyzer.model.trace import Clock, RankSource, Role
from traceanalyzer.records import dataclass
from traceanalyzer.vocabulary.health import HealthCode
from traceanalyzer.vocabulary.levels import Severity

if TYPE_CHECKING:
    from traceanalyzer.result.recording.diagnosis import Contents, OptionalFact
    from traceanalyzer.result.recording.ways import Ways

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


@dataclass(frozen=True, kw_only=True)
class Marks(FileFacts):
    """What a file of evidence says of itself, and so whose it is; None or empty where it is silent.

    `pids` are of the operating system, `gpus` UUIDs. `clock` says what its times count from: as its trace's do, nanoseconds since the
    epoch less `clock_base_ns`, the same by a wall clock whose time zone the file does not name ("local"), or nothing that others share.
    `clock_error_ns` is how far that clock may be off, None where unknown.
    """

    producer: str = ""
    host: str | None = None
    pids: Collection[int] = ()
    gpus: Collection[str] = ()
    clock: Clock = "none"
    clock_error_ns: int | None = None


class Kind(Protocol):
    """One kind of file that is read: a format of traces, or a kind of evidence beside them.

    `name` goes into the result document; `about` is what such a file is, for a sentence, and `told` what its content is known by. Of
    the kinds that know a file for certain (`sniff`) the one of the highest `priority` reads it; no two have the same. `suffixes` are
    what such files are called like: the content decides, and names only say which files are worth unpacking or fetching. `tables` are
    those that it brings along, beside the event tables.
    """

    name: str
    about: str
    told: str
    role: Role
    priority: int
    suffixes: Sequence[str]
    tables: Sequence[TableSpec]

    def sniff(self, source: Source) -> bool:
        """Whether the content (never the suffix) is of this kind, for certain. Of most files `source.head` tells."""
        ...

    def read(self, source: Source, sink: Sink, progress: Progress) -> FileFacts:
        """Read it all. Raises InputError when nothing can be read."""
        ...


class Format(Kind):
    """One format of traces.

    `about` is what such a file is, and `record` how to get one, both for a sentence: "an Nsight Systems SQLite export", "run nsys
    export --type sqlite". A file called as one of `suffixes` whose content is of no format at all stops the reading of its folder, so
    that no rank is lost silently, unless `may_be_others` says that much else is called so. `optional` are facts that its recordings
    may hold, which `doctor` names where they are absent too. `any_program` says that its profiler records any program that
    uses a GPU, so that it is what to take where another profiler does not record enough. `recorded_with` tells, by the table that
    lacks rows (`model.derived.Needs`), how its profiler records them, where that is news to many.
    """

    role: Role = "trace"
    about: str
    told: str = ""
    record: str
    suffixes: Sequence[str] = ()
    tables: Sequence[TableSpec] = ()
    may_be_others: bool = False
    conversion: Conversion | None = None
    optional: Collection[OptionalFact] = ()
    any_program: bool = False
    recorded_with: Mapping[str, str] = {}

    def tries(self, source: Source, named: bool) -> bool:
        """Whether a file that no kind knows for certain is worth reading as this format, all the same: one that the user `named`, or
        one of a folder."""
        return False

    def vouches(self, source: Source) -> bool:
        """Whether a file that no kind knows for certain holds what stands in none but this format's, so that it is nothing foreign."""
        return False

    def ways(self, held: Contents, producer: str) -> Ways:
        """How the profiler that wrote a recording, of which it says `producer`, records what, for `doctor`."""
        from traceanalyzer.result.recording.ways import Ways

        return Ways()
