"""Events on streams of a GPU that nobody knows: are they work of their own, or ranges around the work of others?

A later profiler may record a kind of copy that we have no name for, and also a kind of annotation. The first left out is a GPU that
looks idle, the second taken in is one that looks busy. What tells them apart, per category, in this order: a stream runs one operation
after another, so what lies around or inside of its operations is none; the call that the correlation id names launches, copies or
waits; the words of the category and of the events. What is left is taken for kernels, and health says that only its place says so.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.columns import NULL, ints
from traceanalyzer.model.schema import NAME
from traceanalyzer.records import dataclass
from traceanalyzer.vocabulary.levels import HIGH, INFO, LOW, MEDIUM, Severity

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

MOST_CATEGORIES = 32
"""Categories that are judged each for itself; the rare ones beyond are judged as one."""
WORK, NOTHING = "work", "nothing"
# Operations of a stream may overlap for moments (programmatic dependent launch), so a few in a crowd prove nothing.
_FEW, _MOST = 0.05, 0.5
_LONGEST_NAME = 60
_WORKING, _WAITING = ("launch", "copy"), ("sync", "event")
_PLURAL = {"kernel": "kernels", "memcpy": "copies", "memset": "memsets"}
_OTHERS = "others"


@dataclass(frozen=True)
class Note:
    """A line of health."""

    severity: Severity
    message: str
    count: int


class Candidates:
    """Judges rows of `gpu_ops` with a `category`, and `told`: "work" or "nothing" where their words say so.

    First all calls and all known operations go by.
    """

    OPS = ("device", "stream", "start_ns", "end_ns")

    def __init__(self, rows: pa.Table) -> None:
        self._rows, self._places, self._known_ns = rows, _Places(rows), 0
        self._wanted = np.unique(ints(rows, "correlation"))
        self._calls: dict[str, set[int]] = {WORK: set(), NOTHING: set()}

    def see_calls(self, calls: pa.Table) -> None:
        """Rows of `api_calls`."""
        correlation = ints(calls, "correlation")
        wanted = np.isin(correlation, self._wanted) & (correlation != NULL)
        if not wanted.any():
            return
        classes = calls["class"].filter(pa.array(wanted)).cast(pa.string()).to_pylist()
        for id_, what in zip(correlation[wanted].tolist(), classes, strict=True):
            if what in _WORKING:
                self._calls[WORK].add(id_)
            elif what in _WAITING:
                self._calls[NOTHING].add(id_)

    def see(self, ops: pa.Table) -> None:
        """Rows of `gpu_ops`, with `OPS` at least, that are known to be work."""
        self._known_ns += int((ints(ops, "end_ns") - ints(ops, "start_ns")).clip(0).sum())
        self._places.see(ops)

    def judge(self) -> Iterator[tuple[Note, pa.Table | None]]:
        """For each category what is said of it, and its rows where they are work, which weighs in what comes after."""
        places = self._places
        named, code = _categories(self._rows)
        duration = places.end - places.start
        told = self._told()
        groups = [(name, np.flatnonzero(code == n)) for n, name in enumerate(named)]
        said = {name: _majority(told[at]) for name, at in groups}
        for name, at in sorted(groups, key=lambda g: (said[g[0]] != WORK, duration[g[1]].mean(), g[0])):
            share = float(places.conflicts()[at].mean())
            doubtful: Severity = HIGH if int(duration[at].sum()) > _MOST * self._known_ns else MEDIUM
            taken = share <= _FEW and said[name] != NOTHING
            found = self._rows.take(pa.array(at))
            severity, what = _judged(said[name], share, doubtful, _kinds(found))
            message = f'events of the unknown category "{name}" on streams of a GPU {what}'
            yield Note(severity, message, len(at)), found if taken else None
            if taken:
                self.see(found)

    def _told(self) -> npt.NDArray[np.object_]:
        """What speaks for each row: the call that it names, else its words."""
        words = np.array(self._rows["told"].to_pylist(), object)
        correlation = ints(self._rows, "correlation")
        for what, ids in self._calls.items():
            words[np.isin(correlation, np.array(sorted(ids), np.int64))] = what
        return words


def _judged(said: str | None, share: float, doubtful: Severity, kinds: str) -> tuple[Severity, str]:
    """Severity and words for a category that says this, and a share of which lies around or inside of other work."""
    if share > _MOST:
        return LOW if said == WORK else INFO, "were left out: they lie around or inside of other work"
    if said == NOTHING:
        return LOW, "were left out: by their names or their calls they are waits, marks or ranges"
    if share > _FEW:
        return doubtful, "were left out, as some lie around other work: the GPU may be busy where it looks idle"
    if said == WORK:
        return LOW, f"were taken as {kinds}, by their names or their calls"
    return doubtful, f"were taken as {kinds}, and only their place says so: the GPU may be idle where it looks busy"


class _Places:
    """Where candidates lie among known operations: counts that add up over any parts of those."""

    def __init__(self, rows: pa.Table) -> None:
        self.start, self.end = ints(rows, "start_ns"), ints(rows, "end_ns")
        self._device = ints(rows, "device")
        self._streams, self._stream = np.unique(
            np.stack([self._device, ints(rows, "stream")], axis=1), axis=0, return_inverse=True
        )
        self._stream = self._stream.reshape(-1)
        # Operations of the same stream inside, less those around; how many begin or end with it, on the same GPU; all of its stream.
        self._inside, self._begin, self._finish, self._beside = (np.zeros(rows.num_rows, np.int64) for _ in range(4))

    def see(self, ops: pa.Table) -> None:
        start, end = ints(ops, "start_ns"), ints(ops, "end_ns")
        if not len(start):
            return
        device, stream = ints(ops, "device"), ints(ops, "stream")
        own = self._of(device, stream)
        self._beside += np.bincount(own[own >= 0], minlength=len(self._streams))[self._stream]
        near = np.flatnonzero((self.end >= start.min()) & (self.start <= end.max()))
        if not len(near):
            return
        first, last, track = self.start[near], self.end[near], self._stream[near]
        on = own >= 0
        self._inside[near] += _until(own[on], end[on], track, last, True) - _until(
            own[on], start[on], track, first, False
        )
        for times, wanted, count in ((start, first, self._begin), (end, last, self._finish)):
            among = self._device[near]
            count[near] += _until(device, times, among, wanted, True) - _until(device, times, among, wanted, False)

    def conflicts(self) -> Flags:
        """Which cannot be operations beside the known ones.

        On a stream of its own, what begins with one operation of the GPU and ends with one repeats what others show.
        """
        return np.where(self._beside > 0, self._inside != 0, (self._begin > 0) & (self._finish > 0))

    def _of(self, device: Ints, stream: Ints) -> Ints:
        """The number of each operation's stream among those of candidates; -1 for others."""
        both = np.concatenate((self._streams, np.stack([device, stream], axis=1)))
        _, code = np.unique(both, axis=0, return_inverse=True)
        code = code.reshape(-1)
        number = np.full(code.max() + 1, -1)
        number[code[: len(self._streams)]] = np.arange(len(self._streams))
        return number[code[len(self._streams) :]]


def _until(tracks: Ints, times: Ints, track: Ints, time: Ints, inclusive: bool) -> Ints:
    """How many of the `times` on the same track lie before each time; `inclusive` counts equal ones."""
    among = np.concatenate((tracks, track))
    late = np.zeros(len(among), bool)
    late[: len(tracks)] = not inclusive
    late[len(tracks) :] = inclusive
    order = np.lexsort((late, np.concatenate((times, time)), among))
    seen = np.empty(len(among), np.int64)
    seen[order] = np.cumsum(order < len(tracks))
    return seen[len(tracks) :] - np.searchsorted(np.sort(tracks), track)


def _categories(rows: pa.Table) -> tuple[list[str], Ints]:
    """The names of the categories, fit to be shown, and each row's; the rare ones have one name together."""
    category = rows["category"].cast(NAME).combine_chunks()
    names = [*category.dictionary.to_pylist(), None]
    code = pc.fill_null(category.indices, len(names) - 1).to_numpy()
    shown = ["none" if name is None else _shown(name) for name in names]
    counts: dict[str, int] = {}
    for name, count in zip(shown, np.bincount(code, minlength=len(names)).tolist(), strict=True):
        counts[name] = counts.get(name, 0) + count
    kept = sorted((name for name in counts if counts[name]), key=lambda name: (-counts[name], name))
    if len(kept) > MOST_CATEGORIES:
        kept = [*[name for name in kept if name != _OTHERS][: MOST_CATEGORIES - 1], _OTHERS]
    number = {name: n for n, name in enumerate(kept)}
    return kept, np.array([number.get(name, len(kept) - 1) for name in shown])[code]


def _shown(name: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in name[:_LONGEST_NAME])


def _majority(told: npt.NDArray[np.object_]) -> str | None:
    """What most of the rows say; None when no word has more than half."""
    return next((what for what in (NOTHING, WORK) if 2 * int((told == what).sum()) > len(told)), None)


def _kinds(rows: pa.Table) -> str:
    found = [_PLURAL[kind] for kind in pc.unique(rows["kind"].cast(pa.string())).to_pylist()]
    return " and ".join(sorted(found))
