"""What the section draws: memory over time by owner, the stacks of the peak, steps, and the levels beside a timeline.

Of a long history a few hundred moments are kept: the first, the lowest and the highest of each stretch of as many events. Their values
are exact, and so the highest of all is among them.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL
from traceanalyzer.evidence.memory_snapshot.answers.history import Curve, History
from traceanalyzer.evidence.memory_snapshot.answers.judged import Judged
from traceanalyzer.evidence.memory_snapshot.derived_tables import (
    SNAPSHOT_LANES,
    SNAPSHOT_LEVELS,
    SNAPSHOT_PATHS,
    SNAPSHOT_STEPS,
)
from traceanalyzer.intervals import Array
from traceanalyzer.places import frame_text

STRETCHES = 150
LANE_STRETCHES = 600
LAST_STEPS = 3
"""So many steps at the end are drawn apart: what comes before a program has settled in often takes longer than all of its steps."""
SHOWN_OWNERS = 7
"""So many owners have a colour of their own."""
MOST_PATHS = 500
OTHERS = "others"


def snapshot_levels(histories: list[Judged]) -> pa.Table:
    """The largest owners' memory at the kept moments of each GPU, and what all others have."""
    return frames.stack(SNAPSHOT_LEVELS, [_levels(one) for one in histories if one.history.has_history])


def kept_moments(curve: Curve, stretches: int) -> Array:
    """Entries of a level: of each stretch of as many changes the first, the lowest and the highest, ascending."""
    count = len(curve.level)
    if count <= 3 * stretches:
        return curve.entry
    starts = np.linspace(0, count, stretches + 1).astype(np.int64)[:-1]
    stretch = np.repeat(np.arange(stretches), np.diff(np.append(starts, count)))
    by_level = np.lexsort((curve.level, stretch))
    ends = np.append(starts[1:], count) - 1
    rows = np.unique(np.concatenate((starts, by_level[starts], by_level[ends], [curve.peak_at, count - 1])))
    kept: Array = curve.entry[rows]
    return kept


def _drawn(one: Judged) -> Array:
    """The moments of the whole history and, closer together, of its last steps."""
    curve = one.history.allocated
    if one.periods.count <= LAST_STEPS:
        return kept_moments(curve, STRETCHES)
    first, last = np.searchsorted(curve.entry, one.periods.bounds[[-LAST_STEPS - 1, -1]]).tolist()
    steps = Curve(curve.entry[first:last], curve.level[first:last])
    close = kept_moments(steps, STRETCHES) if last > first else steps.entry
    return np.union1d(kept_moments(curve, STRETCHES), close)


def _levels(one: Judged) -> pa.Table:
    history, owners = one.history, one.owners
    entries = _drawn(one)
    peak = owners.bytes_of(history.alive(one.peak_entry), history.size)
    end = owners.bytes_of(history.alive(history.after - 1), history.size)
    shown = np.lexsort((-end, -peak))[:SHOWN_OWNERS]
    shown = shown[(peak[shown] > 0) | (end[shown] > 0)]
    levels = [_level_of(history, owners.number == number, entries) for number in shown.tolist()]
    rest = history.allocated.at(entries) - np.sum(levels, axis=0, dtype=np.int64)
    labels = [label_of(*owners.names[number]) for number in shown.tolist()]
    if rest.any():
        levels, labels = [*levels, rest], [*labels, OTHERS]
    count, series = len(entries), len(levels)
    columns = {
        "rank": np.full(count * series, history.key[0]),
        "device": np.full(count * series, history.key[1]),
        "series": np.repeat(np.arange(series), count),
        "time_ns": np.tile(history.time_at(entries), series),
        "label": pa.array(np.repeat(np.array(labels, object), count).tolist(), pa.string()),
        "bytes": np.concatenate(levels) if levels else np.empty(0, np.int64),
        "reserved": np.tile(history.reserved.at(entries), series),
    }
    return frames.build(SNAPSHOT_LEVELS, columns)


def label_of(place: str, what: str | None) -> str:
    """An owner in a legend or a table."""
    return f"{place}: {what}" if what and what not in place else place


def _level_of(history: History, rows: frames.Flags, entries: Array) -> Array:
    """Bytes of some blocks from each entry on."""
    born, released, size = history.born[rows], history.released[rows], history.size[rows]
    found = np.zeros(len(entries), np.int64)
    for at, sign in ((born, 1), (released, -1)):
        order = np.argsort(at, kind="stable")
        total = np.append(0, np.cumsum(size[order]))
        found += sign * total[np.searchsorted(at[order], entries, side="right")]
    return found


def snapshot_steps(histories: list[Judged]) -> pa.Table:
    """The steps of each GPU's history."""
    tables = []
    for one in histories:
        time, count = one.history.time_at(one.periods.bounds), one.periods.count
        tables.append(
            frames.build(
                SNAPSHOT_STEPS,
                {
                    "rank": np.full(count, one.history.key[0]),
                    "device": np.full(count, one.history.key[1]),
                    "index": np.arange(count),
                    "start_ns": time[:count],
                    "end_ns": time[1:] if count else time[:0],
                },
            )
        )
    return frames.stack(SNAPSHOT_STEPS, tables)


def snapshot_paths(histories: list[Judged], snapshot_frames: pa.Table) -> pa.Table:
    """The stacks that hold most at the peak of each GPU, the largest first."""
    order = np.lexsort((-frames.ints(snapshot_frames, "position"), frames.ints(snapshot_frames, "stack")))
    by_rank = frames.by_rank(_in_ranks(snapshot_frames.take(pa.array(order))))
    rows = [row for one in histories for row in _paths(one, by_rank[one.history.key[0]])]
    return pa.Table.from_pylist(rows, schema=SNAPSHOT_PATHS.schema)


def _in_ranks(table: pa.Table) -> pa.Table:
    return table.take(pa.array(np.argsort(frames.ints(table, "rank"), kind="stable")))


def _paths(one: Judged, of_rank: pa.Table) -> list[dict[str, object]]:
    history = one.history
    alive = np.flatnonzero(history.alive(one.peak_entry))
    stack, size = history.stack[alive], history.size[alive]
    numbers, at = np.unique(stack, return_inverse=True)
    held, blocks = np.bincount(at, size, len(numbers)).astype(np.int64), np.bincount(at, minlength=len(numbers))
    frame_stack = frames.ints(of_rank, "stack")
    found = []
    for i in np.argsort(-held, kind="stable")[:MOST_PATHS].tolist():
        number = int(numbers[i])
        if number == NULL:
            owners = one.owners.number[alive[stack == NULL]]
            path = [one.owners.names[int(np.bincount(owners).argmax())][0]]
        else:
            low, high = np.searchsorted(frame_stack, (number, number + 1))
            part = of_rank.slice(int(low), int(high - low)).select(["file", "line", "name"]).to_pylist()
            path = [frame_text("{file}({line}): {name}".format(**row)) if row["file"] else row["name"] for row in part]
        found.append(
            {
                **dict(zip(("rank", "device"), history.key, strict=True)),
                "path": path,
                "bytes": int(held[i]),
                "blocks": int(blocks[i]),
            }
        )
    return found


def snapshot_lanes(histories: list[Judged], ledger: pa.Table, memory_stats: pa.Table) -> pa.Table:
    """What is in use and what is reserved within the window of each GPU whose clock the snapshot shares.

    Not of GPUs of whose memory the trace tells itself: that is the same, and one lane is enough.
    """
    windows = {(row["rank"], row["device"]): (row["start_ns"], row["end_ns"]) for row in ledger.to_pylist()}
    for row in memory_stats.select(["rank", "device"]).to_pylist():
        windows.pop((row["rank"], row["device"]), None)
    tables = [_lane(one, *windows[one.history.key]) for one in histories if one.history.key in windows]
    return frames.stack(SNAPSHOT_LANES, tables)


def _lane(one: Judged, start: int, end: int) -> pa.Table:
    history = one.history
    first, last = history.entry_at(np.array([start, end])).tolist()
    curve = history.allocated
    low, high = (int(np.searchsorted(curve.entry, at, side="left")) for at in (first, last))
    if high <= low:
        return SNAPSHOT_LANES.empty()
    entries = kept_moments(Curve(curve.entry[low:high], curve.level[low:high]), LANE_STRETCHES)
    times, allocated, reserved = history.time_at(entries), curve.at(entries), history.reserved.at(entries)
    if history.has_history and int(history.time_at(np.array([0]))[0]) <= start < int(times[0]):
        # What holds when the window begins is known.
        first_entry = np.array([first])
        times = np.append(start, times)
        allocated = np.append(curve.before(first_entry), allocated)
        reserved = np.append(history.reserved.before(first_entry), reserved)
    columns = {
        "rank": np.full(len(times), history.key[0]),
        "device": np.full(len(times), history.key[1]),
        "time_ns": times,
        "allocated": allocated,
        "reserved": reserved,
    }
    return frames.build(SNAPSHOT_LANES, columns)
