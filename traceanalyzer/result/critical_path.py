"""What sets the length of a step, in the result document: the links of the critical path. Times are integer nanoseconds."""

from __future__ import annotations

from dataclasses import field

from traceanalyzer.records import dataclass

TRANSFER = "transfer"
"""The kind of what lies between GPUs."""


@dataclass(frozen=True)
class PathLink:
    """All stretches of the path that are of one kind and name, on one GPU and its host.

    `kind` is a line of the ledger or, for what a GPU waits for, its cause without "idle."; or `transfer`, a collective from its last
    arrival to its end, which is on no single GPU (`rank` and `device` null). `name` is null where nothing tells one, or for all others
    of a kind together. `ns` is their length in all steps, `deviation_ns` the standard deviation of that from step to step (null for a
    single one). `gain_ns` is how much shorter all steps together would be without them, until the next path takes over; null where
    that was not played again.
    """

    rank: int | None
    device: int | None
    kind: str
    name: str | None
    ns: int
    gain_ns: int | None = None
    deviation_ns: int | None = None


@dataclass(frozen=True)
class PathKind:
    """The part of the path of one kind on one GPU and its host, in all steps."""

    rank: int | None
    device: int | None
    kind: str
    ns: int


@dataclass(frozen=True)
class CriticalPath:
    """The chain of work and waiting that set the length of each of `step_count` steps, from the end of the step before to its own; 0
    for one of the whole window, where no steps are known. `ns` is its length in all steps, to which `kinds` add up, and `links` with
    the `left_ns` of `left` more."""

    step_count: int
    ns: int
    kinds: list[PathKind]
    links: list[PathLink] = field(default_factory=list)
    left: int = 0
    left_ns: int = 0
