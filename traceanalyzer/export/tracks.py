"""Processes and tracks of an exported trace: their numbers and names, and in how many layers slices nest."""

from __future__ import annotations

import json
from dataclasses import field

import numpy as np

from traceanalyzer.columns import Ints
from traceanalyzer.intervals import crossing, first_fit
from traceanalyzer.records import dataclass

ROUNDS = 8


@dataclass
class Numbers:
    """Numbers of processes and tracks, each given once: some readers know a track by its number alone. `events` name them.

    `links` are the arrows so far."""

    events: list[str] = field(default_factory=list)
    links: int = 0
    _processes: int = 0
    _tracks: int = 1_000_000

    def process(self, name: str) -> int:
        self._processes += 1
        self._named("process", name, self._processes, self._processes)
        return self._processes

    def track(self, process: int, name: str) -> int:
        self._tracks += 1
        self._named("thread", name, process, self._tracks)
        return self._tracks

    def _named(self, what: str, name: str, process: int, track: int) -> None:
        """They are shown in the order in which they were named."""
        for fact, value in (("name", name), ("sort_index", track)):
            args = json.dumps({fact: value}, ensure_ascii=False)
            self.events.append(
                f'{{"ph":"M","pid":{process},"tid":{track},"ts":0,"name":"{what}_{fact}","args":{args}}},\n'
            )


def layers(starts: Ints, ends: Ints) -> Ints:
    """For each of the ranges, given sorted by (start, -end), the number of a layer in which all ranges nest or lie apart.

    Layer 0 has all but those that outlast the one around them. Those lie apart in the layers that follow.
    """
    layer = np.zeros(len(starts), np.int64)
    kept = np.arange(len(starts))
    for _ in range(ROUNDS):
        crossed = crossing(starts[kept], ends[kept])
        if not crossed.any():
            break
        layer[kept[crossed]] = 1
        kept = kept[~crossed]
    else:
        layer[:] = 1
    rest = np.flatnonzero(layer)
    number = 0 if len(rest) == len(starts) else 1
    while len(rest):
        fits = first_fit(starts[rest], ends[rest])
        layer[rest[fits]] = number
        rest, number = rest[~fits], number + 1
    return layer
