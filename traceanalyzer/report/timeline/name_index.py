"""The index behind the search: every name on the timeline, how often it ran and how long, and in which merged slices it hides."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from traceanalyzer.columns import Ints, ascending, distinct
from traceanalyzer.records import dataclass
from traceanalyzer.report.timeline.lanes import Lane
from traceanalyzer.report.timeline.name_table import Names, cut_name
from traceanalyzer.report.timeline.slices import STRETCH, Slices

ENTRY_BYTES = 24
"""About what the figures of one name take, beside its letters."""
PAIRS_EACH = 16
"""So many possible pairs for each event may stand in a table."""


@dataclass(frozen=True)
class Counts:
    """How often each name ran on each kind of lane, and how long in all: parallel arrays, in the order of names, then of kinds."""

    kinds: list[str]
    name: Ints
    kind: Ints
    count: Ints
    time: Ints

    def take(self, names: NDArray[np.bool_]) -> Counts:
        """Those of the names that are marked."""
        rows = names[self.name]
        return Counts(self.kinds, self.name[rows], self.kind[rows], self.count[rows], self.time[rows])


@dataclass(frozen=True)
class Hidden:
    """What a row's merged slices hold but are not named after: pairs of a slice's and a name's number, in that order, each once."""

    slice: Ints
    name: Ints

    def __len__(self) -> int:
        return len(self.slice)

    def take(self, rows: NDArray[np.bool_]) -> Hidden:
        return Hidden(self.slice[rows], self.name[rows])

    def behind(self, slices: int) -> Hidden:
        """The same where so many slices come before."""
        return Hidden(self.slice + slices, self.name)

    @classmethod
    def joined(cls, parts: Sequence[Hidden]) -> Hidden:
        """Those of the stretches of a row."""
        return cls(np.concatenate([one.slice for one in parts]), np.concatenate([one.name for one in parts]))


@dataclass(frozen=True)
class NameIndex:
    """What the page knows of names. `texts` are all that it holds, `number` is for each name of the timeline its place there, -1 for
    none. `hidden` are the pairs of each row of slices, in their order; `places` is how many of them each name has at most, None where
    it has all. `left_names` rare names, of `left_events` events, are not in the index.
    """

    texts: list[str]
    number: Ints
    counts: Counts
    hidden: Sequence[Hidden]
    places: int | None
    left_names: int
    left_events: int


def count_names(lanes: Sequence[Lane], names: int) -> Counts:
    """The counts of all events in the lanes, before any are merged; `names` is how many names there are. Counters have no names."""
    of_kind: dict[str, list[Slices]] = {}
    for lane in lanes:
        if slices := [row for row in lane.rows if isinstance(row, Slices)]:
            of_kind.setdefault(lane.content, []).extend(slices)
    found = []
    for number, rows in enumerate(of_kind.values()):
        count, time = np.zeros(names, np.int64), np.zeros(names, np.int64)
        for row in rows:
            for first in range(0, len(row), STRETCH):
                here = slice(first, first + STRETCH)
                used, place = distinct(row.name[here].astype(np.int64), names)
                count[used] += np.bincount(place, minlength=len(used))
                time[used] += np.bincount(place, weights=row.duration[here], minlength=len(used)).astype(np.int64)
        name = np.flatnonzero(count)
        found.append(np.stack([name, np.full(len(name), number), count[name], time[name]]))
    every = np.concatenate(found, axis=1) if found else np.zeros((4, 0), np.int64)
    name, kind, count, time = every[:, np.lexsort((every[1], every[0]))]
    return Counts(list(of_kind), name, kind, count, time)


def hidden_names(slices: Slices, merged: Slices, holder: Ints, names: int) -> Hidden:
    """The pairs of one row: of its `slices` as they were, the numbers of the `merged` ones that hold them."""
    other = np.flatnonzero(slices.name != merged.name.take(holder))
    used, place = distinct(slices.name[other].astype(np.int64), names)
    pairs = holder.take(other) * len(used) + place
    size = len(merged) * len(used)
    if size <= PAIRS_EACH * len(pairs):  # a table of all pairs is sooner filled than so many are sorted
        seen = np.zeros(size, np.bool_)
        seen[pairs] = True
        pairs = np.flatnonzero(seen)
    else:
        pairs = ascending(pairs)
    number, name = np.divmod(pairs, max(len(used), 1))
    return Hidden(number, used[name])


def index_names(
    names: Names, counts: Counts, rows: Sequence[Slices], hidden: Sequence[Hidden], room: int, pairs: int
) -> NameIndex:
    """The index of a timeline whose rows are `rows`, within `room` bytes of names that no slice shows and so many `pairs`.

    The names of slices are always in it. Of the others the rarest are left out; of too many pairs each name keeps its first.
    """
    shown = np.zeros(len(names), np.bool_)
    for row in rows:
        shown[row.name] = True
    total = np.bincount(counts.name, weights=counts.count, minlength=len(names)).astype(np.int64)
    texts = [cut_name(name) for name in names.all()]
    kept = shown | _that_fit(texts, np.flatnonzero((total > 0) & ~shown), total, room)
    left = (total > 0) & ~kept
    numbers = np.flatnonzero(kept)
    number = np.full(len(names), -1, np.int64)
    number[numbers] = np.arange(len(numbers))
    hidden = [one.take(kept[one.name]) for one in hidden]
    most = _places(hidden, len(names), pairs)
    if most is not None:
        hidden = _first_places(rows, hidden, most)
    return NameIndex(
        [texts[n] for n in numbers.tolist()],
        number,
        counts.take(kept),
        hidden,
        most,
        int(left.sum()),
        int(total[left].sum()),
    )


def _that_fit(texts: list[str], candidates: Ints, total: Ints, room: int) -> NDArray[np.bool_]:
    """The most frequent candidates whose letters and figures have room."""
    order = candidates[np.argsort(-total[candidates], kind="stable")]
    size = np.array([len(texts[n].encode("utf-8", "replace")) + ENTRY_BYTES for n in order.tolist()], np.int64)
    fit = np.zeros(len(texts), np.bool_)
    fit[order[np.cumsum(size) <= room]] = True
    return fit


def _places(hidden: Sequence[Hidden], names: int, most: int) -> int | None:
    """How many pairs each name may have so that there are at most `most`; None where all have room."""
    each = np.sort(sum((np.bincount(one.name, minlength=names) for one in hidden), np.zeros(names, np.int64)))
    if int(each.sum()) <= most:
        return None
    low, high = 0, int(each[-1])  # the largest number that fits: low does, high does not
    while high - low > 1:
        middle = (low + high) // 2
        if int(np.minimum(each, middle).sum()) <= most:
            low = middle
        else:
            high = middle
    return low


def _first_places(rows: Sequence[Slices], hidden: Sequence[Hidden], most: int) -> list[Hidden]:
    """Of each name the first `most` pairs in time."""
    row = np.repeat(np.arange(len(hidden)), [len(one) for one in hidden])
    name = np.concatenate([one.name for one in hidden])
    start = np.concatenate([slices.start[one.slice] for slices, one in zip(rows, hidden, strict=True)])
    order = np.lexsort((row, start, name))
    begins = np.flatnonzero(np.diff(name[order], prepend=-1))
    place = np.arange(len(order)) - np.repeat(begins, np.diff(begins, append=len(order)))
    kept = np.zeros(len(order), np.bool_)
    kept[order[place < most]] = True
    ends = np.cumsum([len(one) for one in hidden])
    return [one.take(kept[end - len(one) : end]) for one, end in zip(hidden, ends.tolist(), strict=True)]
