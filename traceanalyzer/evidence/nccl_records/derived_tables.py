"""What is told of NCCL's records: small tables of each rank, and what these say together."""

from __future__ import annotations

import pyarrow as pa

from traceanalyzer.derive.columns import RANK, count, flag, ns, share, text, whole
from traceanalyzer.evidence.nccl_records.tables import CALLS, DUMPS, GROUPS, LINKS
from traceanalyzer.model.derived import Derived, Needs
from traceanalyzer.model.schema import Column, TableSpec

_HERE = "traceanalyzer.evidence.nccl_records.answers"
_NO_CALLS = "no records of NCCL's collectives were given"


RANK_CALLS = TableSpec(
    "nccl_rank_calls",
    "as nccl_calls, with times since the epoch",
    (*CALLS.columns, flag("inside", "true: while the trace beside it was recorded; null without one on its clock")),
)
RANK_GROUPS = TableSpec("nccl_rank_groups", "as nccl_groups", GROUPS.columns)
RANK_DUMPS = TableSpec("nccl_rank_dumps", "as nccl_dumps, with times since the epoch", DUMPS.columns)
RANK_LINKS = TableSpec("nccl_rank_links", "as nccl_link_tests", LINKS.columns)

_GROUP = text("group", "the process group, in words; null where the job has no other")

MISSING = TableSpec(
    "nccl_missing",
    "one call that ranks of a group were waiting in when the records were written, and others had not made",
    (
        RANK,
        count("order", "0-based number of the row"),
        _GROUP,
        whole("sequence", "number of that call in its group; null for a send or receive"),
        text("lead", "who is missing, in words"),
        text("rest", "who waits where, and how far the missing ranks had come, in words"),
        ns("age", "how long the first of them had waited at least, as far as times in the records tell; null without"),
        flag("timed_out", "true: the watchdog gave the call up"),
        flag("certain", "true: they had waited far longer than these ranks are ever apart, or it timed out"),
        text("more", "how long they had waited, or that it is not told, as a sentence"),
        count("missing", "ranks that are missing"),
    ),
)

MISMATCHES = TableSpec(
    "nccl_mismatches",
    "the first collective of a group in which ranks do different things",
    (
        RANK,
        count("order", "0-based number of the row"),
        _GROUP,
        whole("sequence", "its number in the group"),
        text("kind", "operation, element type or size: in what they differ"),
        text("lead", "which collective it is and who does what, in words"),
        text("more", "where each called it, whether it is complete and how many follow, in sentences"),
        count("parts", "different things that are done"),
        count("later", "collectives of the group after it in which ranks differ as well"),
        flag("pending", "true: on some rank it is not complete"),
    ),
)

LATENESS = TableSpec(
    "nccl_lateness",
    "one rank and how late it comes to the collectives of one group",
    (
        RANK,
        _GROUP,
        count("order", "0-based number of the row"),
        text("lead", "who is late, in words"),
        text("how", "how often and by how much, in words"),
        text("more", "what else is to be said of it, in sentences"),
        count("collectives", "collectives that were compared"),
        count("last", "of these, the ones that it came last to"),
        count(
            "rounds", "of these, the ones that it came late to: the others had called, and nothing before held it up"
        ),
        count(
            "seen",
            "of these, the ones that were complete within that time of its call, so that nothing else held them up",
        ),
        ns("typical", "how late it comes to one of these, the median"),
        ns("lost", "all of them together, each at most three times that"),
        ns("behind", "most that its call came after the first of the others"),
        ns("span", "time that these collectives take"),
        share("share", "lost of the span"),
        share("of_all", "lost of that of all ranks of the group"),
        ns(
            "blur",
            "how far its clock may be off, as far as calls and completions of all ranks tell; null when measured",
        ),
        flag("measured", "true: by how long each rank was in the collective, which no clock blurs"),
        text("operation", "the collective that it comes late to most"),
        text("place", "where it calls it; null when not recorded"),
    ),
)

RANKS = TableSpec(
    "nccl_ranks",
    "one rank in one group, and how far it had come when its records were written",
    (
        RANK,
        _GROUP,
        text("who", "the rank, in words"),
        count("calls", "collectives, sends and receives in its records"),
        whole("first", "number of the first collective in them"),
        whole("last", "number of the last collective in them"),
        text("operation", "that collective"),
        count("completed", "collectives that are complete"),
        text("waiting", "what it waits for, in words; null for nothing"),
        text("place", "where it called that; null when not recorded"),
        ns("typical", "how late it comes, where it does; null where it does not"),
        count("rounds", "to so many collectives"),
        text("why_not", "why it is not judged; null where it is"),
    ),
)

GROUP_STATS = TableSpec(
    "nccl_group_stats",
    "one process group of which there are records",
    (
        RANK,
        _GROUP,
        text("name", "its name"),
        text("ranks", "its ranks, in words; null when not recorded"),
        count("size", "how many these are; null when not recorded"),
        count("given", "of these, the ones whose records are here"),
        count("judged", "of these, the ones that are compared"),
        count("collectives", "collectives that all of them recorded"),
        text("absent", "ranks whose records are not here, in words; null for none"),
        text("kinds", "collectives by how often, in words"),
        text("clocks", "what their clocks are, in words; null when there is nothing to say"),
        text("why_not", "why the group is not judged; null where it is"),
    ),
)

ARRIVALS = TableSpec(
    "nccl_arrivals",
    "when one rank came to one collective of those that are drawn",
    (
        RANK,
        _GROUP,
        count("series", "0-based number of the rank in its group"),
        text("who", "the rank, in words"),
        ns("time_ns", "when the last rank came to it"),
        ns("behind", "how much later than the first this one came"),
    ),
)

LINK_SHARES = TableSpec(
    "nccl_link_shares",
    "messages of one size, and what nccl-tests reached between the same number of GPUs",
    (
        RANK,
        text("operation", "collective"),
        count("gpus", "ranks"),
        Column("bytes", pa.int64(), "bytes", "size"),
        count("calls", "how many"),
        Column("bus_bandwidth", pa.float64(), None, "GB/s that they reach, the median; null where none is known"),
        Column("reference", pa.float64(), None, "GB/s that nccl-tests reached at this size"),
        share("share", "of the reference"),
        text("source", "where the former is from"),
    ),
)

_SEEN = ("nccl_rank_calls", "nccl_rank_groups", "nccl_rank_dumps", "inputs")
_NEEDS = Needs("nccl_rank_dumps", _NO_CALLS)


def _of_job(spec: TableSpec, inputs: tuple[str, ...] = ("nccl_compared",), needs: Needs | None = _NEEDS) -> Derived:
    function = spec.name.removeprefix("nccl_")
    return Derived(spec.name, f"{_HERE}.told:{function}", inputs, spec=spec, needs=needs, of_job=True)


DERIVED = (
    Derived(
        "nccl_rank_calls",
        f"{_HERE}.seen:rank_calls",
        ("nccl_calls", "placed_evidence", "windows", "inputs"),
        spec=RANK_CALLS,
        needs=Needs("nccl_calls", _NO_CALLS),
        small=True,
        empty_without="nccl_calls",
    ),
    Derived(
        "nccl_rank_groups",
        f"{_HERE}.seen:rank_groups",
        ("nccl_groups",),
        spec=RANK_GROUPS,
        needs=Needs("nccl_groups", _NO_CALLS),
        small=True,
        empty_without="nccl_groups",
    ),
    Derived(
        "nccl_rank_dumps",
        f"{_HERE}.seen:rank_dumps",
        ("nccl_dumps", "placed_evidence", "inputs"),
        spec=RANK_DUMPS,
        needs=Needs("nccl_dumps", _NO_CALLS),
        small=True,
        empty_without="nccl_dumps",
    ),
    Derived(
        "nccl_rank_links",
        f"{_HERE}.seen:rank_links",
        ("nccl_link_tests",),
        spec=RANK_LINKS,
        needs=Needs("nccl_link_tests", "no results of nccl-tests were given"),
        small=True,
        empty_without="nccl_link_tests",
    ),
    Derived("nccl_compared", f"{_HERE}.compared:compared", _SEEN),
    _of_job(MISSING),
    _of_job(MISMATCHES),
    _of_job(LATENESS),
    _of_job(RANKS),
    _of_job(GROUP_STATS),
    _of_job(ARRIVALS),
    Derived(
        "nccl_link_shares",
        f"{_HERE}.links:link_shares",
        ("nccl_rank_links", "nccl_rank_calls", "nccl_rank_groups", "communication"),
        spec=LINK_SHARES,
        needs=Needs("nccl_rank_links", "no results of nccl-tests were given"),
        of_job=True,
        empty_without="nccl_rank_links",
    ),
)
