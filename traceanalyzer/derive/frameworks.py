"""Which framework the program was written in, so that advice comes in its words."""

from __future__ import annotations

import re

import pyarrow as pa

from traceanalyzer.derive import frames

# What only the framework's own operators and kernels are called.
SIGNS = {
    "pytorch": re.compile(r"^aten::|\bat::native\b|^autograd::|ProfilerStep#|^torch/"),
    "jax": re.compile(r"^jit[(_]|^XlaModule|^TfrtCpu|xla::|^PjitFunction|^PjRt"),
}


def frameworks(gpu_ops: pa.Table, host_ranges: pa.Table) -> frozenset[str]:
    """Of pytorch and jax those whose names the trace holds; cuda when it holds neither."""
    names = {v for table in (gpu_ops, host_ranges) for v in frames.codes(table, "name")[1] if v}
    seen = {framework for framework, sign in SIGNS.items() if any(map(sign.search, names))}
    return frozenset(seen or {"cuda"})
