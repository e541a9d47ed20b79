"""Whose a file of evidence is: told by its rank, its process, its GPU or its time, and never guessed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traceanalyzer.records import dataclass

_APART_NS = 60_000_000_000
"""A file whose rank or process is that of a trace was recorded at another time when no less lies between them."""

_QUARTER_NS = 15 * 60 * 1_000_000_000
_ZONES = frozenset([*range(-48, 57, 4), -38, -14, -10, 14, 18, 22, 23, 26, 35, 38, 42, 51, 55])
"""By how many quarters of an hour the time zones in use (IANA, 2025, with summer time) are ahead of UTC."""


@dataclass(frozen=True)
class Whereabouts:
    """What a trace or a file of evidence says of where and when it was recorded; None or empty where it is silent.

    `epoch_ns` is from when to when, in nanoseconds since the epoch, `local_ns` the same by a wall clock of an unknown time zone, as if
    that were UTC. `gpus` are UUIDs, of a trace those that its work ran on.
    """

    rank: int | None = None
    hosts: frozenset[str] = frozenset()
    pids: frozenset[int] = frozenset()
    gpus: frozenset[str] = frozenset()
    epoch_ns: tuple[int, int] | None = None
    local_ns: tuple[int, int] | None = None


def place(own: Whereabouts, parts: Sequence[Whereabouts]) -> int | None:
    """The position of the only part that `own` can be of, by what both say: rank, else process and host, else GPU, else time.

    None where nothing tells, several parts would do, or what one mark says another contradicts.
    """
    possible = [at for at, part in enumerate(parts) if not contradiction(own, part)]
    for agree in (_same_rank, _same_process, _same_gpu, _same_time):
        told = [at for at in possible if agree(own, parts[at])]
        if len(told) == 1:
            return told[0]
        possible = told or possible
    return None


def places(own: Whereabouts, parts: Sequence[Whereabouts]) -> list[int]:
    """The positions of all parts that `own` is of, as the log of a node is of all its ranks: which share what tells most of what it
    shares with any of them, and are contradicted by nothing."""
    possible = [at for at, part in enumerate(parts) if not contradiction(own, part)]
    for agree in (_same_rank, _same_process, _same_gpu, _same_time):
        if told := [at for at in possible if agree(own, parts[at])]:
            return told
    return []


def marks_shared(own: Whereabouts, part: Whereabouts, else_by: str = "what its kind knows of it") -> str:
    """What the file and the part have in common, in words; `else_by` where these marks tell nothing."""
    return ", ".join(_shared(own, part)) or else_by


def why_not(own: Whereabouts, parts: Sequence[Whereabouts]) -> str:
    """Why `place` gives none, in words that follow a colon."""
    against = [words for part in parts if (words := contradiction(own, part))]
    if len(against) == len(parts):
        return against[0] if len(set(against)) == 1 else "what it says of itself fits none of the traces"
    if any(any(_shared(own, part)) for part in parts):
        return "it may be of several of the traces, and nothing it says tells them apart"
    if own.local_ns and any(part.epoch_ns for part in parts):
        return (
            "its times are local ones, and no time zone, or more than one, makes it overlap with a trace; "
            "say with --offset what to add for UTC"
        )
    if any(own.epoch_ns and part.epoch_ns for part in parts):
        return "it was recorded at another time than the traces, and nothing else tells whose it is"
    return "nothing that it says of itself, neither rank, process, GPU nor time, is also told by a trace"


def contradiction(own: Whereabouts, part: Whereabouts) -> str | None:
    """What keeps the file from being of the part; None without."""
    if own.rank is not None and part.rank is not None and own.rank != part.rank:
        return f"it is of rank {own.rank}, of which there is no trace"
    if own.hosts and part.hosts and not own.hosts & part.hosts:
        return "it was recorded on another host"
    if own.pids and part.pids and own.hosts & part.hosts and not own.pids & part.pids:
        return "it was recorded of another process"
    if own.gpus and part.gpus and not own.gpus & part.gpus:
        return "it was recorded of another GPU"
    if own.epoch_ns and part.epoch_ns and _between(own.epoch_ns, part.epoch_ns) >= _APART_NS:
        return "it was recorded at another time"
    return None


def _shared(own: Whereabouts, part: Whereabouts) -> Iterator[str]:
    if _same_rank(own, part):
        yield "rank"
    if _same_process(own, part):
        yield "process and host"
    if _same_gpu(own, part):
        yield "GPU"
    if _same_time(own, part):
        yield "overlap in time"


def _same_rank(own: Whereabouts, part: Whereabouts) -> bool:
    return own.rank is not None and own.rank == part.rank


def _same_process(own: Whereabouts, part: Whereabouts) -> bool:
    return bool(own.pids & part.pids and own.hosts & part.hosts)


def _same_gpu(own: Whereabouts, part: Whereabouts) -> bool:
    return bool(own.gpus & part.gpus)


def _same_time(own: Whereabouts, part: Whereabouts) -> bool:
    if own.local_ns and part.epoch_ns:
        return zone_shift(own.local_ns, part.epoch_ns) is not None
    return bool(own.epoch_ns and part.epoch_ns and _between(own.epoch_ns, part.epoch_ns) <= 0)


def zone_shift(local: tuple[int, int], epoch: tuple[int, int]) -> int | None:
    """What to add to times of a wall clock, in ns, so that they overlap with a span since the epoch, as the time zones in use
    differ from UTC. None where none of them does that, or more than one."""
    shifts = [-zone * _QUARTER_NS for zone in _ZONES]
    fits = [one for one in shifts if _between((local[0] + one, local[1] + one), epoch) <= 0]
    return fits[0] if len(fits) == 1 else None


def _between(one: tuple[int, int], other: tuple[int, int]) -> int:
    """From the end of the earlier to the start of the later, in ns; 0 or less where they overlap."""
    return max(one[0], other[0]) - min(one[1], other[1])
