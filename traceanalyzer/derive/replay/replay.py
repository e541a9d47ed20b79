"""What a GPU's window would last without some cause: its timeline played again with that cause taken out.

The launching threads of a process act as one host, because the main thread waits while others launch for it. The host goes on by itself
but for its waits, which end when the GPU has done what they wait for. The GPU works through its operations in the order in which they
began; each begins when it has arrived and those before it are done. What overlaps them adds nothing:

    reach[k] = max(reach[k - 1] + lead[k], arrival[k]) + own[k]        own[k]: what operation k adds to the union of all before it
                                                                       lead[k]: the pause before it that the hardware makes

Between two waits this is one running maximum over cumulative sums, and a wait is a maximum of two sums: each stretch is a matrix in
max-plus algebra, and a timeline the product of its stretches (Baccelli, Cohen, Olsder, Quadrat: Synchronization and Linearity, 1992).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL
from traceanalyzer.columns.spill import forget, put_away
from traceanalyzer.derive.host.host import Host
from traceanalyzer.derive.launches.launches import call_of
from traceanalyzer.derive.replay.host_time import HostTime, with_few, within, without
from traceanalyzer.intervals import EMPTY, Array, Spans, coverage, overlaps, union

NEVER = -(1 << 60)
"""The zero of max-plus algebra: what has no influence. The sum of two stays within int64."""
LATENCY_NS = 5_000
"""From a launch call to its operation on an idle GPU, where a trace shows none."""
HANDOVER_NS = 500
"""What is left of a pause whose cause is gone: the hardware's hand-over to the next operation of a graph or queue
(https://developer.nvidia.com/blog/cuda-graphs/: kernels of 2.9 us follow one another every 3.4 us)."""
LONG_CALL_NS = 1_000_000
"""A launch call that takes this long, while the GPU has `QUEUED` operations before it, waits for a free place in the queue."""
QUEUED = 500
"""The launch queue has about 1,024 places."""
FULL = 1_000
SLOW_CALL = 10
"""With so many operations before it, a call that takes so many times as long as the median one waits for a place in the queue too."""


@dataclass(frozen=True)
class Change:
    """What is taken out of a timeline: time of the host, its waits for the GPU, what the GPU ran in the stretches `work` but for the
    share `keep` of it, and the GPU's `pauses` before operations."""

    host: Spans = EMPTY
    waits: Spans = EMPTY
    work: Spans = EMPTY
    keep: float = 0.0
    pauses: Spans = EMPTY


NOTHING = Change()


@dataclass(frozen=True)
class Pace:
    """The numbers that a timeline is played from, in ns.

    Of each operation the pause `lead` before it, what it adds (`own`), when its launch makes it arrive if the host meets no delay
    (`NEVER` without one), and that launch's `call`. Of each wait the operation `wait_op` that it is for, and the host's own time
    `wait_time` then; `over` is when waits ended, ascending.
    """

    lead: Array
    own: Array
    arrival: Array
    wait_op: Array
    wait_time: Array
    over: Array
    call: Array

    def felt(self) -> Array:
        """The first operations that were called when one more wait was over, ascending."""
        first = np.searchsorted(np.maximum.accumulate(self.call), self.over) if len(self.over) else self.over
        # Of waits over at once, one is enough; after the last call nobody feels any.
        last = np.append(first[1:] != first[:-1], True)[: len(first)]
        felt: Array = first[last & (first < len(self.call))]
        return felt


@dataclass(frozen=True)
class Timeline:
    """The operations of one GPU in order of their start, and the host that feeds them. Times in ns.

    `origin` is where the window starts. Where it ends after all operations, its end is the last of them: one of no length, which the
    host comes to then. `call` and `back` are the start and the return of the launch call, `NULL` where the operation has none.
    `before` is the end of the union of all operations before each, `reach` that of all up to it. `late`: the GPU was idle because the
    host had not launched yet. `blocked`: the launch call itself waited for what was before. `latency`: from call to start, on an idle
    GPU; `copies`: memory copies. `wait_start`, `wait_end` and `wait_op` are the host's waits that the GPU ended, sorted by start, and
    the operation each waited for. `threads` are the (rank, process, thread) of the host.
    """

    threads: list[frames.ThreadKey]
    origin: int
    start: Array
    call: Array
    back: Array
    before: Array
    reach: Array
    late: frames.Flags
    blocked: frames.Flags
    latency: Array
    copies: frames.Flags
    wait_start: Array
    wait_end: Array
    wait_op: Array

    @property
    def length(self) -> int:
        """The window as it was."""
        return int(self.reach[-1]) - self.origin

    @classmethod
    def of(cls, ops: pa.Table, launches: pa.Table, host: Host, window: tuple[int, int]) -> Timeline:
        """From the operations of one (rank, device) and their launches; the process that launches most of them is the host."""
        origin, stop = window
        start, end = frames.ints(ops, "start_ns"), frames.ints(ops, "end_ns")
        # One column: what is before an operation is the reach of the last.
        edges = np.empty(len(end) + 1, np.int64)
        edges[0], edges[1:] = origin, np.maximum.accumulate(end)
        before, reach = edges[:-1], edges[1:]
        own, threads = led(launches)
        at = call_of(frames.ints(ops, "row"), own)
        call, back = (frames.ints_at(own, column, at) for column in ("start_ns", "end_ns"))
        known = call != NULL

        same_call = (latest_of_call(ops, end) == before) & known
        behind = (start > before) & known & (back > before) & ~same_call
        # A call that moves memory may wait itself: it began while the GPU was busy, and returned when its own operation had begun.
        blocked = behind & (call < before) & (back > start) & frames.equals(ops, "kind", "memcpy", "memset")
        late = behind & ~blocked
        latency = start - call
        # The first of a window may have much to set up.
        usual = int(np.median(latency[1:][late[1:]])) if late[1:].any() else LATENCY_NS
        latency = np.where(late, latency, np.where(blocked, start - before, np.minimum(latency, usual)))

        waits = [host.thread(*thread).waits for thread in threads]
        lasted = back - call
        slow = SLOW_CALL * np.median(lasted[known]) if known.any() else 0
        full = np.flatnonzero((lasted > min(slow, LONG_CALL_NS)) & known & ~same_call)
        lasted, queued = lasted[full], full - np.searchsorted(start, call[full])
        full = full[(lasted > LONG_CALL_NS) & (queued > QUEUED) | (lasted > slow) & (queued >= FULL)]
        # Of such a call that no wait is known of, what was before it ended the wait.
        held = np.flatnonzero(blocked)
        held = held[~np.isin(call[held], np.concatenate([EMPTY[0], *(w.start for w in waits)]))]
        wait_start = np.concatenate([*(w.start for w in waits), call[full], call[held]])
        wait_end = np.concatenate([*(w.end for w in waits), back[full], before[held]])
        op = np.searchsorted(reach, wait_end, side="right") - 1
        ended = (op >= 0) & (reach[op] > wait_start)
        order = np.flatnonzero(ended)[np.argsort(wait_start[ended], kind="stable")]
        copies = frames.equals(ops, "kind", "memcpy")
        if stop > reach[-1]:
            last = stop if threads else NULL
            edges = np.append(edges, stop)
            start, call, back = (np.append(a, b) for a, b in ((start, stop), (call, last), (back, last)))
            late, blocked, copies = np.append(late, bool(threads)), np.append(blocked, False), np.append(copies, False)
            latency = np.append(latency, 0)
        waits_by_start = wait_start[order], wait_end[order], op[order]
        gpu = edges[:-1], edges[1:], late, blocked, latency, copies
        return cls(threads, origin, start, call, back, *gpu, *waits_by_start)

    def replay(self, change: Change, marks: Array) -> Array:
        """When each of the operations `marks` (positions, ascending) and all before it are done, from the window's start, with
        `change` taken out."""
        (done,) = self.replays(change, marks, [self.host_time()])
        return done

    def replays(self, change: Change, marks: Array, hosts: Iterable[HostTime]) -> Iterator[Array]:
        """As `replay`, of each of several hosts, which are as `host_time` tells them."""
        for pace in self._paces(change, hosts):
            yield _play(pace, marks)

    def pace(self, change: Change, host: HostTime) -> Pace:
        """What the timeline is made of, with `change` taken out."""
        (pace,) = self._paces(change, [host])
        return pace

    def host_time(self, gone: Spans = EMPTY) -> HostTime:
        """The host's own time, without what is `gone`, at the calls of operations and then at the ends of what waits were for."""
        # While the host only waits it does no work: that lasts as long as the GPU makes it.
        waited = union(self.wait_start, self.reach[self.wait_op])
        gone = within(with_few(gone, waited), self.origin, int(self.reach[-1]))
        return HostTime.at(self._asked(), self.origin, gone)

    def shown(self, hosts: Iterable[HostTime], gone: Spans) -> Iterator[Array]:
        """What the clocks of several hosts would show, if these spans were gone too."""
        return without(hosts, self._asked(), within(gone, self.origin, int(self.reach[-1])))

    def _asked(self) -> Array:
        return np.concatenate((self.call, self.reach[self.wait_op]))

    def _paces(self, change: Change, hosts: Iterable[HostTime]) -> Iterator[Pace]:
        forget()  # What was read before is not needed beside this.
        left = coverage(self.wait_start, self.wait_end, change.waits) == 0
        dropped = union(self.wait_start[~left], self.wait_end[~left])
        op = self.wait_op[left]
        lead, own, latency = self._changed(change, dropped)
        over, unknown, count = np.sort(self.reach[op]), self.call == NULL, len(self.call)
        for shown in self.shown(hosts, with_few(change.host, dropped)):
            arrival = np.where(unknown, NEVER, shown[:count] + latency)
            yield Pace(lead, own, arrival, op, shown[count:][left], over, self.call)

    def _changed(self, change: Change, dropped: Spans) -> tuple[Array, Array, Array]:
        """The pause before each operation, what it adds, and its latency, with `change` taken out and without the `dropped` waits."""
        begin = np.maximum(self.start, self.before)
        removed = covered_rows(begin, self.reach, change.work)
        own = self.reach - begin
        own -= removed
        own += np.round(removed * change.keep).astype(np.int64)
        pause = covered_rows(self.before, begin, change.pauses)
        # A pause that the host made ends with the launch, or with the wait in its call; any other stays, but for what is taken out.
        freed = self.blocked & (coverage(self.call, self.call + 1, dropped) > 0)
        gap = begin - self.before
        lead = np.where(self.late | freed, np.minimum(gap, HANDOVER_NS), gap - pause)
        return lead, own, np.where(self.late, np.maximum(self.latency - pause, 0), self.latency)


def timelines(ledger_ops: pa.Table, launches: pa.Table, host: Host, windows: pa.Table) -> dict[frames.Key, Timeline]:
    """The timeline of every GPU."""
    calls = frames.by_device(launches)
    window = {
        (rank, device): (start, end)
        for rank, device, start, end in zip(
            *(frames.ints(windows, c).tolist() for c in ("rank", "device", "start_ns", "end_ns")), strict=True
        )
    }
    return {key: put_away(Timeline.of(ops, calls[key], host, window[key])) for key, ops in frames.split(ledger_ops)}


def latest_of_call(ops: pa.Table, end: Array) -> Array:
    """For each operation the latest end of those before it that the same call started, `NULL` without one."""
    call = frames.packed(frames.ints(ops, "process"), frames.ints(ops, "correlation"))
    latest = np.full(len(call), NULL)
    # Most calls start one; in the order of their start they are nearly sorted.
    order = np.sort(call, kind="stable")
    again = order[1:][order[1:] == order[:-1]]
    several = np.flatnonzero(frames.among(call, again)) if len(again) else again
    latest[several] = frames.latest_before(frames.dense(call[several]), end[several])
    return latest


def led(launches: pa.Table) -> tuple[pa.Table, list[frames.ThreadKey]]:
    """The launches of the process that has most of them, and its launching threads."""
    own = launches.select(["rank", "process", "thread", "start_ns", "end_ns", "op"])
    if not own.num_rows:
        return own, []
    process = frames.ints(own, "process")
    if (process != process[0]).any():
        own = own.filter(pa.array(process == frames.commonest(process)))
    keys = [frames.ints(own, c) for c in ("rank", "process", "thread")]
    changed = np.zeros(own.num_rows, bool)
    changed[0] = True
    for key in keys:
        if key.strides != (0,):
            changed[1:] |= key[1:] != key[:-1]
    runs = [key[changed] for key in keys]
    first = frames.firsts(frames.dense(*runs))
    threads = zip(*(column[first].tolist() for column in runs), strict=True)
    return own, sorted(key for key in threads if key[2] != NULL)


def _play(pace: Pace, marks: Array) -> Array:
    """When the operations at `marks` are done."""
    felt = pace.felt()
    place = np.concatenate((pace.wait_op + 1, felt, marks + 1))
    kind = np.repeat((MET, FELT, CUT), (len(pace.wait_op), len(felt), len(marks)))
    offset = np.concatenate((pace.wait_time, np.zeros(len(felt) + len(marks), np.int64)))
    order = np.argsort(place, kind="stable")
    state, reached = np.zeros(3, np.int64), []
    for stretch in stretches(pace.lead + pace.own, pace.arrival - pace.lead, place[order], kind[order], offset[order]):
        state = np.maximum((stretch + state).max(axis=1), NEVER)
        reached.append(state[2])
    return np.array(reached, np.int64)


def covered_rows(starts: Array, ends: Array, spans: Spans) -> Array:
    """As `coverage`, of stretches that do not overlap, in order."""
    if 2 * len(spans[0]) >= len(starts):
        return coverage(starts, ends, spans)
    covered = np.zeros(len(starts), np.int64)
    # So few spans are sooner found among the stretches than the other way round.
    _, row, low, high = overlaps(*spans, (starts, ends))
    np.add.at(covered, row, high - low)
    return covered


MET, FELT, CUT = range(3)
"""What happens between operations: a wait ends that was for what is before; the operations that follow were called after all waits that
were met; a stretch ends."""


def stretches(added: Array, arrival: Array, place: Array, kind: Array, offset: Array) -> Array:
    """The matrices, (n, 3, 3), of the stretches that the events of kind `CUT` end, each applied to the state at the cut before.

    The state is (the host's delay, its delay behind the waits met so far, the GPU's reach). `added` and `arrival` are of operations,
    `place`, `kind` and `offset` of events in their order: so many operations lie before, and for a wait the host's own time. A wait is
    met behind the operation that it waits for, and felt by the operations called after it.
    """
    done = np.zeros(len(added) + 1, np.int64)
    np.cumsum(added, out=done[1:])
    since = np.concatenate(([0], place[:-1]))
    some = place > since
    # The end of a stretch of operations if only its own arrivals counted: the latest of (arrival + all that follows).
    end = np.full(len(place), NEVER)
    if some.any():
        # What comes after the last event is of no stretch.
        lead = arrival[: place[-1]] - done[: place[-1]]
        latest = np.maximum(np.maximum.reduceat(lead, since[some]), NEVER)
        end[some] = np.maximum(latest + done[place[some]], NEVER)
    between = done[place] - done[since]

    steps = np.full((len(place), 3, 3), NEVER)
    steps[:, 0, 0], steps[:, 1, 1] = 0, 0
    steps[:, 2, 0], steps[:, 2, 2] = end, between
    met = kind == MET
    steps[met, 1, 0] = np.maximum(end[met] - offset[met], NEVER)
    steps[met, 1, 2] = between[met] - offset[met]
    steps[kind == FELT, 0, 0], steps[kind == FELT, 0, 1] = NEVER, 0
    cuts = np.flatnonzero(kind == CUT) + 1
    return _products(steps[: cuts[-1] if len(cuts) else 0], np.diff(cuts, prepend=0))


def _products(steps: Array, lengths: Array) -> Array:
    """The max-plus products of runs of (n, 3, 3) matrices, the first of each applied first, by halving all runs at once."""
    run = np.repeat(np.arange(len(lengths)), lengths)
    while len(steps) > len(lengths):
        first = np.searchsorted(run, run)
        early = (np.arange(len(run)) - first) % 2 == 0
        paired = early & np.append(run[1:] == run[:-1], False)
        at = np.flatnonzero(paired)
        joined = np.maximum((steps[at + 1][:, :, :, None] + steps[at][:, None, :, :]).max(axis=2), NEVER)
        steps = steps.copy()
        steps[at] = joined
        steps, run = steps[early], run[early]
    return steps
