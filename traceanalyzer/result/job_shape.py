"""What the result says of the shape of a job. Times are integer nanoseconds, shares are from 0 to 1; null is what cannot be told."""

from __future__ import annotations

from dataclasses import field

from traceanalyzer.records import dataclass


@dataclass(frozen=True)
class AxisTime:
    """Exposed communication for one kind of parallelism, over all GPUs: each moment counts once, for the collective that began first.

    `wait_ns` + `transfer_ns` = `exposed_ns`; both are null where most of it has no counterpart on other ranks. Shares are of all GPUs'
    windows together; what is per step is the mean over the complete steps of the GPUs that take part.
    """

    parallelism: str
    gpu_count: int
    exposed_ns: int
    wait_ns: int | None
    transfer_ns: int | None
    exposed_share: float
    wait_share: float | None
    transfer_share: float | None
    exposed_per_step_ns: int | None
    wait_per_step_ns: int | None
    transfer_per_step_ns: int | None


@dataclass(frozen=True)
class HostTime:
    """The GPUs of one host, which has a number in the order of its lowest rank and no name. `caused_wait_ns` is what all others wait
    for ranks on it; `exposed_wait_ns` what its own GPUs wait, null where that is not told of each."""

    number: int
    ranks: list[int]
    gpu_count: int
    window_ns: int
    compute_ns: int
    exposed_communication_ns: int
    exposed_wait_ns: int | None
    idle_ns: int
    caused_wait_ns: int


@dataclass(frozen=True)
class PersistentRank:
    """One GPU that causes most waiting in `led_count` of `step_count` steps of a group of ranks, of those that do not stand out;
    `chance` is the probability that noise makes so clear a pattern in any group. `waited_ns` is what others wait for it in them."""

    rank: int | None
    device: int | None
    led_count: int
    step_count: int
    waited_ns: int
    chance: float


@dataclass(frozen=True)
class Lateness:
    """Exposed waiting in collectives that match, pipelines aside, by who is behind it: the parts add up to `waited_ns`.

    Persistent is what ranks cause that are late in step after step; rare what lies in steps with far more waiting than others; jitter
    the rest, where now one rank is late and now another, as chance has it, and no rank is to blame. Untold is that of which nothing
    can be said, as of two steps. `noise_ns` is about what waiting the noise of the ranks' own step times explains, had they met once a
    step.
    """

    waited_ns: int
    persistent_ns: int
    rare_ns: int
    jitter_ns: int
    untold_ns: int
    step_count: int
    noise_ns: int | None
    ranks: list[PersistentRank] = field(default_factory=list)

    @property
    def is_jitter(self) -> bool:
        """Whether at least half of the waiting is jitter."""
        return self.jitter_ns > 0 and 2 * self.jitter_ns >= self.waited_ns


@dataclass(frozen=True)
class StageTime:
    """One GPU of a pipeline: its median complete step, and how long it computes, waits for other ranks and is idle in one."""

    rank: int | None
    device: int
    step_ns: int
    compute_ns: int
    wait_ns: int
    idle_ns: int


@dataclass(frozen=True)
class PipelineShape:
    """The stages of the pipelines. `empty_share` of their steps is waiting or idle, `wait_share` waiting; `schedule_share` is what a
    GPipe or 1F1B schedule leaves empty, (stages - 1) / (micro-batches + stages - 1), which is not the least where `interleaved`.

    `uneven` where most of the waiting is for what one of the stages computes more than the others; `balanced_step_ns` is about what a
    step would take were computing shared equally, with all else as long as it is.
    """

    stages: int | None
    micro_batches: int | None
    schedule_share: float | None
    interleaved: bool | None
    empty_share: float
    wait_share: float
    uneven: bool
    uneven_share: float
    balanced_step_ns: int
    gpus: list[StageTime]
