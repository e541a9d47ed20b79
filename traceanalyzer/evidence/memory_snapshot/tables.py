"""The tables of a memory snapshot: blocks, segments, frames, events, annotations and totals of PyTorch's CUDA caching allocator.

Times are nanoseconds since the epoch less the marks' `clock_base_ns`; the allocator records microseconds. An entry is the 0-based place
of an event in its device's history: it orders what has the same time. A stack's number means something within its rank only.
"""

from __future__ import annotations

import pyarrow as pa

from traceanalyzer.derive.columns import ns, size, whole
from traceanalyzer.model.schema import NAME, Column, TableSpec

ALLOCATED, PENDING, FREED = "active_allocated", "active_pending_free", "freed"


def _rank() -> Column:
    return Column("rank", pa.int32(), None, "rank of the job, or the file's ordinal when the rank is unknown")


def _device() -> Column:
    return Column("device", pa.int32(), None, "index of the GPU within its process")


def _stack() -> tuple[Column, Column]:
    return (
        Column("stack", pa.int32(), None, "stack that asked for it, as in snapshot_frames; null when not recorded"),
        Column(
            "place",
            NAME,
            None,
            "innermost frame of that stack in the user's own code, as file:line (function); null when there is none",
        ),
    )


BLOCKS = TableSpec(
    "snapshot_blocks",
    "one block of memory that the allocator handed out: in the recorded history, or alive at the snapshot",
    (
        _rank(),
        _device(),
        Column("address", pa.uint64(), None, "address of its first byte"),
        size("bytes", "what it took of its segment: what was asked for, rounded up as the allocator rounds"),
        size("requested_bytes", "what was asked for"),
        Column("stream", pa.int64(), None, "stream that it was allocated on"),
        ns("start_ns", "when it was handed out; null for a block from before the recorded history (or without times)"),
        ns("end_ns", "when it could be used again; null for a block that was not free at the snapshot"),
        ns(
            "free_requested_ns",
            "when the program gave it up, which streams that still used it may delay; null: it did not",
        ),
        whole("start_entry", "entry of the history that handed it out; null as start_ns is"),
        whole("end_entry", "entry of the history that made it free; null as end_ns is"),
        whole(
            "free_requested_entry",
            "entry of the history that gave it up: from then on it is active, not allocated; -1: before the history; null: it was not",
        ),
        Column(
            "state",
            NAME,
            None,
            "at the snapshot: active_allocated, active_pending_free (given up, but a stream still used it) or freed",
        ),
        Column(
            "segment",
            pa.uint64(),
            None,
            "address of the segment that holds it, as in snapshot_segments; null when not recorded",
        ),
        *_stack(),
    ),
)

SEGMENTS = TableSpec(
    "snapshot_segments",
    "one segment of memory that the allocator got from the driver: held at the snapshot, or given back in the recorded history",
    (
        _rank(),
        _device(),
        Column("address", pa.uint64(), None, "address of its first byte"),
        size("bytes", "its size"),
        size("allocated_bytes", "in blocks that the program held at the snapshot; null for a segment given back"),
        size("active_bytes", "the same and those given up that a stream still used; null as above"),
        size(
            "requested_bytes", "what was asked for by the blocks of active_bytes; null as above, or when not recorded"
        ),
        size("largest_free_bytes", "its largest free block at the snapshot, 0 without one; null as above"),
        Column("stream", pa.int64(), None, "stream that its blocks are for"),
        Column("kind", NAME, None, "small (for blocks up to 1 MiB) or large; null when not recorded"),
        Column(
            "pool",
            NAME,
            None,
            "private pool that it belongs to, as in the snapshot (0:1); null for the allocator's own",
        ),
        Column("expandable", pa.bool_(), None, "true: its memory is mapped piece by piece (expandable_segments)"),
        ns("start_ns", "when it was got, or first mapped; null when before the recorded history"),
        ns("end_ns", "when it was given back; null for a segment held at the snapshot"),
        whole("start_entry", "entry of the history as of start_ns"),
        whole("end_entry", "entry of the history as of end_ns"),
        *_stack(),
    ),
)

FRAMES = TableSpec(
    "snapshot_frames",
    "one frame of a stack that asked for memory; each different stack once",
    (
        _rank(),
        Column("stack", pa.int32(), None, "number of the stack"),
        Column("position", pa.int32(), None, "0-based place in the stack, from the innermost frame"),
        Column("name", NAME, None, "function"),
        Column("file", NAME, None, "file as recorded; empty or ?? for a function that has none"),
        Column("line", pa.int32(), None, "line in the file; null when not recorded"),
        Column("user", pa.bool_(), None, "true: in the user's own code, in no library"),
    ),
)

EVENTS = TableSpec(
    "snapshot_events",
    "one event of the recorded history that is no block's: memory got from or given back to the driver, an error, a snapshot",
    (
        _rank(),
        _device(),
        ns("time_ns", "when it happened"),
        whole("entry", "entry of the history"),
        Column(
            "kind",
            NAME,
            None,
            "segment_alloc, segment_free, segment_map, segment_unmap, oom, snapshot, or another as recorded",
        ),
        Column("address", pa.uint64(), None, "address of the segment or of the piece mapped; null for others"),
        size("bytes", "size of the segment or piece; of an oom, what was asked for"),
        Column("stream", pa.int64(), None, "stream that it was for; null when not recorded"),
        size("device_free_bytes", "of an oom: what the driver said was free; null for others"),
        *_stack(),
    ),
)

ANNOTATIONS = TableSpec(
    "snapshot_annotations",
    "one stretch of time that PyTorch or the program named in the snapshot (forward, backward, optimizer, ...)",
    (
        _rank(),
        _device(),
        Column("name", NAME, None, "name as recorded"),
        ns("start_ns", "when it began; null when only its end is recorded"),
        ns("end_ns", "when it ended; null when only its beginning is recorded"),
    ),
)

TOTALS = TableSpec(
    "snapshot_totals",
    "one GPU of the snapshot: what its allocator held then, and the most in the recorded history",
    (
        _rank(),
        _device(),
        size("allocated_bytes", "in blocks that the program held (torch.cuda.memory_allocated)"),
        size("reserved_bytes", "in segments got from the driver (torch.cuda.memory_reserved)"),
        size("active_bytes", "allocated, and given up but still used by a stream"),
        size("requested_bytes", "what was asked for by the blocks of active_bytes; null when not recorded"),
        size(
            "inactive_split_bytes",
            "free blocks in segments that are only partly free, which cannot be given back (0 for expandable segments)",
        ),
        size("allocated_start_bytes", "allocated when the recorded history begins; null without a history"),
        size("reserved_start_bytes", "reserved when the recorded history begins; null without a history"),
        size("allocated_peak_bytes", "the most allocated in the recorded history; null without one"),
        size("requested_peak_bytes", "the most asked for at once in the recorded history; null without one"),
        size("active_peak_bytes", "the most active in the recorded history; null without one"),
        size("reserved_peak_bytes", "the most reserved in the recorded history; null without one"),
        ns("peak_ns", "when allocated_peak_bytes was first reached; null when at its beginning, or without a history"),
        whole("peak_entry", "entry of the history as of peak_ns"),
        ns("start_ns", "first event of the recorded history; null without one"),
        ns("end_ns", "last event of the recorded history; null without one"),
        Column("entries", pa.int64(), "count", "events in the recorded history; 0 without one"),
        Column(
            "lost_beginning",
            pa.bool_(),
            None,
            "true: blocks or segments are from before the history (its ring ran over, or it was switched on later), "
            "so that a higher peak may lie before it; null without one",
        ),
        Column("born_before", pa.int64(), "count", "blocks from before the recorded history; null without one"),
        size("max_split_bytes", "blocks larger than this are never split; null: all may be"),
        Column("settings", pa.string(), None, "the allocator's settings as recorded (JSON); null when not recorded"),
    ),
)

TABLES = (BLOCKS, SEGMENTS, FRAMES, EVENTS, ANNOTATIONS, TOTALS)
