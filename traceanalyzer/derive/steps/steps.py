"""Steps as the GPU saw them. The GPU runs behind its host, so an operation belongs to the step in which it was launched."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.columns import ascending, distinct, frames, most
from traceanalyzer.columns.in_blocks import in_blocks
from traceanalyzer.columns.lean import repeated
from traceanalyzer.derive.launches.launch_calls import first_unfinished
from traceanalyzer.derive.launches.tables import LAUNCHES
from traceanalyzer.derive.steps import repetition
from traceanalyzer.derive.steps.tables import STEP_OPS, STEP_STATS
from traceanalyzer.intervals import Array, latest, latest_of
from traceanalyzer.model.schema import STEPS
from traceanalyzer.records import dataclass

_OF_OPS = ("op_start_ns", "op_end_ns", "op_kind")


def step_calls(steps: pa.Table, launches: pa.Table, ledger_ops: pa.Table) -> pa.Table:
    """The launches by which operations belong to steps.

    Where a rank has neither marked steps nor launches, each operation counts as called when it began: the order of the operations then
    stands for the order of their launches.
    """
    known = pa.concat_arrays([pc.unique(table["rank"]) for table in (steps, launches)])
    bare = ledger_ops.filter(pc.invert(pc.is_in(ledger_ops["rank"], known)))
    if not bare.num_rows:
        return launches
    columns = {c: bare[c] for c in ("rank", "process", "device", "stream", "start_ns", "end_ns")}
    columns |= {
        "op": bare["row"],
        "op_start_ns": bare["start_ns"],
        "op_end_ns": bare["end_ns"],
        "op_kind": bare["kind"],
    }
    columns |= {"thread": pa.nulls(bare.num_rows), "api_name": pa.nulls(bare.num_rows, pa.string())}
    columns |= {"queue_delay": np.zeros(bare.num_rows, np.int64), "first": np.ones(bare.num_rows, bool)}
    return pa.concat_tables([launches, frames.build(LAUNCHES, columns)]).unify_dictionaries().combine_chunks()


def host_steps(steps: pa.Table, step_calls: pa.Table, ledger_ops: pa.Table) -> pa.Table:
    """The marked steps and, in ranks that mark none, those that the repetition of the launches shows; columns of `steps`.

    A process is cut by its launches on the device on which it launches most.
    """
    calls = step_calls.filter(
        pc.and_(step_calls["first"], pc.invert(pc.is_in(step_calls["rank"], pc.unique(steps["rank"]))))
    )
    if not calls.num_rows:
        return steps
    calls = calls.sort_by([(c, "ascending") for c in ("rank", "process", "start_ns", "op_start_ns", "op")])
    found = [steps]
    row = frames.ints(ledger_ops, "row")
    for (rank, process), launched in frames.split(calls, "rank", "process"):
        device = frames.ints(launched, "device")
        own = launched.filter(pa.array(device == most.commonest(device)))
        ops = ledger_ops.take(pa.array(np.searchsorted(row, frames.ints(own, "op"))))
        # Results that are read back are what differs between steps: a metric here, a checkpoint there.
        kept = pa.array(~frames.equals(ops, "copy_kind", "dtoh"))
        units = repetition.find(_launched(ops.filter(kept)))
        if units is not None:
            found.append(_found(rank, process, own.filter(kept), units, int(frames.ints(own, "end_ns").max())))
    return frames.stack(STEPS, found)


def _launched(ops: pa.Table) -> repetition.Launches:
    """The launches, each given by its first operation; a graph launch is known by the graph as well."""
    symbol = frames.dense(frames.codes(ops, "name")[0], frames.ints(ops, "graph_id"))
    _, at = np.unique(symbol, return_index=True)
    kernel = ~frames.equals(ops, "kind", "memcpy", "memset")
    update = kernel & frames.where(ops, "name", lambda name: repetition.UPDATE.search(name) is not None)
    backward = kernel & frames.where(ops, "name", lambda name: repetition.BACKWARD.search(name) is not None)
    material = backward | frames.equals(ops, "copy_kind", "htod")
    return repetition.Launches(symbol, len(at), kernel[at], update[at], material[at])


def _found(rank: int, process: int, calls: pa.Table, units: repetition.Units, last: int) -> pa.Table:
    """The units as steps. The last one ends where the next thing begins, or with the `last` launch."""
    count = len(units.start)
    start = frames.ints(calls, "start_ns")
    after = int(units.end[-1])
    end = int(start[after]) if after < len(start) else last
    first = start[units.start]
    return frames.build(
        STEPS,
        {
            "rank": np.full(count, rank),
            "process": np.full(count, process),
            "thread": calls["thread"].take(pa.array(units.start)),
            "start_ns": first,
            "end_ns": np.append(first[1:], end),
            "name": pa.nulls(count, pa.string()),
            "index": np.arange(count),
            "method": pa.repeat("repetition", count),
            "open": pa.nulls(count, pa.bool_()),
        },
    )


def step_stats(
    host_steps: pa.Table,
    step_calls: pa.Table,
    launch_calls: pa.Table,
    ledger_ops: pa.Table,
    links: pa.Table,
    windows: pa.Table,
) -> pa.Table:
    """One row per (rank, device, step) that launched something.

    A step lasts from the end of the step before it to the end of its own last operation or, where that is later and the step is marked,
    to the end of its mark: what the host does last in a step belongs to it. What is launched ahead (the copy of the next batch) ends
    early and moves no border. The first one begins with its mark or, where the GPU was still at work on what came before, with the end
    of that. Without a mark it is not complete: it lasts from the end of the last kernel that was queued before the recording or,
    without any, from its own first operation. A step of which something never ran in the recording, as it does where the GPU's records
    end before the host's, is not complete either, nor is any after it.
    """
    if not host_steps.num_rows or not step_calls.num_rows:
        return STEP_STATS.empty()
    calls = step_calls.select(["rank", "device", "process", "start_ns", *_OF_OPS])
    calls = frames.sorted_by(calls, "rank", "device", "op_start_ns")
    unfinished, before = first_unfinished(launch_calls), frames.by_device(_unlaunched(ledger_ops, links))
    steps = _Steps(host_steps)
    until = {(row["rank"], row["device"]): row["end_ns"] for row in windows.to_pylist()}
    tables = [_device_steps(key, steps, own, unfinished, before[key], until[key]) for key, own in frames.split(calls)]
    return frames.stack(STEP_STATS, [table for table in tables if table.num_rows])


def step_ops(host_steps: pa.Table, step_calls: pa.Table) -> pa.Table:
    """One row per operation of a row of `step_stats`, in the order of `step_calls` within each device."""
    tables, steps = [], _Steps(host_steps)
    calls = frames.sorted_by(step_calls.select(["rank", "device", "process", "start_ns", "op"]), "rank", "device")
    for key, launches in frames.split(calls):
        launched = steps.launched(key, launches)
        if launched is not None:
            index = distinct(launched.step, len(launched.start))[1]
            columns = {"op": launched.launches["op"], "step": index}
            columns |= {
                name: repeated(pa.array([value]), len(index))
                for name, value in zip(("rank", "device"), key, strict=True)
            }
            tables.append(frames.build(STEP_OPS, columns))
    return frames.stack(STEP_OPS, tables)


def _unlaunched(ledger_ops: pa.Table, links: pa.Table) -> pa.Table:
    """The kernels without a launch record; none of ranks that have no such records at all."""
    row, op = frames.ints(ledger_ops, "row"), frames.ints(links, "op")
    unlinked = np.ones(int(row.max(initial=-1)) + 1, bool)
    unlinked[op] = False
    lacking = frames.equals(ledger_ops, "kind", "kernel") & unlinked[row]
    kernels = ledger_ops.select(["rank", "device", "start_ns", "end_ns"]).filter(pa.array(lacking))
    return kernels.filter(pc.is_in(kernels["rank"], pc.unique(links["rank"])))


def steps_at(host_steps: pa.Table, rank: Array, process: Array, time: Array) -> Array:
    """The index of the host's step in which each time of a process lies, `NULL` outside of all."""
    keys = ((rank, "rank"), (process, "process"))
    lane = frames.dense(*(np.concatenate((frames.ints(host_steps, c), own)) for own, c in keys))
    start, end = frames.ints(host_steps, "start_ns"), frames.ints(host_steps, "end_ns")
    return frames.ints_at(host_steps, "index", latest_of(lane[: len(start)], start, end, lane[len(start) :], time))


def _device_steps(
    key: frames.Key,
    steps: _Steps,
    launches: pa.Table,
    unfinished: Mapping[tuple[int, ...], int],
    unlaunched: pa.Table,
    until: int,
) -> pa.Table:
    launched = steps.launched(key, launches)
    if launched is None:
        return STEP_STATS.empty()
    mine, all_launches, launches = launched.steps, launches, launched.launches
    # Of many GPUs, each may have work of few steps.
    seen, step = distinct(launched.step, len(launched.start))
    op_start, op_end = frames.ints(launches, "op_start_ns"), frames.ints(launches, "op_end_ns")
    first, last = np.full(len(seen), np.iinfo(np.int64).max), np.full(len(seen), frames.NULL)
    count, kernels = np.zeros((2, len(seen)), np.int64)
    # What is launched in a step runs one after the other, with few exceptions.
    runs = np.flatnonzero(np.append(True, step[1:] != step[:-1]))
    of = step[runs]
    np.minimum.at(first, of, np.minimum.reduceat(op_start, runs))
    np.maximum.at(last, of, np.maximum.reduceat(op_end, runs))
    np.add.at(count, of, np.diff(runs, append=len(step)))
    is_kernel = frames.equals(launches, "op_kind", "kernel")
    np.add.at(kernels, of, np.add.reduceat(is_kernel, runs, dtype=np.int64))
    whole = ~frames.flags(mine, "open")[seen]
    whole &= launched.end[seen] <= unfinished.get((key[0], launched.process), np.iinfo(np.int64).max)
    done = np.maximum.accumulate(last)
    marked = ~frames.equals(mine, "method", "repetition")[seen]
    end = np.maximum.accumulate(np.where(marked & whole, np.maximum(done, np.minimum(launched.end[seen], until)), done))
    begin = (
        _begin(launched, all_launches, unlaunched, int(first[0]))
        if marked[0]
        else _queued_end(unlaunched, int(first[0]))
    )
    return frames.build(
        STEP_STATS,
        {
            "rank": np.full(len(seen), key[0]),
            "device": np.full(len(seen), key[1]),
            "index": np.arange(len(seen)),
            "name": mine["name"].take(pa.array(seen)),
            "method": mine["method"].take(pa.array(seen)),
            "start_ns": np.append(begin, end[:-1]),
            "end_ns": end,
            "done_ns": done,
            "complete": whole & (marked | (np.arange(len(seen)) > 0)),
            "gpu_op_count": count,
            "kernel_count": kernels,
        },
    )


def _begin(launched: _Launched, launches: pa.Table, unlaunched: pa.Table, first: int) -> int:
    """When the first step of a GPU begins, which is marked: with its mark, or when the GPU is done with what was launched before.

    `launches` are all of the GPU's, in steps or not, and `first` is the start of the step's first operation. What runs on beside the
    step's first kernel does not hold it up.
    """
    step = launched.launches.filter(pa.array(launched.step == launched.step.min()))
    kernels = frames.ints(step, "op_start_ns")[frames.equals(step, "op_kind", "kernel", "graph")]
    mark, kernel = int(launched.start[launched.step.min()]), int(kernels.min()) if len(kernels) else first
    before = frames.ints(launches, "op_end_ns")[frames.ints(launches, "start_ns") < mark]
    done = np.concatenate((before, frames.ints(unlaunched, "end_ns")))
    return int(done[done <= kernel].max(initial=mark))


def _queued_end(unlaunched: pa.Table, first: int) -> int:
    """When the last kernel that was queued before the recording ended; without any, when the first step's first operation began."""
    queued = frames.ints(unlaunched, "end_ns")[frames.ints(unlaunched, "start_ns") < first]
    return min(int(queued.max(initial=frames.NULL)), first) if len(queued) else first


@dataclass(frozen=True)
class _Launched:
    """The launches of one device that lie in a step, and in which of the host's `steps`, all of one process; these are from `start` to
    `end`."""

    process: int
    steps: pa.Table
    start: Array
    end: Array
    launches: pa.Table
    step: Array


class _Steps:
    """The host's steps by (rank, process)."""

    def __init__(self, steps: pa.Table) -> None:
        keys = (frames.ints(steps, "rank"), frames.ints(steps, "process"))
        self._of: dict[tuple[int, ...], tuple[pa.Table, Array, Array]] = {}
        for key, rows in frames.together(*keys):
            own = steps.take(pa.array(rows))
            self._of[key] = own, frames.ints(own, "start_ns"), frames.ints(own, "end_ns")

    def launched(self, key: frames.Key, launches: pa.Table) -> _Launched | None:
        """Those of a device's launches that lie in a step, None without any.

        A device shared by processes is counted in the steps of the process that launches most on it.
        """
        process = frames.ints(launches, "process")
        stepping = [one for one in ascending(process).tolist() if (key[0], one) in self._of]
        if not stepping:
            return None
        leader = max(stepping, key=lambda one: int(np.count_nonzero(process == one)))
        mine, start, end = self._of[key[0], leader]
        launches = frames.filtered(launches, process == leader)
        called, step = frames.ints(launches, "start_ns"), np.empty(launches.num_rows, np.int64)
        for rows in in_blocks(len(step)):
            step[rows] = latest(start, end, called[rows])
        inside = step >= 0
        return (
            _Launched(
                *(leader, mine, start, end, frames.filtered(launches, inside)), step if inside.all() else step[inside]
            )
            if inside.any()
            else None
        )
