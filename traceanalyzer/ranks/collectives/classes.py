"""Communication kernels that only their operator gives away: libraries name their kernels anew with every version."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.columns import frames
from traceanalyzer.derive.host.host import matcher

OPERATOR = "record_param_comms"
"""The operator that PyTorch puts around each call of a communication library."""
# What PyTorch itself launches there: checks and copies of the buffers.
_HELPERS = ("at::native", "checkForNaN")


def gpu_ops(recorded_ops: pa.Table, host_ranges: pa.Table, communication_patterns: tuple[str, ...]) -> pa.Table:
    """The event table, with the class of the kernels that a communication operator launched itself, or whose names match one of some
    shell-style patterns, set to communication."""
    if not recorded_ops.num_rows:
        return recorded_ops
    told = _launched_to_communicate(recorded_ops, host_ranges)
    if communication_patterns:
        told |= frames.where(recorded_ops, "name", matcher(communication_patterns))
    unknown = told & frames.equals(recorded_ops, "kind", "kernel") & frames.equals(recorded_ops, "class", "compute")
    if not unknown.any():
        return recorded_ops
    code, classes = frames.codes(recorded_ops, "class")
    classes = [*classes, "communication"]
    at = recorded_ops.schema.get_field_index("class")
    named = frames.names(np.where(unknown, len(classes) - 1, code), classes)
    return recorded_ops.set_column(at, recorded_ops.schema.field(at), named.cast(recorded_ops.schema.field(at).type))


def _launched_to_communicate(recorded_ops: pa.Table, host_ranges: pa.Table) -> frames.Flags:
    """Operations that run for a communication operator and are none of PyTorch's own kernels."""
    calls = host_ranges.filter(pa.array(frames.equals(host_ranges, "name", OPERATOR)))
    calls = calls.filter(pc.is_valid(calls["external_id"]))
    if not calls.num_rows:
        return np.zeros(recorded_ops.num_rows, bool)
    rank, own = frames.ints(recorded_ops, "rank"), frames.ints(recorded_ops, "external_id")
    key = frames.dense(*(np.concatenate((a, frames.ints(calls, c))) for a, c in ((rank, "rank"), (own, "external_id"))))
    foreign = frames.where(recorded_ops, "name", lambda name: not any(helper in name for helper in _HELPERS))
    # Profilers of before 2022 wrote the correlation where the operator's id belongs.
    foreign &= own != frames.ints(recorded_ops, "correlation")
    launched: frames.Flags = foreign & np.isin(key[: len(own)], key[len(own) :])
    return launched
