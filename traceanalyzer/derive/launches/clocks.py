"""Whether the GPU's clock agrees with the host's, judged by cause and effect.

An operation cannot begin before the call that launches it, and one that was launched before a host thread waited for the whole device
cannot end after that wait.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.columns import frames
from traceanalyzer.columns.in_blocks import are_alike
from traceanalyzer.derive.launches.tables import CLOCKS
from traceanalyzer.intervals import Array

_DEVICE_WAITS = ("DeviceSynchronize", "CtxSynchronize")
GRACE_NS = 10_000
"""How late an operation may end after a wait for it: what rounding and the driver's own clocks explain. None begins that late."""


def clocks(links: pa.Table, api_calls: pa.Table) -> pa.Table:
    """One row for each rank whose clocks disagree."""
    delay = frames.ints(links, "queue_delay")
    is_wait = frames.where(api_calls, "name", lambda name: name.endswith(_DEVICE_WAITS))
    waits = api_calls.select(["rank", "process", "start_ns", "end_ns"]).filter(pa.array(is_wait))
    rows, of_process = [], frames.rows_by(links, "rank", "process")
    for (one,), mine in frames.rows_by(links, "rank").items():
        waited = delay[mine]
        early = -waited[waited < 0]
        own = {process: rows for (rank, process), rows in of_process.items() if rank == one}
        late = _late(links, own, waits.filter(pc.equal(waits["rank"], one)))
        if len(early) or len(late):
            rows.append(
                {
                    "rank": one,
                    "early": len(early),
                    "most_early": int(early.max(initial=0)),
                    "late": len(late),
                    "most_late": int(late.max(initial=0)),
                }
            )
    return pa.Table.from_pylist(rows, schema=CLOCKS.schema)


def launches(links: pa.Table, clocks: pa.Table) -> pa.Table:
    """The links that can be: none to an operation before its call, and none at all in a rank whose GPU clock drifts."""
    sound = frames.ints(links, "queue_delay") >= 0
    drifting = clocks.filter(pc.greater(clocks["late"], 0))["rank"].to_pylist()
    if drifting:
        sound &= ~np.isin(frames.ints(links, "rank"), drifting)
    return links if sound.all() else links.filter(pa.array(sound))


def _late(links: pa.Table, rows: Mapping[int, Array | slice], waits: pa.Table) -> Array:
    """For each wait for the device that returned too early, by how many ns: until the last operation launched before it ended.

    `rows` are those of `links` of each process of the rank.
    """
    found = [np.empty(0, np.int64)]
    device, end, op_start, op_end = (frames.ints(links, c) for c in ("device", "end_ns", "op_start_ns", "op_end_ns"))
    for one in pc.unique(waits["process"]).drop_null().to_pylist():
        # Of several devices, a wait is for the one that is current, which nobody recorded.
        if one not in rows or not _is_one(device[rows[one]]):
            continue
        called, begun, ended = (column[rows[one]] for column in (end, op_start, op_end))
        if (called[1:] < called[:-1]).any():
            order = np.argsort(called, kind="stable")
            called, begun, ended = (column.take(order) for column in (called, begun, ended))
        begun, ended = np.maximum.accumulate(begun), np.maximum.accumulate(ended)
        here = waits.filter(pc.equal(waits["process"], one))
        before = np.searchsorted(called, frames.ints(here, "start_ns"), side="right") - 1
        returned = frames.ints(here, "end_ns")
        over = ended[before] - returned
        found.append(over[(before >= 0) & ((over > GRACE_NS) | (begun[before] > returned))])
    return np.concatenate(found)


def _is_one(values: Array) -> bool:
    return are_alike(values) or bool((values == values[0]).all())
