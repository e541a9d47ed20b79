"""Where lines of the ledger, and the time of launching threads, go by the stack of what the host did."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL
from traceanalyzer.columns.spill import forget
from traceanalyzer.columns.uniques import unique
from traceanalyzer.derive.host.host import Host
from traceanalyzer.derive.launches.launches import call_of
from traceanalyzer.derive.ledger.busy import Busy, by_line
from traceanalyzer.derive.trees.call_stacks import CallStacks
from traceanalyzer.derive.trees.call_tree import Nodes, tree
from traceanalyzer.derive.trees.lanes import BLOCK
from traceanalyzer.derive.trees.paths import KIND, KINDS, TOP, Names, Paths
from traceanalyzer.derive.trees.shares import shares
from traceanalyzer.derive.trees.tables import CALL_TREES
from traceanalyzer.intervals import Array
from traceanalyzer.vocabulary.lines import (
    COMPUTE,
    DEPENDENCY,
    EXPOSED_COMMUNICATION,
    EXPOSED_MEMCPY,
    IDLE_CAUSES,
    LAUNCH_LATENCY,
    PROFILER,
    QUEUED,
    TURNAROUND,
    UNATTRIBUTED,
)

BY_LAUNCH = (TURNAROUND.cause, DEPENDENCY.cause, QUEUED.cause, LAUNCH_LATENCY.cause)
"""Causes in which the host is not at fault. What it did meanwhile says nothing; what launched the operation that ends the gap does."""
_LINES = {COMPUTE.name: "gpu", EXPOSED_COMMUNICATION.name: "communication", EXPOSED_MEMCPY.name: "copies"}
_NOTHING = (np.empty(0, np.int64),) * 3
_ROOTS = {"gpu": "compute", "communication": "exposed communication", "copies": "exposed copies"}


def call_trees(
    ledger_ops: pa.Table,
    busy: dict[frames.Key, Busy],
    gaps: pa.Table,
    windows: pa.Table,
    launches: pa.Table,
    host: Host,
    host_ranges: pa.Table,
    api_calls: pa.Table,
    cpu_samples: pa.Table,
    threads: pa.Table,
) -> pa.Table:
    """The trees of all GPUs by rank and device, then that of the rank's launching threads. A line without time has no tree."""
    parts = []
    of_rank = {name: _rows_by_rank(table) for name, table in (("ranges", host_ranges), ("calls", api_calls))}
    by_rank = {
        name: frames.by_rank(table) for name, table in (("ops", ledger_ops), ("gaps", gaps), ("launches", launches))
    }
    for rank in pc.unique(windows["rank"]).to_pylist():
        launched = by_rank["launches"][rank]
        keys = {(p, t) for _, p, t in _threads(launched)}
        rows, calls = (of_rank[name].get(rank, slice(0, 0)) for name in ("ranges", "calls"))
        names = Names()
        stacks = CallStacks(
            Paths(names),
            host_ranges.slice(rows.start, rows.stop - rows.start),
            api_calls.slice(calls.start, calls.stop - calls.start),
            cpu_samples.filter(pc.equal(cpu_samples["rank"], rank)),
            host.in_stack[rows],
            host.is_mpi[rows],
            keys,
        )
        here = windows.filter(pc.equal(windows["rank"], rank))
        ops, idle = frames.by_device(by_rank["ops"][rank]), frames.by_device(by_rank["gaps"][rank])
        for device in here["device"].to_pylist():
            parts.append(_table(rank, device, "idle", _idle(idle[rank, device], stacks), names))
            for name, nodes in _by_launch(ops[rank, device], busy[rank, device], launched, stacks):
                parts.append(_table(rank, device, name, nodes, names))
        span = pc.min(here["start_ns"]).as_py(), pc.max(here["end_ns"]).as_py()
        labels = _labels(threads.filter(pc.equal(threads["rank"], rank)), sorted(keys))
        parts.append(_table(rank, None, "host", _host(sorted(keys), labels, span, stacks), names))
    return frames.stack(CALL_TREES, [part for part in parts if part.num_rows])


def _idle(gaps: pa.Table, stacks: CallStacks) -> Nodes:
    """Idle time by cause, then by what the launching thread did then, or by what was launched."""
    found = [_NOTHING]
    for first in range(0, gaps.num_rows, BLOCK):
        found += _idle_times(gaps.slice(first, BLOCK), stacks)
        forget()
    branch, path, ns = (np.concatenate(column) for column in zip(*found, strict=True))
    names = stacks.paths.names
    branches = np.array([names.code(one) for one in IDLE_CAUSES]), np.full(len(IDLE_CAUSES), KIND["cause"])
    return tree("idle", stacks.paths, path, ns, branch, branches)


def _idle_times(gaps: pa.Table, stacks: CallStacks) -> Iterator[tuple[Array, Array, Array]]:
    """Of some gaps the time of each path in each branch, as `_summed`."""
    start, end = frames.ints(gaps, "start_ns"), frames.ints(gaps, "end_ns")
    process, thread, launch = (frames.ints(gaps, column) for column in ("process", "thread", "launch_ns"))
    code, values = frames.codes(gaps, "cause")
    cause = np.array([IDLE_CAUSES.index(one) if one else -1 for one in values])[code]
    path = np.full(len(start), stacks.unrecorded)
    # What the profiler itself took is nobody's.
    path[frames.passing(code, values, lambda one: one == PROFILER.cause)] = TOP
    by_launch = frames.passing(code, values, lambda one: one in BY_LAUNCH)
    later = np.flatnonzero(by_launch & (launch != NULL))
    at = stacks.at(process[later], thread[later], launch[later], launching=False)
    path[later] = np.where(at == TOP, stacks.unrecorded, at)
    nobodys = (*BY_LAUNCH, PROFILER.cause, UNATTRIBUTED.cause)
    hosts = ~frames.passing(code, values, lambda one: one in nobodys)
    rest = np.flatnonzero(~hosts)
    yield _summed(cause[rest], path[rest], end[rest] - start[rest])
    rows = np.flatnonzero(hosts)
    for (one, other), at in frames.together(process[rows], thread[rows]):
        mine = rows[at]
        spent = stacks.spent((one, other), start[mine], end[mine])
        yield _summed(cause[mine[spent.row]], spent.path, spent.ns)


def _summed(branch: Array, path: Array, ns: Array) -> tuple[Array, Array, Array]:
    """The time of each path in each branch: (branch, path, ns), each pair once."""
    width = int(path.max(initial=TOP)) + 2
    key = branch * width + path + 1
    if int(key.max(initial=0)) < len(key) and int(key.min(initial=0)) >= 0:  # so few that a place for each is quicker
        sums = np.bincount(key, ns).astype(np.int64)
        key = np.flatnonzero(sums)
        return key // width, key % width - 1, sums[key]
    key, at = unique(key)
    return key // width, key % width - 1, np.bincount(at, ns, len(key)).astype(np.int64)


def _by_launch(ops: pa.Table, busy: Busy, launches: pa.Table, stacks: CallStacks) -> Iterator[tuple[str, Nodes]]:
    """The busy lines of one GPU by the stack that launched their operations, which are the innermost nodes."""
    lines, exposed = by_line(ops), busy.exposed()
    start, end = frames.ints(ops, "start_ns"), frames.ints(ops, "end_ns")
    paths = stacks.paths
    code, values = frames.codes(ops, "name")
    number = paths.names.of(code, values)
    kinds, place = _around(ops, code, len(values), launches, stacks)
    for line, which in _LINES.items():
        mine = np.flatnonzero(lines[line])
        if not len(mine) or not len(exposed[line][0]):
            continue
        ns = np.bincount(place[mine], shares(start[mine], end[mine], exposed[line]), len(kinds)).astype(np.int64)
        used = np.flatnonzero(np.bincount(place[mine], minlength=len(kinds)))
        around, name = kinds[used] // len(values) + TOP, number[kinds[used] % len(values)]
        if which != "copies":
            # That a kernel was launched by a launch says nothing; that it was part of a graph does.
            around = paths.up(around, _plain_calls(paths))
        kind = KIND["copy" if which == "copies" else "kernel"]
        leaf = paths.within(around, name, np.full(len(used), kind))
        yield which, tree(_ROOTS[which], paths, leaf, ns[used])


def _around(ops: pa.Table, name: Array, names: int, launches: pa.Table, stacks: CallStacks) -> tuple[Array, Array]:
    """The path that launched each operation together with its name, one of so many: those that occur, as (path - TOP) * names + name,
    and for each operation which of them it has."""
    row, launched = frames.ints(ops, "row"), frames.ints(launches, "op")
    keys, places, met = [np.empty(0, np.int64)], [np.empty(0, np.int32)], 0
    for first in range(0, len(row), BLOCK):
        here = row[first : first + BLOCK]
        low, high = np.searchsorted(launched, (here.min(), here.max() + 1)).tolist()
        near = launches.slice(low, high - low)
        call = call_of(here, near)
        process, thread, time = (frames.ints_at(near, column, call) for column in ("process", "thread", "start_ns"))
        path = np.full(len(here), stacks.unlaunched)
        known = np.flatnonzero(call >= 0)
        path[known] = stacks.at(process[known], thread[known], time[known], launching=True)
        path[path == stacks.unrecorded] = TOP
        key, place = unique((path - TOP) * names + name[first : first + BLOCK])
        keys.append(key)
        places.append((place + met).astype(np.int32))
        met += len(key)
    kinds, place = unique(np.concatenate(keys))
    return kinds, place[np.concatenate(places)]


def _plain_calls(paths: Paths) -> frames.Flags:
    """Which paths end in a call that launches one operation."""
    graph = np.array(["graph" in one.casefold() for one in paths.names.values], bool)
    plain: frames.Flags = (paths.kind == KIND["call"]) & ~graph[paths.name]
    return plain


def _host(keys: list[tuple[int, int]], labels: list[str], span: tuple[int, int], stacks: CallStacks) -> Nodes:
    """The time of launching threads from the start of the first window to the end of the last."""
    found = [_NOTHING]
    for number, key in enumerate(keys):
        for spent in stacks.all_spent(key, *span):
            found.append(_summed(np.full(len(spent.ns), number), spent.path, spent.ns))
    branch, path, ns = (np.concatenate(column) for column in zip(*found, strict=True))
    names = stacks.paths.names
    branches = np.array([names.code(label) for label in labels], np.int64), np.full(len(keys), KIND["thread"])
    return tree("launching threads", stacks.paths, path, ns, branch, branches)


def _labels(threads: pa.Table, keys: list[tuple[int, int]]) -> list[str]:
    """What threads are called; those that share a name, or the process, are told apart by number."""
    named = {(r["process"], r["thread"]): r["name"] for r in threads.to_pylist() if r["name"]}
    several = len({process for process, _ in keys}) > 1
    labels = []
    for process, thread in keys:
        number = "unknown" if thread == NULL else str(thread)
        name = named.get((process, thread))
        label = f"thread {number}" if name is None else name if number in name else f"{name} (thread {number})"
        labels.append(f"{label} of process {process}" if several else label)
    return labels


def _table(rank: int, device: int | None, name: str, nodes: Nodes, names: Names) -> pa.Table:
    """The rows of one tree; none where it has no time."""
    count = len(nodes.parent)
    if not nodes.total[0]:
        return CALL_TREES.empty()
    return frames.build(
        CALL_TREES,
        {
            "rank": np.full(count, rank),
            "device": pa.nulls(count, pa.int32()) if device is None else np.full(count, device),
            "tree": frames.names(np.zeros(count, np.int64), [name]),
            "node": np.arange(count),
            "parent": nodes.parent,
            "name": frames.names(nodes.name, names.values),
            "kind": frames.names(nodes.kind, KINDS),
            "total_ns": nodes.total,
            "self_ns": nodes.own,
        },
    )


def _threads(table: pa.Table) -> list[tuple[int, ...]]:
    """The (rank, process, thread) that occur."""
    columns = (frames.ints(table, column) for column in ("rank", "process", "thread"))
    return [key for key, _ in frames.together(*columns)]


def _rows_by_rank(table: pa.Table) -> dict[int, slice]:
    """The rows of each rank, which the table keeps together."""
    found: dict[int, slice] = {}
    for key, rows in frames.threads(table):
        first = found.get(key[0], rows)
        found[key[0]] = slice(first.start, rows.stop)
    return found
