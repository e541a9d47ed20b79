"""What the result says of a job as a whole: its ranks beside each other. Times are integer nanoseconds, shares are from 0 to 1."""

from __future__ import annotations

from dataclasses import field

from traceanalyzer.records import dataclass
from traceanalyzer.result.job_replay import JobReplay
from traceanalyzer.result.job_shape import AxisTime, HostTime, Lateness, PipelineShape


@dataclass(frozen=True)
class Parallelism:
    """One way in which the ranks work together, such as "tensor parallel" in two groups of two."""

    kind: str
    group_size: int | None
    group_count: int
    collectives: list[str]
    bytes_per_step: int | None


@dataclass(frozen=True)
class Clock:
    """How far a rank's clock is ahead of the median rank's, told from the ends of shared collectives, and what that leaves unexplained:
    the median distance between these ends. `collective_count` of its kernels have counterparts; without any there is no residual.
    Where no other clock could be compared with it there is no offset either.
    """

    rank: int | None
    offset_ns: int | None
    residual_ns: int | None
    collective_count: int


@dataclass(frozen=True)
class RankSteps:
    """One GPU's row of the step matrix; null where it has no such step. `wait_ns` is the part of a step spent waiting, `lines_ns` that
    on lines of the ledger, by their names."""

    rank: int | None
    device: int
    step_ns: list[int | None]
    wait_ns: list[int | None]
    lines_ns: dict[str, list[int | None]] = field(default_factory=dict)


@dataclass(frozen=True)
class StepMatrix:
    """Step times, one column a step (`names`, in order of time) and one row a GPU.

    Rows have the ledger's lines on which GPUs and steps differ most, as many as a result holds; `lines_left` have time in steps, too,
    but are left out.
    """

    names: list[str]
    rows: list[RankSteps]
    lines_left: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class LateRank:
    """One GPU that came last to collectives: to how many of those that matched, how late, and why.

    `line` is the ledger line on which it spends most time a step beyond the median GPU or, where nothing stands out, on which it was
    while others waited; `doing` is what took most of that, and `why` says it in words, to follow "rank 2". `waited_ns` is what all
    others waited for it with nothing else to do, `waited_share` its part of all such waiting.
    """

    rank: int | None
    device: int | None
    late_count: int
    collective_count: int
    waited_ns: int
    waited_share: float
    median_late_ns: int
    max_late_ns: int
    line: str | None
    doing: str | None
    why: str | None


@dataclass(frozen=True)
class CollectiveStats:
    """Collectives of one kind, group size and message size over all ranks. `count` counts collectives, not their parts on each rank.

    Times are medians of one part, but for `total_ns`, `exposed_ns` and `wait_ns`, which add up all parts. Bandwidths are GB/s at the
    median transfer: algorithm = size / time, bus = that times the factor of the kind. `wait_ns` is null where no waiting is
    told; then bandwidths are lower bounds, because they count waiting as transfer. `at_least`: so they are, and the wait as well,
    because ranks of the group are not there.
    """

    kind: str
    parallelism: str | None
    group_size: int | None
    bytes: int | None
    count: int
    total_ns: int
    exposed_ns: int
    wait_ns: int | None
    median_ns: int
    median_transfer_ns: int | None
    algorithm_bandwidth: float | None
    bus_bandwidth: float | None
    at_least: bool = False


@dataclass(frozen=True)
class Job:
    """`world_size` is null when no file says it; `ranks` are those that files say.

    `matched_share` is the share of the communication time that all ranks of its groups recorded, as far as they are there, whose parts
    on all these ranks were found; null without such time. Below half of it nobody is said to be late. `outside_share` is the share of
    all communication time that lies outside of that: another rank did not record then, or not at all. Of `untold_share` the parts were
    found but not who waited: it is the first that ranks did together. `at_least`: ranks of some groups are not there, so that waiting
    is a lower bound.

    `collectives` are the kinds and sizes with most exposed time; `collectives_left` more are not listed, whose exposed time adds up to
    `collectives_left_exposed_ns`. `replay` is null where nothing matched.

    `axes` are the kinds of parallelism by the time lost to each, `hosts` those that GPUs ran on, empty where that is not known of all
    or it is one; `lateness` says whether waiting is anyone's doing, `pipeline` how stages compare; null where nothing is to be told.
    """

    world_size: int | None
    ranks: list[int]
    missing_ranks: list[int]
    doubled_ranks: list[int]
    gpu_count: int
    matched_share: float | None
    parallelism: list[Parallelism]
    clocks: list[Clock]
    steps: StepMatrix
    late_ranks: list[LateRank]
    collectives: list[CollectiveStats]
    collectives_left: int = 0
    collectives_left_exposed_ns: int = 0
    outside_share: float = 0.0
    untold_share: float = 0.0
    at_least: bool = False
    replay: JobReplay | None = None
    axes: list[AxisTime] = field(default_factory=list)
    hosts: list[HostTime] = field(default_factory=list)
    lateness: Lateness | None = None
    pipeline: PipelineShape | None = None
