"""The tables of NCCL's records: calls, groups, what each file tells of itself, and the reference of a link.

Times are nanoseconds since the epoch less the marks' `clock_base_ns`.
"""

from __future__ import annotations

import pyarrow as pa

from traceanalyzer.derive.columns import flag, text
from traceanalyzer.model.schema import Column, TableSpec
from traceanalyzer.units import Unit

COMPLETED, STARTED, SCHEDULED = "completed", "started", "scheduled"
RECORDER, INSPECTOR, LINK_TEST = "flight recorder", "NCCL Inspector", "nccl-tests"


def _rank() -> Column:
    return Column("rank", pa.int32(), None, "rank of the job, or the file's ordinal when the rank is unknown")


def _number(name: str, doc: str, unit: Unit | None = None) -> Column:
    return Column(name, pa.int64(), unit, doc)


CALLS = TableSpec(
    "nccl_calls",
    "one call of a collective, a send or a receive that a rank made, as NCCL's users record it",
    (
        _rank(),
        _number("entry", "0-based number of the record; where numbers are missing, records were lost"),
        text("group", "name of the process group or communicator"),
        _number("sequence", "number of the collective in its group; null for sends and receives"),
        _number("p2p_sequence", "number of the send or receive in its group; null for collectives"),
        text("operation", "all_reduce, _all_gather_base, send, ..., as recorded"),
        Column("peer", pa.int32(), None, "rank in the group on the other side of a send or receive; null for others"),
        text("dtype", "element type, as recorded"),
        text("sizes", "shapes of what goes in -> shapes of what comes out; null when not recorded"),
        _number("in_elements", "elements that go in; null when not recorded", "count"),
        _number("out_elements", "elements that come out; null when not recorded", "count"),
        _number(
            "bytes", "size of the message: the larger of what goes in and what comes out; null if unknown", "bytes"
        ),
        text("state", "scheduled, started or completed; null when not recorded"),
        _number("created_ns", "when the program asked for it; null when not recorded", "ns"),
        _number("started_ns", "when it was found to have started on the GPU; null when not recorded", "ns"),
        _number(
            "completed_ns", "when it was found to have completed: some time after it did; null if it had not", "ns"
        ),
        _number("duration", "how long it ran on the GPU; null when not recorded", "ns"),
        Column("bus_bandwidth", pa.float64(), None, "GB/s over the busiest link, as recorded; null when not recorded"),
        flag("timed_out", "true: the watchdog gave it up before it was complete"),
        text("place", "innermost frame of the user's own code, as file:line (function); null when not recorded"),
    ),
)

GROUPS = TableSpec(
    "nccl_groups",
    "one process group that a rank is a member of, as the record describes it",
    (
        _rank(),
        text("group", "its name"),
        text("description", "what the program calls it; null when not recorded"),
        Column("ranks", pa.string(), None, "ranks of the job in it (JSON); null when not recorded"),
        Column("size", pa.int32(), "count", "ranks in it; null when not recorded"),
        _number("last_enqueued", "number of the last call that was enqueued, as recorded; null when not"),
        _number("last_started", "likewise of the last that was seen to start"),
        _number(
            "last_completed", "likewise of the last that was seen to complete: the watchdog may not have looked yet"
        ),
    ),
)

DUMPS = TableSpec(
    "nccl_dumps",
    "one file of NCCL's records",
    (
        _rank(),
        text("source", "flight recorder, NCCL Inspector or nccl-tests"),
        Column("version", pa.string(), None, "version of the format; null when not recorded"),
        Column("member", pa.int32(), None, "rank of the job that its content tells; null when it tells none"),
        Column("world_size", pa.int32(), "count", "ranks of the job; null when not recorded"),
        _number("entries", "calls in it", "count"),
        flag("lost_beginning", "true: its first calls are not the first that the rank made"),
        flag("active_only", "true: it may leave out what was completed"),
        _number("latest_ns", "latest time in it: it was not written before; null without times", "ns"),
    ),
)

LINKS = TableSpec(
    "nccl_link_tests",
    "one measurement of nccl-tests: how fast a collective of one size can be between these GPUs",
    (
        _rank(),
        text("operation", "all_reduce, all_gather, ...; null when not told"),
        Column("gpus", pa.int32(), "count", "ranks that took part; null when not told"),
        _number("bytes", "size of the message", "bytes"),
        text("dtype", "element type, as recorded"),
        flag("in_place", "true: in place"),
        _number("duration", "mean time of one", "ns"),
        Column("algorithm_bandwidth", pa.float64(), None, "size over time in GB/s"),
        Column("bus_bandwidth", pa.float64(), None, "the same over the busiest link, in GB/s"),
        _number("wrong", "wrong elements; null when not checked", "count"),
    ),
)

TABLES = (CALLS, GROUPS, DUMPS, LINKS)
