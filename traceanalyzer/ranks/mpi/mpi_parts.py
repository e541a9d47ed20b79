"""Calls of MPI as parts of what ranks do together: each message and collective with the call in which it is waited for.

A call that returns at once only says when a rank took part; its request leads to the call that waits. A request's number is used again
once it is done, so the wait is the last one before the next call that has it.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL, Flags
from traceanalyzer.intervals import Array
from traceanalyzer.model import mpi_names
from traceanalyzer.model.schema import MPI_CALLS
from traceanalyzer.ranks.mpi.tables import MPI_PARTS

_RANGES = ("mpi", "nvtx", "annotation")


def mpi_parts(mpi_calls: pa.Table, host_ranges: pa.Table, ledger_ops: pa.Table) -> pa.Table:
    """From `mpi_calls` or, in a trace without any, from ranges that are called like calls of MPI, which have no arguments."""
    calls = mpi_calls if mpi_calls.num_rows else _named_ranges(host_ranges)
    if not calls.num_rows:
        return MPI_PARTS.empty()
    posted, wait = _requests(calls)
    single = _single(calls, wait)
    row, span = np.concatenate((posted, single)), np.concatenate((wait, single))
    kinds = [mpi_names.collective(name or "") or _message(name or "") for name in frames.codes(calls, "name")[1]]
    name, names = frames.codes(calls, "name")
    kind = np.where(span == row, np.where(_waits(calls)[row], len(kinds) - 1, name[row]), name[row])
    order = np.lexsort((frames.ints(calls, "start_ns")[row], frames.ints(calls, "start_ns")[span]))
    row, span, kind = row[order], span[order], kind[order]
    at, of = pa.array(row), pa.array(span)
    same = ("group_size", "group_rank", "peer", "tag", "root", "bytes", "world_rank")
    return frames.build(
        MPI_PARTS,
        {c: calls[c].take(at) for c in ("rank", "process", *same)}
        | {c: calls[c].take(of) for c in ("thread", "start_ns", "end_ns")}
        | {"name": frames.names(name[span], names), "kind": frames.names(kind, kinds)}
        | {"posted_ns": calls["start_ns"].take(at)}
        | {"group": _groups(calls).take(at)}
        | {"device": frames.numbers(_devices(calls, ledger_ops)[row]), "whole": pa.array(_whole(calls)[row])},
    )


def _devices(calls: pa.Table, ledger_ops: pa.Table) -> Array:
    """The first GPU of each call's process, NULL where it has none, or another process of the file has it too."""
    used = [frames.ints(ledger_ops, c) for c in ("rank", "process", "device")]
    owner: dict[tuple[int, int], set[int]] = {}
    users: dict[tuple[int, int], set[int]] = {}
    for (rank, process, device), _ in frames.together(*used):
        owner.setdefault((rank, process), set()).add(device)
        users.setdefault((rank, device), set()).add(process)
    result = np.full(calls.num_rows, NULL)
    for (rank, process), rows in frames.together(*(frames.ints(calls, c) for c in ("rank", "process"))):
        alone = [one for one in owner.get((rank, process), ()) if len(users[rank, one]) == 1]
        result[rows] = min(alone, default=NULL)
    return result


def _message(name: str) -> str | None:
    does = mpi_names.does(name)
    return does if does in (mpi_names.SEND, mpi_names.RECEIVE) else None


def _named_ranges(host_ranges: pa.Table) -> pa.Table:
    """The outermost ranges that are called like calls of MPI, as rows of `mpi_calls`."""
    called = frames.equals(host_ranges, "category", *_RANGES) & frames.where(
        host_ranges, "name", lambda name: mpi_names.function(name) is not None
    )
    parent = frames.ints(host_ranges, "parent")
    inner = called & np.append(called, False)[np.where(parent == NULL, len(called), parent)]
    rows = np.flatnonzero(called & ~inner)
    own = host_ranges.take(pa.array(rows))
    given = {c: own[c] for c in ("rank", "process", "thread", "start_ns", "end_ns", "name")}
    absent = {f.name: pa.nulls(len(rows), f.type) for f in MPI_CALLS.schema if f.name not in given}
    return frames.build(MPI_CALLS, given | absent)


def _waits(calls: pa.Table) -> Flags:
    return frames.where(calls, "name", lambda name: mpi_names.does(name) == mpi_names.WAIT)


def _at_once(calls: pa.Table) -> Flags:
    return frames.where(calls, "name", mpi_names.returns_at_once)


def _requests(calls: pa.Table) -> tuple[Array, Array]:
    """The rows of calls that returned at once, and of the calls that waited for them, as far as both were recorded."""
    request, start = frames.ints(calls, "request"), frames.ints(calls, "start_ns")
    waits = _waits(calls)
    used = np.flatnonzero((request != NULL) & (waits | _at_once(calls)))
    of = frames.dense(*(frames.ints(calls, c)[used] for c in ("rank", "process")), request[used])
    order = np.lexsort((waits[used], start[used], of))
    used, of = used[order], of[order]
    posts = np.flatnonzero(~waits[used])
    # What lies between a post and the next one, or the last of the same number.
    last = np.minimum(np.append(posts[1:], len(used)) - 1, np.searchsorted(of, of[posts], side="right") - 1)[
        : len(posts)
    ]
    found = last > posts
    return used[posts[found]], used[last[found]]


def _single(calls: pa.Table, told: Array) -> Array:
    """The rows of calls that wait themselves, each call once, and of waits for what was not recorded."""
    waits = _waits(calls)
    key = frames.dense(*(frames.ints(calls, c) for c in ("rank", "process", "thread", "start_ns", "end_ns")))
    of_told = np.zeros(int(key.max()) + 1, bool)
    of_told[key[told]] = True
    # A call that both sends and receives has a row for each.
    what = frames.dense(key, np.where(waits, -1, np.arange(len(key))))
    first = np.zeros(len(key), bool)
    first[np.unique(what, return_index=True)[1]] = True
    return np.flatnonzero(first & ~(waits & of_told[key]) & ~_at_once(calls))


def _groups(calls: pa.Table) -> pa.Array:
    """The communicator of each call: as recorded, else # and its place in the order in which its rank used them."""
    code, names = frames.codes(calls, "group")
    handle = frames.ints(calls, "communicator")
    unnamed = np.flatnonzero((code == len(names) - 1) & (handle != NULL))
    place = np.full(len(code), -1)
    lane = frames.dense(*(frames.ints(calls, c) for c in ("rank", "process")))
    start = frames.ints(calls, "start_ns")
    order = unnamed[np.lexsort((start[unnamed], lane[unnamed]))]
    used = frames.dense(lane[order], handle[order])
    first = np.zeros(len(order), bool)
    first[np.unique(used, return_index=True)[1]] = True
    count = np.cumsum(first) - 1
    begin = np.flatnonzero(np.diff(lane[order], prepend=-1) != 0)
    base = np.repeat(count[begin], np.diff(np.append(begin, len(order)))) if len(order) else count
    number = np.zeros(int(used.max(initial=-1)) + 1, np.int64)
    number[used[first]] = (count - base)[first]
    place[order] = number[used]
    values = [*names[:-1], None, "#", *(f"#{n}" for n in range(int(place.max(initial=-1)) + 1))]
    unknown = np.where(place < 0, len(names), len(names) + 1 + place)
    return frames.names(np.where(code == len(names) - 1, unknown, code), values)


def _whole(calls: pa.Table) -> Flags:
    lane = frames.dense(*(frames.ints(calls, c) for c in ("rank", "process")))
    begun = np.zeros(int(lane.max()) + 1, bool)
    begun[lane[frames.where(calls, "name", mpi_names.begins)]] = True
    found: Flags = begun[lane]
    return found
