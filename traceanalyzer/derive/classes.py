"""Communication kernels that only their operator gives away: libraries name their kernels anew with every version."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.derive import frames

OPERATOR = "record_param_comms"
"""The operator that PyTorch puts around each call of a communication library."""
# What PyTorch itself launches there: checks and copies of the buffers.
_HELPERS = ("at::native", "checkForNaN")


def gpu_ops(recorded_ops: pa.Table, host_ranges: pa.Table) -> pa.Table:
    """The event table, with the class of the kernels that a communication operator launched itself set to communication."""
    calls = host_ranges.filter(pa.array(frames.equals(host_ranges, "name", OPERATOR)))
    calls = calls.filter(pc.is_valid(calls["external_id"]))
    if not calls.num_rows or not recorded_ops.num_rows:
        return recorded_ops
    rank, own = frames.ints(recorded_ops, "rank"), frames.ints(recorded_ops, "external_id")
    key = frames.dense(*(np.concatenate((a, frames.ints(calls, c))) for a, c in ((rank, "rank"), (own, "external_id"))))
    foreign = frames.where(recorded_ops, "name", lambda name: not any(helper in name for helper in _HELPERS))
    launched = np.isin(key[: len(own)], key[len(own) :]) & frames.equals(recorded_ops, "kind", "kernel") & foreign
    # Profilers of before 2022 wrote the correlation where the operator's id belongs.
    launched &= own != frames.ints(recorded_ops, "correlation")
    unknown = launched & frames.equals(recorded_ops, "class", "compute")
    if not unknown.any():
        return recorded_ops
    code, classes = frames.codes(recorded_ops, "class")
    classes = [*classes, "communication"]
    at = recorded_ops.schema.get_field_index("class")
    told = frames.names(np.where(unknown, len(classes) - 1, code), classes)
    return recorded_ops.set_column(at, recorded_ops.schema.field(at), told.cast(recorded_ops.schema.field(at).type))
