"""Which operations were seen to wait for another stream or GPU: something there ended just before they began.

Without a partner nothing in the trace says why an operation that was launched in time did not run.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from traceanalyzer.derive import frames
from traceanalyzer.derive.frames import NULL
from traceanalyzer.derive.streams.handover import HANDOVER_NS
from traceanalyzer.intervals import Array


def has_partner(ops: pa.Table, op: Array) -> frames.Flags:
    """Whether shortly before each of some operations, given by their rows in `ops`, one of another stream or GPU of its file ended.

    The clocks of other files are not held against each other. An operation of an unknown stream is only known not to be of another GPU.
    """
    file, device, stream = (frames.ints(ops, c) for c in ("rank", "device", "stream"))
    end, begun = frames.ints(ops, "end_ns"), frames.ints(ops, "start_ns")[op]
    found = np.zeros(len(op), bool)
    of_gpu = frames.dense(file, device)
    if len(np.unique(of_gpu)) > len(np.unique(file)):
        found |= begun - _last_of_others(file, of_gpu, end, op, begun) <= HANDOVER_NS
    known = stream != NULL
    own = known[op]
    # Rows of unknown streams are left out of the search, and have no place in it.
    place = np.cumsum(known) - 1
    last = _last_of_others(of_gpu[known], frames.streams(ops)[known], end[known], place[op[own]], begun[own])
    found[own] |= begun[own] - last <= HANDOVER_NS
    return found


def _last_of_others(group: Array, part: Array, end: Array, op: Array, time: Array) -> Array:
    """For each of some rows `op` the last end up to `time` among the rows of its group that are of another part of it.

    So long ago that nothing comes near it, where there is none. Each part lies in one group.
    """
    asked = np.concatenate((np.zeros(len(end), bool), np.ones(len(op), bool)))
    order = np.lexsort((asked, np.concatenate((end, time)), np.concatenate((group, group[op]))))
    asked = asked[order]
    ends, asking = order[~asked], order[asked] - len(end)
    if not len(ends):
        return time - 2 * HANDOVER_NS
    at = np.empty(len(op), np.int64)
    at[asking] = np.cumsum(~asked)[asked] - 1
    # What lies before a stretch of one part is of another part, or of another group.
    ended = part[ends]
    stretch = np.maximum.accumulate(np.where(np.diff(ended, prepend=-1) != 0, np.arange(len(ends)), 0))
    at = np.where((at >= 0) & (ended[at] == part[op]), stretch[at] - 1, at)
    other = (at >= 0) & (group[ends[at]] == group[op])
    return np.where(other, end[ends[at]], time - 2 * HANDOVER_NS)
