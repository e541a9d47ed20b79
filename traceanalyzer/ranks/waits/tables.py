"""Who waits for whom in collectives, and what the rank that comes last did instead."""

from __future__ import annotations

import pyarrow as pa

from traceanalyzer.derive.columns import DEVICE, RANK, SPAN, count, flag, ns, text
from traceanalyzer.derive.ledger.tables import LEDGER_INTERVALS
from traceanalyzer.model.derived import Derived, Fill, Sample
from traceanalyzer.model.needs import NO_COMMUNICATION
from traceanalyzer.model.schema import NAME, Column, TableSpec
from traceanalyzer.ranks.collectives.tables import LATE, LATE_WINDOWS, LIKELY, MATCH
from traceanalyzer.vocabulary.lines import EXPOSED_COMMUNICATION

LATE_REASONS = (
    Column("late", NAME, None, "name of the rank that came last or, when the trace does not say ranks, of its GPU"),
    Column("late_line", NAME, None, "ledger line on which it spent most of the time in which others waited"),
    Column(
        "late_doing", NAME, None, "kernel or place on the host that took most of its time on that line; null when none"
    ),
    Column(
        "late_cause",
        NAME,
        None,
        "ledger line on which it spends most time a step beyond the median rank, else late_line",
    ),
    Column("late_why", NAME, None, "that in words: how much, and on what; null when nothing stands out"),
)

RANK_WORK = TableSpec(
    "rank_work",
    "operations of one name on one GPU, communication aside, per complete step",
    (
        RANK,
        DEVICE,
        Column("name", NAME, None, "name of the operation"),
        Column("count", pa.float64(), "count", "how many there are a step"),
        ns("time", "how much time they take a step, added up"),
    ),
)

EXTRA_WORK = TableSpec(
    "extra_work",
    "one GPU of a job, and the operation of which it has most time a step beyond the median GPU",
    (
        *RANK_WORK.columns,
        Column(
            "longer",
            pa.float64(),
            None,
            "its operations take so many times as long as the median GPU's, which runs as many; else null",
        ),
    ),
)

RANGE_TIMES = ("computing", "copying", "idle")
"""Columns of `rank_ranges`: what the GPU does for a range, or that it has nothing to do meanwhile."""

RANK_RANGES = TableSpec(
    "rank_ranges",
    "one named range or Python frame on the threads that launch on one GPU, per step; where no steps are known, in all",
    (
        RANK,
        DEVICE,
        Column("name", NAME, None, "name of the range or frame"),
        Column("frame", pa.bool_(), None, "a Python frame"),
        count("steps", "steps that were added up; 0 where none are known"),
        count("seen", "steps in which it occurs"),
        ns("step", "mean length of these steps on the host; null where none are known"),
        ns("host", "how long the host is in it"),
        ns("computing", "how long what was launched in it computes, others beside it or not"),
        ns("copying", "how long copies and memsets run that were launched in it"),
        ns("idle", "how long the GPU stands idle while the host is in it"),
    ),
)

EXTRA_RANGES = TableSpec(
    "extra_ranges",
    "one GPU of a job, a kind of time, and the range that it spends most of it in beyond the median GPU",
    (
        RANK,
        DEVICE,
        Column("column", NAME, None, "kind of time, as a column of rank_ranges"),
        Column("name", NAME, None, "name of the range, or a frame in words"),
        Column("frame", pa.bool_(), None, "a Python frame"),
        ns("time", "how much time it takes a step, host and GPU"),
        ns("more", "how much of that kind there is more a step than on the median GPU"),
        Column("only", pa.bool_(), None, "the median GPU has nothing of it"),
        count("steps", "steps that were added up; 0 where none are known"),
        count("seen", "steps in which it occurs"),
    ),
)

LATE_WORK = TableSpec(
    "late_work",
    "one collective for which others waited, under the rank that came last; the span is the time in which they did, on its clock",
    (
        *LATE_WINDOWS.columns,
        Column("line", NAME, None, "ledger line on which it spent most of that time"),
        Column(
            "via",
            pa.int64(),
            None,
            "collective in which it spent most of that time waiting itself; null when there is none",
        ),
    ),
)

LATE_NAMES = TableSpec(
    "late_names",
    "one ledger line of a GPU that others waited for",
    (
        RANK,
        DEVICE,
        Column("line", NAME, None, "ledger line"),
        Column(
            "name",
            NAME,
            None,
            "what took most of the time on it while others waited: an operation, or a place on the host",
        ),
    ),
)

EXCESS = TableSpec(
    "excess",
    "one GPU of a job, and the ledger line on which it spends most time a step beyond the median GPU",
    (RANK, DEVICE, Column("line", NAME, None, "ledger line"), ns("time", "that time, a step")),
)

COLLECTIVE_WAITS = TableSpec(
    "collective_waits",
    "one communication kernel as a rank's part of a collective; the span is its wait for the last rank or, where that is not told, "
    "its likely wait, else empty",
    (
        RANK,
        DEVICE,
        *SPAN,
        Column("kind", NAME, None, "all-reduce, all-gather, ...; null when not told"),
        *MATCH,
        *LIKELY,
        *LATE_REASONS,
        *LATE,
        ns(
            "sooner",
            "part of the job's time that would be gone had the last rank come with the one before it or, of work that ranks share, had "
            "all come at their mean",
        ),
        Column(
            "load",
            pa.float64(),
            None,
            "bytes that the all-to-all before gave the last rank over their mean; null where there is none or it is not told",
        ),
        Column(
            "shared",
            pa.bool_(),
            None,
            "ranks share what the last one computes more: it comes from an all-to-all, or is in as many operations, which take longer",
        ),
        Column("parallelism", NAME, None, "what it serves, as in `communication`; null when that cannot be told"),
        Column(
            "bubble",
            pa.bool_(),
            None,
            "a pipeline stage waits for another one: to receive or send, or elsewhere for a stage that is still at that",
        ),
        count("stages", "ranks in the pipeline that the job runs; null without one"),
        count("micro_batches", "micro-batches a step of that pipeline; null when not told"),
        Column("schedule", NAME, None, "both in words; null when not told"),
        ns(
            "job_window",
            "windows of all GPUs that communicate, added up, without long communication of which no waiting can be told",
        ),
        Column(
            "job_matched",
            pa.float64(),
            None,
            "share of the communication time that all ranks recorded whose parts on them were found; null without any",
        ),
        text(
            "pattern",
            "persistent: its last rank is late in step after step; rare: the step has far more waiting than others; jitter: now one "
            "rank is late and now another, as chance has it; null when that is not told, and for bubbles",
        ),
        text(
            "uneven_stages",
            "who computes how much, in words, where most of a pipeline's waiting is for one stage; null elsewhere",
        ),
        flag("interleaved", "ranks of the pipeline have several stages each; null when not told"),
    ),
)

WAIT_FILLS: dict[str, Fill] = {
    "wait": ("duration",),
    "exposed_wait": ("duration",),
    "instance": ("number",),
    "spread": 0,
}
"""Of a row that names who was late, in the tests of rules."""

DERIVED = (
    Derived(
        "rank_work",
        "traceanalyzer.ranks.waits.rank_work:rank_work",
        ("ledger_ops", "step_stats"),
        RANK_WORK,
        small=True,
        internal=True,
    ),
    Derived("extra_work", "traceanalyzer.ranks.waits.rank_work:extra_work", ("rank_work",), EXTRA_WORK, internal=True),
    Derived("excess", "traceanalyzer.ranks.waits.rank_work:excess", ("step_ledger",), EXCESS, internal=True),
    Derived(
        "rank_ranges",
        "traceanalyzer.ranks.waits.rank_ranges:rank_ranges",
        ("host_ranges", "launches", "ledger_ops", "ledger_intervals", "host_steps", "callers"),
        RANK_RANGES,
        empty_without="host_ranges",
        small=True,
        internal=True,
    ),
    Derived(
        "extra_ranges",
        "traceanalyzer.ranks.waits.rank_ranges:extra_ranges",
        ("rank_ranges", "ledger"),
        EXTRA_RANGES,
        internal=True,
    ),
    Derived(
        "late_work",
        "traceanalyzer.ranks.waits.late:late_work",
        ("late_windows", "ledger_intervals", "communication"),
        LATE_WORK,
        small=True,
        internal=True,
        empty_without="late_windows",
    ),
    Derived(
        "late_names",
        "traceanalyzer.ranks.waits.late:late_names",
        ("late_windows", "ledger_intervals", "ledger_ops", "gaps"),
        LATE_NAMES,
        small=True,
        internal=True,
        empty_without="late_windows",
    ),
    Derived(
        "collective_waits",
        "traceanalyzer.ranks.waits.waits:collective_waits",
        (
            *("communication", "matches", "late_work", "late_names", "extra_work", "extra_ranges", "excess"),
            *("ledger", "step_ledger", "waited_intervals", "inputs"),
        ),
        COLLECTIVE_WAITS,
        NO_COMMUNICATION,
        empty_without="communication",
        of_job=True,
        label="traceanalyzer.ranks.waits.labels:wait",
        sample=Sample(
            fills_with=("late", WAIT_FILLS),
            lines=((EXPOSED_COMMUNICATION.name, ("exposed_wait", "exposed_likely_wait")),),
        ),
    ),
    Derived(
        "own_intervals",
        "traceanalyzer.ranks.waits.waited:own_intervals",
        ("ledger_intervals", "communication", "mpi_call_waits"),
        LEDGER_INTERVALS,
        internal=True,
    ),
    Derived(
        "stall_intervals",
        "traceanalyzer.ranks.waits.waited:stall_intervals",
        ("waited_intervals", "communication", "mpi_call_waits"),
        LEDGER_INTERVALS,
        internal=True,
    ),
    Derived(
        "waited_intervals",
        "traceanalyzer.ranks.waits.waited:waited_intervals",
        ("ledger_intervals", "communication", "mpi_call_waits"),
        LEDGER_INTERVALS,
        small=True,
        internal=True,
    ),
)
