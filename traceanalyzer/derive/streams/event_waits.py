"""Streams that were told to wait for an event of another stream, which the trace does not show to have happened long before."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL
from traceanalyzer.intervals import Array

_STREAM = ("rank", "process", "device", "stream")


def held_by_event(stream_events: pa.Table, launches: pa.Table, api_calls: pa.Table) -> frames.Flags:
    """Which launches are the first on their stream after it was told to wait for another stream's event.

    Not where the trace shows the work that the event stands for: when that ended is told by its operations.
    """
    told = _waits(stream_events)
    if not told.num_rows or not launches.num_rows:
        return np.zeros(launches.num_rows, bool)
    told = told.filter(pa.array(~_shown(told, launches, api_calls)))
    held = np.zeros(launches.num_rows, bool)
    start, time = frames.ints(launches, "start_ns"), frames.ints(told, "time_ns")
    by_stream = dict(frames.together(*(frames.ints(launches, c) for c in _STREAM)))
    for stream, waits in frames.together(*(frames.ints(told, c) for c in _STREAM)):
        rows = by_stream.get(stream, waits[:0])
        rows = rows[np.argsort(start[rows], kind="stable")]
        # The launch right behind each wait, in the order in which the stream was told.
        behind = np.searchsorted(start[rows], time[waits], side="left")
        held[rows[behind[behind < len(rows)]]] = True
    return held


def _waits(stream_events: pa.Table) -> pa.Table:
    """The waits for events of other streams, with the stream and the call that recorded each of them, as far as they are known."""
    waits, records = (
        stream_events.filter(pa.array(frames.equals(stream_events, "kind", kind))) for kind in ("wait", "record")
    )
    count = records.num_rows
    both = [np.concatenate((frames.ints(records, c), frames.ints(waits, c))) for c in ("rank", "process", "event")]
    event = frames.dense(*both)
    call = np.concatenate((frames.ints(records, "correlation"), frames.ints(waits, "correlation")))
    # The last record of the event before the wait: calls are numbered in their order.
    order = np.lexsort((call, event))
    last = np.maximum.accumulate(np.where(order < count, np.arange(len(order)), -1))
    at = np.full(len(order), -1)
    at[order] = np.where(last >= 0, order[last], -1)
    at = at[count:]
    at = np.where((at >= 0) & (both[2][count:] != NULL) & (event[at] == event[count:]), at, -1)
    on_stream, on_call = frames.ints(waits, "on_stream"), frames.ints(waits, "on_correlation")
    on_stream = np.where(on_stream == NULL, frames.ints_at(records, "stream", at), on_stream)
    on_call = np.where(on_call == NULL, frames.ints_at(records, "correlation", at), on_call)
    for name, values in (("on_stream", on_stream), ("on_correlation", on_call)):
        waits = waits.set_column(waits.schema.get_field_index(name), name, frames.numbers(values))
    another = (on_stream != NULL) & (on_stream != frames.ints(waits, "stream"))
    return waits.filter(pa.array(another & (frames.ints(waits, "time_ns") != NULL)))


def _shown(waits: pa.Table, launches: pa.Table, api_calls: pa.Table) -> frames.Flags:
    """Whether an operation is known that was launched on the event's stream before the event was recorded there."""
    keys = ("rank", "process", "correlation")
    asked = [frames.ints(waits, c) for c in ("rank", "process", "on_correlation")]
    known = frames.ints(api_calls, "correlation")
    some = np.flatnonzero(frames.among(known, asked[2]) & (known != NULL))
    key = frames.packed(
        *(np.concatenate((ids, frames.ints(api_calls, c)[some])) for ids, c in zip(asked, keys, strict=True))
    )
    recorded = _first(key[waits.num_rows :], frames.ints(api_calls, "start_ns")[some], key[: waits.num_rows])
    recorded = np.where(asked[2] > 0, recorded, NULL)
    # Streams are few: when work was first launched on each is looked up once.
    of = frames.told_apart(launches, "rank", "process", "stream")
    first = frames.firsts(of)
    earliest = np.full(len(first), np.iinfo(np.int64).max)
    np.minimum.at(earliest, of, frames.ints(launches, "start_ns"))
    asked = [frames.ints(waits, c) for c in ("rank", "process", "on_stream")]
    stream = frames.packed(
        *(
            np.concatenate((ids, frames.ints(launches, c).take(first)))
            for ids, c in zip(asked, ("rank", "process", "stream"), strict=True)
        )
    )
    launched = _first(stream[waits.num_rows :], earliest, stream[: waits.num_rows])
    shown: frames.Flags = (launched != NULL) & (recorded != NULL) & (launched < recorded)
    return shown


def _first(keys: Array, time: Array, wanted: Array) -> Array:
    """For each wanted key the earliest time among the rows that have it, `NULL` where none has."""
    distinct = np.unique(wanted)
    at = np.searchsorted(distinct, keys)
    some = np.append(distinct, NULL)[at] == keys
    earliest = np.full(len(distinct), np.iinfo(np.int64).max)
    np.minimum.at(earliest, at[some], time[some])
    found = earliest[np.searchsorted(distinct, wanted)]
    return np.where(found == np.iinfo(np.int64).max, NULL, found)
