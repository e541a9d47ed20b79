"""Requests that the allocator could not serve: what was asked for, what was free, and who held the rest."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer import intervals
from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL
from traceanalyzer.evidence.memory_snapshot.answers import words
from traceanalyzer.evidence.memory_snapshot.answers.history import GIVEN_BACK, OUT_OF_MEMORY, History
from traceanalyzer.evidence.memory_snapshot.answers.judged import Judged
from traceanalyzer.evidence.memory_snapshot.answers.reserve import by_gpu, places_of
from traceanalyzer.evidence.memory_snapshot.derived_tables import SNAPSHOT_OOMS
from traceanalyzer.intervals import Array


def snapshot_ooms(histories: list[Judged], snapshot_segments: pa.Table) -> pa.Table:
    """One row for each time that a GPU was out of memory."""
    segments = by_gpu(snapshot_segments)
    rows = [row for one in histories for row in _failures(one, segments[one.history.key])]
    return pa.Table.from_pylist(rows, schema=SNAPSHOT_OOMS.schema)


def _failures(one: Judged, segments: pa.Table) -> list[dict[str, object]]:
    history = one.history
    failed = history.events.filter(pa.array(frames.equals(history.events, "kind", OUT_OF_MEMORY)))
    if not failed.num_rows:
        return []
    entry = frames.ints(failed, "entry")
    born = np.searchsorted(np.sort(history.born), entry, side="right")
    row_of_last = np.append(np.flatnonzero(np.diff(born)), len(born) - 1)
    times = np.diff(row_of_last, prepend=-1)
    return [
        _failure(one, failed, int(row), int(count), segments) for row, count in zip(row_of_last, times, strict=True)
    ]


def _failure(one: Judged, failed: pa.Table, row: int, times: int, segments: pa.Table) -> dict[str, object]:
    history, event = one.history, failed.slice(row, 1).to_pylist()[0]
    entry, asked, free = event["entry"], event["bytes"], event["device_free_bytes"]
    allocated, reserved = (int(curve.at(np.array([entry]))[0]) for curve in (history.allocated, history.reserved))
    unused, alive = reserved - allocated, history.alive(entry)
    held = one.owners.bytes_of(alive, history.size)
    owner = int(held.argmax()) if alive.any() else None
    ended = not bool((history.born > entry).any())
    largest = _largest_free(history, entry, segments)
    code, places = places_of(failed, one.owners.placed)
    return {
        **dict(zip(("rank", "device"), history.key, strict=True)),
        "start_ns": event["time_ns"],
        "end_ns": event["time_ns"],
        "asked": asked,
        "place": places[int(code[row])],
        "device_free": free,
        "allocated": allocated,
        "reserved": reserved,
        "unused": unused,
        "largest_free": largest,
        "free": words.free_memory(unused, largest, free),
        "fragmented": unused > 0 and asked <= unused + (free or 0) and (free is None or asked > free),
        "owner": one.owners.names[owner][0] if owner is not None else None,
        "owner_bytes": int(held[owner]) if owner is not None else None,
        "given_back": _given_back(history, entry),
        "limited": free is not None and asked <= free,
        "ended": ended,
        "fit": words.fitting(asked, unused, free),
        "last": row == failed.num_rows - 1,
        "times": times,
    }


def _given_back(history: History, entry: int) -> int:
    """What was given back to the driver since the block that was handed out last: the allocator empties its cache before it fails."""
    events = history.driver_events
    at, before = frames.ints(events, "entry"), history.born[history.born < entry].max(initial=-1)
    rows = (at > before) & (at < entry) & frames.equals(events, "kind", *GIVEN_BACK)
    return int(frames.ints(events, "bytes")[rows].sum())


def _largest_free(history: History, entry: int, segments: pa.Table) -> int | None:
    """The largest piece in one address range that was reserved but not in use; None where pieces were mapped one by one."""
    changes = np.concatenate((history.born, history.released[history.released < history.after]))
    unchanged = not bool((changes > entry).any())
    start, end = frames.ints(segments, "start_entry"), frames.ints(segments, "end_entry")
    there = ((start == NULL) | (start <= entry)) & ((end == NULL) | (end > entry))
    held = segments.filter(pa.array(there))
    if unchanged and held.num_rows and frames.ints(held, "largest_free_bytes").min() != NULL:
        return int(frames.ints(held, "largest_free_bytes").max())
    if not held.num_rows or frames.flags(held, "expandable").any():
        return None
    begin, alive = _addresses(held), history.blocks.filter(pa.array(history.alive(entry)))
    end, block = begin + frames.ints(held, "bytes"), _addresses(alive)
    used = intervals.union(block, block + frames.ints(alive, "bytes"))
    free = intervals.complement(used, int(begin.min()), int(end.max()))
    # No block lies in two segments, not even where these touch.
    _, low, high = intervals.pieces(begin, end, free)
    return int((high - low).max(initial=0))


def _addresses(table: pa.Table) -> Array:
    address: Array = pc.fill_null(table["address"], 0).to_numpy().view(np.int64)
    return address
