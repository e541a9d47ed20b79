"""Processes and tracks of an exported trace: their numbers and names, and which slice goes on which of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from traceanalyzer.intervals import crossing, first_fit

Array = npt.NDArray[np.int64]
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


def layers(starts: Array, ends: Array) -> Array:
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


def lanes(*columns: Array) -> Iterator[tuple[tuple[int, ...], Array]]:
    """The distinct keys in ascending order, each with its rows in ascending order."""
    if not len(columns[0]):
        return
    order = np.lexsort(columns[::-1])
    new = np.zeros(len(order), bool)
    new[0] = True
    for column in columns:
        ordered = column[order]
        new[1:] |= ordered[1:] != ordered[:-1]
    for rows in np.split(order, np.flatnonzero(new)[1:]):
        yield tuple(int(column[rows[0]]) for column in columns), np.sort(rows)
