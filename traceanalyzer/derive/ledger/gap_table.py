"""The table of gaps, made of a block of them after the other: what all of them take meanwhile is several times the table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL
from traceanalyzer.columns.in_blocks import InBlocks, alike, are_alike, each, joined, taken
from traceanalyzer.derive.host import activity_times
from traceanalyzer.derive.host.host import Host
from traceanalyzer.derive.launches.earlier_work import may_follow_earlier_work
from traceanalyzer.derive.launches.launches import crowded_launches
from traceanalyzer.derive.ledger.gap_names import NAMES, NUMBERS
from traceanalyzer.derive.ledger.gaps import (
    CAUSE,
    SAMPLED,
    Parts,
    add_samples,
    by_activity,
    gap_parts,
    host_and_launch,
    no_names,
    traced_names,
)
from traceanalyzer.derive.ledger.idle import Idle, IdleTimes
from traceanalyzer.derive.ledger.shared import Portion
from traceanalyzer.derive.ledger.tables import GAPS
from traceanalyzer.derive.streams.event_waits import held_by_event
from traceanalyzer.derive.streams.handover import HANDOVER_NS
from traceanalyzer.derive.streams.partners import Partners
from traceanalyzer.intervals import Array, latest
from traceanalyzer.places import frame_text
from traceanalyzer.vocabulary.lines import HOST_UNTRACED, IDLE_CAUSES, OS, QUEUED, SYNCHRONIZATION, UNATTRIBUTED

V = TypeVar("V", bound=np.generic)
Columns = dict[str, npt.NDArray[Any]]
BLOCK = 1 << 16
"""So many gaps at a time: what is held of them stays in the processor's caches."""
_LOOKED_UP = 1 << 18
_OF_HOST = (*NAMES, "wait_name", "launching_operator")
_OF_SAMPLES = ("start_ns", "end_ns", "cause", *NAMES, *NUMBERS)
"""What `_Making.finish` reads or tells."""


def gaps(
    ledger_ops: pa.Table,
    launches: pa.Table,
    api_calls: pa.Table,
    stream_events: pa.Table,
    page_faults: pa.Table,
    host: Host,
    host_steps: pa.Table,
    windows: pa.Table,
    portions: Mapping[frames.Key, Portion],
) -> pa.Table:
    """The parts of all gaps, sorted by (rank, device, start); the parts of one gap tile it.

    On a GPU that other files used too, a gap begins where all of them had fallen idle, and those that one of them ended are its own.
    """
    idle = IdleTimes(ledger_ops, launches, api_calls, page_faults, windows, portions)
    if not len(idle):
        return GAPS.empty()
    making = _Making(ledger_ops, launches, api_calls, stream_events, host, host_steps)
    made, of_gap = InBlocks(), InBlocks()
    for first in range(0, len(idle), BLOCK):
        parts, gaps, names = making.columns(idle.block(slice(first, min(first + BLOCK, len(idle)))))
        times = gaps.pop("parts")
        made.add(parts | {name: each(values, times) for name, values in gaps.items()})
        of_gap.add(names | {"parts": times})
    times = of_gap.take("parts")
    making.finish(made)
    lists = {"cause": IDLE_CAUSES, "activity": activity_times.NAMES, "sampled": SAMPLED, **making.lists}

    def column(name: str) -> pa.Array | pa.ChunkedArray:
        # Names of a whole gap are held once until here, where it is known which of them are used.
        where, often = (of_gap, times) if name in of_gap else (made, None)
        if name in _OF_HOST:
            return where.names(name, host.names, frame_text if name == "source" else None, often)
        if name in lists:
            return where.names(name, lists[name], times=often)
        return made.numbers(name, GAPS.schema.field(name).type)

    return frames.build(GAPS, {name: column(name) for name in GAPS.schema.names})


class _Making:
    """What the columns of a block are made of."""

    def __init__(
        self,
        ops: pa.Table,
        launches: pa.Table,
        api_calls: pa.Table,
        stream_events: pa.Table,
        host: Host,
        host_steps: pa.Table,
    ) -> None:
        self._host, self._places, self._ops = host, host.places_in_blocks(), ops
        # As if they had no call: what so many GPUs waited for is not told (`launches.MOST_GPUS`).
        self._crowd = crowded_launches(launches)
        self._held = held_by_event(stream_events, launches, api_calls)
        self._earlier = may_follow_earlier_work(ops, launches, api_calls)
        self._launch = frames.ints(launches, "start_ns")
        self._start, self._end = (frames.ints(ops, c) for c in ("start_ns", "end_ns"))
        self._api, apis = frames.short_codes(launches, "api_name")
        self._name, names = frames.short_codes(ops, "name")
        self._kind, kinds = frames.short_codes(ops, "kind")
        self.lists = {"api_name": apis, "previous_op_name": names, "next_op_name": names, "next_op_kind": kinds}
        self._steps = _Steps(host_steps)

    @cached_property
    def _partners(self) -> Partners:
        return Partners(self._ops)

    def columns(self, idle: Idle) -> tuple[Columns, Columns, Columns]:
        """Of some gaps all columns of `gaps`: those of a part, of a gap, with how many `parts` it has, and the names of a gap. Names
        are positions in a list, -1 for none, and numbers have `NULL`."""
        parts, names, operator = self._parts(idle)
        length = idle.end - idle.start
        # By gap and start: the parts of a gap tile it.
        order = np.argsort((np.cumsum(length) - idle.end).take(parts.gap) + parts.start, kind="stable")
        parts = parts.take(order)
        gap = parts.gap
        drained = np.zeros(len(length), bool)
        drained[gap[parts.is_cause(SYNCHRONIZATION.cause)]] = True
        # A pause as short as the hardware's own hides nothing.
        earlier = self._earlier.take(idle.op) & ~idle.tail & (length > HANDOVER_NS)
        tail, no_call = idle.tail, (idle.call < 0) | idle.tail
        of_gap: Columns = {
            "parts": np.bincount(gap, minlength=len(length)).astype(np.int32),
            "rank": idle.rank,
            "device": idle.device,
            "process": idle.process,
            "thread": idle.thread,
            "gap": idle.number,
            "gap_duration": length,
            "draining": drained,
            "launch_ns": _at(self._launch, idle.call, no_call),
            "next_op_duration": np.where(tail, NULL, self._end.take(idle.op) - self._start.take(idle.op)),
        }
        names_of_gap: Columns = {
            "api_name": _at(self._api, idle.call, no_call, -1),
            "launching_operator": _code(operator if are_alike(operator) else np.where(tail, NULL, operator)),
            "previous_op_name": _at(self._name, idle.before, idle.before == NULL, -1),
            "next_op_name": _at(self._name, idle.op, tail, -1),
            "next_op_kind": _at(self._kind, idle.op, tail, -1),
        }
        of_part: Columns = {
            "start_ns": parts.start,
            "end_ns": parts.end,
            "cause": parts.cause,
            "earlier_work": _earlier_parts(parts, earlier),
            "step": self._steps.at(idle.rank, idle.process, gap, parts.start),
            "activity": _code(parts.activity),
            "wait_name": _code(parts.wait),
            **{c: taken(values if c in NUMBERS else _code(values), order) for c, values in names.items()},
        }
        return of_part, of_gap, names_of_gap

    def _parts(self, idle: Idle) -> tuple[Parts, dict[str, Array], Array]:
        """The parts of some gaps, in no particular order, their names, and for each gap the operator that launched what ends it."""
        known = (idle.call >= 0) & ~_at(self._crowd, idle.call, idle.call < 0, True) | idle.faulted

        def partner(gap: Array) -> frames.Flags:
            call = idle.call[gap]
            return self._partners.of(idle.op[gap]) | _at(self._held, call, call < 0, False)

        parts, behind, host_end, launch_end = gap_parts(idle, known, partner)
        found = [no_names(sum(len(part.gap) for part in parts))]
        operator = np.full(len(idle.op), NULL, np.int64)
        # A thread may launch on many GPUs: what it did is looked at once for all of them.
        for who, rows in frames.together(*(column[behind] for column in (idle.rank, idle.process, idle.thread))):
            mine, lane = behind[rows], self._host.thread(*who)
            own = by_activity(host_and_launch(mine, idle.start, host_end, launch_end, lane), lane)
            places = partial(self._places.of, who)
            names, operator[mine] = traced_names(own, idle.call_start[mine], lane, places)
            found.append(names)
            parts.append(own)
        return Parts.joined(parts), {c: joined([names[c] for names in found]) for c in found[0]}, operator

    def finish(self, made: InBlocks) -> None:
        """What can only be told when all blocks are made: the names of places, and what samples tell of all parts of each thread."""
        lanes = {who: self._host.thread(*who) for who in self._places.threads}
        sampled = [who for who, lane in lanes.items() if lane.samples.tells]
        if not sampled:
            for who in lanes:
                self._places.settle(who)
            if self._places:
                place = made.take("place")
                for first in range(0, len(place), _LOOKED_UP):
                    made.add({"place": self._places.final(place[first : first + _LOOKED_UP])})
            return
        columns = {c: np.array(made.take(c)) for c in _OF_SAMPLES}
        some = np.flatnonzero(np.isin(columns["cause"], [CAUSE[one.cause] for one in (HOST_UNTRACED, OS)]))
        who_did = {c: made.take(c) for c in ("rank", "process", "thread")}
        rows = {who: some[mine] for who, mine in frames.together(*(taken(one, some) for one in who_did.values()))}
        made.add(who_did)
        told = []
        for who, lane in lanes.items():
            self._places.settle(who)
            if who in sampled and who in rows:
                part = {column: values[rows[who]] for column, values in columns.items()}
                found = {c: np.where(part[c] < 0, NULL, part[c].astype(np.int64)) for c in (*NAMES, *NUMBERS)}
                found["place"] = self._places.final(found["place"])
                own = Parts.of(rows[who], part["start_ns"], part["end_ns"], HOST_UNTRACED.cause)
                add_samples(replace(own, cause=part["cause"]), found, lane, self._host)
                told.append((rows[who], found))
        columns["place"] = self._places.final(columns["place"])
        for mine, found in told:
            for column, values in found.items():
                columns[column][mine] = np.maximum(values, -1) if column in NAMES else values
        made.add(columns)


class _Steps:
    """The steps of each process, to tell the one in which a time lies."""

    def __init__(self, host_steps: pa.Table) -> None:
        start, end, index = (frames.ints(host_steps, c) for c in ("start_ns", "end_ns", "index"))
        self._of = {}
        for who, rows in frames.together(*(frames.ints(host_steps, c) for c in ("rank", "process"))):
            mine = rows[np.argsort(start[rows], kind="stable")]
            self._of[who] = start[mine], end[mine], np.append(index[mine], NULL)

    def at(self, rank: Array, process: Array, of: Array, time: Array) -> Array:
        """As `steps_at`, of rows each of which is `of` a position in ranks and processes."""
        keys = [who for who, _ in frames.together(rank, process)]
        if not any(who in self._of for who in keys):
            return alike(NULL, len(time))
        found = np.full(len(time), NULL)
        for who in keys:
            if who in self._of:
                start, end, index = self._of[who]
                rows = slice(None) if len(keys) == 1 else np.flatnonzero(((rank == who[0]) & (process == who[1]))[of])
                found[rows] = index[latest(start, end, time[rows])]
        return found


def _earlier_parts(parts: Parts, earlier: frames.Flags) -> frames.Flags:
    """Which parts hide earlier work, given which gaps may."""
    if not earlier.any():
        return np.broadcast_to(np.False_, len(parts.gap))
    return earlier[parts.gap] & parts.is_cause(QUEUED.cause, UNATTRIBUTED.cause)


def _code(values: Array) -> npt.NDArray[np.int32]:
    """Positions in a list of names in 32 bits, -1 for `NULL`."""
    if are_alike(values):
        return np.broadcast_to(np.int32(max(values[0], -1)), len(values)) if len(values) else values.astype(np.int32)
    return np.maximum(values, -1).astype(np.int32)


def _at(values: npt.NDArray[V], index: Array, absent: frames.Flags, none: int = NULL) -> npt.NDArray[V]:
    """The values at these positions, `none` for those that are absent."""
    if not absent.any():
        return taken(values, index)
    found = np.full(len(index), none, values.dtype)
    found[~absent] = values[index[~absent]]
    return found
