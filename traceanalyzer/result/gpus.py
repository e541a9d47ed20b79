"""Many GPUs beside each other: how their ledgers differ, and which of them are worth a look of their own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from statistics import median

from traceanalyzer.records import dataclass
from traceanalyzer.result.document import Device, Result, Steps
from traceanalyzer.result.job import LateRank
from traceanalyzer.vocabulary.lines import (
    COMPUTE,
    EXPOSED_COMMUNICATION,
    EXPOSED_MEMCPY,
    EXPOSED_MEMSET,
    EXPOSED_TRANSFER,
    EXPOSED_WAIT,
    idle_line,
)

SIDE_BY_SIDE = 16
"""GPUs whose ledgers can still be read beside each other; of more, the spread is shown and those that differ most."""
STANDS_OUT = 0.05
"""A GPU that causes less than this share of all waiting is late as often as any other."""


@dataclass(frozen=True)
class Spread:
    """One ledger line over many GPUs: shares of their windows, and the positions of the GPUs that have least and most of it."""

    line: str
    least: float
    median: float
    most: float
    least_at: int
    most_at: int


def ledger_lines(device: Device) -> dict[str, int]:
    """The lines of a ledger, in ns, by the names that the tables give them. They add up to the window."""
    return {
        COMPUTE.name: device.compute_ns,
        EXPOSED_COMMUNICATION.name: device.exposed_communication_ns,
        EXPOSED_MEMCPY.name: device.exposed_memcpy_ns,
        EXPOSED_MEMSET.name: device.exposed_memset_ns,
        **{idle_line(cause): ns for cause, ns in device.idle_by_cause_ns.items()},
    }


def parted_lines(device: Device) -> dict[str, int]:
    """The same, with exposed communication as waiting and transfer where the GPU's is told. They add up to the window too."""
    return _parted(device) if device.exposed_wait_ns is not None else ledger_lines(device)


def lines_side_by_side(devices: Sequence[Device]) -> list[dict[str, int]]:
    """The lines of several ledgers, alike: exposed communication is parted where that is told of all GPUs that have any."""
    told = [one.exposed_wait_ns is not None or not one.exposed_communication_ns for one in devices]
    parted = all(told) and any(one.exposed_wait_ns is not None for one in devices)
    return [_parted(device) if parted else ledger_lines(device) for device in devices]


def _parted(device: Device) -> dict[str, int]:
    parts = {EXPOSED_WAIT.name: device.exposed_wait_ns or 0, EXPOSED_TRANSFER.name: device.exposed_transfer_ns or 0}
    return {
        part: amount
        for line, ns in ledger_lines(device).items()
        for part, amount in (parts if line == EXPOSED_COMMUNICATION.name else {line: ns}).items()
    }


def steps_of_gpus(result: Result) -> list[Steps | None]:
    """The steps of each of `result.devices`, which come in the same order; None without steps, and where several GPUs of one rank and
    number, as of files that do not say their ranks, have fewer steps than they are."""
    keys = [(device.rank, device.device) for device in result.devices]
    found: dict[tuple[int | None, int], list[Steps]] = {}
    for steps in result.steps:
        found.setdefault((steps.rank, steps.device), []).append(steps)
    alike = Counter(keys)
    left = {key: iter(steps) for key, steps in found.items() if len(steps) == alike[key]}
    return [next(left[key]) if key in left else None for key in keys]


def spread(devices: Sequence[Device]) -> list[Spread]:
    """Each line that any of the GPUs has, in the ledger's order. `devices` is not empty."""
    windows = [max(device.window_ns, 1) for device in devices]
    ledgers = list(zip(lines_side_by_side(devices), windows, strict=True))
    found = []
    for line in dict.fromkeys(line for lines, _ in ledgers for line in lines):
        shares = [lines.get(line, 0) / window for lines, window in ledgers]
        least, most = min(shares), max(shares)
        if most:
            found.append(Spread(line, least, median(shares), most, shares.index(least), shares.index(most)))
    return found


def late_ranks(result: Result) -> list[LateRank]:
    """Those that stand out, the one that others wait for longest first."""
    return [late for late in result.job.late_ranks if late.waited_share >= STANDS_OUT] if result.job else []


def notable_gpus(result: Result, most: int) -> list[int]:
    """Up to `most` positions in `result.devices`, ascending: late ranks, the GPU that computes least, those at the ends of each ledger
    line where they differ most, then the first ones. A late rank whose GPU cannot be told from others is left out."""
    devices = result.devices
    if len(devices) <= most:
        return list(range(len(devices)))
    keys = [(device.rank, device.device) for device in devices]
    alike = Counter[tuple[int | None, int | None]](keys)
    # GPUs of files that do not say their ranks can have one key: which of them is late is then not told.
    late = (
        keys.index((late.rank, late.device))  # type: ignore[arg-type]
        for late in late_ranks(result)
        if alike[late.rank, late.device] == 1
    )
    idlest = min(range(len(devices)), key=lambda n: devices[n].compute_ns / max(devices[n].window_ns, 1))
    wanted = chain(islice(late, (most + 1) // 2), [idlest], _ends(spread(devices)), range(len(devices)))
    return sorted(islice(dict.fromkeys(wanted), most))


def _ends(spreads: list[Spread]) -> Iterator[int]:
    for one in sorted(spreads, key=lambda one: one.least - one.most):
        yield from (one.most_at, one.least_at)
