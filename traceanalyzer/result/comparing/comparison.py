"""What a comparison of two programs came to, from captures of each. Times are integer nanoseconds per unit of work.

A change is `ratio` = new / base of the same work: 0.5 is half the time. `low` and `high` enclose it with the noise that was measured.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any

from traceanalyzer.records import dataclass
from traceanalyzer.result.written import Written
from traceanalyzer.vocabulary.levels import COULD_NOT_JUDGE

SCHEMA_VERSION = "1.0"
OUTCOMES = ("faster", "slower", "no_change", COULD_NOT_JUDGE, "figures")
DIRECTIONS = ("faster", "slower", "same", "new", "vanished")
STATES = ("fixed", "better", "same", "worse", "new", "uncovered", "unknown")


@dataclass(frozen=True)
class Side:
    """One of the two programs: its first capture's `name`, how many captures there are, what a unit is (see `Unit`) and how many were
    timed in all. `unit_ns` is the mean time of one, `samples_ns` single ones. `headline` is the verdict on the first capture."""

    name: str
    captures: int
    gpu: str | None
    gpu_count: int
    unit: str | None
    method: str | None
    unit_count: int
    unit_ns: int | None
    samples_ns: list[int]
    headline: str


@dataclass(frozen=True)
class Note:
    """What is to be known of the comparison: `about` is captures, gpu, ranks, versions, shapes, settings, work, unit or
    damage. One that
    `refuses` makes it meaningless."""

    about: str
    message: str
    refuses: bool = False


@dataclass(frozen=True)
class Change:
    """One thing on both sides, per unit. A side that does not have it has null there. `ratio` is null unless both have time on it;
    `low` and `high` are null where no noise is known. `direction` is one of DIRECTIONS: `same` is any change within the noise or too
    small to matter."""

    name: str
    base_ns: int | None
    new_ns: int | None
    change_ns: int
    ratio: float | None
    low: float | None
    high: float | None
    direction: str
    base_count: float | None = None
    new_count: float | None = None


@dataclass(frozen=True)
class ProblemChange:
    """A rule's findings on both sides, per unit; null where there are none. `state` is one of STATES: `uncovered` is one whose
    time was there before, as a smaller share or under another finding; `unknown` that the rule could not be judged on one side, and
    `reason` says so."""

    rule: str
    title: str
    state: str
    base_ns: int | None
    new_ns: int | None
    base_severity: str | None
    new_severity: str | None
    message: str
    reason: str | None = None


@dataclass(frozen=True)
class Noise:
    """How the noise was measured: `source` is steps or captures, or null where it could not be. `base` and `new` are the spread of each
    side's samples, as a share of their mean (null for a single one); `least` is the smallest change that counts at all."""

    source: str | None
    base: float | None
    new: float | None
    least: float
    level: float


@dataclass(frozen=True)
class FigureChange:
    """A figure that a kind of evidence measured, on both sides; null where one does not have it. `about` says what it is."""

    name: str
    about: str
    unit: str | None
    base: float | None
    new: float | None


@dataclass(frozen=True)
class Comparison(Written):
    """`outcome` is one of OUTCOMES, of which `figures` says that only evidence was given, which has no time to compare; `reason` says
    why nothing could be judged, else null. `step` is the change of a whole unit of work, null where it could not be compared. Of
    `lines`, which add up to it, those that neither side has are left out. `figures` are what kinds of evidence measured, `path`
    what became of the links of the critical path; those that changed too little to set the pace are left out."""

    tool: dict[str, str]
    outcome: str
    headline: str
    reason: str | None
    base: Side
    new: Side
    notes: list[Note]
    noise: Noise
    step: Change | None
    lines: list[Change]
    families: list[Change]
    kernels: list[Change]
    operators: list[Change]
    collectives: list[Change]
    problems: list[ProblemChange]
    figures: list[FigureChange] = field(default_factory=list)
    path: list[Change] = field(default_factory=list)
    schema_version: str = field(default=SCHEMA_VERSION)

    def to_dict(self) -> dict[str, Any]:
        """As of every document; without evidence nothing is said of figures, and nothing of a path that neither side has."""
        silent = {name for name in ("figures", "path") if not getattr(self, name)}
        return {name: value for name, value in super().to_dict().items() if name not in silent}
