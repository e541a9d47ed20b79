"""What kept the launching threads from launching."""

from __future__ import annotations

import pyarrow as pa

from traceanalyzer.derive.columns import DEVICE, PROCESS, RANK, SPAN, THREAD, count
from traceanalyzer.model.derived import Derived, Needs, Sample
from traceanalyzer.model.schema import NAME, Column, TableSpec
from traceanalyzer.vocabulary.lines import HOST_WORK

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

SIDE_THREADS = TableSpec(
    "side_threads",
    "a thread that has Python frames and launches no kernels",
    tuple(Column(column.name, pa.int64(), None, column.doc) for column in (RANK, PROCESS, THREAD)),
)

DERIVED = (
    # Which calls waited for the GPU.
    Derived("waits", "traceanalyzer.derive.host.host:waits", ("api_calls", "launches", "gpu_ops")),
    # The threads' interval sets.
    Derived(
        "host",
        "traceanalyzer.derive.host.host:Host",
        (
            *("api_calls", "waits", "host_ranges", "overheads", "steps", "launches", "gpu_ops", "input_patterns"),
            *("cpu_samples", "thread_runs", "callers"),
        ),
        kept=True,
    ),
    Derived("callers", "traceanalyzer.derive.host.callers:Callers", ("host_ranges",)),
    Derived(
        "side_threads",
        "traceanalyzer.derive.host.other_threads:side_threads",
        ("host_ranges", "launches"),
        SIDE_THREADS,
        internal=True,
    ),
    Derived(
        "other_threads",
        "traceanalyzer.derive.host.other_threads:other_threads",
        ("gaps", "host", "host_ranges", "side_threads"),
        OTHER_THREADS,
        Needs(
            "side_threads",
            "the trace holds Python frames of no thread but those that launch",
            settings=("python_stacks",),
        ),
        label="{duration} waiting for Python's lock[ in {place}]; {other:text}[ ran {frame}| ran Python]",
        sample=Sample(lines=((HOST_WORK.name, ("duration",)),)),
        empty_without="side_threads",
    ),
)
