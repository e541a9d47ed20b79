"""What sets the length of each step on a GPU: the critical path from the end of a step back to the end of the one before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL
from traceanalyzer.columns.in_blocks import in_blocks
from traceanalyzer.derive.host.host import Host
from traceanalyzer.derive.replay.chains import Ends, Line, chains
from traceanalyzer.derive.replay.path_parts import KINDS, GpuTimes, NameList, path_parts
from traceanalyzer.derive.replay.replay import AT_START, NOTHING, Begun, Change, Timeline
from traceanalyzer.derive.replay.tables import CRITICAL_PATH, PATH_LINKS, PATH_STAYS
from traceanalyzer.derive.replay.whatif import WhatIf, held, ran_in
from traceanalyzer.intervals import Array, Spans, join, union
from traceanalyzer.vocabulary.lines import BUSY_LINES, EXPOSED_MEMCPY, UNATTRIBUTED

WHERE = ("gpu", "host", "launch")
MOST_STEPS = 32
"""Of more steps the last so many are followed: they are alike, and what is to be told of each grows with its operations."""
MOST_LINKS = 100
"""So many kinds and names of a GPU are told, those with most time; all others of a kind together have no name."""
MOST_SHORTENED = 8
"""Of so many links it is told what shortening them gives."""
WORTH_SHORTENING = 0.02
"""A link with less than this share of the steps is not worth it."""


def path_stays(step_stats: pa.Table, windows: pa.Table, communication: pa.Table) -> pa.Table:
    """Where the critical path of a single GPU lies: from the end of each step to that of the next, on itself; of many steps the last
    ones.

    Without two steps it is the window. Of several GPUs nobody here knows who waits for whom, nor of one with parts of matched
    collectives.
    """
    if windows.num_rows != 1 or pc.any(communication["instance"].is_valid()).as_py():
        return PATH_STAYS.empty()
    (window,) = windows.to_pylist()
    done, step = (frames.ints(step_stats, column)[-MOST_STEPS - 1 :] for column in ("done_ns", "index"))
    if not len(done) or done[-1] == done[0]:
        done, step = np.array([window["start_ns"], window["end_ns"]]), np.array([NULL, NULL])
    some = np.diff(done) > 0
    count = int(some.sum())
    return frames.build(
        PATH_STAYS,
        {
            "rank": np.full(count, window["rank"]),
            "device": np.full(count, window["device"]),
            "step": frames.numbers(step[1:][some]),
            "start_ns": done[:-1][some],
            "end_ns": done[1:][some],
        },
    )


def critical_path(
    path_stays: pa.Table,
    timelines: Mapping[frames.Key, Timeline],
    ledger_ops: pa.Table,
    gaps: pa.Table,
    launches: pa.Table,
    host: Host,
) -> pa.Table:
    """The stretches of the critical path, sorted by (rank, device, start); those of one stay tile it."""
    ops, idle, calls = (frames.by_device(table) for table in (ledger_ops, gaps, launches))
    found = []
    for key, stays in frames.split(path_stays):
        if key not in timelines:
            continue
        names = NameList()
        start, end, step = (frames.ints(stays, column) for column in ("start_ns", "end_ns", "step"))
        line = Line.of(timelines[key], int(start.min()))
        pieces = chains(line, Ends.at(line, start, end)).pieces
        gpu = GpuTimes(ops[key], idle[key], names, UNATTRIBUTED.cause, pieces.within)
        parts = path_parts(pieces, gpu, calls[key], host, names)
        found.append(
            frames.build(
                CRITICAL_PATH,
                {
                    "rank": np.full(len(parts.stay), key[0]),
                    "device": np.full(len(parts.stay), key[1]),
                    "step": frames.numbers(step[parts.stay]),
                    "start_ns": parts.start,
                    "end_ns": parts.end,
                    "where": frames.names(parts.where, WHERE),
                    "kind": frames.names(parts.kind, KINDS),
                    "name": frames.names(np.where(parts.name < 0, NULL, parts.name), names.texts),
                },
            )
        )
    return frames.stack(CRITICAL_PATH, found)


def path_links(
    critical_path: pa.Table, path_stays: pa.Table, timelines: Mapping[frames.Key, Timeline], what_if: WhatIf
) -> pa.Table:
    """The links of the path of each GPU by kind and name, those with most time first, and what shortening the largest ones gives."""
    stays, found = frames.by_device(path_stays), []
    for key, path in frames.split(critical_path):
        timeline = timelines[key] if what_if.believes(key) else None
        found.append(_links(key, path, stays[key], timeline))
    return frames.stack(PATH_LINKS, found)


def _links(key: frames.Key, path: pa.Table, stays: pa.Table, timeline: Timeline | None) -> pa.Table:
    kind, kinds = frames.codes(path, "kind")
    name, names = frames.codes(path, "name")
    length = frames.duration(path)
    # Of what is too small to be told by name only the kind is.
    every = [(int(length[at].sum()), one, at) for one, at in frames.together(kind, name)]
    every.sort(key=lambda link: link[:2])
    told = np.zeros(len(name), bool)
    for _, _, rows in every[-MOST_LINKS:]:
        told[rows] = True
    name = np.where(told, name, len(names) - 1)
    links = [(int(length[at].sum()), one, at) for one, at in frames.together(kind, name)]
    links.sort(key=lambda link: (-link[0], kinds[link[1][0]] or "", names[link[1][1]] or ""))
    least = WORTH_SHORTENING * int(length.sum())
    ends = np.unique(np.concatenate((frames.ints(stays, "start_ns")[:1], frames.ints(stays, "end_ns"))))
    gains: list[int | None] = [None] * len(links)
    if timeline is not None:
        marks = np.searchsorted(timeline.reach, ends[[0, -1]], side="right") - 1
        largest = [link for link in links[:MOST_SHORTENED] if link[0] >= least]
        changes = [without_link(path.take(pa.array(rows)), timeline) for _, _, rows in largest]
        now, *then = _times(timeline, changes, marks[marks >= 0]) if largest else [0]
        gains[: len(largest)] = [int(np.clip(now - one, 0, ns)) for one, (ns, _, _) in zip(then, largest, strict=True)]
    return frames.build(
        PATH_LINKS,
        {
            "rank": np.full(len(links), key[0]),
            "device": np.full(len(links), key[1]),
            "kind": frames.names(np.array([one[0] for _, one, _ in links]), kinds),
            "name": frames.names(np.array([one[1] for _, one, _ in links]), names),
            "duration": np.array([ns for ns, _, _ in links]),
            "gain": pa.array(gains, pa.int64()),
            "deviation": _deviations(path, stays, [rows for _, _, rows in links]),
            "steps": frames.numbers(np.full(len(links), _step_count(stays))),
        },
    )


def _deviations(path: pa.Table, stays: pa.Table, links: Sequence[Array]) -> pa.Array:
    """How much each link differs from step to step, in ns."""
    ends, count = frames.ints(stays, "end_ns"), stays.num_rows
    if count < 2:
        return pa.nulls(len(links), pa.int64())
    step, length = np.searchsorted(ends, frames.ints(path, "end_ns")), frames.duration(path)
    sums = (np.bincount(step[rows], length[rows], count) for rows in links)
    return pa.array([round(float(one.std(ddof=1))) for one in sums], pa.int64())


def _step_count(stays: pa.Table) -> int:
    return stays.num_rows - stays["step"].null_count or NULL


def without_link(path: pa.Table, timeline: Timeline) -> Change:
    """A link taken out wherever it lies on the path; copies with the time for which they held up the calls that started them."""
    spans = frames.ints(path, "start_ns"), frames.ints(path, "end_ns")
    gpu, host, launch = (frames.equals(path, "where", where) for where in WHERE)
    busy = frames.equals(path, "kind", *BUSY_LINES)

    def of(rows: frames.Flags) -> Spans:
        return union(spans[0][rows], spans[1][rows])

    work = of(gpu & busy)
    copies = np.flatnonzero(ran_in(timeline, of(frames.equals(path, "kind", EXPOSED_MEMCPY.name))))
    return Change(host=join(of(host | launch), held(timeline, copies)), work=work, pauses=of(gpu & ~busy | launch))


def _times(timeline: Timeline, changes: Sequence[Change], marks: Array) -> list[int]:
    """From the first of two marks to the second, as it is and with each change taken out; of one mark from the window's start."""
    host, spans = timeline.host_time(), [span for one in changes for span in (one.host, one.work, one.pauses)]
    # Before any of them begins nothing changes: that is played once.
    count = _over(timeline, min((int(span[0][0]) for span in spans if len(span[0])), default=timeline.origin))
    asked = np.unique(np.append(marks, max(count - 1, 0)))
    (states,) = timeline.states(NOTHING, asked, [host])
    begun = AT_START
    if count:
        begun = Begun(count, states[np.searchsorted(asked, count - 1)])
    was = states[np.searchsorted(asked, marks), 2]
    found = [was]
    for change in changes:
        done, late = was.copy(), marks >= count
        if late.any():
            done[late] = timeline.states(change, marks[late], [host], begun)[0][:, 2]
        found.append(done)
    return [int(done[-1] - (done[0] if len(done) > 1 else 0)) for done in found]


def _over(timeline: Timeline, time: int) -> int:
    """How many of the first operations are all called and done until then."""
    count = int(np.searchsorted(timeline.reach, time, side="right"))
    for rows in in_blocks(count):
        ahead = timeline.call[rows] > time
        if ahead.any():
            return int(rows.start + ahead.argmax())
    return count
