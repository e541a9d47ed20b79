"""The one place in the program that causes most of what a finding claimed of a GPU's idle time, where there is one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from traceanalyzer.derive import frames
from traceanalyzer.derive.frames import NULL
from traceanalyzer.intervals import EMPTY, Array, Spans, covered, intersect, join, total, union

MOSTLY = 0.5
"""A place that holds less of the claim, or a piece of idle time of which less lies in the place, is not what causes it."""
ALL_BUT = 0.9
"""With this share of it in one thing that ran there, that is named rather than the code around it."""


@dataclass(frozen=True)
class Culprit:
    """`ns` of idle time lie in `name`; `claimed` are the pieces of the claim that lie there, by ledger line."""

    name: str
    ns: int
    claimed: dict[str, Spans]


class Culprits:
    """The idle time of all GPUs by where the host was: in a line of the program's own code, else in a range that it named."""

    def __init__(self, gaps: pa.Table) -> None:
        self._rows = {key: _Rows.of(part) for key, part in frames.split(gaps)}

    def of(self, key: frames.Key, claimed: Mapping[str, Spans]) -> Culprit | None:
        """The place with at least half of what was claimed on one GPU; None where there is none."""
        rows = self._rows.get(key)
        idle = {line: spans for line, spans in claimed.items() if line.startswith("idle.")}
        return rows.culprit(idle, sum(map(total, claimed.values()))) if rows and idle else None


@dataclass(frozen=True)
class _Rows:
    """Pieces of one GPU's idle time that lie in a place; `nearest` and `place` index into the lists of names."""

    start: Array
    end: Array
    inside: Array
    nearest: Array
    nearest_names: list[str]
    place: Array
    place_names: list[str | None]

    @classmethod
    def of(cls, gaps: pa.Table) -> _Rows:
        start, end, inside = (frames.ints(gaps, c) for c in ("start_ns", "end_ns", "place_duration"))
        # An operator alone is no place in a program: it may be called from anywhere.
        bare = ~frames.where(gaps, "operator", lambda _: True)
        number: dict[str, int] = {}
        nearest = np.full(len(start), NULL)
        for column, rows in (("source", True), ("annotation", True), ("place", bare)):
            code, texts = frames.codes(gaps, column)
            known = [NULL if text is None else number.setdefault(text, len(number)) for text in texts]
            nearest = np.where((nearest == NULL) & rows, np.array(known, np.int64)[code], nearest)
        place, place_names = frames.codes(gaps, "place")
        some = (nearest != NULL) & (inside >= MOSTLY * (end - start))
        columns = (column[some] for column in (start, end, inside, nearest))
        return cls(*columns, list(number), place[some], place_names)

    def culprit(self, idle: Mapping[str, Spans], claimed_ns: int) -> Culprit | None:
        amount = np.minimum(covered(self.start, self.end, join(EMPTY, *idle.values())), self.inside)
        sums = _sums(self.nearest, amount, len(self.nearest_names))
        if not len(sums) or sums.max() < max(MOSTLY * claimed_ns, 1):
            return None
        most = int(np.argmax(sums))
        here = (self.nearest == most) & (amount > 0)
        spans = union(self.start[here], self.end[here])
        inner = _sums(self.place[here], amount[here], len(self.place_names))
        one = inner.max() >= ALL_BUT * sums[most]
        name = (self.place_names[int(np.argmax(inner))] if one else None) or self.nearest_names[most]
        return Culprit(name, int(sums[most]), {line: intersect(part, spans) for line, part in idle.items()})


def _sums(code: Array, amount: Array, count: int) -> Array:
    sums = np.zeros(count, np.int64)
    np.add.at(sums, code, amount)
    return sums
