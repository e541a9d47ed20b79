"""Work that the legacy default stream keeps in line: what ran one after another though it was ready, on streams of its own.

An operation on that stream begins when all that was launched before it on the process's blocking streams is done, and nothing that is
launched behind it on one of those begins before it is done. So one small kernel, copy or memset there parts the work of all of them.
Streams made with cudaStreamNonBlocking take no part.
Source: CUDA Programming Guide, implicit synchronization and the default stream.
"""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL
from traceanalyzer.columns.in_blocks import are_alike
from traceanalyzer.columns.lean import in_one
from traceanalyzer.derive.launches.launches import call_of
from traceanalyzer.derive.streams.handover import HANDOVER_NS
from traceanalyzer.derive.streams.hardware_queues import free_from
from traceanalyzer.derive.streams.tables import HELD_WORK
from traceanalyzer.derive.streams.transfers import computes
from traceanalyzer.intervals import Array

LEAST_NS = 5_000
"""Less than that is the time in which a launch arrives."""
THREADS_OF_SM = 2048
"""At most so many threads run on a multiprocessor at once; a kernel with half of what fits leaves room for another."""
_STREAM = ("rank", "process", "stream")
_FALLBACK = {"amd": 0}
_CUDA_DEFAULT = 7
_WAITS = re.compile(r"StreamWaitEvent")
_OWN_STREAMS = ("pytorch", "jax", "tensorflow", "cupy")
"""Frameworks whose streams do not block, or that place work on streams themselves."""


def held_work(
    ledger_ops: pa.Table,
    launches: pa.Table,
    stream_events: pa.Table,
    api_calls: pa.Table,
    devices: pa.Table,
    program: pa.Table,
) -> pa.Table:
    """Each operation that was ready while another of the process ran, on streams that the legacy default stream keeps in line."""
    role, known = roles(ledger_ops, stream_events, program)
    if not all((role == one).any() for one in (DEFAULT, BLOCKING)):
        return HELD_WORK.empty()
    waits = api_calls.select(["rank", "process", "start_ns"]).filter(
        pa.array(frames.where(api_calls, "name", lambda name: _WAITS.search(name) is not None))
    )
    waited = {
        key: np.sort(frames.ints(waits, "start_ns")[rows]) for key, rows in frames.groups(waits, "rank", "process")
    }
    sms = {(row["rank"], row["device"]): row["sm_count"] or 0 for row in devices.to_pylist()}
    call = call_of(frames.ints(ledger_ops, "row"), launches)
    called, returned = (frames.ints_at(launches, column, call) for column in ("start_ns", "end_ns"))
    rank, device, process = (frames.ints(ledger_ops, column) for column in ("rank", "device", "process"))
    in_graph = frames.ints(ledger_ops, "graph_id") != NULL  # whose nodes wait for one another
    found = []
    for (one, gpu, owner), rows in frames.together(rank, device, process):
        mine = rows[(role[rows] != OTHER) & (called[rows] != NULL) & ~in_graph[rows]]
        if not len(mine) or (role[mine] == role[mine[0]]).all():
            continue
        ops = ledger_ops.take(pa.array(mine))
        lanes = _Lanes(ops, role[mine], called[mine], returned[mine], sms.get((one, gpu), 0))
        found.append(lanes.held(waited.get((one, owner), np.empty(0, np.int64)), known[mine]))
    return frames.stack(HELD_WORK, [table for table in found if table.num_rows])


OTHER, BLOCKING, DEFAULT = 0, 1, 2
Roles = npt.NDArray[np.int8]


def roles(ledger_ops: pa.Table, stream_events: pa.Table, program: pa.Table) -> tuple[Roles, frames.Flags]:
    """For each operation whether its stream is the legacy default one or waits for it, and whether the trace says so.

    Where the trace does not say what a stream is, the number of the default one is the usual one, and the others are taken to be what
    `cudaStreamCreate` makes; not in frameworks that make streams of another kind.
    """
    told = stream_events.filter(pa.array(frames.equals(stream_events, "kind", "default", "blocking", "non-blocking")))
    of_op = frames.told_apart(ledger_ops, *_STREAM)
    # Streams are few: what there is to say is worked out once for each.
    first = frames.firsts(of_op)
    columns = [np.concatenate((frames.ints(ledger_ops, c)[first], frames.ints(told, c))) for c in _STREAM]
    code = frames.dense(*columns)
    _, process, stream = (column[frames.firsts(code)] for column in columns)
    role, sure = np.full(len(stream), OTHER, np.int8), np.zeros(len(stream), bool)
    for value, name in ((BLOCKING, "blocking"), (DEFAULT, "default"), (OTHER, "non-blocking")):
        here = code[len(first) :][frames.equals(told, "kind", name)]
        role[here], sure[here] = value, True
    names = set(program["name"].to_pylist())
    if not names & set(_OWN_STREAMS):
        described = np.isin(process, frames.ints(told, "process"))
        default = next((number for vendor, number in _FALLBACK.items() if vendor in names), _CUDA_DEFAULT)
        guessed = np.where(stream == default, DEFAULT, np.where(stream == NULL, OTHER, BLOCKING))
        role = np.where(sure | described, role, guessed).astype(np.int8)
    if are_alike(of_op):
        return np.broadcast_to(role[of_op[0]], len(of_op)), np.broadcast_to(sure[of_op[0]], len(of_op))
    return role.take(of_op), sure.take(of_op)


def kept_in_line(ledger_ops: pa.Table, role: Roles) -> frames.Flags:
    """Which operations the default stream keeps in line with compute kernels of their process: one of the two is on it, the other on a
    stream that waits for it. `role` as `roles` gives it."""
    owner = frames.told_apart(ledger_ops, "rank", "device", "process")
    compute = computes(ledger_ops)
    with_default, with_blocking = np.zeros((2, owner.max(initial=-1) + 1), bool)
    with_default[owner[compute & (role == DEFAULT)]] = True
    with_blocking[owner[compute & (role == BLOCKING)]] = True
    kept: frames.Flags = ((role == BLOCKING) & with_default[owner]) | ((role == DEFAULT) & with_blocking[owner])
    return kept


class _Lanes:
    """The operations of one process on one GPU that the default stream keeps in line, by start."""

    def __init__(self, ops: pa.Table, role: Roles, called: Array, returned: Array, sms: int) -> None:
        order = np.argsort(frames.ints(ops, "start_ns"), kind="stable")
        self.ops = ops.take(pa.array(order))
        self.start, self.end = (frames.ints(self.ops, column) for column in ("start_ns", "end_ns"))
        self.role, self.called, self.returned = role[order], called[order], returned[order]
        self.stream = frames.ints(self.ops, "stream")
        self.kernel = frames.equals(self.ops, "kind", "kernel")
        self.copy = frames.equals(self.ops, "kind", "memcpy")
        self.direction = frames.codes(self.ops, "copy_kind")[0]
        self.leaves_room = ~self.kernel | (_threads(self.ops) <= sms * THREADS_OF_SM // 2)
        self.ready = np.maximum(self.returned, free_from(self.stream, self.start, self.end))

    def held(self, waits: Array, known: frames.Flags) -> pa.Table:
        """As HELD_WORK, of this process."""
        default, before = self._before()
        every = np.arange(len(self.start))
        over_default = self._beside(every, default)
        over_other = self._beside(every, before)
        could = np.minimum(over_default + over_other, self.end - self.start)
        last = np.where(self.role == DEFAULT, before, default)
        earliest = np.where(over_other > 0, before, last)
        told = (last >= 0) & (could >= LEAST_NS)
        after = self.start - self.end[last]
        asked = np.searchsorted(waits, self.called) > np.searchsorted(waits, self.called[earliest])
        # What runs on while the default stream does its part is of no stream that it keeps in line.
        between = np.where(self.role == DEFAULT, every, default)
        in_turn = (over_other == 0) | (self.start[between] >= self.end[before])
        in_line = told & (after >= 0) & (after <= HANDOVER_NS) & ~asked & in_turn
        rows = np.flatnonzero(told & ~asked)
        ops = self.ops.take(pa.array(rows))
        return frames.build(
            HELD_WORK,
            {
                **{name: ops[name] for name in ("rank", "device", "process", "stream", "start_ns", "end_ns", "name")},
                "beside": self._at_most(could, in_line)[rows],
                "in_line": in_line[rows],
                "default_op": self.ops["name"].take(pa.array(between[rows])),
                "known": np.full(len(rows), bool(known.all())),
            },
        )

    def _at_most(self, could: Array, in_line: frames.Flags) -> Array:
        """No more in all than if only the busiest stream were left: of three in a row the middle one runs beside one neighbour or the
        other."""
        length = self.end - self.start
        of_stream = np.bincount(frames.dense(self.stream), length)
        bound, asked = float(length.sum() - of_stream.max()), float(could[in_line].sum())
        return (could * min(bound / asked, 1.0)).astype(np.int64) if asked else could

    def _before(self) -> tuple[Array, Array]:
        """For each operation the last one before it on the default stream, and the last one of another blocking stream before that (or,
        for one on the default stream, before itself); -1 where there is none."""
        every = np.arange(len(self.start))
        default = _last(self.role == DEFAULT)
        blocking = np.flatnonzero(self.role == BLOCKING)
        place = np.searchsorted(blocking, every) - 1  # before itself
        behind = np.where(self.role == DEFAULT, place, np.searchsorted(blocking, default) - 1)
        behind = np.where((self.role == BLOCKING) & (default < 0), -1, behind)
        if not len(blocking):
            none = np.full(len(every), -1)
            return default, none
        change = np.concatenate(([-1], np.where(np.diff(self.stream[blocking]) != 0, np.arange(len(blocking) - 1), -1)))
        other = np.maximum.accumulate(change)  # the last one of another stream before each of them
        same = (self.role == BLOCKING) & (behind >= 0) & (self.stream[blocking[behind]] == self.stream)
        behind = np.where(same, other[behind], behind)
        return default, np.where(behind >= 0, blocking[behind], -1)

    def _beside(self, later: Array, earlier: Array) -> Array:
        """How long the later ones were ready while the earlier ones ran, where both could have run at once."""
        overlap = self.end[earlier] - np.maximum(self.ready[later], self.start[earlier])
        one_engine = self.copy[later] & self.copy[earlier] & (self.direction[later] == self.direction[earlier])
        room = self.leaves_room[earlier] | ~self.kernel[later]
        apart = (earlier >= 0) & (self.stream[later] != self.stream[earlier]) & ~one_engine & room
        in_order = self.called[earlier] < self.called[later]
        return np.where(apart & in_order, np.maximum(overlap, 0), 0)


def _last(which: frames.Flags) -> Array:
    """For each place the last one before it that is so, -1 where none is."""
    at = np.maximum.accumulate(np.where(which, np.arange(len(which)), -1))
    return np.concatenate(([-1], at[:-1])) if len(at) else at


def _threads(ops: pa.Table) -> Array:
    """Threads of each kernel; more than any GPU has where they are not known."""
    counts = np.ones(ops.num_rows, np.int64)
    for column in ("grid", "block"):
        sizes = in_one(ops[column])
        unknown = sizes.is_null().to_numpy(zero_copy_only=False)
        flat = sizes.fill_null([0, 0, 0]).flatten().fill_null(0).to_numpy(zero_copy_only=False)
        counts *= np.prod(flat.reshape(-1, 3).astype(np.int64), axis=1)
        counts[unknown] = 0
    return np.where(counts > 0, counts, np.iinfo(np.int64).max)
