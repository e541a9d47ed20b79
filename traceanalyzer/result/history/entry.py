"""One capture in a history: what of it is followed over time. The capture itself lies beside it, for whoever compares two of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from statistics import stdev

from traceanalyzer.records import dataclass
from traceanalyzer.result.captures.capture import Capture, Problem, Work
from traceanalyzer.result.settings import Settings
from traceanalyzer.vocabulary.levels import JUDGED

LABELS = ("commit", "branch", "project", "config", "host")
"""Labels that mean something here; a user may add others. `commit` and `branch` say which program ran, `project` and `config` what
for and how: captures that have them alike are one series. `host` is the machine."""
SERIES = ("project", "config")
MOST_KERNELS = 40
"""Kernels that are followed by name, those with most time first."""


@dataclass(frozen=True)
class Followed:
    """One rule's findings in a capture, as `Problem` has them."""

    rule: str
    title: str
    severity: str
    ns: int | None


@dataclass(frozen=True)
class Part:
    """What part of a unit some work of one name is: how often per unit on one GPU, and its time."""

    name: str
    count: float
    ns: int


@dataclass(frozen=True)
class Pace:
    """A GPU: its UUID, null where not recorded, and its number in the program, null where the capture has several of that number.
    `ratio` is what it takes for kernels that other GPUs of the capture run too, over what the middle one of its model takes for
    them; null where there are none, or too few."""

    uuid: str | None
    device: int | None
    ratio: float | None


@dataclass(frozen=True)
class Entry:
    """`id` stands for the content of the capture: the same one is in a history once. `time_ns` is when it was recorded, in ns since
    1970 (UTC). `report` is the place of its report, relative to the history or a URL; null without one. `unit_ns` is the mean time
    of a unit of work and `deviation_ns` how much that varies within the capture, null where one unit tells nothing; all null where
    nothing could be judged, which `unjudged` says then. `gpu_ns` is the GPU time that was recorded: the windows of all GPUs
    together. `settings` are thresholds that are not as shipped, in words. What else is here, is as in `Capture`.
    """

    id: str
    name: str
    time_ns: int
    labels: dict[str, str]
    tool: str
    format: str
    gpus: list[str]
    gpu_count: int
    world_size: int | None
    versions: dict[str, str]
    settings: dict[str, str]
    headline: str
    unjudged: str | None
    damage: list[str]
    unit: str | None
    method: str | None
    unit_count: int
    unit_ns: int | None
    deviation_ns: int | None
    launched: float | None
    """Kernels per unit on one GPU."""
    gpu_ns: int
    lines: dict[str, int]
    families: list[Part]
    kernels: list[Part]
    findings: list[Followed]
    judged: list[str]
    """Rules that were judged: what they did not find was not there."""
    figures: dict[str, float]
    report: str | None = None
    paces: list[Pace] = field(default_factory=list)
    schema_version: str = field(default="1.0")


def entry_of(
    capture: Capture,
    *,
    id: str,
    time_ns: int,
    labels: Mapping[str, str],
    tool: str,
    gpu_ns: int,
    report: str | None = None,
    paces: Sequence[Pace] = (),
) -> Entry:
    """What is followed of a capture."""
    time = capture.unit.time if capture.unit else None
    return Entry(
        id=id,
        name=capture.name,
        time_ns=time_ns,
        labels=dict(sorted(labels.items())),
        tool=tool,
        format=capture.format,
        gpus=sorted({gpu for gpu in capture.gpus if gpu}),
        gpu_count=len(capture.gpus),
        world_size=capture.world_size,
        versions=dict(sorted(capture.versions.items())),
        settings=(capture.settings or Settings()).said(),
        headline=capture.headline,
        unjudged=capture.unjudged or capture.no_unit,
        damage=capture.damage,
        unit=capture.unit.kind if capture.unit else None,
        method=capture.unit.method if capture.unit else None,
        unit_count=capture.unit.count if capture.unit else 0,
        unit_ns=time.mean_ns if time else None,
        deviation_ns=round(stdev(time.samples_ns)) if time and len(time.samples_ns) > 1 else None,
        launched=capture.unit.kernels if capture.unit else None,
        gpu_ns=gpu_ns,
        lines={line: samples.mean_ns for line, samples in capture.lines.items()},
        families=_parts(capture.families),
        kernels=_parts(capture.kernels[:MOST_KERNELS]),
        findings=[_followed(one) for one in capture.problems],
        judged=sorted(rule for rule, outcome in capture.outcomes.items() if outcome in JUDGED),
        figures={
            name: value.value
            for name, value in sorted(capture.metrics.items())
            if name.partition(".")[0] not in capture.outcomes
        },
        report=report,
        paces=list(paces),
    )


def _parts(work: Iterable[Work]) -> list[Part]:
    return [Part(one.name, one.count, one.ns) for one in work]


def _followed(problem: Problem) -> Followed:
    return Followed(problem.rule, problem.title, problem.severity, problem.ns)
