"""Figures of a snapshot in words, for the sentences of rules: what has several parts, or parts that may be missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from traceanalyzer.evidence.memory_snapshot.answers.owners import NO_FRAME, NOWHERE, Owners
from traceanalyzer.intervals import Array
from traceanalyzer.records import dataclass
from traceanalyzer.units import format_bytes, format_duration, format_share

NAMED = 3
"""So many places are named in a sentence."""
HOLDERS = 2
"""And so many of those who hold the peak; the section has all."""
WORTH = 0.10
"""An owner of less than this share is not named beside a larger one."""
STAYS = 0.5
"""Where at least half of the peak stays between steps, and it is known what half of that is, what stays is said."""
FOLLOWS = 1.15
"""What is reserved follows what is in use where it is at most so many times as much: blocks are rounded, and segments have a size."""


def listed(parts: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join((", ".join(parts[:-1]), parts[-1])) if len(parts) > 1 else "".join(parts)


def places(each: Sequence[str]) -> str:
    """The places of some blocks: `a.py:1 (f), 2 at a.py:2 (g) and 2 with no Python frame (backward)`, those that are known first."""
    counts = dict.fromkeys(each, 0)
    for place in each:
        counts[place] += 1
    told = [_several(place, counts[place]) for place in sorted(counts, key=lambda place: place in NOWHERE)]
    if len(told) > NAMED + 1:
        told = [*told[:NAMED], f"{len(told) - NAMED} more places"]
    return listed(told)


def _several(place: str, count: int) -> str:
    if place in NOWHERE:
        return f"{count} with {place}"
    return place if count == 1 else f"{count} at {place}"


def at_peak(owners: Owners, held: Array, alike: Callable[[int], str | None]) -> str:
    """Who has most of what is in use: `288 MiB (45%) are activations from a.py:9 (step). Another 128 MiB (20%) have no Python frame`.

    `alike` says for an owner without a place whose blocks are as large as most of his.
    """
    total = max(int(held.sum()), 1)
    order = np.argsort(-held, kind="stable")[:HOLDERS]
    first = int(held[order[0]]) if len(order) else 0
    told = [
        _owned(owners.names[i], int(held[i]), total, alike(i))
        for i in order.tolist()
        if held[i] and (held[i] == first or held[i] >= WORTH * total)
    ]
    return ". Another ".join(told)


def _owned(name: tuple[str, str | None], size: int, total: int, alike: str | None) -> str:
    place, what = name
    much = f"{format_bytes(size)} ({format_share(size / total)})"
    if place in NOWHERE:
        told = (
            f"{place.removesuffix(')')}; blocks as large as those of {alike})" if alike and place == NO_FRAME else place
        )
        return f"{much} {'have' if place.startswith('no ') else 'are'} {told}"
    return f"{much} {'are' if what else 'come'} {f'{what} ' if what else ''}from {place}"


@dataclass(frozen=True)
class Levels:
    """Memory of one GPU in bytes: `peak` and `reserved` at most, `steady` between steps and at the `end`.

    `history` says whether any was recorded, `whole` whether from the beginning of the program on, `flat` whether as much is in use
    after each step.
    """

    flat: bool
    whole: bool
    history: bool
    peak: int
    reserved: int
    steady: int
    end: int


def memory(levels: Levels, stays: Mapping[str, tuple[int, str]], holders: str) -> tuple[str, str]:
    """What is to be said of the memory of a GPU, before its name and after it. `stays` is what is in use between steps by what it is
    for, with its place; `holders` who holds most at the peak."""
    peak, follows = format_bytes(levels.peak), reserve(levels.peak, levels.reserved)
    if levels.flat:
        steady, kept = format_bytes(levels.steady), sum(size for size, _ in stays.values())
        if levels.steady >= STAYS * levels.peak and kept >= STAYS * levels.steady:
            return (
                "Memory is flat",
                f": of the {steady} in use between steps {between_steps(stays)}. The peak is {peak}. {follows}",
            )
        return (
            "Memory is flat",
            f": {steady} are in use between steps, and of the {peak} at the peak {holders}. {follows}",
        )
    if not levels.history:
        return "At the snapshot", f", of which no history was recorded, of {peak} in use {holders}. {follows}"
    known = "" if levels.whole else ", as far back as the history goes"
    return "At the peak", f"{known}, of {peak} in use {holders}. {format_bytes(levels.end)} are in use at the snapshot"


def between_steps(held: Mapping[str, tuple[int, str]]) -> str:
    """What stays: `384 MiB are optimizer state (a.py:9 (step)) and 192 MiB parameters (a.py:3 (model))`."""
    known = sorted(((size, what, place) for what, (size, place) in held.items()), reverse=True)
    told = [
        f"{format_bytes(size)} {'are ' if i == 0 else ''}{what} ({place})"
        for i, (size, what, place) in enumerate(known)
    ]
    return listed(told)


def twice(half: int, place: str) -> str:
    """What a cast to a wider type would explain."""
    return f"Each is twice as large as the {format_bytes(half)} of {place}, as a cast from 16 to 32 bits would be"


def reserve(peak: int, reserved: int) -> str:
    """What is reserved beside a peak: `Reserved memory follows the peak (882 MiB)`; less than that is no figure of it."""
    if reserved < peak:
        return "How much is reserved is not known"
    if reserved <= FOLLOWS * peak:
        return f"Reserved memory follows the peak ({format_bytes(reserved)})"
    return f"{format_bytes(reserved)} are reserved"


def unused(whole: int, pieces: int, largest: int, expandable: bool) -> str:
    """Where memory lies that is reserved but not in use, when a snapshot was taken."""
    lies = [f"{format_bytes(whole)} in whole unused segments"] if whole else []
    lies += (
        [f"{format_bytes(pieces)} in pieces of {'segments' if whole else 'segments that are in use'}"] if pieces else []
    )
    if not lies:
        return "At the snapshot nothing is unused"
    mapped = "" if expandable else "; expandable segments were off"
    return f"At the snapshot {listed(lies)} are unused, {format_bytes(largest)} of it in one piece{mapped}"


def growing(grows: int, steps: int, place: str | None) -> str:
    """How reserved memory grows while the level is flat."""
    whose = f", most of it for {place}" if place and place not in NOWHERE else ""
    return (
        f"Each of the last {steps} steps takes {format_bytes(grows)} more from the driver{whose}, "
        f"though as much is in use after each"
    )


def free_memory(unused_bytes: int, largest: int | None, device_free: int | None) -> str:
    """What was left when a request failed."""
    parts = [f"{format_bytes(unused_bytes)} were reserved but not in use"]
    if largest is not None and unused_bytes:
        parts[0] += f" ({format_bytes(largest)} in one piece)"
    if device_free is not None:
        parts.append(f"the device had {format_bytes(device_free)} free")
    return listed(parts)


def fitting(asked: int, unused_bytes: int, device_free: int | None) -> str:
    """Whether a request that failed would have fitted had all that was free been in one piece."""
    if device_free is not None and asked <= device_free:
        return (
            "The device had as much free: something else set a limit (set_per_process_memory_fraction), or another "
            "process had it meanwhile"
        )
    free = unused_bytes + (device_free or 0)
    if unused_bytes and asked <= free:
        return "Without fragmentation it would have fitted"
    missing = f"{format_bytes(asked - free)} were missing"
    return (
        f"It would not have fitted without fragmentation either: {missing}"
        if unused_bytes
        else missing[:1].upper() + missing[1:]
    )


def waits(idle: int) -> str:
    """How long the GPU is idle around calls of the driver, in ns."""
    return f"the GPU is idle for {format_duration(idle)} around them"
