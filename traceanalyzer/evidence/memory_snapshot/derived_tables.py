"""What is told of a memory snapshot: the tables that rules and the section read."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from traceanalyzer.derive.columns import DEVICE, RANK, SPAN, count, flag, ns, share, size, text
from traceanalyzer.derive.ledger.tables import GAP_SAMPLE, GAPS
from traceanalyzer.derive.memory.tables import MEMORY_GROWTH, MEMORY_STATS
from traceanalyzer.model.derived import Derived, Needs
from traceanalyzer.model.needs import NO_GPU_WORK, NO_MEMORY
from traceanalyzer.model.schema import Column, TableSpec

_HERE = "traceanalyzer.evidence.memory_snapshot.answers"
_HISTORIES = "memory_histories"


PLACE = text("place", "innermost line of the user's own code that asked for it, or why none is known")
WHAT = text(
    "what", "parameters, optimizer state, activations or backward, where the stack makes it plain; null elsewhere"
)
METHOD = text("method", "how its steps were found: annotation, trace or repetition; null without any")

SNAPSHOT_MEMORY = TableSpec(
    "snapshot_memory",
    "the memory of one GPU as a snapshot tells it; the span is the moment when most of it was in use",
    (
        RANK,
        DEVICE,
        *SPAN,
        METHOD,
        count("steps", "steps in the recorded history"),
        ns("step_time", "median length of these on the host; null without any"),
        size("peak_allocated", "most that was in use in the recorded history"),
        size("steady", "in use between steps, the median of those after the first; null without steps"),
        size("allocated", "in use at the snapshot"),
        size("peak_reserved", "most that was taken from the driver"),
        size("reserved", "taken from the driver at the snapshot"),
        size("capacity", "memory of the device; null when not recorded"),
        size(
            "growth",
            "by how much more is in use after each step than after the one before, the median; null without steps",
        ),
        flag("rising", "true: more is in use after every step"),
        flag("flat", "true: as much is in use after each step but the first, within a hundredth of the peak"),
        flag("growing", "true: each step takes more from the driver, though the level between steps is flat"),
        flag("recorded", "true: a history was recorded; without one the peak is what is in use at the snapshot"),
        flag("whole", "true: the recorded history has the beginning of the program"),
        flag("placed", "true: stacks were recorded"),
        size("optimizer", "optimizer state in use between steps"),
        size("parameters", "parameters in use between steps"),
        text("lead", "what is to be said of it: the first words of a sentence, before the name of the GPU"),
        text("rest", "and the words after it"),
    ),
)

SNAPSHOT_OWNERS = TableSpec(
    "snapshot_owners",
    "who asked for memory of one GPU that was in use at its peak, between steps or at the snapshot; the span is the peak's",
    (
        RANK,
        DEVICE,
        *SPAN,
        count("order", "0-based place by bytes at the peak"),
        PLACE,
        WHAT,
        size("peak_bytes", "in use at the peak"),
        count("peak_blocks", "blocks of it"),
        share("share", "of all that is in use at the peak"),
        size("steady_bytes", "in use between steps, at the end of the last one; null without steps"),
        size("end_bytes", "in use at the snapshot"),
        count("end_blocks", "blocks of it"),
        text(
            "alike",
            "of what has no Python frame: whose blocks in use at the peak are exactly as large as most of it; null for none",
        ),
    ),
)

SNAPSHOT_MOMENTS = TableSpec(
    "snapshot_moments",
    "large blocks of one size that are there only for a moment and make the peak of one GPU; the span is theirs",
    (
        RANK,
        DEVICE,
        *SPAN,
        count("order", "0-based place by bytes"),
        size("peak", "most that was in use"),
        size("steady", "in use between steps; null without steps"),
        ns("step_time", "median length of a step; null without any"),
        text("places", "where they were allocated"),
        count("blocks", "blocks"),
        size("size", "of one of them"),
        size("bytes", "of all of them"),
        count("unplaced", "of these blocks, those without a Python frame"),
        text("doubled", "whose block is exactly half as large and was there first, as of a cast to twice the width"),
        size("half", "its size"),
        text("twice", "the same in words"),
        flag("loss", "true: one was allocated in a loss"),
        flag("gather", "true: one was allocated to gather from other ranks"),
    ),
)

SNAPSHOT_OOMS = TableSpec(
    "snapshot_ooms",
    "one request that the allocator could not serve: the GPU was out of memory",
    (
        RANK,
        DEVICE,
        *SPAN,
        size("asked", "what was asked for"),
        PLACE,
        size("device_free", "what the driver said was free; null when not recorded"),
        size("allocated", "in use then"),
        size("reserved", "taken from the driver then"),
        size("unused", "reserved but not in use"),
        size("largest_free", "largest piece of that; null when not known"),
        flag(
            "fragmented",
            "true: what was reserved but not in use, together with what the driver had, was as much as was asked for",
        ),
        text("free", "what was left, in words"),
        text("owner", "who held most then"),
        size("owner_bytes", "how much that was"),
        size("given_back", "what the allocator gave back to the driver just before it failed"),
        flag("limited", "true: the driver had as much free as was asked for, so that something else set a limit"),
        flag("ended", "true: nothing was allocated after it"),
        text("fit", "whether it would have fitted without fragmentation, as a sentence"),
        flag("last", "true: none came after it"),
        count("times", "such requests in a row, with nothing allocated between them; the row tells of the last"),
    ),
)

SNAPSHOT_TRAFFIC = TableSpec(
    "snapshot_traffic",
    "a line of code whose allocations made the allocator ask the driver, of one GPU; the span is that of its calls in settled steps",
    (
        RANK,
        DEVICE,
        *SPAN,
        PLACE,
        count("calls", "times that memory was got from or given back to the driver, in all"),
        count("settled", "of these in steps after the first; null without steps"),
        count("settled_freed", "of those, the ones that gave memory back; null likewise"),
        count("settled_steps", "steps after the first; null without any"),
        count("busy_steps", "of these steps those with such a call"),
        size("bytes", "got from the driver in all"),
        ns(
            "idle",
            "idle time of the GPU spent on memory, in parts most of which such a call takes; null without a trace of it",
        ),
        text("waits", "that of all places together, in words; null where there is none"),
    ),
)

SNAPSHOT_LEVELS = TableSpec(
    "snapshot_levels",
    "what one owner has in use of one GPU at one of the moments that are drawn",
    (
        RANK,
        DEVICE,
        count("series", "0-based number of the owner, the largest at the peak first"),
        ns("time_ns", "the moment"),
        text("label", "the owner; the last are all others together"),
        size("bytes", "in use from then on"),
        size("reserved", "taken from the driver then, by all"),
    ),
)

SNAPSHOT_LANES = TableSpec(
    "snapshot_lanes",
    "the memory of one GPU at one moment within its window",
    (
        RANK,
        DEVICE,
        ns("time_ns", "the moment"),
        size("allocated", "in use from then on"),
        size("reserved", "taken from the driver from then on"),
    ),
)

SNAPSHOT_STEPS = TableSpec(
    "snapshot_steps",
    "one step of the program in the recorded history of one GPU's memory",
    (RANK, DEVICE, count("index", "0-based order"), *SPAN),
)

SNAPSHOT_PATHS = TableSpec(
    "snapshot_paths",
    "one stack whose blocks are in use at the peak of one GPU",
    (
        RANK,
        DEVICE,
        Column("path", pa.list_(pa.string()), None, "frames from the outermost to the innermost"),
        size("bytes", "in use at the peak"),
        count("blocks", "blocks of it"),
    ),
)

DEVICE_MEMORY = TableSpec(
    "device_memory",
    "the memory of one GPU as a snapshot or else the trace tells it; the span is the moment when most of it was in use",
    (
        *MEMORY_STATS.columns,
        flag("snapshot", "true: as a memory snapshot tells it"),
        size("whole_segments", "of a snapshot: at its end, reserved segments of which nothing is in use"),
        size("pieces", "of a snapshot: at its end, unused pieces of segments that are in use"),
        size("largest_free", "of a snapshot: largest unused piece at its end"),
        size("private", "of a snapshot: unused at its end in private pools, as of CUDA graphs; not counted as unused"),
        size("grows", "of a snapshot: how much more each step takes from the driver, though the level is flat"),
        count("grown_steps", "in so many steps in a row"),
        flag("expandable", "of a snapshot: whether expandable segments were in use"),
        text("place", "of a snapshot: whose allocations took most from the driver after the first step"),
        text("lies", "of a snapshot: where unused memory lies, in words"),
        text(
            "growing",
            "of a snapshot: how reserved memory grows though the level is flat, in words; null where it does not",
        ),
    ),
)

STEP_MEMORY = TableSpec(
    "step_memory",
    "one step of the host and the memory of one GPU that it left in use, as a snapshot or else the trace tells it",
    (
        *MEMORY_GROWTH.columns,
        flag("snapshot", "true: as a memory snapshot tells it"),
        size("owned", "of a snapshot: by how much more is in use of what was allocated at this place"),
        count("held", "of a snapshot: blocks of this place that are in use at the end"),
        flag("stepwise", "false: no steps are known; the recorded history was cut into pieces of as many allocations"),
        flag("lasting", "of a snapshot: whether what this place holds grows up to the end and never shrinks"),
    ),
)

MEMORY_GAPS = TableSpec(
    "memory_gaps",
    "one part of an idle stretch of a GPU in which the host allocates or frees memory: the rows of gaps with that cause",
    (
        *GAPS.columns,
        text(
            "asked_by",
            "of a snapshot on the same clock: the line of the user's own code whose allocations made the call of the driver that takes "
            "most of this part; null where none is known",
        ),
    ),
)

NO_SNAPSHOT = Needs("snapshot_totals", "there is no memory snapshot")

DERIVED = (
    Derived(
        _HISTORIES,
        f"{_HERE}.judged:judged_histories",
        (
            *("snapshot_blocks", "snapshot_events", "snapshot_totals", "snapshot_frames", "snapshot_annotations"),
            "steps",
        ),
    ),
    Derived(
        "snapshot_memory",
        f"{_HERE}.peaks:snapshot_memory",
        (_HISTORIES, "devices"),
        SNAPSHOT_MEMORY,
        NO_SNAPSHOT,
        small=True,
        label="{peak_allocated} in use",
        empty_without=NO_SNAPSHOT.table,
    ),
    Derived(
        "snapshot_owners",
        f"{_HERE}.peaks:snapshot_owners",
        (_HISTORIES,),
        SNAPSHOT_OWNERS,
        NO_SNAPSHOT,
        small=True,
        label="{peak_bytes} of the peak[, {what}]: {place}",
        empty_without=NO_SNAPSHOT.table,
    ),
    Derived(
        "snapshot_moments",
        f"{_HERE}.peaks:snapshot_moments",
        (_HISTORIES,),
        SNAPSHOT_MOMENTS,
        NO_SNAPSHOT,
        small=True,
        label="{bytes}: {places}",
        empty_without=NO_SNAPSHOT.table,
    ),
    Derived(
        "snapshot_ooms",
        f"{_HERE}.failures:snapshot_ooms",
        (_HISTORIES, "snapshot_segments"),
        SNAPSHOT_OOMS,
        NO_SNAPSHOT,
        small=True,
        label="out of memory: {asked} asked for at {place}",
        empty_without=NO_SNAPSHOT.table,
    ),
    Derived(
        "snapshot_traffic",
        f"{_HERE}.reserve:snapshot_traffic",
        (_HISTORIES, "gaps", "api_calls", "placed_evidence"),
        SNAPSHOT_TRAFFIC,
        NO_SNAPSHOT,
        small=True,
        label="{calls} calls to the driver: {place}",
        empty_without=NO_SNAPSHOT.table,
    ),
    Derived(
        "memory_gaps",
        f"{_HERE}.calls:memory_gaps",
        ("gaps", _HISTORIES, "api_calls", "placed_evidence"),
        MEMORY_GAPS,
        NO_GPU_WORK,
        label="traceanalyzer.derive.ledger.labels:gap",
        sample=GAP_SAMPLE,
    ),
    Derived(
        "snapshot_levels",
        f"{_HERE}.drawing:snapshot_levels",
        (_HISTORIES,),
        SNAPSHOT_LEVELS,
        small=True,
        internal=True,
        empty_without=NO_SNAPSHOT.table,
    ),
    Derived(
        "snapshot_lanes",
        f"{_HERE}.drawing:snapshot_lanes",
        (_HISTORIES, "ledger", "memory_stats"),
        SNAPSHOT_LANES,
        small=True,
        internal=True,
        empty_without=NO_SNAPSHOT.table,
    ),
    Derived(
        "snapshot_steps",
        f"{_HERE}.drawing:snapshot_steps",
        (_HISTORIES,),
        SNAPSHOT_STEPS,
        small=True,
        internal=True,
        empty_without=NO_SNAPSHOT.table,
    ),
    Derived(
        "snapshot_paths",
        f"{_HERE}.drawing:snapshot_paths",
        (_HISTORIES, "snapshot_frames"),
        SNAPSHOT_PATHS,
        small=True,
        internal=True,
        empty_without=NO_SNAPSHOT.table,
    ),
    Derived(
        "device_memory",
        f"{_HERE}.reserve:device_memory",
        ("memory_stats", _HISTORIES, "snapshot_segments", "devices"),
        DEVICE_MEMORY,
        replace(NO_MEMORY, table="device_memory", events=NO_MEMORY.table),
        small=True,
        label="{peak_reserved} reserved[, {peak_allocated} in use]",
    ),
    Derived(
        "step_memory",
        f"{_HERE}.growth:step_memory",
        ("memory_growth", _HISTORIES, "devices"),
        STEP_MEMORY,
        Needs("step_memory", "the trace holds no memory events within known steps", settings=("memory",)),
        label="step {index}: {growth} more in use, {kept} kept[, in {place}]",
    ),
)
