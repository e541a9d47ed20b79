"""The chains of one GPU's line that the job's critical path can be made of.

The path goes over to a line where that was last to issue its part of a collective, or ends a step there. From either it goes back along
the line to the end of another collective's part, which something there waited for. Each line knows these of its own, in recorded times;
all together tell which of them are on the path (`job_path`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL
from traceanalyzer.columns.spill import forget
from traceanalyzer.derive.host.host import Host
from traceanalyzer.derive.replay import chains as runs
from traceanalyzer.derive.replay.chains import GPU, HOST, LAUNCH, NONE, Ends, Pieces, chains
from traceanalyzer.derive.replay.critical_path import MOST_SHORTENED, MOST_STEPS, WHERE, WORTH_SHORTENING, without_link
from traceanalyzer.derive.replay.path_parts import KINDS, GpuTimes, NameList, PathParts, path_parts
from traceanalyzer.derive.replay.replay import Timeline
from traceanalyzer.intervals import Array
from traceanalyzer.model.trace import Input
from traceanalyzer.ranks.replay.lines import Line, Parts, last_ended, latest_part
from traceanalyzer.ranks.replay.tables import LINE_EVENTS, PATH_HOPS, PATH_PIECES, SHORTER_LINES
from traceanalyzer.records import dataclass
from traceanalyzer.vocabulary.lines import DEPENDENCY

MOST_PIECES = 4_000
"""Of a line with more pieces those that lie close together are put together by kind and name."""
MOST_EVENTS = 6_000
"""So many events of a line without some link are told of all of its links together, but always those of one link."""
QUANTA = (1_000, 250, 60, 15, 4, 1)
"""So many stretches of the window within which that is done: the most, and fewer while all lines of a large job tell too much."""
MOST_OF_JOB = 2_000_000
"""So many pieces, and so many events without some link, of all lines of a job: each takes a hundred bytes where they come together."""


@dataclass(frozen=True)
class LinePaths:
    """`events` as of `line_events`, `hops` as of `path_hops`, `pieces` as of `path_pieces`, `shorter` as of `shorter_lines`."""

    events: pa.Table
    hops: pa.Table
    pieces: pa.Table
    shorter: pa.Table


def line_paths(
    timelines: Mapping[frames.Key, Timeline],
    ledger_ops: pa.Table,
    communication: pa.Table,
    step_stats: pa.Table,
    gaps: pa.Table,
    launches: pa.Table,
    host: Host,
    inputs: Sequence[Input],
) -> LinePaths:
    """Of every GPU with parts of matched collectives, and the events of those with any."""
    share = MOST_OF_JOB // max(*(one.world_size or 1 for one in inputs), len(timelines), 1)
    tables = (ledger_ops, communication, step_stats, gaps, launches)
    ops, kernels, steps, idle, calls = (frames.by_device(table) for table in tables)
    events, hops, pieces = [], [], []
    shorter: list[pa.Table] = []
    for key, timeline in timelines.items():
        if key not in kernels:
            continue
        line = Line.of(key, timeline, ops[key], kernels[key], steps[key])
        events.append(line.events())
        forget()
        if not len(line.parts):
            continue
        followed = _Followed.of(line, steps[key])
        names = NameList()
        columns = ops[key].select(["start_ns", "end_ns", "name", "kind", "class"])
        own = columns.filter(pa.array(line.own[: columns.num_rows]))
        gpu = GpuTimes(own, idle[key], names, DEPENDENCY.cause, followed.pieces.within)
        parts = path_parts(followed.pieces, gpu, calls[key], host, names)
        hops.append(followed.hops(key))
        pieces.append(_table(key, _coarse(parts, timeline.length, share), names))
        shorter += _shorter(line, _table(key, parts, names), WORTH_SHORTENING * followed.length(timeline), share)
    told = ((LINE_EVENTS, events), (PATH_HOPS, hops), (PATH_PIECES, pieces), (SHORTER_LINES, shorter))
    return LinePaths(*(frames.stack(spec, tables) for spec, tables in told))


def line_events(line_paths: LinePaths, communication: pa.Table) -> pa.Table:
    """The events of every GPU's line, which is in the order of `timelines`; `communication` has rows."""
    return line_paths.events


def path_hops(line_paths: LinePaths, communication: pa.Table) -> pa.Table:
    """One row a chain; `communication` has rows."""
    return line_paths.hops


def path_pieces(line_paths: LinePaths, communication: pa.Table) -> pa.Table:
    """What the chains are made of; `communication` has rows."""
    return line_paths.pieces


def shorter_lines(line_paths: LinePaths, communication: pa.Table) -> pa.Table:
    """The lines without the largest links of their chains; `communication` has rows."""
    return line_paths.shorter


def _shorter(line: Line, path: pa.Table, least: float, share: int) -> Iterator[pa.Table]:
    """The events of a line without each of the links that have most time, and at least so many ns; `share` of them at most."""
    kind, name = (frames.codes(path, column)[0] for column in ("kind", "name"))
    length = frames.duration(path)
    links = [(int(length[rows].sum()), rows) for _, rows in frames.together(kind, name)]
    links = sorted((link for link in links if link[0] >= least), key=lambda link: -link[0])[:MOST_SHORTENED]
    told = 0
    for number, (_, rows) in enumerate(links):
        own = path.take(pa.array(rows))
        events = line.events(without_link(own, line.timeline))
        told += events.num_rows
        if number and told > min(MOST_EVENTS, share):
            return
        columns = {c: events[c] for c in SHORTER_LINES.schema.names if c in events.schema.names}
        of_link = {c: own[c].take(pa.array(np.zeros(events.num_rows, np.int64))) for c in ("kind", "name")}
        yield frames.build(SHORTER_LINES, {**columns, **of_link, "link": np.full(events.num_rows, number)})


@dataclass(frozen=True)
class _Followed:
    """The chains of one line: first those that end with the issue of the parts `issued`, then those that end with the steps `step`, at
    `done`. `came` is the part whose end they come from, `meets` the chain as which they go on (`NONE` without one), and `since` when
    that was."""

    parts: Parts
    issued: Array
    step: Array
    done: Array
    pieces: Pieces
    came: Array
    since: Array
    meets: Array

    @classmethod
    def of(cls, whole: Line, steps: pa.Table) -> _Followed:
        """Of a line with parts."""
        timeline, line, parts, issues = whole.timeline, whole.gpu, whole.parts, whole.issues
        along = _along(whole)
        # The last to come waits for nobody, and who sends from a buffer for nobody either.
        done, step = (frames.ints(steps, column)[-MOST_STEPS - 2 :] for column in ("done_ns", "index"))
        # Other lines may be at an earlier step then: this one is followed for one more.
        least = int(done[0]) if len(done) > MOST_STEPS + 1 else timeline.origin
        done, step = (column[-MOST_STEPS - 1 :] for column in (done, step))
        issued = np.flatnonzero(((parts.end - parts.start <= parts.transfer) | parts.free) & (parts.start > least))
        count = len(issued)
        stay = np.arange(count + len(done))
        origin = np.full(len(stay), least)
        came, since = np.full(len(stay), NONE), origin.copy()
        reach = np.concatenate(([timeline.origin], line.reach))

        # A part began after the one before on its stream, after what the GPU did before, or after its launch.
        start, bound, place = parts.start[issued], issues.bound[issued], issues.place[issued]
        call, gpu = timeline.call[parts.at[issued]], issues.gpu[issued]
        before = np.where(bound == 1, np.append(parts.end, 0)[parts.previous[issued]], gpu)
        before = np.where(bound == 2, call, before)
        free = np.maximum(np.minimum(before, start), least)
        first = Pieces(stay[:count], free, start, np.where(bound == 2, LAUNCH, GPU), call)
        joins = np.flatnonzero(line.joins >= 0)
        join_end = parts.end[line.joins[joins]]
        joined = (bound == 0) & (gpu > reach[place])
        source = np.append(line.joins[joins], NONE)[np.searchsorted(join_end, gpu, side="right") - 1]
        source = np.where(bound == 1, parts.previous[issued], np.where(joined, source, NONE))
        source = np.where(free > least, source, NONE)
        # A step ends with the GPU's work, or with a part.
        latest = latest_part(parts, done)
        over = np.where(latest >= 0, np.append(parts.end, 0)[latest], NULL)
        over = np.where(over > least, over, NULL)
        last = np.searchsorted(line.reach, done, side="right") - 1
        waits = over > reach[last + 1]
        tail = Pieces(
            stay[count:], np.where(waits, over, done), done, np.full(len(done), GPU), np.full(len(done), NULL)
        )

        known = np.concatenate((source != NONE, waits))
        came[known] = np.concatenate((source, latest))[known]
        since[known] = np.concatenate((free, over))[known]
        on = np.concatenate((np.where(bound == 2, HOST, GPU), np.full(len(done), GPU)))
        at = np.concatenate((np.where(bound == 2, place, place - 1), last))
        time = np.concatenate((free, done))
        go = ~known & (time > least) & ((at >= 0) | (on == HOST))
        found = chains(along, Ends(stay[go], origin[go], time[go], at[go], on[go]), once=True)
        rest, meets = np.flatnonzero(go), np.full(len(stay), NONE)
        came[rest], since[rest], meets[rest] = found.came[rest], found.since[rest], found.meets[rest]
        pieces = Pieces.joined([found.pieces, *(_some(one) for one in (first, tail))])
        return cls(parts, issued, step, done, pieces, came, since, meets)

    def length(self, timeline: Timeline) -> int:
        """Of the steps that are followed; without two, of the window."""
        return int(self.done[-1] - self.done[0]) if len(self.done) > 1 else timeline.length

    def hops(self, key: frames.Key) -> pa.Table:
        count, n = len(self.issued), len(self.came)
        instance = np.concatenate((self.parts.instance[self.issued], np.full(len(self.step), NULL)))
        step = np.concatenate((np.full(count, NULL), self.step))

        def of_source(values: Array) -> pa.Array:
            return frames.numbers(np.where(self.came == NONE, NULL, np.append(values, NULL)[self.came]))

        return frames.build(
            PATH_HOPS,
            {
                "rank": np.full(n, key[0]),
                "device": np.full(n, key[1]),
                "hop": np.arange(n),
                "instance": frames.numbers(instance),
                "free": np.append(self.parts.free[self.issued], np.zeros(len(self.step), bool)),
                "step": frames.numbers(step),
                "start_ns": self.since,
                "end_ns": np.concatenate((self.parts.start[self.issued], self.done)),
                "meets": frames.numbers(np.where(self.meets == NONE, NULL, self.meets)),
                "source": of_source(self.parts.instance),
                "source_transfer": of_source(self.parts.transfer),
                "source_free": pa.array(np.append(self.parts.free, False)[self.came]),
            },
        )


def _some(pieces: Pieces) -> Pieces:
    some = pieces.end > pieces.start
    return Pieces(*(column[some] for column in (pieces.stay, pieces.start, pieces.end, pieces.where, pieces.call)))


def _along(whole: Line) -> runs.Line:
    """The line as chains run along it: what comes from elsewhere are the ends of parts."""
    timeline, line, parts, wait_op = whole.timeline, whole.gpu, whole.parts, np.sort(whole.pace.wait_op)
    before = np.concatenate(([timeline.origin], line.reach[:-1]))[: len(line.reach)]
    joins = line.joins >= 0
    last, part = last_ended(timeline, whole.ended, parts, wait_op)
    return runs.Line(
        line.reach - line.own,
        np.where(joins, np.append(parts.end, 0)[line.joins], before),
        line.reach,
        line.call,
        line.late,
        np.where(joins & ~line.late, line.joins, NONE),
        timeline.reach[wait_op],
        np.where(part == NONE, np.cumsum(whole.own)[last] - 1, NONE),
        part,
    )


def _coarse(parts: PathParts, window: int, share: int) -> PathParts:
    """The parts, or of many those within a stretch of the window put together by kind and name, end to end: what is lost is their
    order in that. The stretches are as short as leaves no more than the line's `share`."""
    for quanta in QUANTA:
        if len(parts.stay) <= (MOST_PIECES if quanta == QUANTA[0] else max(share, MOST_PIECES // 4)):
            break
        parts = _within(parts, max(window // quanta, 1))
    return parts


def _within(parts: PathParts, length_ns: int) -> PathParts:
    """The parts within stretches of this length, put together."""
    stretch = parts.start // length_ns
    new = np.append(True, (np.diff(parts.stay) != 0) | (np.diff(stretch) != 0))
    group = np.cumsum(new) - 1
    begin = parts.start[new]
    key = frames.dense(group, parts.where, parts.kind, parts.name)
    first = np.unique(key, return_index=True)[1]
    length = np.zeros(len(first), np.int64)
    np.add.at(length, key, parts.end - parts.start)
    before = np.cumsum(length) - length
    opens = np.flatnonzero(np.diff(group[first], prepend=-1))
    start = begin[group[first]] + before - before[opens][np.cumsum(np.diff(group[first], prepend=-1) != 0) - 1]
    return PathParts(parts.stay[first], start, start + length, parts.where[first], parts.kind[first], parts.name[first])


def _table(key: frames.Key, parts: PathParts, names: NameList) -> pa.Table:
    count = len(parts.stay)
    return frames.build(
        PATH_PIECES,
        {
            "rank": np.full(count, key[0]),
            "device": np.full(count, key[1]),
            "hop": parts.stay,
            "start_ns": parts.start,
            "end_ns": parts.end,
            "where": frames.names(parts.where, WHERE),
            "kind": frames.names(parts.kind, KINDS),
            "name": frames.names(np.where(parts.name == NONE, NULL, parts.name), names.texts),
        },
    )
