"""What exposed communication of each GPU is made of."""

from __future__ import annotations

from traceanalyzer.derive.columns import DEVICE, RANK, SPAN, count, flag, ns, text
from traceanalyzer.model.derived import Derived
from traceanalyzer.model.schema import TableSpec

EXPOSED_PARTS = TableSpec(
    "exposed_parts",
    "exposed communication of one GPU for one kind of parallelism; all rows of a GPU add up to its line of the ledger",
    (
        RANK,
        DEVICE,
        text("parallelism", "what it serves, as in `communication`; null when that cannot be told"),
        ns(
            "exposed", "time in which communication for it ran, the first of those that ran at once, and no compute did"
        ),
        ns("wait", "the part of that in which another rank had not arrived, as far as that is told or likely"),
        ns("told", "the part of which that is told: its kernels have counterparts on other ranks, or a likely wait"),
        ns("step_exposed", "`exposed` within complete steps"),
        ns("step_wait", "`wait` within complete steps"),
        count("steps", "complete steps of the GPU"),
        flag(
            "parted",
            "most of the GPU's exposed communication is told, so that it can be parted into waiting and transfer",
        ),
    ),
)

EXPOSED_WAITS = TableSpec(
    "exposed_waits",
    "one stretch of exposed communication of a GPU in which it waits for another rank, as `exposed_parts` counts it",
    (RANK, DEVICE, *SPAN),
)

DERIVED = (
    Derived(
        "exposed_waits",
        "traceanalyzer.ranks.shape.axes:exposed_waits",
        ("ledger_intervals", "communication"),
        EXPOSED_WAITS,
        small=True,
        empty_without="communication",
        internal=True,
    ),
    Derived(
        "exposed_parts",
        "traceanalyzer.ranks.shape.axes:exposed_parts",
        ("ledger_intervals", "communication", "step_stats"),
        EXPOSED_PARTS,
        small=True,
        empty_without="communication",
        internal=True,
    ),
)
