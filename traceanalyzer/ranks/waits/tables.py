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
        ns("sooner", "part of its exposed wait that would be gone had the last rank come with the one before it"),
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
        ns("job_window", "windows of all GPUs that communicate, added up"),
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
        "late_work",
        "traceanalyzer.ranks.waits.late:late_work",
        ("late_windows", "ledger_intervals", "communication"),
        LATE_WORK,
        small=True,
        internal=True,
    ),
    Derived(
        "late_names",
        "traceanalyzer.ranks.waits.late:late_names",
        ("late_windows", "ledger_intervals", "ledger_ops", "gaps"),
        LATE_NAMES,
        small=True,
        internal=True,
    ),
    Derived(
        "collective_waits",
        "traceanalyzer.ranks.waits.waits:collective_waits",
        (
            *("communication", "matches", "late_work", "late_names", "extra_work", "excess", "ledger", "step_ledger"),
            *("waited_intervals", "inputs"),
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
        "waited_intervals",
        "traceanalyzer.ranks.waits.waited:waited_intervals",
        ("ledger_intervals", "communication", "mpi_call_waits"),
        LEDGER_INTERVALS,
        small=True,
        internal=True,
    ),
)
