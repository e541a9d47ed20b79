"""Trees of calls: where a line of the ledger, or a host thread's time, goes by the stack of what the host did."""

from __future__ import annotations

import pyarrow as pa

from traceanalyzer.derive.columns import RANK, ns
from traceanalyzer.model.derived import Derived
from traceanalyzer.model.schema import NAME, Column, TableSpec

CALL_TREES = TableSpec(
    "call_trees",
    "one node of a tree of calls; the nodes of a tree come in preorder, each after what is around it",
    (
        RANK,
        Column("device", pa.int32(), None, "GPU whose ledger line the root is; null for the time of host threads"),
        Column(
            "tree",
            NAME,
            None,
            "idle (by cause, then by the launching thread's stack; where the host is not at fault, by the stack that launched the "
            "operation that ends the gap), gpu (compute, by the stack that launched it), communication and copies (exposed, likewise; "
            "memsets are in none) or host (time of launching threads in the windows)",
        ),
        Column("node", pa.int32(), None, "position of the node in its tree; the root is 0"),
        Column("parent", pa.int32(), None, "node around it; -1 for the root"),
        Column("name", NAME, None, "name of the cause, thread, frame, range, operator, call or kernel"),
        Column(
            "kind",
            NAME,
            None,
            "root, cause, thread, python, annotation, operator, call, mpi, os, sample, kernel, copy, unrecorded or other (what is too "
            "small to be told apart)",
        ),
        ns("total_ns", "time of the node and all below it; that of a root of a GPU equals its ledger line"),
        ns("self_ns", "time of the node itself"),
    ),
)

DERIVED = (
    Derived(
        "call_trees",
        "traceanalyzer.derive.trees.call_trees:call_trees",
        (
            *("ledger_ops", "busy", "gaps", "windows", "launches", "host", "host_ranges", "api_calls", "cpu_samples"),
            "threads",
        ),
        CALL_TREES,
        internal=True,
    ),
)
