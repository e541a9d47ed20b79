"""When the system ran a host thread: the table `thread_runs`."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.ingest.formats.nsys.lookups import among, integers, processes, threads
from traceanalyzer.ingest.formats.nsys.repairs import Repairs, keep_rows
from traceanalyzer.ingest.formats.nsys.sqlite import tables
from traceanalyzer.ingest.formats.nsys.sqlite.rows import EventReader
from traceanalyzer.ingest.rows.external_sort import Spool
from traceanalyzer.ingest.rows.order import Key
from traceanalyzer.model.schema import Column, TableSpec

_ROWS = TableSpec(
    "switches",
    "a thread that was put on a CPU, or taken off it",
    (
        Column("thread", pa.int64(), None, "global id of the thread"),
        Column("time_ns", pa.int64(), "ns", "when"),
        Column("on", pa.int64(), None, "1 for on, 0 for off"),
        Column("cpu", pa.int32(), None, "number of the CPU"),
    ),
)
_KEYS = (Key("thread"), Key("time_ns"), Key("on"), Key("cpu"))


def read_runs(reader: EventReader, users: set[int], repairs: Repairs) -> Iterator[pa.Table]:
    """Batches of `thread_runs` of all threads of the processes that use a GPU.

    A thread is off the CPU only between a record that took it off and the next one, which put it on. So it counts as running before
    its first record, from the first of all threads on, and after its last one, as those say; and where a record was lost.
    """
    with tempfile.TemporaryDirectory(prefix="traceanalyzer-") as folder:
        spool = Spool(_ROWS, _KEYS, Path(folder))
        first = last = None
        for columns in reader.read(tables.SWITCHES):
            extremes = pc.min_max(columns["start"]).as_py()
            if extremes["min"] is not None:
                first = extremes["min"] if first is None else min(first, extremes["min"])
                last = extremes["max"] if last is None else max(last, extremes["max"])
            wanted = among(integers(processes(columns["caller"]), -1), np.array(sorted(users), np.int64))
            wanted &= np.asarray(columns["start"].is_valid()) & np.asarray(columns["on"].is_valid())
            some = keep_rows(columns, pa.array(wanted))
            on = pa.array((integers(some["on"]) != 0).astype(np.int64))
            rows = {"thread": some["caller"], "time_ns": some["start"], "on": on}
            if "cpu" in some:
                rows["cpu"] = repairs.small(some["cpu"])
            spool.add(pa.table(rows))
        if first is None or last is None:
            return
        held: pa.Table | None = None
        for block in spool.blocks():
            rows = block if held is None else pa.concat_tables([held, block])
            yield _runs(rows.combine_chunks(), held is None, False, first, last)
            held = block.slice(block.num_rows - 1)
        if held is not None:
            yield _runs(held.combine_chunks(), False, True, first, last)


def _runs(rows: pa.Table, begins: bool, ends: bool, first: int, last: int) -> pa.Table:
    """The stretches between records that follow each other, as rows of `thread_runs`.

    `first` and `last` are the times of the first and the last record of all threads. `begins` says that the first of `rows` is the
    first of its thread, `ends` that the last is the last of its.
    """
    thread, time, on = (integers(rows[c].combine_chunks()) for c in ("thread", "time_ns", "on"))
    on = on != 0
    change = thread[1:] != thread[:-1]
    # Between two records of a thread, before its first, and after its last.
    between = np.flatnonzero(~change & (on[:-1] | ~on[1:]))
    head = np.flatnonzero(np.concatenate(([begins], change)) & ~on)
    tail = np.flatnonzero(np.concatenate((change, [ends])) & on)
    start = np.concatenate((time[between], np.full(len(head), first), time[tail]))
    end = np.concatenate((time[between + 1], time[head], np.full(len(tail), last)))
    cpu = np.concatenate((np.where(on[between], between, between + 1), head, tail))
    caller = pa.array(thread[np.concatenate((between, head, tail))])
    runs = {
        "process": processes(caller),
        "thread": threads(caller),
        "start_ns": pa.array(start),
        "end_ns": pa.array(end),
        "cpu": rows["cpu"].take(pa.array(cpu)).combine_chunks(),
    }
    return pa.table(runs).filter(pa.array(end > start))
