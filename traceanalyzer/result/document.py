"""The result document: the product. Everything a person or a script reads is rendered from it.

Shares are fractions from 0 to 1, times are integer nanoseconds. `rank` is the job's rank when a file says it, else null. The same
input gives the same bytes: no clock, no random number and no machine-dependent order goes in.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any

import msgspec

from traceanalyzer.records import dataclass
from traceanalyzer.result.critical_path import CriticalPath
from traceanalyzer.result.job import Job
from traceanalyzer.result.roofline import Roofline
from traceanalyzer.result.settings import Settings
from traceanalyzer.result.written import Written
from traceanalyzer.vocabulary.levels import HIGH, INFO, LOW

SCHEMA_VERSION = "1.0"
LEAST_SPEEDUP = 1.005
"""A predicted speedup below this is none."""
TIMED = "In the steps that were timed"
"""The note on a prediction that is above the ceiling because more than its share of the time lies in those steps; no further time goes
with it."""


@dataclass(frozen=True)
class InputInfo:
    """`rank_source` is what told the rank: content, environment or name (the file's); null without one. `versions` are of the libraries
    and drivers that the program ran on, by name, as far as the file says it."""

    path: str
    sha256: str
    bytes: int
    format: str
    producer: str
    rank: int | None
    world_size: int | None
    rank_source: str | None = None
    versions: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class EvidenceInfo:
    """One file of evidence beside the traces. `rank` is that of the trace that it is placed beside, else its own where it says one.
    `placed_by` is what told whose it is; null where it was not placed, and `note` then says why. `clock` is what puts its times on the
    trace's clock (epoch, the trace's own, the kind's way, --offset), null where nothing does; `shift_ns` was added to them, and
    `clock_error_ns` is how far they may be off, null when unknown. `rows` of its tables were read."""

    kind: str
    path: str
    sha256: str
    bytes: int
    producer: str
    rank: int | None
    placed_by: str | None
    clock: str | None
    shift_ns: int | None
    clock_error_ns: int | None
    rows: int
    note: str | None = None


@dataclass(frozen=True)
class Health:
    code: str
    severity: str
    message: str
    count: int
    rank: int | None


@dataclass(frozen=True)
class OutsideWork:
    """What the host did for `ns` of the time outside of the windows; `side` is before or after. Some of these may lie in others."""

    side: str
    name: str
    ns: int


@dataclass(frozen=True)
class Recording:
    """All that one input holds, in the time of its tables: `before_ns` of it lie before the first window of its GPUs and `after_ns`
    after the last; null without GPU work. `bounded` says that a capture range of the user's, or a cut made later, set the bounds."""

    rank: int | None
    start_ns: int
    end_ns: int
    before_ns: int | None
    after_ns: int | None
    bounded: bool
    did: list[OutsideWork] = field(default_factory=list)

    @property
    def outside_share(self) -> float:
        """Share of the recording that lies in no window; 0 without GPU work."""
        length = self.end_ns - self.start_ns
        return ((self.before_ns or 0) + (self.after_ns or 0)) / length if length else 0.0


@dataclass(frozen=True)
class Device:
    """The ledger of one GPU. window = compute + exposed_communication + exposed_memcpy + exposed_memset + idle, exactly.

    A GPU that several files used at the same time is one, idle when none of them uses it: `rank` and `device` are those of the first,
    `users` is how many there are, and `ranks` are theirs as far as they are known.

    `exposed_wait_ns` + `exposed_transfer_ns` = `exposed_communication_ns`, exactly: how much of it is waiting for another rank. Both
    are null where that is not told of most of it, as of one rank alone. What has no counterpart on other ranks counts as transfer; of
    collectives that not all ranks recorded, what they take beyond the longest transfer of their kind and size, as waiting.
    """

    rank: int | None
    device: int
    name: str | None
    window_ns: int
    busy_ns: int
    compute_ns: int
    communication_ns: int
    exposed_communication_ns: int
    memcpy_ns: int
    exposed_memcpy_ns: int
    exposed_memset_ns: int
    idle_ns: int
    max_gap_ns: int
    idle_by_cause_ns: dict[str, int]
    gpu_op_count: int
    kernel_count: int
    users: int = 1
    ranks: list[int] = field(default_factory=list)
    exposed_wait_ns: int | None = None
    exposed_transfer_ns: int | None = None

    @property
    def used_by(self) -> set[int]:
        """The ranks that used it, as far as they are known."""
        return {*self.ranks, *([] if self.rank is None else [self.rank])}


@dataclass(frozen=True)
class Steps:
    """Step times on one GPU: `count` steps, times over those that have a step before them. `spread` is (p95 - median) / median.

    `slow_count` of them took much longer than the median; `outside_op_count` operations are in none, such as work queued before the
    recording began. `unprofiled_step_ns` is about what the mean step takes without the profiler, at least `unprofiled_least_ns` and at
    most `unprofiled_most_ns`; null where that cannot be told.
    """

    rank: int | None
    device: int
    count: int
    method: str
    median_ns: int
    p95_ns: int
    spread: float
    slow_count: int = 0
    outside_op_count: int = 0
    unprofiled_step_ns: int | None = None
    unprofiled_least_ns: int | None = None
    unprofiled_most_ns: int | None = None


@dataclass(frozen=True)
class Metric:
    value: int | float | str | None
    unit: str | None


@dataclass(frozen=True)
class PlaceSaving:
    """The one place that causes most of a finding's time: the ledger time behind it, and a step and a speedup without that place
    alone. `per_step_ns` and `predicted_step_ns` are null without steps, the predictions also where nothing can be predicted."""

    name: str
    ns: int
    per_step_ns: int | None
    predicted_step_ns: int | None
    predicted_speedup: float | None


@dataclass(frozen=True)
class Saving:
    """What is to be gained. `speedup_ceiling` = window / (window - recoverable); nulls mean that nothing was estimated.

    The prediction comes from replaying the timeline without the cause. `step_ns` is the mean time from one step's end to the next's,
    `predicted_step_ns` the same without the cause; both are null without steps. Where nothing is predicted, `prediction_note` says why.
    `recoverable_share` is of the windows of `gpu_count` GPUs together. `place` is null where no one place causes most of it.
    `unprofiled_step_ns` and `predicted_unprofiled_step_ns` are about what such steps take without the profiler; null where that cannot
    be told.
    `predicted_speedup_range` is what an estimate may come to, from the least to the most; null where the replay says one figure.
    """

    recoverable_ns: int | None
    recoverable_share: float | None
    speedup_ceiling: float | None
    per_step_ns: int | None
    step_ns: int | None = None
    predicted_step_ns: int | None = None
    predicted_speedup: float | None = None
    prediction_note: str | None = None
    gpu_count: int = 1
    place: PlaceSaving | None = None
    predicted_speedup_range: tuple[float, float] | None = None
    unprofiled_step_ns: int | None = None
    predicted_unprofiled_step_ns: int | None = None

    @property
    def pays(self) -> bool:
        """Whether there is something to gain: time to recover, and no replay that says that something else sets the pace."""
        return bool(self.recoverable_ns) and (self.predicted_speedup is None or self.predicted_speedup >= LEAST_SPEEDUP)

    @property
    def gain_share(self) -> float:
        """The share of the time that a fix saves: by the replay where it predicts, else what is recoverable; 0 for nothing.

        More than what is recoverable only where the note says which further time goes with it.
        """
        recoverable = self.recoverable_share or 0.0
        if not self.pays or self.predicted_speedup is None:
            return recoverable if self.pays else 0.0
        predicted = 1 - 1 / self.predicted_speedup
        return min(predicted, recoverable) if self.prediction_note in (None, TIMED) else predicted

    @property
    def gain_ns(self) -> float:
        """The same in ns, of the window of its GPU; of several GPUs, of the mean of their windows."""
        if not self.recoverable_ns or not self.recoverable_share:
            return 0.0
        return self.gain_share * self.recoverable_ns / self.recoverable_share / self.gpu_count


@dataclass(frozen=True)
class Evidence:
    """One piece of evidence of a finding. From 0 to 0 is one that has no time on the clock of a trace."""

    rank: int | None
    device: int | None
    start_ns: int
    end_ns: int
    label: str

    @property
    def has_time(self) -> bool:
        return self.start_ns != 0 or self.end_ns != 0


@dataclass(frozen=True)
class Scope:
    rank: int | None
    device: int | None


@dataclass(frozen=True)
class Source:
    """A line of the program's own code. `file` is as the profiler names it: absolute, or relative to a folder that Python imports
    from, which for most programs is the one they are started in."""

    file: str
    line: int
    function: str


@dataclass(frozen=True)
class Finding:
    """`confidence_reasons` say why the confidence is not high. `source` is the line that the message names, null without."""

    rule: str
    slug: str
    title: str
    severity: str
    confidence: str
    message: str
    scope: Scope
    metrics: dict[str, Metric]
    saving: Saving
    evidence: list[Evidence]
    recommend: list[dict[str, str]]
    references: list[str]
    confidence_reasons: list[str] = field(default_factory=list)
    source: Source | None = None

    @property
    def matters(self) -> bool:
        """Whether a reader is to see it before all else: not where it is for information only, or a low note of the trace's health."""
        if self.severity in (INFO, LOW):
            return self.severity == LOW and (self.saving.pays or self.saving.recoverable_ns is None)
        return True


@dataclass(frozen=True)
class RuleOutcome:
    """What a rule came to, and its own words, once for all of its findings: what it looks for and `why`, what would make it wrong
    (`false_positives`), `metrics`, the expression behind each metric of its findings by the metric's name, the ledger lines that it
    `claims`, and `figures`, the metrics that people are shown, with words for each; the others are steps on the way to these."""

    rule: str
    outcome: str
    reason: str | None
    title: str = ""
    why: str = ""
    false_positives: list[str] = field(default_factory=list)
    metrics: dict[str, str] = field(default_factory=dict)
    claims: list[str] = field(default_factory=list)
    figures: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Program:
    """What kind of program was recorded, as far as names tell it: `languages` it is written in, `frameworks` it is built on, whether
    much of its work is `compiled` by its framework (torch.compile), and the `vendor` of its GPU. It chooses the words of the advice."""

    languages: list[str] = field(default_factory=list)
    frameworks: list[str] = field(default_factory=list)
    compiled: bool = False
    vendor: str | None = None


@dataclass(frozen=True)
class Verdict:
    bound_by: str
    headline: str


@dataclass(frozen=True)
class Result(Written):
    tool: dict[str, str]
    inputs: list[InputInfo]
    health: list[Health]
    devices: list[Device]
    steps: list[Steps]
    findings: list[Finding]
    rules: list[RuleOutcome]
    verdict: Verdict
    job: Job | None = None
    program: Program = field(default_factory=Program)
    recordings: list[Recording] = field(default_factory=list)
    evidence: list[EvidenceInfo] = field(default_factory=list)
    roofline: list[Roofline] = field(default_factory=list)
    settings: Settings = field(default_factory=Settings)
    critical_path: CriticalPath | None = None
    schema_version: str = field(default=SCHEMA_VERSION)

    @property
    def judged(self) -> bool:
        """False when the trace has no GPU work to judge, or damage hides it (exit code 3). Evidence that was given alone needs none."""
        alone = not self.inputs and any(one.rows for one in self.evidence)
        return (alone or any(device.window_ns for device in self.devices)) and not any(
            note.severity == HIGH for note in self.health
        )

    def to_dict(self) -> dict[str, Any]:
        """As of every document; what was given without evidence says nothing of it, nor one without shapes of a roofline, or where no
        critical path can be told of that."""
        silent = {name for name in ("evidence", "roofline", "critical_path") if not getattr(self, name)}
        return {name: value for name, value in super().to_dict().items() if name not in silent}

    @classmethod
    def from_json(cls, data: bytes) -> Result:
        """Read what `to_json` wrote. Raises msgspec.ValidationError on other content."""
        return msgspec.json.decode(data, type=cls)
