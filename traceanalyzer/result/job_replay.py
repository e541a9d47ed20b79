"""What the result says of the job played again as one timeline. Times are integer nanoseconds."""

from __future__ import annotations

from traceanalyzer.records import dataclass


@dataclass(frozen=True)
class WithoutGpu:
    """A step of the other GPUs had nobody ever waited for this one."""

    rank: int | None
    device: int
    step_ns: int


@dataclass(frozen=True)
class JobReplay:
    """All ranks played again together: each goes on by itself but for collectives, which begin when the last rank comes to them and
    last as long as the transfer.

    `step_ns` is a step of the job as it was recorded, that of the rank whose steps take longest, the mean from one end to the next;
    without two steps (not `per_step`) the longest window. `error` is how far off it is played as it was, as a share of the median step.
    The rest is what it would be: `without` one of the GPUs that others waited for longest, with equal work for all ranks of a group
    (`balanced_step_ns`; null where that cannot be played), had no GPU waited for a transfer (`overlapped_step_ns`, the most that
    overlap can give), and had each transfer taken half its time (`half_volume_step_ns`).
    """

    step_ns: int
    per_step: bool
    error: float
    without: list[WithoutGpu]
    balanced_step_ns: int | None
    overlapped_step_ns: int | None
    half_volume_step_ns: int | None
