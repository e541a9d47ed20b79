"""Where in the program each rank spends a step, by named range and Python frame, and where one spends more than the others."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL
from traceanalyzer.columns.spill import forget
from traceanalyzer.derive.host.callers import Callers
from traceanalyzer.derive.launches.launches import call_of
from traceanalyzer.derive.ledger.busy import by_line
from traceanalyzer.derive.steps.steps import steps_at
from traceanalyzer.intervals import Array, Spans, coverage, union
from traceanalyzer.model.markers import is_step_name
from traceanalyzer.places import frame_text, is_user_frame
from traceanalyzer.ranks.waits.rank_work import JITTER, beyond_median
from traceanalyzer.ranks.waits.tables import EXTRA_RANGES, RANGE_TIMES, RANK_RANGES
from traceanalyzer.records import dataclass
from traceanalyzer.vocabulary.lines import COMPUTE, EXPOSED_MEMCPY, EXPOSED_MEMSET, IDLE

MOST_RANGES = 64
"""Names kept of each rank, those with most time: what travels to the comparison must stay small."""
NEARLY_ALL = 0.8
"""Of ranges within each other that hold nearly all of what there is more of, one is named; one that is nearly a whole step never."""
TIME_OF = {COMPUTE.name: "computing", EXPOSED_MEMCPY.name: "copying", EXPOSED_MEMSET.name: "copying"} | dict.fromkeys(
    (line.name for line in IDLE.values()), "idle"
)
"""By ledger line the column of `rank_ranges` that tells how much of it a range is behind."""


@dataclass(frozen=True)
class _Named:
    """Spans that have names: `code` is an index into a list of `count` of them."""

    code: Array
    start: Array
    end: Array
    count: int

    def union(self) -> _Named:
        """Those of one name that touch or overlap as one."""
        if not len(self.code):
            return self
        first = int(self.start.min())
        length = int(self.end.max()) - first + 2
        low, high = union(self.code * length + self.start - first, self.code * length + self.end - first)
        code = low // length
        return _Named(code, low - code * length + first, high - code * length + first, self.count)

    def total(self) -> Array:
        """ns by name."""
        return _sums(self.code, self.end - self.start, self.count)

    def within(self, spans: Spans) -> Array:
        """ns by name that lie in `spans`."""
        return _sums(self.code, coverage(self.start, self.end, spans), self.count)


def _sums(code: Array, ns: Array, count: int) -> Array:
    # A float holds ns exactly up to 2^53, a hundred days.
    return np.bincount(code, ns, count).astype(np.int64)


def rank_ranges(
    host_ranges: pa.Table,
    launches: pa.Table,
    ledger_ops: pa.Table,
    ledger_intervals: pa.Table,
    host_steps: pa.Table,
    callers: Callers,
) -> pa.Table:
    """Annotations and frames of the program's own code on the threads that launch on each GPU, a step; of a trace in which no steps are
    known, over all of it. Ranges that mark steps are none, nor are those of communication libraries."""
    code, names = frames.codes(host_ranges, "name")
    marks = set(host_steps["name"].to_pylist())
    wanted = frames.equals(host_ranges, "category", "annotation", "nvtx")
    wanted &= frames.passing(code, names, lambda name: name not in marks and _says_where(name), wanted)
    framed = frames.equals(host_ranges, "category", "python")
    framed &= frames.passing(code, names, is_user_frame, framed)
    wanted |= framed
    if not wanted.any():
        return RANK_RANGES.empty()
    ranges, tiles = _Ranges(host_ranges, code, names, wanted, framed, callers), frames.by_device(ledger_intervals)
    tables = []
    for key, ops in frames.split(ledger_ops):
        tables.append(_of_gpu(key, ops, tiles[key], ranges, launches, host_steps))
        forget()
    return frames.stack(RANK_RANGES, tables)


def _says_where(name: str) -> bool:
    return not is_step_name(name) and not name.lower().startswith(("nccl:", "nccl", "c10d::"))


@dataclass(frozen=True)
class _Ranges:
    table: pa.Table
    code: Array
    names: list[str | None]
    wanted: frames.Flags
    framed: frames.Flags
    callers: Callers


def _of_gpu(
    key: frames.Key, ops: pa.Table, tiles: pa.Table, ranges: _Ranges, launches: pa.Table, host_steps: pa.Table
) -> pa.Table:
    at = call_of(frames.ints(ops, "row"), launches)
    known = np.flatnonzero((at >= 0) & ~frames.equals(ops, "class", "communication"))
    rank, process, thread, called = (
        frames.ints(launches, c)[at[known]] for c in ("rank", "process", "thread", "start_ns")
    )
    if not len(known):
        return RANK_RANGES.empty()
    step = steps_at(host_steps, rank, process, called)
    counted = step != NULL
    steps = len(_firsts(process[counted], step[counted]))
    if steps:
        known, rank, process, thread, called = (c[counted] for c in (known, rank, process, thread, called))
    table, count = ranges.table, len(ranges.names)
    callers = _firsts(rank, process, thread)
    keys = set(zip(*(column[callers].tolist() for column in (rank, process, thread)), strict=True))
    mine = np.zeros(table.num_rows, bool)
    for key_of_thread, of_thread in ranges.callers.threads.items():
        mine[of_thread] = key_of_thread in keys
    rows = np.flatnonzero(ranges.wanted & mine)
    start, end = frames.ints(table, "start_ns")[rows], frames.ints(table, "end_ns")[rows]
    of_rank, of_process = (frames.ints(table, c)[rows] for c in ("rank", "process"))
    inside = steps_at(host_steps, of_rank, of_process, start)
    if steps:
        counted = inside != NULL
        rows, start, end, inside = rows[counted], start[counted], end[counted], inside[counted]
    seen = ranges.code[rows][_firsts(ranges.code[rows], inside)]
    host = _Named(ranges.code[rows], start, end, count).union()
    idle = _idle(tiles)
    times = {"host": host.total(), "idle": host.within(idle)}
    where, name = _launched(ranges, rank, process, thread, called)
    low, high = (frames.ints(ops, c)[known] for c in ("start_ns", "end_ns"))
    made_of = {line: of[known] for line, of in by_line(ops).items()}
    for column, lines in (("computing", (COMPUTE,)), ("copying", (EXPOSED_MEMCPY, EXPOSED_MEMSET))):
        own = np.any([made_of[line.name] for line in lines], axis=0)[where]
        times[column] = _Named(name[own], low[where[own]], high[where[own]], count).union().total()
    most = np.max(list(times.values()), axis=0)
    best = np.argsort(-most, kind="stable")[:MOST_RANGES]
    best = best[most[best] > JITTER * frames.duration(tiles).sum()]
    is_frame = np.zeros(count, bool)
    is_frame[ranges.code[ranges.framed]] = True
    return frames.build(
        RANK_RANGES,
        {"rank": np.full(len(best), key[0]), "device": np.full(len(best), key[1])}
        | {"name": frames.names(best, ranges.names), "frame": pa.array(is_frame[best])}
        | {"step": frames.numbers(np.full(len(best), _mean_step(host_steps, rank) if steps else NULL))}
        | {"steps": np.full(len(best), steps), "seen": np.bincount(seen, minlength=count)[best]}
        | {column: of[best] // max(steps, 1) for column, of in times.items()},
    )


def _firsts(*columns: Array) -> Array:
    """The first row of each combination of values."""
    return frames.firsts(frames.dense(*columns))


def _mean_step(host_steps: pa.Table, rank: Array) -> int:
    lengths = frames.duration(host_steps)[np.isin(frames.ints(host_steps, "rank"), rank)]
    return int(lengths.mean()) if len(lengths) else NULL


def _idle(tiles: pa.Table) -> Spans:
    # The tiles of a GPU do not overlap.
    idle = np.flatnonzero(frames.equals(tiles, "line", *(line.name for line in IDLE.values())))
    return union(frames.ints(tiles, "start_ns").take(idle), frames.ints(tiles, "end_ns").take(idle))


def _launched(ranges: _Ranges, rank: Array, process: Array, thread: Array, called: Array) -> tuple[Array, Array]:
    """Each call beside each of the wanted ranges around it: (position of the call, code of the name)."""
    row = ranges.callers.nearest(ranges.callers.around(rank, process, thread, called), ranges.wanted)
    at, found = np.arange(len(row)), []
    above = np.append(ranges.callers.parent, -1)
    while len(some := np.flatnonzero(row >= 0)):
        at, row = at[some], row[some]
        found.append((at, ranges.code[row]))
        row = ranges.callers.nearest(above[row], ranges.wanted)
    if not found:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    return np.concatenate([one for one, _ in found]), np.concatenate([name for _, name in found])


def extra_ranges(rank_ranges: pa.Table, ledger: pa.Table) -> pa.Table:
    """For each GPU and kind of time the range that it spends most of it in beyond the median GPU; `rank_ranges` holds those of the job.

    Annotations come before frames. Of ranges within each other, one that the median GPU lacks is named by the outermost, else the one
    that holds least besides.
    """
    key = [frames.ints(rank_ranges, c) for c in ("rank", "device")]
    lane = frames.dense(*key)
    lanes, (name, names) = ledger.num_rows, frames.codes(rank_ranges, "name")
    if lanes < 2 or not rank_ranges.num_rows:
        return EXTRA_RANGES.empty()
    step = frames.ints(rank_ranges, "step")
    framed, host = frames.flags(rank_ranges, "frame"), frames.ints(rank_ranges, "host")
    rows = []
    for column in RANGE_TIMES:
        time = frames.ints(rank_ranges, column)
        more = beyond_median(name, lane, time, lanes)
        length = np.maximum(time, host)
        absent = beyond_median(name, lane, length, lanes) == length
        says = absent | (step == NULL) | (host < NEARLY_ALL * step)
        for _, own in frames.together(lane):
            for kind in (False, True):
                some = own[(framed[own] == kind) & (more[own] > 0) & says[own]]
                if not len(some):
                    continue
                some = some[more[some] >= NEARLY_ALL * more[some].max()]
                only = some[absent[some]]
                best = only[np.argmax(length[only])] if len(only) else some[np.argmin(length[some])]
                rows.append(
                    {"rank": int(key[0][best]), "device": int(key[1][best]), "column": column}
                    | {"name": frame_text(str(names[name[best]])) if kind else names[name[best]], "frame": kind}
                    | {"time": int(length[best]), "more": int(more[best]), "only": bool(absent[best])}
                    | {c: rank_ranges[c][int(best)].as_py() for c in ("steps", "seen")}
                )
    return pa.Table.from_pylist(rows, schema=EXTRA_RANGES.schema)
