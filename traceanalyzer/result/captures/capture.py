"""What is compared of a capture: the work of one step, with what it took and how much that varies.

A capture is one run under the profiler: a file, or the files of a job's ranks. Two captures have different lengths, so everything here
is per unit of work, a step where steps can be told. Times are integer nanoseconds per unit, the mean over the capture's GPUs.

A baseline is one capture, or several of the same program, in a file that is small, kept in git and readable in a diff.
"""

from __future__ import annotations

from dataclasses import field
from typing import Annotated

from msgspec import Meta

from traceanalyzer.records import dataclass
from traceanalyzer.result.settings import Settings

SCHEMA_VERSION = "1.0"
MOST_SAMPLES, MOST_NAMES, MOST_SHAPES = 100, 300, 40
"""Samples of a time, names of a list of work and shapes that are kept."""
UNITS = ("step", "repetition", "capture")
"""What a unit of work is, from the surest: a marked step; once through the sequence of kernels that repeats; all that was recorded."""

Ns = Annotated[int, Meta(ge=0, le=10**18)]
"""A time; a longer one than thirty years was never measured."""
Count = Annotated[float, Meta(ge=0, le=10**18)]
Severity = Annotated[str, Meta(pattern="^(info|low|medium|high)$")]


@dataclass(frozen=True)
class Samples:
    """`mean_ns` over all units; `samples_ns` are single units in order of time, at most `MOST_SAMPLES` of them, evenly chosen."""

    mean_ns: Ns
    samples_ns: list[Ns]


@dataclass(frozen=True)
class Unit:
    """`kind` is one of UNITS, `method` how steps were found (annotation, nvtx, repetition). `count` units were timed; one that begins
    before the recording or does not end in it is not. `first_ns` is the first unit where
    that was not timed, because it warms up or its beginning was not recorded: it is no shorter than its own operations; else null.
    """

    kind: str
    method: str | None
    count: Annotated[int, Meta(ge=1)]
    time: Samples
    first_ns: Ns | None
    kernels: Count
    """Kernels per unit on one GPU."""


@dataclass(frozen=True)
class Work:
    """Operations of one name per unit on one GPU: how many, their time added up, and the standard deviation of that from unit to unit
    (null for a single one)."""

    name: str
    count: Count
    ns: Ns
    deviation_ns: Ns | None


@dataclass(frozen=True)
class Shape:
    """Input shapes of an operator, as recorded, and how often per unit it has them."""

    operator: str
    shapes: str
    count: Count


@dataclass(frozen=True)
class Problem:
    """One rule's findings. `ns` is what they account for per unit, the mean over all GPUs; null where a rule claims nothing. `lines`
    are the ledger lines it claims; `message` that of the largest finding, `where` the GPU that it is about."""

    rule: str
    title: str
    severity: Severity
    confidence: str
    ns: Ns | None
    lines: list[str]
    where: str
    message: str


@dataclass(frozen=True)
class Value:
    """A figure to hold a budget against. `unit` is ns, share, count or null; `where` names the GPU it is worst on, null for one GPU."""

    value: float
    unit: str | None
    where: str | None = None


@dataclass(frozen=True)
class Capture:
    """`name` is that of the file or folder. `gpus` are the models by rank and device, null where not recorded. `versions` are of what
    wrote the trace and what it ran on, by name. `damage` says what hides part of the run, and `unjudged` why nothing can be said at
    all; null when sound. `outcomes` are those of all rules. `lines` add up to `unit.time`. `settings` is what is not judged as
    shipped; null in a file that was saved before captures said that.
    """

    name: str
    format: str
    gpus: list[str | None]
    world_size: int | None
    ranks: list[int]
    versions: dict[str, str]
    damage: list[str]
    unjudged: str | None
    headline: str
    metrics: dict[str, Value]
    unit: Unit | None
    no_unit: str | None
    """Why there is no unit of work; null when there is one."""
    lines: dict[str, Samples]
    families: list[Work]
    kernels: list[Work]
    operators: list[Work]
    collectives: list[Work]
    shapes: list[Shape]
    problems: list[Problem]
    outcomes: dict[str, str]
    reasons: dict[str, str]
    settings: Settings | None = None
    path: list[Work] = field(default_factory=list)
    """The links of the critical path per step, by whose and what they are; their times add up to it."""


@dataclass(frozen=True)
class Baseline:
    """The file. `tool` as in the result document."""

    tool: dict[str, str]
    captures: list[Capture]
    schema_version: str = field(default=SCHEMA_VERSION)
