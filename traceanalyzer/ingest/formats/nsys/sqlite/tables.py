"""The tables and columns of an export that are read, and their spellings over the years (exports of 2021 to 2026).

Declared once, here; `selects` makes SQL of it for the columns that a file has.
"""

from __future__ import annotations

from traceanalyzer.records import dataclass

# A global id is hw:8 | vm:8 | pid:24 | tid:24. It is signed: hw >= 128 makes it negative, hence shifts, never division.
# hw and vm stay in the process's identity, so that merged reports of several hosts keep their processes apart.
PROCESS_BITS = (1 << 40) - 1
PID_BITS = THREAD_BITS = (1 << 24) - 1

INTEGER, NUMBER, TEXT = "integer", "number", "text"


@dataclass(frozen=True)
class Field:
    """One value: our name, the columns it may come from (the first that is not null) and what it is."""

    name: str
    accepts: tuple[str, ...]
    kind: str = INTEGER


@dataclass(frozen=True)
class Table:
    """One table: the names it had, the fields read, and those without which it is useless."""

    names: tuple[str, ...]
    fields: tuple[Field, ...]
    required: tuple[str, ...] = ()


def _same(*names: str, kind: str = INTEGER) -> tuple[Field, ...]:
    return tuple(Field(name, (name,), kind) for name in names)


START, END = Field("start", ("start",)), Field("end", ("end",))
OWNER = Field("owner", ("globalPid", "globalTid"))
CALLER = Field("caller", ("globalTid",))
_ON_GPU = (
    OWNER,
    START,
    END,
    Field("device", ("deviceId",)),
    Field("context", ("contextId",)),
    Field("stream", ("streamId",)),
    Field("correlation", ("correlationId",)),
    Field("graph", ("graphId",)),
    Field("graph_node", ("graphNodeId",)),
)
_SPAN = ("start", "end")

KERNEL = Table(
    ("CUPTI_ACTIVITY_KIND_KERNEL",),
    (
        *_ON_GPU,
        Field("name", ("demangledName", "shortName", "mangledName", "nameId")),
        Field("short_name", ("shortName", "mangledName")),
        *_same("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ"),
        Field("registers", ("registersPerThread",)),
        Field("static_shared", ("staticSharedMemory",)),
        Field("dynamic_shared", ("dynamicSharedMemory",)),
    ),
    _SPAN,
)
MEMCPY = Table(
    ("CUPTI_ACTIVITY_KIND_MEMCPY",),
    (
        *_ON_GPU,
        *_same("bytes", "copyKind"),
        Field("src", ("srcKind",)),
        Field("dst", ("dstKind",)),
        Field("cause", ("migrationCause",)),
    ),
    _SPAN,
)
MEMSET = Table(
    ("CUPTI_ACTIVITY_KIND_MEMSET",),
    (*_ON_GPU, *_same("bytes"), Field("dst", ("memKind",))),
    _SPAN,
)
GRAPH_TRACE = Table(("CUPTI_ACTIVITY_KIND_GRAPH_TRACE",), _ON_GPU, _SPAN)
GPU_WORK = (KERNEL, MEMCPY, MEMSET, GRAPH_TRACE)
RUNTIME = Table(
    ("CUPTI_ACTIVITY_KIND_RUNTIME",),
    (
        OWNER,
        CALLER,
        START,
        END,
        Field("name", ("nameId",)),
        Field("correlation", ("correlationId",)),
    ),
    ("start",),
)
# Push/pop and start/end ranges, from the library and from imported text files. The other types are marks and names.
PUSHED, STARTED = (59, 70), (60, 71)
NVTX = Table(
    ("NVTX_EVENTS",),
    (
        OWNER,
        CALLER,
        Field("ended_by", ("endGlobalTid",)),
        START,
        END,
        Field("type", ("eventType",)),
        Field("text", ("text",), TEXT),
        Field("text_id", ("textId",)),
        Field("domain", ("domainId",)),
        Field("category", ("category",)),
    ),
    ("start",),
)
PAYLOAD_ENTRIES = Table(
    ("NVTX_PAYLOAD_SCHEMA_ENTRIES",),
    (
        *(Field("domain", ("domainId",)), Field("schema", ("schemaId",)), Field("place", ("idx",))),
        *(*_same("flags", "type", "offset"), Field("name", ("name",), TEXT)),
    ),
    ("domain", "schema", "place", "type", "name"),
)
_STREAM_EVENT = (
    OWNER,
    Field("device", ("deviceId",)),
    Field("stream", ("streamId",)),
    Field("correlation", ("correlationId",)),
    Field("event", ("eventId",)),
)
SYNCHRONIZATIONS = Table(
    ("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",), (*_STREAM_EVENT, START), ("start", "stream", "event", "correlation")
)
CUDA_EVENTS = Table(("CUPTI_ACTIVITY_KIND_CUDA_EVENT",), _STREAM_EVENT, ("stream", "event", "correlation"))
STREAMS = Table(
    ("TARGET_INFO_CUDA_STREAM",),
    (
        Field("stream", ("streamId",)),
        Field("pid", ("processId",)),
        Field("hw", ("hwId",)),
        Field("vm", ("vmId",)),
        Field("flag", ("flag",)),
    ),
    ("stream", "pid", "flag"),
)
_HOST_CALL = (OWNER, CALLER, START, END)
OS_CALLS = Table(("OSRT_API",), (*_HOST_CALL, Field("name", ("nameId",))), ("start", "caller"))
_FRAMES = (
    *_same("id", "symbol", "module", "unresolved"),
    Field("special", ("specialEntry",)),
    Field("depth", ("stackDepth",)),
)
SAMPLES = Table(("COMPOSITE_EVENTS",), (CALLER, START, *_same("id")), ("start", "caller"))
SAMPLE_STACKS = Table(("SAMPLING_CALLCHAINS",), _FRAMES, ("id", "depth"))
OS_STACK_IDS = Table(("OSRT_API",), (CALLER, START, Field("id", ("callchainId",))), ("start", "caller", "id"))
OS_STACKS = Table(("OSRT_CALLCHAINS",), _FRAMES, ("id", "depth"))
SWITCHES = Table(
    ("SCHED_EVENTS",), (CALLER, START, *_same("cpu"), Field("on", ("isSchedIn",))), ("start", "caller", "on")
)
_FAULT = (OWNER, CALLER, START, END, *_same("address"))
HOST_FAULTS = Table(("CUDA_UM_CPU_PAGE_FAULT_EVENTS",), _FAULT, ("start",))
GPU_FAULTS = Table(
    ("CUDA_UM_GPU_PAGE_FAULT_EVENTS",),
    (
        *_FAULT,
        Field("device", ("deviceId",)),
        Field("count", ("numberOfPageFaults",)),
        Field("access", ("faultAccessType", "accessType")),
    ),
    ("start",),
)
_CONSTRUCT = (
    *(*_HOST_CALL, Field("name", ("nameId",))),
    *(Field("line", ("lineNo",)), Field("file", ("srcFile",)), Field("function", ("funcName",))),
)
OPENACC = tuple(
    Table((f"CUPTI_ACTIVITY_KIND_OPENACC_{kind}", f"OPENACC_{kind}_EVENTS"), (*_CONSTRUCT, *more), ("start", "caller"))
    for kind, more in (
        ("DATA", (Field("variable", ("varName",)),)),
        ("LAUNCH", (Field("kernel", ("kernelName",)),)),
        ("OTHER", ()),
    )
)
# Those that last. Of threads as a whole, and of what is done in no time, there are others.
OPENMP = {
    kind: Table((f"OPENMP_EVENT_KIND_{kind}",), (*_HOST_CALL, Field("kind", ("kind",))), ("start", "caller"))
    for kind in (
        *("PARALLEL", "SYNC_REGION_WAIT", "SYNC_REGION", "TASK", "TASK_CREATE"),
        *("MASTER", "REDUCTION", "MUTEX_WAIT", "CRITICAL_SECTION", "WORKSHARE"),
    )
}
CALLBACKS = Table(("CUDA_HOST_CALLBACK",), (*_HOST_CALL, Field("name", ("nameId",))), ("start", "caller"))
_MPI_CALL = (*_HOST_CALL, Field("name", ("textId", "nameId")))
_OF_MPI = {
    "communicator": Field("communicator", ("commHandle",)),
    "tag": Field("tag", ("tag",)),
    "peer": Field("peer", ("remoteRank",)),
    "root": Field("root", ("rootRank",)),
    "size": Field("size", ("size",)),
    "received": Field("received", ("recvSize",)),
    "request": Field("request", ("requestHandle",)),
}


def _mpi(kind: str, *names: str) -> Table:
    return Table((f"MPI_{kind}_EVENTS",), (*_MPI_CALL, *(_OF_MPI[name] for name in names)), ("start", "caller"))


MPI_MESSAGES = _mpi("P2P", "communicator", "tag", "peer", "size", "request")
MPI_COLLECTIVES = _mpi("COLLECTIVES", "communicator", "root", "size", "received", "request")
MPI_WAITS = _mpi("START_WAIT", "request")
MPI_CALLS = (MPI_MESSAGES, MPI_COLLECTIVES, MPI_WAITS, _mpi("OTHER"))
OVERHEAD = Table(
    ("PROFILER_OVERHEAD",),
    (OWNER, CALLER, START, END, Field("name", ("nameId",))),
    _SPAN,
)
CUPTI_OVERHEAD = Table(
    ("CUPTI_ACTIVITY_KIND_OVERHEAD",),
    (OWNER, CALLER, START, END, Field("name", ("nameId",)), Field("kind", ("overheadKind", "overheadType"))),
    _SPAN,
)
DEVICE_MEMORY = Table(
    ("CUDA_GPU_MEMORY_USAGE_EVENTS",),
    (
        OWNER,
        Field("start", ("start", "timestamp")),
        Field("device", ("deviceId",)),
        Field("address", ("address",)),
        Field("bytes", ("bytes",)),
        Field("kind", ("memKind",)),
        Field("operation", ("memoryOperationType",)),
    ),
    ("start", "bytes"),
)
_OF_NETWORK = (
    *(START, Field("device", ("globalId",)), Field("port", ("portId",))),
    *(Field("list", ("metricsListId",)), Field("place", ("metricsIdx",)), *_same("value", kind=NUMBER)),
)
NETWORK = tuple(Table((name,), _OF_NETWORK, ("start", "value")) for name in ("NET_NIC_METRIC", "NET_IB_SWITCH_METRIC"))
NETWORK_METRICS = Table(
    ("TARGET_INFO_NETWORK_METRICS",),
    (Field("list", ("metricsListId",)), Field("place", ("metricsIdx",)), *_same("name", "unit", kind=TEXT)),
    ("list", "place", "name"),
)
NETWORK_MAP = Table(("NIC_ID_MAP",), (Field("card", ("nicId",)), Field("device", ("globalId",))), ("card", "device"))
NETWORK_CARDS = Table(
    ("TARGET_INFO_NIC_INFO",), (Field("card", ("nicId",)), *_same("name", kind=TEXT)), ("card", "name")
)
CONTEXT_SWITCHES = Table(
    ("GPU_CONTEXT_SWITCH_EVENTS",),
    (OWNER, Field("time", ("timestamp",)), Field("gpu", ("gpuId", "deviceId"))),
    ("owner", "time", "gpu"),
)
GPU_METRICS = Table(
    ("GPU_METRICS",),
    (*_same("timestamp", "typeId", "metricId"), *_same("value", kind=NUMBER)),
    ("timestamp", "value"),
)
GPU_METRIC_NAMES = Table(
    ("TARGET_INFO_GPU_METRICS",), (*_same("typeId", "metricId"), Field("name", ("metricName",), TEXT))
)

STRINGS = Table(("StringIds",), (Field("id", ("id", "_id_")), Field("value", ("value",), TEXT)), ("id", "value"))
GPU = Table(
    ("TARGET_INFO_GPU", "TARGET_INFO_CUDA_GPU"),
    (
        Field("device", ("id", "gpuId", "deviceId")),
        Field("name", ("name",), TEXT),
        Field("compute_major", ("computeMajor", "smMajor", "computeCapabilityMajor")),
        Field("compute_minor", ("computeMinor", "smMinor", "computeCapabilityMinor")),
        Field("sm_count", ("smCount", "numMultiprocessors")),
        Field("memory", ("totalMemory", "globalMemorySize")),
        Field("uuid", ("uuid",), TEXT),
        Field("cuda", ("cuDevice",)),
        Field("bus", ("busLocation",), TEXT),
    ),
    ("device",),
)
CUDA_DEVICE = Table(
    ("TARGET_INFO_CUDA_DEVICE",), (*_same("gpuId", "cudaId", "pid"), *_same("uuid", kind=TEXT)), ("cudaId", "pid")
)
MPI_RANKS = Table(
    ("MPI_RANKS",), (Field("owner", ("globalPid", "globalTid")), Field("rank", ("rank",))), ("owner", "rank")
)
MPI_COMMUNICATORS = Table(
    ("MPI_COMMUNICATORS",),
    (
        Field("rank", ("rank",)),
        Field("made", ("timestamp",)),
        Field("communicator", ("commHandle",)),
        Field("own", ("localRank",)),
        Field("size", ("localSize",)),
        Field("root", ("groupRoot",)),
        Field("number", ("groupRootUid",)),
    ),
    ("communicator",),
)
PROCESSES = Table(("PROCESSES",), (OWNER, Field("name", ("name",), TEXT)), ("owner",))
THREADS = Table(
    ("ThreadNames",), (CALLER, Field("name", ("nameId",)), Field("priority", ("priority",))), ("caller", "name")
)
_PAIRS = (Field("name", ("name",), TEXT), Field("value", ("value",), TEXT))
EXPORT_FACTS = Table(("META_DATA_EXPORT", "EXPORT_META_DATA"), _PAIRS)
CAPTURE_FACTS = Table(("META_DATA_CAPTURE", "CAPTURE_META_DATA"), _PAIRS)
SYSTEM_FACTS = Table(("TARGET_INFO_SYSTEM_ENV",), _PAIRS)
SESSION_START = Table(("TARGET_INFO_SESSION_START_TIME",), (Field("utc_ns", ("utcEpochNs",)),), ("utc_ns",))
ANALYSIS = Table(("ANALYSIS_DETAILS",), _same("duration"), ("duration",))
DIAGNOSTICS = Table(("DIAGNOSTIC_EVENT",), (*_same("severity"), Field("text", ("text",), TEXT)), ("severity", "text"))
MEMORY_KINDS = Table(("ENUM_CUDA_MEM_KIND",), (*_same("id"), *(Field(n, (n,), TEXT) for n in ("name", "label"))))
COPY_KINDS = Table(("ENUM_CUDA_MEMCPY_OPER",), MEMORY_KINDS.fields)
ACCESS_KINDS = Table(("ENUM_CUDA_UNIF_MEM_ACCESS_TYPE",), MEMORY_KINDS.fields)
MEMORY_OPERATIONS = Table(("ENUM_CUDA_DEV_MEM_EVENT_OPER",), MEMORY_KINDS.fields)
