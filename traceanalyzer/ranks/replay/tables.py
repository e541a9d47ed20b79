"""The lines of a job: what of each GPU's timeline the others have a part in."""

from __future__ import annotations

import pyarrow as pa

from traceanalyzer.derive.columns import DEVICE, RANK, SPAN, count, flag, ns, text, whole
from traceanalyzer.derive.replay.tables import CRITICAL_PATH
from traceanalyzer.model.derived import Derived
from traceanalyzer.model.schema import Column, TableSpec

ISSUE, JOIN, RETURN, MARK = "issue", "join", "return", "mark"
"""Kinds of events: the line hands over its part of a collective; its GPU goes on only when that part is done; its host does; a time
that is asked for, the end of a step or of the window."""

LINE_EVENTS = TableSpec(
    "line_events",
    "one event of a GPU's line, in the order of the line; times count from the start of its window",
    (
        RANK,
        DEVICE,
        text("kind", "issue, join, return or mark"),
        whole("instance", "number of the collective, as in `communication`; null for a mark"),
        Column(
            "work",
            pa.list_(pa.int64(), 9),
            "ns",
            "max-plus matrix, row by row, of what lies between the event before and this one: from (the host's delay, its delay behind "
            "the waits met so far, the GPU's reach) to the same",
        ),
        ns("by_host", "of an issue, when the launch makes it arrive, without delay of the host; null without a launch"),
        ns("after_gpu", "of an issue, the pause after what the GPU did before; of a join, 0"),
        count(
            "behind",
            "of an issue, how many rows before it the issue lies that it follows on its stream; of a mark, "
            "the issue whose part must be done; null without one",
        ),
        ns("after_other", "the pause after that"),
        ns("met", "when the last rank arrived, as it was; null for a mark"),
        ns("transfer", "from then to the end of this rank's part; null for a mark"),
        flag("free", "a part that ends when it has been sent, whether others have arrived or not"),
        flag("pair", "a part of a send or receive; what else there is, all ranks of a group have"),
        ns("host_time", "of a return, the host's own time then; null for others"),
        whole("step", "of a mark, index of the step that ends; null at the end of the window, and for others"),
        ns("time", "when it happened, as it was"),
        ns("origin", "start of the window"),
    ),
)

PATH_HOPS = TableSpec(
    "path_hops",
    "one chain on a GPU's line that may be a part of the job's critical path: from the end of a collective's part to where the line "
    "is the last to issue its own part of one, or to the end of a step",
    (
        RANK,
        DEVICE,
        whole("hop", "number of the chain on its line"),
        whole("instance", "number of the collective whose part it issues; null where it ends a step"),
        flag("free", "that part ends when it has been sent, whether others have arrived or not"),
        whole("step", "index of the step that it ends; null where it issues a part"),
        *SPAN,
        whole(
            "meets",
            "number of the chain on the line as which it goes on before its start; null for one that goes on elsewhere",
        ),
        whole(
            "source",
            "number of the collective whose part it comes from; null for the window's start and where it meets a chain",
        ),
        ns("source_transfer", "what the transfer of that takes"),
        flag("source_free", "as free, of that part"),
    ),
)

PATH_PIECES = TableSpec(
    "path_pieces",
    "one piece of a chain of `path_hops`; those of one chain tile it",
    (RANK, DEVICE, whole("hop", "number of the chain on its line"), *SPAN, *CRITICAL_PATH.columns[5:]),
)

SHORTER_LINES = TableSpec(
    "shorter_lines",
    "one event of a GPU's line without some link of its chains, in the order of `line_events`: what of it differs",
    (
        RANK,
        DEVICE,
        whole("link", "number of the link on its line"),
        *CRITICAL_PATH.columns[6:],
        *(
            column
            for column in LINE_EVENTS.columns
            if column.name in ("work", "by_host", "after_gpu", "after_other", "host_time")
        ),
    ),
)

PATH_GAINS = TableSpec(
    "path_gains",
    "a link of the job's critical path that was taken out of the job played again",
    (
        Column("rank", pa.int32(), None, "rank of its line; null for transfers"),
        Column("device", pa.int32(), None, "device of its line; null for transfers"),
        *CRITICAL_PATH.columns[6:],
        ns("gain", "how much shorter a step would be"),
    ),
)

JOB_PATH = TableSpec(
    "job_path",
    "one stretch of the chain over all ranks that sets the length of a step; those of one step add up to it; on the clock of its rank",
    (
        whole("step", "index of the step that ends with it"),
        RANK,
        DEVICE,
        *SPAN,
        text(
            "where",
            "as in `critical_path`, or transfer: from the last rank's arrival to the end of the part on this one",
        ),
        *CRITICAL_PATH.columns[6:],
        whole("instance", "number of the collective whose transfer it is; null for others"),
    ),
)

DERIVED = (
    Derived(
        "line_paths",
        "traceanalyzer.ranks.replay.line_paths:line_paths",
        ("timelines", "ledger_ops", "communication", "step_stats", "gaps", "launches", "host", "inputs"),
    ),
    Derived(
        "path_hops",
        "traceanalyzer.ranks.replay.line_paths:path_hops",
        ("line_paths", "communication"),
        PATH_HOPS,
        empty_without="communication",
        small=True,
        internal=True,
    ),
    Derived(
        "path_pieces",
        "traceanalyzer.ranks.replay.line_paths:path_pieces",
        ("line_paths", "communication"),
        PATH_PIECES,
        empty_without="communication",
        small=True,
        internal=True,
    ),
    Derived(
        "shorter_lines",
        "traceanalyzer.ranks.replay.line_paths:shorter_lines",
        ("line_paths", "communication"),
        SHORTER_LINES,
        empty_without="communication",
        small=True,
        internal=True,
    ),
    Derived(
        "path_gains",
        "traceanalyzer.ranks.replay.path_gains:path_gains",
        ("job_path", "shorter_lines", "job_replay"),
        PATH_GAINS,
        empty_without="job_path",
        internal=True,
        of_job=True,
    ),
    Derived(
        "job_path",
        "traceanalyzer.ranks.replay.job_path:job_path",
        ("path_hops", "path_pieces", "communication"),
        JOB_PATH,
        empty_without="path_hops",
        of_job=True,
        label="{duration} of the critical path: {kind:text}[ in {name}]",
    ),
    Derived(
        "line_events",
        "traceanalyzer.ranks.replay.line_paths:line_events",
        ("line_paths", "communication"),
        LINE_EVENTS,
        empty_without="communication",
        small=True,
        internal=True,
    ),
    Derived("job_replay", "traceanalyzer.ranks.replay.what_if:JobReplay", ("line_events",)),
)
