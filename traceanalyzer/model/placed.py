"""Where the evidence that is beside a part came from, and whether its times are on the part's clock: a table that analysis fills."""

from __future__ import annotations

import pyarrow as pa

from traceanalyzer.model.schema import Column, TableSpec

PLACED = TableSpec(
    "placed_evidence",
    "one file of evidence, beside the trace of the rank that it is of, or judged alone",
    (
        Column("rank", pa.int32(), None, "rank of the job, or the file's ordinal when the rank is unknown"),
        Column("kind", pa.string(), None, "kind of evidence"),
        Column("path", pa.string(), None, "the file"),
        Column("placed_by", pa.string(), None, "what told whose it is; null for evidence that is judged alone"),
        Column("on_clock", pa.bool_(), None, "whether its times are on the clock of the rank's trace"),
        Column("clock_error", pa.int64(), "ns", "how far they may be off that clock; null when unknown"),
    ),
)
