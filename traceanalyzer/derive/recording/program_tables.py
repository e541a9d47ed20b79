"""What kind of program was recorded."""

from __future__ import annotations

from traceanalyzer.derive.columns import RANK
from traceanalyzer.model.derived import Derived
from traceanalyzer.model.schema import NAME, Column, TableSpec

PROGRAM = TableSpec(
    "program",
    "one thing that is known of the recorded program; rules read it as `program`, with true or false for each name",
    (
        RANK,
        Column("name", NAME, None, "a language, a framework, a vendor of GPUs, or compiled (see model.programs)"),
    ),
)

DERIVED = (
    Derived(
        "program",
        "traceanalyzer.derive.recording.program:program",
        ("inputs", "gpu_ops", "api_calls", "host_ranges", "collectives", "processes", "devices"),
        PROGRAM,
        small=True,
    ),
)
