"""Whether the GPU's clock agrees with the host's, judged by cause and effect.

An operation cannot begin before the call that launches it, and one that was launched before a host thread waited for the whole device
cannot end after that wait.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.columns import frames
from traceanalyzer.derive.launches.tables import CLOCKS
from traceanalyzer.intervals import Array

_DEVICE_WAITS = ("DeviceSynchronize", "CtxSynchronize")
GRACE_NS = 10_000
"""How late an operation may end after a wait for it: what rounding and the driver's own clocks explain. None begins that late."""


def clocks(links: pa.Table, api_calls: pa.Table) -> pa.Table:
    """One row for each rank whose clocks disagree."""
    lead = -frames.ints(links, "queue_delay")
    waits = api_calls.filter(pa.array(frames.where(api_calls, "name", lambda name: name.endswith(_DEVICE_WAITS))))
    rows = []
    for (one,), mine in frames.together(frames.ints(links, "rank")):
        early = lead[mine][lead[mine] > 0]
        late = _late(links.take(pa.array(mine)), waits.filter(pc.equal(waits["rank"], one)))
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
    drifting = clocks.filter(pc.greater(clocks["late"], 0))["rank"]
    sound = pc.and_(
        pc.greater_equal(links["queue_delay"], 0), pc.invert(pc.is_in(links["rank"], drifting.combine_chunks()))
    )
    return links.filter(sound)


def _late(links: pa.Table, waits: pa.Table) -> Array:
    """For each wait for the device that returned too early, by how many ns: until the last operation launched before it ended."""
    found = [np.empty(0, np.int64)]
    for process in pc.unique(waits["process"]).drop_null().to_pylist():
        own = links.filter(pc.equal(links["process"], process))
        # Of several devices, a wait is for the one that is current, which nobody recorded.
        if len(pc.unique(own["device"])) != 1:
            continue
        called = frames.ints(own, "end_ns")
        order = np.argsort(called, kind="stable")
        begun, ended = (np.maximum.accumulate(frames.ints(own, c)[order]) for c in ("op_start_ns", "op_end_ns"))
        here = waits.filter(pc.equal(waits["process"], process))
        before = np.searchsorted(called[order], frames.ints(here, "start_ns"), side="right") - 1
        returned = frames.ints(here, "end_ns")
        over = ended[before] - returned
        found.append(over[(before >= 0) & ((over > GRACE_NS) | (begun[before] > returned))])
    return np.concatenate(found)
