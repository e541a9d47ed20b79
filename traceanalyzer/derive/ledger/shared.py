"""GPUs that several files used at the same time, such as ranks on one GPU: one ledger, of which each file has its portion.

The window is that of all files together. What any of them runs is busy, once; a stretch in which none runs anything belongs to the file
whose operation ends it, and one at the end of the window to the file that ran last. So the portions of all tile the window exactly.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from traceanalyzer.columns.frames import Key
from traceanalyzer.derive.ledger.busy import Busy
from traceanalyzer.intervals import Array, Spans, complement, intersect, join, subtract, total
from traceanalyzer.records import dataclass

Span = tuple[int, int]
KINDS = ("compute", "communication", "memcpy", "memset")


@dataclass(frozen=True)
class Use:
    """What one file holds of one GPU, in the file's own time in ns: its `window` there, all that was `recorded`, and what ran."""

    window: Span
    recorded: Span
    busy: Busy

    def moved(self, by: int) -> Use:
        """The same by a clock that counts from `by` ns earlier."""
        unions = (getattr(self.busy, kind) for kind in KINDS)
        busy = Busy(*((start + by, end + by) for start, end in unions))
        window, recorded = ((start + by, end + by) for start, end in (self.window, self.recorded))
        return Use(window, recorded, busy)


@dataclass(frozen=True)
class Portion:
    """What one file has of a shared GPU's ledger, in the file's own time in ns: the `window` of all files together, the busy `lines` by
    name, and the `idle` stretches that it ended."""

    window: Span
    lines: dict[str, Spans]
    idle: Spans


@dataclass(frozen=True)
class SharedGpu:
    """The figures of one GPU in ns that are not the sum of its users' (ordinal, device): unions of what all of them ran."""

    users: tuple[Key, ...]
    window: int
    busy: int
    compute: int
    communication: int
    memcpy: int
    max_gap: int


def common_share(uses: Mapping[Key, Use]) -> float:
    """Of the window of all files together, by one clock, the share of which all of them have a recording, from 0 to 1."""
    start, end = _window(uses)
    first = max(start, *(use.recorded[0] for use in uses.values()))
    last = min(end, *(use.recorded[1] for use in uses.values()))
    return max(last - first, 0) / (end - start) if end > start else 0.0


def divide_gpu(uses: Mapping[Key, Use]) -> tuple[SharedGpu, dict[Key, Portion]]:
    """One GPU's ledger and each file's portion of it, all by one clock. Where files run work of one kind at once, the first has it."""
    users = tuple(sorted(uses))
    start, end = _window(uses)
    every = Busy(*(join(*(getattr(uses[key].busy, kind) for key in users)) for kind in KINDS))
    lines: dict[Key, dict[str, Spans]] = {key: {} for key in users}
    for kind, (line, spans) in zip(KINDS, every.exposed().items(), strict=True):
        left = spans
        for key in users:
            lines[key][line] = intersect(left, getattr(uses[key].busy, kind))
            left = subtract(left, lines[key][line])
    idle = complement(every.everything, start, end)
    owner = _owners(uses, users, idle)
    portions = {
        key: Portion((start, end), lines[key], (idle[0][owner == at], idle[1][owner == at]))
        for at, key in enumerate(users)
    }
    gpu = SharedGpu(
        users,
        window=end - start,
        busy=total(every.everything),
        compute=total(every.compute),
        communication=total(every.communication),
        memcpy=total(every.memcpy),
        max_gap=int((idle[1] - idle[0]).max(initial=0)),
    )
    return gpu, portions


def shift_portion(portion: Portion, by: int) -> Portion:
    """The same by a clock that counts from `by` ns earlier."""

    def later(spans: Spans) -> Spans:
        return spans[0] + by, spans[1] + by

    window = portion.window[0] + by, portion.window[1] + by
    return Portion(window, {line: later(spans) for line, spans in portion.lines.items()}, later(portion.idle))


def _window(uses: Mapping[Key, Use]) -> Span:
    return min(use.window[0] for use in uses.values()), max(use.window[1] for use in uses.values())


def _owners(uses: Mapping[Key, Use], users: tuple[Key, ...], idle: Spans) -> Array:
    """For each idle stretch the place in `users` of who ended it or, where nobody did, of who ran last."""
    ran = [uses[key].busy.everything for key in users]
    last = max(range(len(users)), key=lambda at: (int(ran[at][1].max(initial=np.iinfo(np.int64).min)), -at))
    owner = np.full(len(idle[0]), last, np.int64)
    for at in reversed(range(len(users))):
        owner[np.isin(idle[1], ran[at][0])] = at
    return owner
