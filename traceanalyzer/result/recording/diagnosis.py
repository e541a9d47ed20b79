"""What `doctor` says of trace files: plain data, which text and JSON are rendered from.

Times are integer nanoseconds, sizes bytes. The JSON has the keys of these classes, in their order. Null means: not known, or the file
does not say. The same inputs give the same bytes.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any, Literal

from traceanalyzer.records import dataclass
from traceanalyzer.result.document import Program
from traceanalyzer.result.written import Written

SCHEMA_VERSION = "1.0"
OptionalFact = Literal["operator_links", "shapes", "python_stacks"]
"""What recordings of some formats may hold and others never do."""


@dataclass(frozen=True)
class FileFacts:
    """Where one recording came from.

    `container` is how the bytes are wrapped: plain, gzip, zstd, xz, bzip2, zip, tar, pipe, or store. `first_event_utc` is ISO 8601,
    null when the file's clock has no known base. `span_ns` runs from the first event to the end of the last; null without timed events.
    """

    path: str
    bytes: int
    container: str
    format: str
    producer: str
    rank: int | None
    world_size: int | None
    first_event_utc: str | None
    span_ns: int | None


@dataclass(frozen=True)
class GpuWork:
    """How many operations of each kind one GPU ran. `communication` counts kernels too; `graphs` are CUDA graphs recorded as a whole;
    `set_aside` are those of all kinds whose times cannot be. `device` is null where the file names none."""

    device: int | None
    name: str | None
    kernels: int
    communication: int
    copies: int
    memsets: int
    graphs: int
    set_aside: int


@dataclass(frozen=True)
class Contents:
    """How much of what a recording holds, in rows.

    Of `gpu_operations` (those with possible times, on a known GPU), `launch_recorded` have the API call that started them. Of
    the rest, `migrations` of unified memory have no such call, `queued_before` were queued before recording began, and for the
    others the file gives no reason. `linked_to_operator` carry the id of their operator. `graph_kernels` are kernels inside
    CUDA graphs, recorded one by one; `captured_launches` were only recorded into such a graph, which runs nothing. `shapes` are
    operators with input shapes. `unused_gpus` are described, but nothing ran on them. `step_method` is annotation, nvtx or
    repetition, `first_step` the name of the first. `framework` is pytorch, jax or null, `program` says more; `traced` are the kinds of
    events that the profiler was told to record or did, as it calls them. `cpu_samples` are stacks of host threads,
    `thread_runs` stretches in which the system ran one, `page_faults` those on managed memory.
    """

    gpus: list[GpuWork]
    unused_gpus: int
    gpu_operations: int
    launch_recorded: int
    migrations: int
    queued_before: int
    linked_to_operator: int
    graph_kernels: int
    captured_launches: int
    api_calls: dict[str, int]
    host_ranges: dict[str, int]
    shapes: int
    processes: int
    threads: int
    steps: int
    step_method: str | None
    first_step: str | None
    collectives: int
    counters: dict[str, int]
    memory_events: int
    framework: str | None
    program: Program = field(default_factory=Program)
    traced: list[str] = field(default_factory=list)
    cpu_samples: int = 0
    thread_runs: int = 0
    page_faults: int = 0

    @property
    def communication(self) -> int:
        """Communication kernels on all GPUs."""
        return sum(gpu.communication for gpu in self.gpus)

    @property
    def graphs(self) -> int:
        """CUDA graphs recorded as a whole, on all GPUs."""
        return sum(gpu.graphs for gpu in self.gpus)


@dataclass(frozen=True)
class HealthNote:
    """One kind of thing that was met while reading, how often, and the first example."""

    code: str
    severity: str
    message: str
    count: int
    example: str | None


@dataclass(frozen=True)
class Obstacle:
    """Rules that have nothing to judge, or cannot, for one reason. `settings` names what would help, the likeliest first; `none_ran` is
    true where the program did nothing of the kind, so that no setting can help."""

    outcome: str
    reason: str
    rules: list[str]
    settings: list[str]
    none_ran: bool


@dataclass(frozen=True)
class RuleCheck:
    """How many rules there are, and how many of them this recording lets judge."""

    total: int
    judged: int
    obstacles: list[Obstacle]


@dataclass(frozen=True)
class Setting:
    """Something to switch on next time: what to write, what it gives, what it costs, what to mind (null: nothing), and the rules that
    could not judge without it."""

    name: str
    option: str
    gives: str
    cost: str
    mind: str | None
    needed_by: list[str]


@dataclass(frozen=True)
class Snippet:
    """Code or commands to paste. `language` is python, julia, fortran, cpp or shell; `text` has no newline at its end."""

    title: str
    language: str
    text: str


@dataclass(frozen=True)
class NextTime:
    """What to record next time; both lists are empty when nothing is missing."""

    settings: list[Setting]
    snippets: list[Snippet]


@dataclass(frozen=True)
class Recording:
    """All about one file. `could_not_judge` says in one sentence why no verdict is possible, null when one is."""

    file: FileFacts
    contents: Contents
    health: list[HealthNote]
    rules: RuleCheck
    could_not_judge: str | None
    next_time: NextTime
    tables: dict[str, int] = field(default_factory=dict)
    """Of evidence: the rows of its tables, by name; empty for a trace."""
    optional: tuple[OptionalFact, ...] = ()
    """What its format may hold, to be named where it is absent too; not part of the JSON."""


@dataclass(frozen=True)
class Duplicate:
    """Several files where one is enough: `what` they share is "rank N" or "content"."""

    what: str
    paths: list[str]


@dataclass(frozen=True)
class Job:
    """All recordings together. `missing_ranks` counts the ranks of the job without a file, `first_missing` names up to eight."""

    recordings: int
    ranks: list[int]
    without_rank: int
    world_size: int | None
    missing_ranks: int
    first_missing: list[int]
    duplicates: list[Duplicate]
    evidence: int = 0
    """Files of evidence, which are no recordings of ranks."""


@dataclass(frozen=True)
class Diagnosis(Written):
    """The document."""

    tool: dict[str, str]
    job: Job
    recordings: list[Recording]
    schema_version: str = SCHEMA_VERSION

    def to_dict(self) -> dict[str, Any]:
        """As of every document; without evidence nothing is said of it."""
        body = super().to_dict()
        for recording in body["recordings"]:
            del recording["optional"]
        if not self.job.evidence:
            del body["job"]["evidence"]
            for recording in body["recordings"]:
                del recording["tables"]
        return body

    @property
    def can_judge(self) -> bool:
        """Whether every recording lets a verdict be reached."""
        return all(recording.could_not_judge is None for recording in self.recordings)
