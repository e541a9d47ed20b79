"""What the pieces of chains are made of: each is cut so that every part is of one kind and has one name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL
from traceanalyzer.columns.in_blocks import in_blocks
from traceanalyzer.derive.host import activity_times
from traceanalyzer.derive.host.host import Host
from traceanalyzer.derive.ledger.busy import Busy, by_line
from traceanalyzer.derive.ledger.gaps import Parts, host_parts, named_parts
from traceanalyzer.derive.replay.chains import GPU, HOST, LAUNCH, Pieces
from traceanalyzer.derive.replay.timelines import led
from traceanalyzer.intervals import Array, complement, overlaps, union
from traceanalyzer.records import dataclass
from traceanalyzer.vocabulary.lines import (
    DEPENDENCY,
    HOST_WORK,
    IDLE_CAUSES,
    INPUT,
    LAUNCH_LATENCY,
    LEDGER_LINES,
    PROFILER,
    QUEUED,
    TURNAROUND,
    UNATTRIBUTED,
    cause_of_line,
)

KINDS = tuple(map(cause_of_line, LEDGER_LINES))
"""Ledger lines, of idle ones their cause: what of it the GPU does, and what of it the host does also while the GPU is busy."""
KIND = {kind: index for index, kind in enumerate(KINDS)}
NEAREST = (HOST_WORK.cause, LAUNCH_LATENCY.cause)
"""Kinds whose name is the code of the program, or the range, that they happen in; that of others is what is done there."""
NOT_RUN = (DEPENDENCY.cause, QUEUED.cause, UNATTRIBUTED.cause)
"""Kinds whose name is the operation that did not run."""
ACTIVITIES = {
    "compilation": "compilation",
    "garbage_collection": "garbage collection",
    "first_use": "first use of code",
}
"""Activities of the host that say more than the place that they come upon."""
NONE = -1
"""The number of no name and of no kind."""
_BOUND = 1 << 62


class NameList:
    """Texts by number."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._number: dict[str, int] = {}

    def numbers(self, texts: Sequence[str | None]) -> Array:
        """The number of each text, `NONE` for None."""
        found = [NONE if text is None else self._number.setdefault(text, len(self._number)) for text in texts]
        self.texts += list(self._number)[len(self.texts) :]
        return np.array(found, np.int64)

    def column(self, table: pa.Table, name: str, rows: slice | None = None) -> Array:
        """The numbers of some rows of a column of texts. All of its texts get one, so that which rows are asked makes no difference."""
        code, texts = frames.codes(table, name) if rows is None else frames.codes_of(table, name, rows)
        return self.numbers(texts)[code]


@dataclass(frozen=True)
class PathParts:
    """Parts of chains, sorted by (stay, start); those of a stay tile it. `kind` indexes `KINDS`, `name` a list of names, `NONE` without
    one; `where` is as in `Pieces`."""

    stay: Array
    start: Array
    end: Array
    where: Array
    kind: Array
    name: Array

    def take(self, rows: frames.Flags) -> PathParts:
        return PathParts(*(getattr(self, field.name)[rows] for field in fields(self)))

    @classmethod
    def joined(cls, parts: Sequence[PathParts]) -> PathParts:
        """In order; neighbours that differ in nothing are one."""
        columns = [np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(cls)]
        order = np.lexsort((columns[1], columns[0]))
        stay, start, end, where, kind, name = (column[order] for column in columns)
        new = np.ones(len(stay), bool)
        if len(stay):
            new[1:] = np.any([np.diff(column) != 0 for column in (stay, where, kind, name)], axis=0)
            new[1:] |= start[1:] != end[:-1]
        return cls(stay[new], start[new], end[np.append(new, True)[1:]], where[new], kind[new], name[new])


@dataclass(frozen=True)
class Tiles:
    """Labelled stretches that tile all time: those given, and between them ones of the label `NONE`."""

    start: Array
    end: Array
    label: Array

    @classmethod
    def of(cls, start: Array, end: Array, label: Array) -> Tiles:
        """From disjoint stretches in order; empty ones are none."""
        some = end > start
        start, end, label = start[some], end[some], label[some]
        holes = complement(union(start, end), -_BOUND, _BOUND)
        low, high = np.concatenate((start, holes[0])), np.concatenate((end, holes[1]))
        order = np.argsort(low, kind="stable")
        return cls(low[order], high[order], np.concatenate((label, np.full(len(holes[0]), NONE)))[order])

    def cut(self, start: Array, end: Array) -> tuple[Array, Array, Array, Array]:
        """(row, label, start, end) of the parts of intervals, which add up to them."""
        row, tile, low, high = overlaps(start, end, (self.start, self.end))
        return row, self.label[tile], low, high


class GpuTimes:
    """What one GPU did, to be asked of any time: its ledger lines, the operations behind them, and the causes of its pauses."""

    def __init__(self, ops: pa.Table, gaps: pa.Table, names: NameList, untold: str, asked: tuple[int, int]) -> None:
        """`untold` is the kind of a pause that is none of the `gaps`; only times within `asked` will be asked for."""
        start, end = frames.ints(ops, "start_ns"), frames.ints(ops, "end_ns")
        rows = _until(start, _first_after(end, asked[0]), asked[1])
        start, end, name = start[rows], end[rows], names.column(ops, "name", rows)
        ops = ops.slice(rows.start, rows.stop - rows.start)
        lines = [(KIND[line], *spans) for line, spans in Busy.of(ops).exposed().items()]
        begin, until = (np.concatenate([line[at] for line in lines]) for at in (1, 2))
        kind = np.repeat([line[0] for line in lines], [len(line[1]) for line in lines])
        order = np.argsort(begin, kind="stable")
        self._lines, self._untold = Tiles.of(begin[order], until[order], kind[order]), KIND[untold]
        self._ops = {KIND[line]: _own_times(start[of], end[of], name[of]) for line, of in by_line(ops).items()}
        gap = frames.ints(gaps, "start_ns"), frames.ints(gaps, "end_ns")
        # The gaps of one GPU end in the order in which they begin.
        rows = _until(gap[0], int(np.searchsorted(gap[1], asked[0], side="right")), asked[1])
        cause, causes = frames.codes_of(gaps, "cause", rows)
        activity, activities = frames.codes_of(gaps, "activity", rows)
        columns = ("source", "annotation", "place", "call_name", "range_name")
        self._cause = np.array([NONE if one is None else KIND[one] for one in causes])[cause]
        self._name = _names(
            self._cause,
            {column: names.column(gaps, column, rows) for column in columns},
            names.numbers([ACTIVITIES.get(one or "") for one in activities])[activity],
            names.column(gaps, "next_op_name", rows),
        )
        self._gaps = Tiles.of(gap[0][rows], gap[1][rows], np.arange(rows.stop - rows.start))

    def parts(self, pieces: Pieces) -> PathParts:
        """Of pieces that lie on the GPU."""
        row, kind, low, high = self._lines.cut(pieces.start, pieces.end)
        found = []
        for which, ops in self._ops.items():
            of = kind == which
            at, name, first, last = ops.cut(low[of], high[of])
            found.append((row[of][at], first, last, kind[of][at], name))
        of = ~np.isin(kind, list(self._ops))
        at, gap, first, last = self._gaps.cut(low[of], high[of])
        cause = np.append(self._cause, self._untold)[gap]
        found.append((row[of][at], first, last, cause, np.append(self._name, NONE)[gap]))
        row, low, high, kind, name = (np.concatenate([one[at] for one in found]) for at in range(5))
        return PathParts(pieces.stay[row], low, high, np.full(len(row), GPU), kind, name)

    def held(self, parts: PathParts) -> PathParts:
        """Parts from a launch to its operation's start, cut by what held that back after it was launched."""
        row, gap, low, high = self._gaps.cut(parts.start, parts.end)
        kind, name = np.append(self._cause, NONE)[gap], np.append(self._name, NONE)[gap]
        held = np.isin(kind, [KIND[cause] for cause in NOT_RUN])
        kind, name = np.where(held, kind, parts.kind[row]), np.where(held, name, parts.name[row])
        return PathParts(parts.stay[row], low, high, parts.where[row], kind, name)


@dataclass(frozen=True)
class _Calls:
    """The launch calls of a host in order: from `start` to `back`, or to the next one, by `thread`, a position in `threads`."""

    start: Array
    back: Array
    thread: Array
    threads: list[frames.ThreadKey]

    @classmethod
    def of(cls, launches: pa.Table, asked: tuple[int, int]) -> _Calls:
        """Those around the times that will be asked for."""
        own, threads = led(launches)
        start, back, thread = (frames.ints(own, column) for column in ("start_ns", "end_ns", "thread"))
        # With the last one that began until then, and the next one after.
        low, high = -_BOUND, _BOUND
        for rows in in_blocks(len(start)):
            called = start[rows][thread[rows] != NULL]
            low = int(called[called <= asked[0]].max(initial=low))
            high = int(called[called >= asked[1]].min(initial=high))
        found = [np.empty(0, np.int64)]
        for rows in in_blocks(len(start)):
            here = (start[rows] >= low) & (start[rows] <= high) & (thread[rows] != NULL)
            found.append(np.flatnonzero(here) + rows.start)
        some = np.concatenate(found)
        first = some[np.unique(start[some], return_index=True)[1]]
        start, back = start[first], np.minimum(back[first], np.append(start[first][1:], _BOUND))
        number = {key[2]: at for at, key in enumerate(threads)}
        return cls(start, back, np.array([number[one] for one in thread[first].tolist()], np.int64), threads)

    def tiles(self) -> Tiles:
        """All time, labelled with twice the call that is made, or twice the one that comes next and one."""
        count = np.arange(len(self.start))
        after = np.concatenate(([-_BOUND], self.back))
        ahead = np.concatenate((self.start, [_BOUND]))
        start, end = np.concatenate((self.start, after)), np.concatenate((self.back, ahead))
        label = np.concatenate((2 * count, 2 * np.minimum(np.append(count, len(count)), len(count) - 1) + 1))
        order = np.argsort(start, kind="stable")
        return Tiles.of(start[order], end[order], label[order])


def path_parts(pieces: Pieces, gpu: GpuTimes, launches: pa.Table, host: Host, names: NameList) -> PathParts:
    """The parts of the pieces of one GPU's chains; `launches` are those of the GPU."""
    found = [gpu.parts(_of(pieces, pieces.where == GPU))]
    by_host, ahead = (_of(pieces, pieces.where == where) for where in (HOST, LAUNCH))
    if len(by_host.stay) or len(ahead.stay):
        times = np.concatenate((by_host.start, ahead.call, by_host.end))
        calls = _Calls.of(launches, (int(times.min()), int(times.max())))
        # What the host did, cut where another thread goes on and where a call begins or returns; then what it had launched.
        row, label, low, high = calls.tiles().cut(by_host.start, by_host.end)
        called = np.searchsorted(calls.start, ahead.call, side="right") - 1
        label = np.concatenate((label, 2 * np.maximum(called, 0)))
        stay = np.concatenate((by_host.stay[row], ahead.stay))
        where = np.repeat((HOST, LAUNCH), (len(row), len(ahead.stay)))
        low, high = np.concatenate((low, ahead.start)), np.concatenate((high, ahead.end))
        is_call = label % 2 == 0
        asked = np.where(where == HOST, low, calls.start[label // 2])
        for (thread,), rows in frames.together(calls.thread[label // 2]):
            lane = host.thread(*calls.threads[thread])
            between, launch = rows[~is_call[rows]], rows[is_call[rows]]
            work = host_parts(between, low, high, lane)
            call = Parts.of(launch, low[launch], high[launch], LAUNCH_LATENCY.cause, asked[launch])
            own, named, _ = named_parts(Parts.joined([work, call]), np.empty(0, np.int64), lane, host)
            found.append(_host_part(own, named, stay[own.gap], where[own.gap], host, names))
    every = PathParts.joined(found)
    late = every.where == LAUNCH
    return PathParts.joined([every.take(~late), gpu.held(every.take(late))]) if late.any() else every


def _of(pieces: Pieces, which: frames.Flags) -> Pieces:
    return Pieces(*(getattr(pieces, field.name)[which] for field in fields(Pieces)))


def _host_part(
    own: Parts, named: Mapping[str, Array], stay: Array, where: Array, host: Host, names: NameList
) -> PathParts:
    kind = np.array([KIND[cause] for cause in IDLE_CAUSES])[own.cause]

    def texts(column: str) -> Array:
        read = host.texts if column == "source" else host.named
        return names.column(pa.table({column: read(named[column])}), column)

    columns = ("source", "annotation", "place", "call_name", "range_name")
    activity = names.numbers([*(ACTIVITIES.get(one) for one in activity_times.NAMES), None])
    activity = activity[np.where(own.activity == NULL, NONE, own.activity)]
    name = _names(kind, {column: texts(column) for column in columns}, activity, np.full(len(kind), NONE))
    return PathParts(stay, own.start, own.end, where, kind, name)


def _names(kind: Array, columns: Mapping[str, Array], activity: Array, next_op: Array) -> Array:
    """The name of each part of idle time or of the host's."""

    def first(*wanted: str) -> Array:
        name = np.full(len(kind), NONE)
        for column in wanted:
            name = np.where(name == NONE, columns[column], name)
        return name

    def of(*causes: str) -> frames.Flags:
        return np.isin(kind, [KIND[cause] for cause in causes])

    place = first("place", "source", "annotation", "call_name")
    name = np.where(of(*NEAREST), first("source", "annotation", "place", "call_name"), place)
    name = np.where(of(INPUT.cause), first("range_name", "place", "source", "annotation"), name)
    name = np.where((activity != NONE) & ~of(INPUT.cause), activity, name)
    name = np.where(of(*NOT_RUN), next_op, name)
    return np.where(of(TURNAROUND.cause, PROFILER.cause), NONE, name)


def _first_after(end: Array, time: int) -> int:
    """The first of some intervals that is not over until then; how many they are where all are."""
    for rows in in_blocks(len(end)):
        after = end[rows] > time
        if after.any():
            return int(rows.start + after.argmax())
    return len(end)


def _until(start: Array, first: int, time: int) -> slice:
    """From the first of some intervals on those that begin before then; their starts ascend."""
    return slice(first, max(int(np.searchsorted(start, time)), first))


def _own_times(start: Array, end: Array, name: Array) -> Tiles:
    """What each operation adds to the union of those before it, of operations in order of their start."""
    if not len(start):
        return Tiles.of(start, end, name)
    reach = np.maximum.accumulate(end)
    return Tiles.of(np.maximum(start, np.append(start[:1], reach[:-1])), reach, name)
