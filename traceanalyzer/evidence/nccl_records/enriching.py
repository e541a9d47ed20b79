"""What the flight recorder adds to the trace that it is beside: the numbers of its collectives, and names and sizes where it has none.

A call is recorded while the operator that makes it runs, so its time lies within that operator's range, and so does the launch of its
kernel. Only where one call lies in one range, and what both say of the collective agrees, it is the same.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL
from traceanalyzer.intervals import Array
from traceanalyzer.model.schema import HEALTH
from traceanalyzer.model.tables import Tables
from traceanalyzer.records import dataclass
from traceanalyzer.vocabulary.health import RANKS_IN_DOUBT
from traceanalyzer.vocabulary.levels import LOW

_OPERATOR = "record_param_comms"
_FEWEST = 8
"""Calls that it takes to say that they are not the trace's."""
_LONGEST = 64
"""Ranges in a row that are looked for among the calls: so many in the same rhythm are no chance."""
_MOST_CALLS = 1 << 18


@dataclass(frozen=True)
class _Ranges:
    """Ranges of the operators that call collectives, by start."""

    start: Array
    end: Array
    thread: Array

    def around(self, time: Array) -> Array:
        """The range that each moment lies in; -1 where it lies in none or in several."""
        place = np.searchsorted(self.start, time, "right") - 1
        ended = np.searchsorted(np.sort(self.end), time, "left")
        found = (place >= 0) & (place + 1 - ended == 1)
        found &= np.where(place >= 0, self.end[np.maximum(place, 0)] >= time, False)
        return np.where(found, place, -1)


def fits(own: Tables, trace: Tables) -> bool | None:
    """Results of nccl-tests are of no run, and stand beside any; calls are of the trace whose operators come in the same rhythm."""
    calls = own.table("nccl_calls")
    if not calls.num_rows:
        return True if own.table("nccl_link_tests").num_rows else None
    ranges = _ranges(trace.table("host_ranges"))
    created = np.sort(frames.ints(calls, "created_ns"))
    created = created[created != NULL]
    count = min(len(ranges.start), _LONGEST)
    if count < _FEWEST or not count <= len(created) <= _MOST_CALLS:
        return None
    windows = np.lib.stride_tricks.sliding_window_view(created, count)
    early = (windows - ranges.end[:count]).max(axis=1)
    late = (windows - ranges.start[:count]).min(axis=1)
    return True if int((early <= late).sum()) == 1 else None


def enrich(own: Tables, trace: Tables, on_clock: bool) -> Mapping[str, pa.Table]:
    """The trace's `collectives` with what the calls say of them, or its `health` with a note where they are not the trace's."""
    calls, collectives = own.table("nccl_calls"), trace.table("collectives")
    created = frames.ints(calls, "created_ns")
    if not on_clock or not collectives.num_rows or not (created != NULL).any():
        return {}
    ranges = _ranges(trace.table("host_ranges"))
    if not len(ranges.start):
        return {}
    call_range = np.where(created != NULL, ranges.around(np.maximum(created, 0)), -1)
    within = (created >= ranges.start[0]) & (created <= ranges.end.max())
    if within.sum() >= _FEWEST and 2 * (call_range[within] >= 0).sum() < within.sum():
        return {"health": _doubted(trace.table("health"), collectives["rank"][0].as_py(), int(within.sum()))}
    call = _only(call_range, len(ranges.start))
    kernel_range = _launched_in(collectives, trace.table("api_calls"), ranges)
    at = np.where(kernel_range >= 0, call[np.maximum(kernel_range, 0)], -1)
    # Several kernels of one range are parts of what several calls ask for together.
    at = np.where(
        (kernel_range >= 0) & (_only(kernel_range, len(ranges.start))[np.maximum(kernel_range, 0)] >= 0), at, -1
    )
    agree = _agree(calls, collectives, at)
    if (at >= 0).sum() > 2 * agree.sum():
        return {}
    at = np.where(agree, at, -1)
    return {"collectives": _filled(collectives, calls, at)} if (at >= 0).any() else {}


def _ranges(host_ranges: pa.Table) -> _Ranges:
    """Ranges called nccl:..., else those of the operator around them."""
    named = frames.where(host_ranges, "name", lambda name: name.startswith(("nccl:", "xccl:")))
    if not named.any():
        named = frames.equals(host_ranges, "name", _OPERATOR)
    rows = np.flatnonzero(named)
    start, end, thread = (frames.ints(host_ranges, name)[rows] for name in ("start_ns", "end_ns", "thread"))
    order = np.argsort(start, kind="stable")
    return _Ranges(start[order], end[order], thread[order])


def _only(ranges: Array, count: int) -> Array:
    """By range, the only thing that lies in it; -1 where there is none, or several."""
    inside = np.flatnonzero(ranges >= 0)
    number = np.bincount(ranges[inside], minlength=count)
    found = np.full(count, -1)
    found[ranges[inside]] = inside
    return np.where(number == 1, found, -1)


def _launched_in(collectives: pa.Table, api_calls: pa.Table, ranges: _Ranges) -> Array:
    """The range in which the kernel of each collective was launched, on the thread of that range; -1 where that is not known."""
    correlation, own = frames.ints(api_calls, "correlation"), frames.ints(collectives, "correlation")
    if not len(correlation):
        return np.full(len(own), -1)
    order = np.argsort(correlation, kind="stable")
    place = np.minimum(np.searchsorted(correlation[order], own), len(order) - 1)
    call = np.where((correlation[order][place] == own) & (own != NULL), order[place], -1)
    start, thread = (frames.ints(api_calls, name)[np.maximum(call, 0)] for name in ("start_ns", "thread"))
    found = np.where(call >= 0, ranges.around(start), -1)
    return np.where((found >= 0) & (ranges.thread[np.maximum(found, 0)] == thread), found, -1)


def _letters(name: str | None) -> str:
    found = "".join(filter(str.isalpha, name or "")).lower().removesuffix("base")
    # A barrier is an all-reduce of one element.
    return "allreduce" if found.endswith("barrier") else found


def _agree(calls: pa.Table, collectives: pa.Table, at: Array) -> npt.NDArray[np.bool_]:
    """Where a call is found and says nothing that the trace denies."""
    found = np.flatnonzero(at >= 0)
    agrees = np.zeros(len(at), bool)
    agrees[found] = True
    taken = pa.array(at[found])
    for own, theirs, read in (("operation", "name", _letters), ("group", "group", str), ("dtype", "dtype", str)):
        told = calls[own].take(taken).to_pylist()
        known = collectives[theirs].take(pa.array(found)).to_pylist()
        agrees[found] &= [None in (a, b) or read(a) == read(b) for a, b in zip(told, known, strict=True)]
    for own, theirs in (("in_elements", "elements"), ("sequence", "sequence")):
        told_number, known_number = frames.ints(calls, own)[at[found]], frames.ints(collectives, theirs)[found]
        agrees[found] &= (told_number == NULL) | (known_number == NULL) | (told_number == known_number)
    return agrees


def _filled(collectives: pa.Table, calls: pa.Table, at: Array) -> pa.Table:
    """With values of the calls where the trace has none."""
    taken = calls.take(pa.array(at, mask=at < 0))
    values = {name: taken[name] for name in ("sequence", "group", "dtype", "bytes")}
    values["elements"] = taken["in_elements"]
    for name, value in values.items():
        place = collectives.schema.get_field_index(name)
        field = collectives.schema.field(place)
        if pa.types.is_dictionary(field.type):
            plain = pc.coalesce(collectives[name].cast(pa.string()), value.cast(pa.string()))
            filled = plain.combine_chunks().dictionary_encode().cast(field.type)
        else:
            filled = pc.coalesce(collectives[name], value.cast(field.type))
        collectives = collectives.set_column(place, field, filled)
    return collectives


def _doubted(health: pa.Table, rank: int, count: int) -> pa.Table:
    note = {
        "code": RANKS_IN_DOUBT,
        "severity": LOW,
        "message": "calls in the flight recorder's dump were made at other times than those of the trace that it is beside: the file "
        "may be another rank's, and adds nothing to the trace",
        "count": count,
        "rank": rank,
    }
    return pa.concat_tables([health, pa.Table.from_pylist([note], HEALTH.schema)])
