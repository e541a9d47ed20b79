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
    waits, count = told.num_rows, told.num_rows + launches.num_rows
    stream = frames.dense(*(np.concatenate((frames.ints(told, c), frames.ints(launches, c))) for c in _STREAM))
    time = np.concatenate((frames.ints(told, "time_ns"), frames.ints(launches, "start_ns")))
    is_launch = np.arange(count) >= waits
    order = np.lexsort((is_launch, time, stream))
    # A launch right behind a wait, in the order in which its stream was told.
    behind = np.zeros(count, bool)
    behind[order[1:]] = ~is_launch[order[:-1]] & (stream[order[1:]] == stream[order[:-1]])
    held: frames.Flags = behind[waits:]
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
    known = api_calls.filter(api_calls["correlation"].is_valid())
    keys = ("rank", "process", "correlation")
    asked = [frames.ints(waits, c) for c in ("rank", "process", "on_correlation")]
    key = frames.packed(*(np.concatenate((ids, frames.ints(known, c))) for ids, c in zip(asked, keys, strict=True)))
    recorded = _first(key[waits.num_rows :], frames.ints(known, "start_ns"), key[: waits.num_rows])
    recorded = np.where(asked[2] > 0, recorded, NULL)
    asked = [frames.ints(waits, c) for c in ("rank", "process", "on_stream")]
    stream = frames.packed(
        *(
            np.concatenate((ids, frames.ints(launches, c)))
            for ids, c in zip(asked, ("rank", "process", "stream"), strict=True)
        )
    )
    launched = _first(stream[waits.num_rows :], frames.ints(launches, "start_ns"), stream[: waits.num_rows])
    shown: frames.Flags = (launched != NULL) & (recorded != NULL) & (launched < recorded)
    return shown


def _first(keys: Array, time: Array, wanted: Array) -> Array:
    """For each wanted key the earliest time among the rows that have it, `NULL` where none has."""
    order = np.lexsort((time, keys))
    at = np.searchsorted(keys[order], wanted)
    found = at < len(order)
    found[found] = keys[order[at[found]]] == wanted[found]
    result = np.full(len(wanted), NULL)
    result[found] = time[order[at[found]]]
    return result
