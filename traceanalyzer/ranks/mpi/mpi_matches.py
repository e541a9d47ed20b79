"""Calls of MPI matched across ranks: for whom each of them waits, and for how long.

Collectives match by communicator and order, as those of kernels do, and give the clocks; messages match by both sides, tag and order,
which MPI keeps. Of one message or collective

    wait = from the call's start until those took part on whom it depends        at least 0, at most the call

which are all others where none can leave before all came, the root for who receives from it, all others for a root that receives, the
sender for a receive, and the receiver for a send that ends after that one began. Source: the wait states of Scalasca (late sender, late
receiver, wait at N x N, late broadcast, early reduce), Geimer et al., The Scalasca performance toolset architecture, 2010.

A call that waits for several waits for the last of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL, Flags
from traceanalyzer.columns.grouped import Groups
from traceanalyzer.intervals import Array
from traceanalyzer.model.mpi_names import RECEIVE, SEND
from traceanalyzer.model.schema import HEALTH
from traceanalyzer.model.trace import Input
from traceanalyzer.ranks.collectives import matches
from traceanalyzer.ranks.collectives.clock_tables import CLOCK_OFFSETS
from traceanalyzer.ranks.collectives.collective_names import ROOTED, SYNCHRONIZING
from traceanalyzer.ranks.collectives.collectives import absolute_ends, lanes, match
from traceanalyzer.ranks.collectives.instances import Matches
from traceanalyzer.ranks.collectives.matches import Joined
from traceanalyzer.ranks.collectives.offsets import clock_health, clock_offsets
from traceanalyzer.ranks.collectives.tables import COMMUNICATION
from traceanalyzer.ranks.mpi.tables import MPI_MATCHES
from traceanalyzer.records import dataclass
from traceanalyzer.units import format_duration
from traceanalyzer.vocabulary.health import CLOCKS_DISAGREE
from traceanalyzer.vocabulary.levels import LOW, MEDIUM

ORDER_ONLY = "#"
"""What names of communicators begin with that only their order tells."""
ALLOWED_NS = 50_000
"""Clocks of one host, and those that collectives align, agree better: what is received so long before it is sent is another message."""
WRONG = 0.05
"""With more messages than this that arrive before they are sent, the clocks, or the order, are not what they are taken for."""
FAR_NS = 500_000_000
"""Clocks that are farther apart are first brought together by the numbers of the collectives, where all were recorded."""
_LATEST = np.iinfo(np.int64).max


def mpi_matches(mpi_parts: pa.Table, inputs: Sequence[Input]) -> pa.Table:
    """As `MPI_MATCHES`, from the parts of all ranks, which are at least one."""
    return joined_calls(mpi_parts, inputs).matches


def late_windows(mpi_matches: pa.Table) -> pa.Table:
    """The messages and collectives for which others waited, one row each, under the rank that came last."""
    return matches.late_windows(mpi_matches.filter(pc.greater(mpi_matches["wait"], 0)))


def joined_calls(parts: pa.Table, inputs: Sequence[Input]) -> Joined:
    """What the calls of all ranks, which are at least one, tell together.

    A file may hold several ranks; each has its own GPU then, or nothing is told of it.
    """
    parts = _with_own_gpus(parts.combine_chunks())
    told = _Collectives(parts, inputs)
    depends = [*told.depends(), *_messages(parts, inputs, told)]
    offsets, health = [CLOCK_OFFSETS.empty()], [HEALTH.empty(), told.health()]
    if told.kernels.num_rows:
        offsets.append(told.offsets)
    wrong = [one.health for one in depends if one.health is not None]
    return Joined(
        _table(parts, told, depends),
        frames.concatenated(offsets),
        pa.concat_tables([*health, *wrong]),
    )


@dataclass(frozen=True)
class _Depends:
    """Parts (rows of `mpi_parts`) and the part that each of them waits for, with the number of what they are of."""

    row: Array
    on: Array
    instance: Array
    health: pa.Table | None = None


class _Collectives:
    """The collectives, matched, and the clock on which all times are compared."""

    def __init__(self, parts: pa.Table, inputs: Sequence[Input]) -> None:
        self.rows = np.flatnonzero(frames.equals(parts, "kind", *SYNCHRONIZING, *ROOTED))
        self._parts, self._inputs = parts, inputs
        self.start, self.own = _absolute(parts, "start_ns", inputs)
        shift = _brought_together(parts, self.rows, self.start + frames.duration(parts), self.own)
        self.kernels = _as_kernels(parts, self.rows, shift, inputs)
        self.matches: Matches | None = None
        clock = shift.copy()
        if self.kernels.num_rows:
            found = match(self.kernels, inputs)
            ends = absolute_ends(self.kernels, inputs)[0]
            self.matches = replace(found, clock=found.clock - shift[self.rows] + int(np.median(shift[self.rows])))
            clock += _correction(parts, self.rows, found, found.end + ends.min() - ends)
        self.clock = clock
        """What to add to a part's absolute times."""
        self.start = self.start + clock
        self.end = self.start + frames.duration(parts)
        self.posted = _absolute(parts, "posted_ns", inputs)[0] + clock

    @property
    def offsets(self) -> pa.Table:
        assert self.matches is not None
        return clock_offsets(self.kernels, self.matches)

    def health(self) -> pa.Table:
        if self.matches is None:
            return HEALTH.empty()
        return clock_health(self.kernels, self.matches, self.offsets, self._inputs)

    def spread(self) -> int:
        """How far apart ranks typically leave a collective, ns; NULL where none is matched."""
        if self.matches is None:
            return NULL
        spread = self.matches.spread[(self.matches.instance != NULL) & (self.matches.spread != NULL)]
        return int(np.median(spread)) if len(spread) else NULL

    def depends(self) -> list[_Depends]:
        """Of synchronizing collectives all wait for the last; of those with a root, who receives waits for who sends."""
        if self.matches is None:
            return []
        instance = self.matches.instance
        known = np.flatnonzero(instance != NULL)
        first = self._first_meetings(known)
        known = known[~np.isin(instance[known], first)]
        row = self.rows[known]
        posted = self.posted[row]
        order = np.lexsort((posted, instance[known]))
        bounds = np.flatnonzero(np.diff(instance[known][order], append=-1))
        last = np.full(int(instance.max(initial=0)) + 1, -1)
        last[instance[known][order[bounds]]] = row[order[bounds]]
        root = frames.ints(self._parts, "root")[row]
        own = self._own_rank(row)
        is_root = (root != NULL) & (own == root)
        of_root = np.full(len(last), -1)
        of_root[instance[known][is_root]] = row[is_root]
        parts = self._parts
        down = frames.equals(parts, "kind", "broadcast", "scatter")[row]
        up = frames.equals(parts, "kind", "reduce", "gather")[row]
        mine = instance[known]
        on = np.where(down, np.where(is_root, -1, of_root[mine]), np.where(up & ~is_root, -1, last[mine]))
        kept = (on >= 0) & (on != row)
        # The last one itself waits for nobody.
        return [_Depends(row[kept], on[kept], mine[kept])]

    def _first_meetings(self, known: Array) -> Array:
        """The numbers of what ranks do first together, where they were not recorded from the start: who is late to that began late."""
        assert self.matches is not None
        lane = lanes(self.kernels)[known]
        start = frames.ints(self.kernels, "start_ns")[known]
        order = np.lexsort((start, lane))
        begin = order[np.unique(lane[order], return_index=True)[1]]
        partly = ~frames.flags(self._parts, "whole")[self.rows[known[begin]]]
        return self.matches.instance[known[begin[partly]]]

    def _own_rank(self, row: Array) -> Array:
        """Ranks within the communicator; those of the job where only order tells which it is."""
        known = frames.ints(self._parts, "group_rank")[row]
        return np.where(known == NULL, _job_ranks(self._parts, self._inputs)[row], known)


def _absolute(parts: pa.Table, column: str, inputs: Sequence[Input]) -> tuple[Array, Array]:
    """Times on the absolute clock, and the clock that they are on, as of `absolute_ends`."""
    return absolute_ends(pa.table({"rank": parts["rank"], "end_ns": parts[column]}), inputs)


def _job_ranks(parts: pa.Table, inputs: Sequence[Input]) -> Array:
    """The rank in the job of each part, NULL where no file says it."""
    ordinal, world = frames.ints(parts, "rank"), frames.ints(parts, "world_rank")
    rank = np.full(max((one.ordinal for one in inputs), default=0) + 1, NULL)
    for one in inputs:
        rank[one.ordinal] = NULL if one.rank is None else one.rank
    return np.where(_several(parts) | (rank[ordinal] == NULL), world, rank[ordinal])


def _by_order(parts: pa.Table) -> Flags:
    """Which parts are of communicators that only their order tells."""
    return frames.where(parts, "group", lambda name: name.startswith(ORDER_ONLY))


def _places(parts: pa.Table, rows: Array) -> Array:
    """The number of each collective in its communicator and of its kind, NULL where a rank's first ones were not recorded."""
    columns = [frames.ints(parts, c)[rows] for c in ("rank", "process")]
    chain = frames.dense(*columns, frames.codes(parts, "group")[0][rows], frames.codes(parts, "kind")[0][rows])
    order = np.lexsort((frames.ints(parts, "posted_ns")[rows], chain))
    place = np.zeros(len(rows), np.int64)
    place[order] = Groups(chain[order]).position()
    return np.where(frames.flags(parts, "whole")[rows], place, NULL)


def _brought_together(parts: pa.Table, rows: Array, end: Array, own: Array) -> Array:
    """What to add to times of clocks that are far apart, so that the same collectives end at about the same time."""
    shift = np.zeros(parts.num_rows, np.int64)
    number = _places(parts, rows)
    usable = (number != NULL) & frames.equals(parts, "kind", *SYNCHRONIZING)[rows] & (own[rows] == 0)
    rows, number = rows[usable], number[usable]
    if not len(rows):
        return shift
    rank = frames.ints(parts, "rank")
    chain = frames.dense(frames.codes(parts, "group")[0][rows], frames.codes(parts, "kind")[0][rows])
    of = Groups(chain)
    widest = np.flatnonzero(of.of == np.argmax(of.distinct(rank[rows])))
    rows, number = rows[widest], number[widest]
    of_rank, of_number = Groups(rank[rows]), Groups(number)
    ends = np.full((len(of_rank), len(of_number)), NULL)
    np.maximum.at(ends, (of_rank.of, of_number.of), end[rows])
    for one, ends_of in zip(of_rank.keys.tolist(), ends, strict=True):
        both = (ends[0] != NULL) & (ends_of != NULL)
        apart = float(np.median((ends[0] - ends_of)[both])) if both.any() else 0.0
        if abs(apart) > FAR_NS:
            shift[rank == one] = int(apart)
    return shift


def _as_kernels(parts: pa.Table, rows: Array, shift: Array, inputs: Sequence[Input]) -> pa.Table:
    """Collectives as rows of `communication_kernels`, for what is matched in the same way."""
    own = parts.take(pa.array(rows))
    size = frames.ints(own, "group_size")
    most = int(_job_ranks(parts, inputs).max(initial=-1)) + 1
    job = max([len(inputs), most, *(one.world_size or 0 for one in inputs)])
    size = np.where((size == NULL) & _by_order(own), job, size)
    given = {c: own[c] for c in ("rank", "process", "kind", "bytes", "name", "group")}
    given |= {f"{c}_ns": pa.array(frames.ints(own, f"{c}_ns") + shift[rows]) for c in ("start", "end")}
    given |= {"device": np.zeros(len(rows), np.int32), "stream": np.zeros(len(rows), np.int64)}
    given |= {"group_size": frames.numbers(size), "sequence": frames.numbers(_places(parts, rows))}
    # Sizes may be given in what each rank has, and need not be alike.
    given["bytes"] = pa.nulls(len(rows), pa.int64())
    absent = {f.name: pa.nulls(len(rows), f.type) for f in COMMUNICATION.schema if f.name not in given}
    return frames.build(COMMUNICATION, given | absent)


def _correction(parts: pa.Table, rows: Array, found: Matches, difference: Array) -> Array:
    """What to add to each part's times to have them on the common clock: what the nearest matched collectives of its rank say."""
    result = np.zeros(parts.num_rows, np.int64)
    rank, start = frames.ints(parts, "rank"), frames.ints(parts, "start_ns")
    known = found.instance != NULL
    for (one,), mine in frames.together(rank):
        told = known & (rank[rows] == one)
        if told.any():
            at = start[rows[told]]
            order = np.argsort(at, kind="stable")
            result[mine] = np.rint(np.interp(start[mine], at[order], difference[told][order])).astype(np.int64)
    return result


def _messages(parts: pa.Table, inputs: Sequence[Input], told: _Collectives) -> list[_Depends]:
    """Receives and the sends that they wait for; and sends, where they do not end before their receives begin."""
    sends = frames.equals(parts, "kind", SEND)
    rows = np.flatnonzero((sends | frames.equals(parts, "kind", RECEIVE)) & (told.own == 0))
    job = _job_ranks(parts, inputs)
    far = _peers(parts, job)
    rows = rows[(far[rows] != NULL) & (job[rows] != NULL) & (far[rows] != job[rows])]
    if not len(rows):
        return []
    out = sends[rows]
    sender, receiver = np.where(out, job[rows], far[rows]), np.where(out, far[rows], job[rows])
    group, tag = frames.codes(parts, "group")[0][rows], frames.ints(parts, "tag")[rows]
    chain = frames.dense(sender, receiver, group, np.where(tag == NULL, -1, tag))
    order = np.lexsort((told.posted[rows], out, chain))
    rows, chain, out = rows[order], chain[order], out[order]
    count = int(chain.max()) + 1
    sent, taken = np.bincount(chain[out], minlength=count), np.bincount(chain[~out], minlength=count)
    # Where one side lacks some, nobody can tell which.
    paired = (sent == taken)[chain]
    send, receive, of = rows[paired & out], rows[paired & ~out], chain[paired & out]
    pair = frames.dense(np.minimum(job[send], job[receive]), np.maximum(job[send], job[receive])) if len(send) else of
    before = told.posted[send] - told.end[receive]
    of_pair = Groups(pair)
    wrong = (of_pair.count(before > ALLOWED_NS) / of_pair.size)[of_pair.of] > WRONG
    first = int(told.matches.instance.max(initial=-1)) + 1 if told.matches is not None else 0
    number = first + np.arange(len(send))
    send, receive, number, bad = send[~wrong], receive[~wrong], number[~wrong], wrong
    blocked = told.end[send] >= told.posted[receive]
    found = [_Depends(receive, send, number), _Depends(send[blocked], receive[blocked], number[blocked] + len(bad))]
    if bad.any():
        apart = format_duration(int(before[bad].max()))
        message = (
            f"messages of MPI arrive up to {apart} before they are sent: the ranks' clocks disagree, and who waited for whom in "
            "them cannot be told"
        )
        row = {"rank": None, "code": CLOCKS_DISAGREE, "severity": LOW, "message": message, "count": int(bad.sum())}
        nobody = np.empty(0, np.int64)
        found.append(_Depends(nobody, nobody, nobody, pa.Table.from_pylist([row], schema=HEALTH.schema)))
    return found


def _peers(parts: pa.Table, job: Array) -> Array:
    """The rank of the job on the other side of each message: that of the communicator, looked up among the ranks that are there."""
    peer = frames.ints(parts, "peer")
    own, group = frames.ints(parts, "group_rank"), frames.codes(parts, "group")[0]
    named = ~_by_order(parts)
    member = np.flatnonzero(named & (own != NULL))
    wanted = np.flatnonzero(named & (peer != NULL))
    code = frames.dense(np.concatenate((group[member], group[wanted])), np.concatenate((own[member], peer[wanted])))
    found = np.full(int(code.max(initial=-1)) + 1, NULL)
    found[code[: len(member)]] = job[member]
    result = np.where(named, NULL, peer)
    result[wanted] = found[code[len(member) :]]
    return result


def _several(parts: pa.Table) -> Flags:
    """Which parts are of files that hold several processes."""
    rank = frames.ints(parts, "rank")
    pairs = {pair for pair, _ in frames.together(rank, frames.ints(parts, "process"))}
    count = np.bincount([one for one, _ in pairs], minlength=int(rank.max()) + 1)
    found: Flags = count[rank] > 1
    return found


def _with_own_gpus(parts: pa.Table) -> pa.Table:
    """The parts, of which those are of no kind whose GPU cannot be told from those of other processes of their file."""
    unknown = _several(parts) & ((frames.ints(parts, "device") == NULL) | (frames.ints(parts, "world_rank") == NULL))
    if not unknown.any():
        return parts
    at = parts.schema.get_field_index("kind")
    kind, kinds = frames.codes(parts, "kind")
    return parts.set_column(at, parts.schema.field(at), frames.names(np.where(unknown, NULL, kind), kinds))


def _table(parts: pa.Table, told: _Collectives, depends: Sequence[_Depends]) -> pa.Table:
    """One row a call: what it waits for longest."""
    call = frames.dense(*(frames.ints(parts, c) for c in ("rank", "process", "thread", "start_ns", "end_ns")))
    nothing = np.empty(0, np.int64)
    row, on, instance = (
        np.concatenate([nothing, *(getattr(one, column) for one in depends)]) for column in ("row", "on", "instance")
    )
    wait = np.clip(told.posted[on] - told.start[row], 0, frames.duration(parts)[row])
    order = np.lexsort((wait, call[row]))
    longest = order[np.flatnonzero(np.diff(call[row][order], append=-1))] if len(order) else order
    calls = np.unique(call, return_index=True)[1]
    at = np.full(len(calls), -1)
    at[call[row[longest]]] = longest
    known = at >= 0
    # Of what it does not wait for, a call still is a part that came in time.
    alone = ~known & np.isin(call[calls], call[np.unique(on)]) if len(on) else np.zeros(len(calls), bool)
    shown = np.where(known, row[at] if len(row) else 0, calls)
    waited = np.where(known, wait[at] if len(wait) else 0, np.where(alone, 0, NULL))
    of = np.where(known, instance[at] if len(row) else NULL, NULL)
    late = np.where(known, on[at] if len(on) else 0, 0)
    together = Groups(of)
    most = together.max(waited)[together.of]
    took = frames.ints(parts, "posted_ns")[late]
    # Without collectives nothing tells how well the clocks agree.
    certain = np.where(known, np.where(_by_order(parts)[shown] | (told.spread() == NULL), 0, 1), 2)
    own = parts.take(pa.array(shown))
    mask = ~known
    return frames.build(
        MPI_MATCHES,
        {c: own[c] for c in ("rank", "process", "start_ns", "end_ns", "name", "kind")}
        | {"device": frames.numbers(np.where(_several(parts)[shown], frames.ints(own, "device"), NULL))}
        | {"instance": frames.numbers(of), "certainty": frames.names(certain, [LOW, MEDIUM, None])}
        | {"wait": frames.numbers(waited)}
        | {"transfer": frames.numbers(np.where(waited == NULL, NULL, frames.duration(own) - waited))}
        | {"spread": frames.numbers(np.where(known, told.spread(), NULL))}
        | {
            "late_rank": parts["rank"].take(pa.array(late, mask=mask)),
            "late_device": parts["device"].take(pa.array(late, mask=mask)),
        }
        | {"late_start_ns": pa.array(took - most, mask=mask), "late_end_ns": pa.array(took, mask=mask)},
    )
