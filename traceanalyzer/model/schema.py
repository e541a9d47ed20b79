"""The event tables: what an importer must produce and everything else may rely on. Declared once, here.

Time is int64 nanoseconds on the file's own clock, half-open [start_ns, end_ns), never a float. `rank` is the job's rank when the
file says it, else a number made up for the tables (see `Input.ordinal`). Names are dictionary-encoded.

Keys that are not keys: a correlation id is unique only within a process, and one launch can have many GPU operations; a stream
id means something only within (process, device, context); a rank is not a device index.
"""

from __future__ import annotations

from functools import cached_property

import pyarrow as pa

from traceanalyzer.records import dataclass
from traceanalyzer.units import Unit

NAME = pa.dictionary(pa.int32(), pa.string())
DIM3 = pa.list_(pa.int32(), 3)


@dataclass(frozen=True)
class Column:
    """One column: its Arrow type, its unit or None, and what it means: what it holds and, after a semicolon, more of it."""

    name: str
    type: pa.DataType
    unit: Unit | None
    doc: str

    @property
    def about(self) -> str:
        """What it holds, in a few words."""
        return self.doc.partition(";")[0]


@dataclass(frozen=True)
class TableSpec:
    """A table's name, what one row is, and its columns in order."""

    name: str
    rows: str
    columns: tuple[Column, ...]

    @cached_property
    def schema(self) -> pa.Schema:
        return pa.schema([pa.field(c.name, c.type) for c in self.columns])

    def column(self, name: str) -> Column | None:
        return next((c for c in self.columns if c.name == name), None)

    @cached_property
    def _empty(self) -> pa.Table:
        return self.schema.empty_table()

    def empty(self) -> pa.Table:
        """The table without rows, which is one for all: many of a trace's tables are, for each of its ranks."""
        return self._empty


def _rank() -> Column:
    return Column("rank", pa.int32(), None, "rank of the job, or the file's ordinal when the rank is unknown")


def _process() -> Column:
    return Column(
        "process", pa.int64(), None, "identity of the process within its file (see `processes.pid` for the OS pid)"
    )


def _thread() -> Column:
    return Column("thread", pa.int64(), None, "identity of the OS thread within its process; null when not recorded")


def _device() -> Column:
    return Column("device", pa.int32(), None, "index of the physical GPU on its host")


def _span(what: str) -> tuple[Column, Column]:
    return (
        Column("start_ns", pa.int64(), "ns", f"start of {what}"),
        Column("end_ns", pa.int64(), "ns", f"end of {what}, exclusive"),
    )


GPU_OPS = TableSpec(
    "gpu_ops",
    "one kernel, copy, memset or graph-level execution on a GPU",
    (
        _rank(),
        _process(),
        *_span("the operation"),
        _device(),
        Column("context", pa.int64(), None, "CUDA context within the process"),
        Column("stream", pa.int64(), None, "stream within (process, device, context)"),
        Column("kind", NAME, None, "kernel, memcpy, memset or graph"),
        Column("name", NAME, None, "demangled kernel name, or the name of the copy or memset"),
        Column("class", NAME, None, "compute or communication"),
        Column("correlation", pa.int64(), None, "links to the launching API call within the process; null when absent"),
        Column("external_id", pa.int64(), None, "id of the CPU operator that launched it (Kineto); null when absent"),
        Column("graph_id", pa.int64(), None, "CUDA graph this ran in; null outside graphs"),
        Column("graph_node_id", pa.int64(), None, "node of that graph"),
        Column("bytes", pa.int64(), "bytes", "bytes moved or set; null for kernels"),
        Column(
            "copy_kind",
            NAME,
            None,
            "htod, dtoh, dtod, ptop, htoh, uvm_htod, uvm_dtoh, uvm_dtod or other; null unless memcpy",
        ),
        Column(
            "migration_cause",
            NAME,
            None,
            "why managed memory moved: asked (prefetch), fault, speculative, eviction or access_counters; null where not recorded",
        ),
        Column("src_memory", NAME, None, "pageable, pinned, device, managed, array or unknown; null unless memcpy"),
        Column("dst_memory", NAME, None, "as src_memory, for the destination"),
        Column("grid", DIM3, "count", "blocks in x, y, z"),
        Column("block", DIM3, "count", "threads in x, y, z"),
        Column("registers", pa.int32(), "count", "registers per thread"),
        Column("shared_memory", pa.int64(), "bytes", "shared memory per block"),
        Column("occupancy", pa.float32(), "share", "estimated achieved occupancy, 0 to 1; null when not recorded"),
        Column("quarantined", pa.bool_(), None, "true: impossible times, kept here but not on the ledger"),
    ),
)

API_CALLS = TableSpec(
    "api_calls",
    "one CUDA or HIP runtime or driver call on a host thread",
    (
        _rank(),
        _process(),
        _thread(),
        *_span("the call"),
        Column("name", NAME, None, "function name without its version suffix"),
        Column("raw_name", NAME, None, "function name as recorded"),
        Column("class", NAME, None, "launch, sync, copy, memory, event or other"),
        Column("correlation", pa.int64(), None, "links to the GPU operations it started, within the process"),
        Column("external_id", pa.int64(), None, "id of the CPU operator it ran in (Kineto)"),
    ),
)

HOST_RANGES = TableSpec(
    "host_ranges",
    "one operator, Python frame, NVTX range, annotation, construct of OpenACC or OpenMP, callback of the GPU, MPI call or call of the "
    "operating system on a host thread",
    (
        _rank(),
        _process(),
        _thread(),
        *_span("the range"),
        Column("name", NAME, None, "name as recorded"),
        Column("category", NAME, None, "operator, annotation, nvtx, python, mpi, os, openacc, openmp or callback"),
        Column("domain", NAME, None, "NVTX domain, with its category where it has one; null for the default one"),
        Column("depth", pa.int32(), None, "number of ranges of the same thread around it"),
        Column(
            "parent",
            pa.int64(),
            None,
            "row of the innermost range around it, counted from its rank's first; null at the top",
        ),
        Column("shapes", pa.string(), None, "input shapes as recorded (JSON)"),
        Column("dtypes", pa.string(), None, "input types as recorded (JSON)"),
        Column(
            "arguments",
            NAME,
            None,
            "JSON: of convolutions and attention the values of inputs that are no tensors, as recorded; of compiled kernels what their "
            "compiler says that they compute and move; null for others",
        ),
        Column("sequence", pa.int64(), None, "autograd sequence number; null when absent"),
        Column("external_id", pa.int64(), None, "id that API calls and GPU operations refer to"),
        Column(
            "record_function",
            pa.int64(),
            None,
            "id that PyTorch's execution trace calls the operator by; null when absent",
        ),
        Column("open", pa.bool_(), None, "true where the recording ended before the range did"),
    ),
)

OVERHEADS = TableSpec(
    "overheads",
    "one stretch of time that the profiler itself cost",
    (_rank(), _process(), _thread(), *_span("the overhead"), Column("name", NAME, None, "what the profiler did")),
)

STREAM_EVENTS = TableSpec(
    "stream_events",
    "one CUDA event that a stream was told to record, or to wait for; or what kind of stream one is",
    (
        _rank(),
        _process(),
        Column("time_ns", pa.int64(), "ns", "when the host told it so; null when not recorded"),
        _device(),
        Column("stream", pa.int64(), None, "stream that was told"),
        Column(
            "kind",
            NAME,
            None,
            "record or wait; of a stream: default (the legacy default stream), blocking (created without flags, waits for that one) or "
            "non-blocking",
        ),
        Column("correlation", pa.int64(), None, "links to the call that told it, within the process"),
        Column("event", pa.int64(), None, "id of the event within the process; null when not recorded"),
        Column(
            "on_stream", pa.int64(), None, "of a wait: stream whose event it is; null where only the event is known"
        ),
        Column("on_correlation", pa.int64(), None, "of a wait: links to the call that recorded that event"),
    ),
)

COLLECTIVES = TableSpec(
    "collectives",
    "one collective on one rank, as far as the trace describes it: on its GPU operation or, for a send or receive, on the operator "
    "that asks for it, whose row has no device",
    (
        _rank(),
        _process(),
        Column("thread", pa.int64(), None, "thread of that operator; null for a GPU operation"),
        *_span("its GPU operation, or of that operator"),
        _device(),
        Column("stream", pa.int64(), None, "stream it ran on"),
        Column("correlation", pa.int64(), None, "links to its launch"),
        Column("group", NAME, None, "process group name"),
        Column("sequence", pa.int64(), None, "sequence number within the group; null when the trace carries none"),
        Column("name", NAME, None, "collective: allreduce, allgather, ..."),
        Column("elements", pa.int64(), "count", "input elements of this rank"),
        Column("dtype", NAME, None, "element type as recorded"),
        Column("bytes", pa.int64(), "bytes", "elements times element size; null for unknown types"),
        Column("group_size", pa.int32(), "count", "ranks in the group"),
        Column("group_ranks", pa.string(), None, "ranks in the group (JSON); ends in ... where not all are recorded"),
        Column("peer", pa.int32(), None, "rank of the job on the other side of a send or receive; null for others"),
        Column("in_bytes", pa.int64(), "bytes", "what this rank puts in; null for unknown types"),
        Column("out_bytes", pa.int64(), "bytes", "what this rank gets out; null for unknown types"),
        Column(
            "description",
            NAME,
            None,
            "what the program calls the group: default_pg, mesh_dp, ...; null when not recorded",
        ),
    ),
)

MPI_CALLS = TableSpec(
    "mpi_calls",
    "one call of MPI as far as its arguments were recorded; its time is also in host_ranges",
    (
        _rank(),
        _process(),
        _thread(),
        *_span("the call"),
        Column("name", NAME, None, "function name: MPI_Send, MPI_Allreduce, ..."),
        Column("kind", NAME, None, "send, receive, collective, wait or other"),
        Column(
            "communicator",
            pa.int64(),
            None,
            "handle of the communicator within its process; null where none is named",
        ),
        Column(
            "group",
            NAME,
            None,
            "name of the communicator that is the same on all of its ranks; null when not recorded",
        ),
        Column("group_size", pa.int32(), "count", "ranks in the communicator; null when not recorded"),
        Column("group_rank", pa.int32(), None, "rank of the caller in the communicator; null when not recorded"),
        Column("world_rank", pa.int32(), None, "rank of the caller in MPI_COMM_WORLD; null when not recorded"),
        Column(
            "peer",
            pa.int32(),
            None,
            "rank on the other side of a send or receive, in the communicator; null for others",
        ),
        Column("tag", pa.int64(), None, "tag of a send or receive"),
        Column("root", pa.int32(), None, "rank that a rooted collective starts from or ends at"),
        Column("request", pa.int64(), None, "request that it started or waited for, within the process"),
        Column("bytes", pa.int64(), "bytes", "what the caller sends; null when not recorded"),
        Column("received_bytes", pa.int64(), "bytes", "what the caller receives; null when not recorded"),
    ),
)

CPU_SAMPLES = TableSpec(
    "cpu_samples",
    "one sample of what a host thread was running, or the stack of a long call of the operating system when it began",
    (
        _rank(),
        _process(),
        _thread(),
        Column("time_ns", pa.int64(), "ns", "when it was sampled"),
        Column(
            "stack",
            NAME,
            None,
            "functions from the outermost to the innermost, joined by ; ([module] without a symbol); null when not recorded",
        ),
    ),
)

THREAD_RUNS = TableSpec(
    "thread_runs",
    "one stretch of time in which the system ran a host thread on a CPU",
    (_rank(), _process(), _thread(), *_span("the stretch"), Column("cpu", pa.int32(), None, "number of the CPU")),
)

PAGE_FAULTS = TableSpec(
    "page_faults",
    "one group of faults on pages of managed memory that were not where they were touched",
    (
        _rank(),
        _process(),
        Column("thread", pa.int64(), None, "host thread that touched the page; null for a GPU, or when not recorded"),
        *_span("the fault"),
        Column("device", pa.int32(), None, "GPU that touched the page; null for the host"),
        Column("address", pa.uint64(), None, "address that was touched"),
        Column("count", pa.int64(), "count", "faults in the group"),
        Column("access", NAME, None, "read, write, atomic, prefetch or unknown; null when not recorded"),
    ),
)

COUNTERS = TableSpec(
    "counters",
    "one sampled value",
    (
        _rank(),
        _process(),
        Column("time_ns", pa.int64(), "ns", "when it was sampled"),
        _device(),
        Column("metric", NAME, None, "metric name"),
        Column("unit", NAME, None, "unit of the value as recorded"),
        Column("value", pa.float64(), None, "the value"),
    ),
)

MEMORY_EVENTS = TableSpec(
    "memory_events",
    "one allocation or release",
    (
        _rank(),
        _process(),
        _thread(),
        Column("time_ns", pa.int64(), "ns", "when it happened"),
        _device(),
        Column("address", pa.uint64(), None, "address"),
        Column("bytes", pa.int64(), "bytes", "size; negative for a release"),
        Column("total_allocated", pa.int64(), "bytes", "allocated by the allocator afterwards; null when not recorded"),
        Column("total_reserved", pa.int64(), "bytes", "reserved by the allocator afterwards; null when not recorded"),
    ),
)

STEPS = TableSpec(
    "steps",
    "one iteration on the host",
    (
        _rank(),
        _process(),
        _thread(),
        *_span("the step on the host"),
        Column("name", NAME, None, "name of the range that marks it"),
        Column("index", pa.int32(), None, "0-based order within (rank, process)"),
        Column("method", NAME, None, "how it was found: annotation, nvtx or repetition"),
        Column("open", pa.bool_(), None, "true where the recording ended before the step did"),
    ),
)

DEVICES = TableSpec(
    "devices",
    "one GPU that the file describes",
    (
        _rank(),
        _device(),
        Column("name", NAME, None, "marketing name"),
        Column("compute_major", pa.int32(), None, "compute capability, major"),
        Column("compute_minor", pa.int32(), None, "compute capability, minor"),
        Column("sm_count", pa.int32(), "count", "streaming multiprocessors"),
        Column("memory", pa.int64(), "bytes", "device memory"),
        Column("uuid", pa.string(), None, "unique id of the GPU; null when not recorded"),
    ),
)

PROCESSES = TableSpec(
    "processes",
    "one process with GPU or host events",
    (
        _rank(),
        _process(),
        Column("pid", pa.int64(), None, "OS process id"),
        Column("name", pa.string(), None, "process name"),
        Column("host", pa.string(), None, "host name; null when not recorded"),
    ),
)

THREADS = TableSpec(
    "threads",
    "one named thread",
    (_rank(), _process(), _thread(), Column("name", pa.string(), None, "thread name")),
)

HEALTH = TableSpec(
    "health",
    "one kind of thing that the importer met and the rules must know",
    (
        _rank(),
        Column("code", pa.string(), None, "TRC code, see the rule catalogue"),
        Column("severity", pa.string(), None, "info, low, medium or high"),
        Column("message", pa.string(), None, "what was met and what it means for the rules"),
        Column("count", pa.int64(), "count", "how often"),
        Column("example", pa.string(), None, "the first one"),
    ),
)

EVENT_TABLES: dict[str, TableSpec] = {
    spec.name: spec
    for spec in (
        GPU_OPS,
        API_CALLS,
        HOST_RANGES,
        OVERHEADS,
        STREAM_EVENTS,
        COLLECTIVES,
        MPI_CALLS,
        CPU_SAMPLES,
        THREAD_RUNS,
        PAGE_FAULTS,
        COUNTERS,
        MEMORY_EVENTS,
        STEPS,
        DEVICES,
        PROCESSES,
        THREADS,
        HEALTH,
    )
}

SCHEMA_VERSION = "1.8"
