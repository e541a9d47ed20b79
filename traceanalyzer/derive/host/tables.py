"""What kept the launching threads from launching."""

from __future__ import annotations

from traceanalyzer.derive.columns import DEVICE, PROCESS, RANK, SPAN, THREAD, count
from traceanalyzer.model.schema import NAME, Column, TableSpec

OTHER_THREADS = TableSpec(
    "other_threads",
    "a piece of idle time in which the launching thread waited for Python's interpreter lock, which another thread of its process held",
    (
        RANK,
        DEVICE,
        PROCESS,
        THREAD,
        *SPAN,
        Column(
            "other", NAME, None, 'the thread that ran Python meanwhile, as "thread 7"; of several the one that ran most'
        ),
        Column(
            "frame",
            NAME,
            None,
            "what that thread ran: its innermost line of the program's own code, else its innermost frame",
        ),
        Column("place", NAME, None, "where the launching thread waited: its innermost range"),
        count("turns", "how often in a row it did not get the lock, in the wait that this is a piece of"),
    ),
)
