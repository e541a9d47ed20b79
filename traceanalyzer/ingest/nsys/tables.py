"""The tables and columns of an export that are read, and their spellings over the years (exports of 2021 to 2026).

Exports differ: tables exist only when they have rows, columns come and go, people trim files. A select is therefore
built from what is declared here and what the file has; whatever is absent is null. The driver infers a column's type
from the first rows it meets, so every expression yields one type: integers are taken only from cells that hold a number
(others are null), text is never null ("" stands for absent).
"""

from __future__ import annotations

from dataclasses import dataclass

from traceanalyzer.ingest.nsys.database import Database, quoted

# A global id is hw:8 | vm:8 | pid:24 | tid:24. It is signed: hw >= 128 makes it negative, hence shifts, never division.
# hw and vm stay in the process's identity, so that merged reports of several hosts keep their processes apart.
PROCESS_BITS = (1 << 40) - 1
PID_BITS = THREAD_BITS = (1 << 24) - 1
AS_PROCESS = f"({{}} >> 24) & {PROCESS_BITS}"
AS_THREAD = f"nullif({{}} & {THREAD_BITS}, 0)"  # 0: the process as a whole


@dataclass(frozen=True)
class Field:
    """One value: our name, the columns it may come from (the first that is not null), its type and a transformation."""

    name: str
    accepts: tuple[str, ...]
    text: bool = False
    sql: str = "{}"


@dataclass(frozen=True)
class Table:
    """One table: the names it had, the fields read, and those without which it is useless."""

    names: tuple[str, ...]
    fields: tuple[Field, ...]
    required: tuple[str, ...] = ()

    def with_constant(self, name: str, value: int) -> Table:
        """The same with a field that is always `value`."""
        return Table(self.names, (Field(name, (), sql=str(value)), *self.fields), self.required)


def _same(*names: str) -> tuple[Field, ...]:
    return tuple(Field(name, (name,)) for name in names)


START, END = Field("start", ("start",)), Field("end", ("end",))
PROCESS = Field("process", ("globalPid", "globalTid"), sql=AS_PROCESS)
THREAD = Field("thread", ("globalTid",), sql=AS_THREAD)
_ON_GPU = (
    PROCESS,
    START,
    END,
    Field("device", ("deviceId",)),
    Field("context", ("contextId",)),
    Field("stream", ("streamId",)),
    # No launch call made this (a migration): 0 means none.
    Field("correlation", ("correlationId",), sql="nullif({}, 0)"),
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
    (*_ON_GPU, *_same("bytes", "copyKind"), Field("src", ("srcKind",)), Field("dst", ("dstKind",))),
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
        PROCESS,
        THREAD,
        START,
        END,
        Field("name", ("nameId",)),
        Field("correlation", ("correlationId",), sql="nullif({}, 0)"),
    ),
    ("start",),
)
# Push/pop and start/end ranges, from the library and from imported text files. The other types are marks and names.
NVTX_RANGES = "(59, 60, 70, 71)"
NVTX = Table(
    ("NVTX_EVENTS",),
    (
        PROCESS,
        THREAD,
        START,
        END,
        Field("type", ("eventType",)),
        Field("text", ("text",), text=True),
        Field("text_id", ("textId",)),
    ),
    ("start",),
)
OVERHEAD = Table(
    ("PROFILER_OVERHEAD",),
    (PROCESS, THREAD, START, END, Field("name", ("nameId",))),
    _SPAN,
)
CUPTI_OVERHEAD = Table(
    ("CUPTI_ACTIVITY_KIND_OVERHEAD",),
    (PROCESS, THREAD, START, END, Field("name", ("nameId",)), Field("kind", ("overheadKind", "overheadType"))),
    _SPAN,
)
DEVICE_MEMORY = Table(
    ("CUDA_GPU_MEMORY_USAGE_EVENTS",),
    (
        PROCESS,
        Field("start", ("start", "timestamp")),
        Field("device", ("deviceId",)),
        Field("address", ("address",)),
        Field("bytes", ("bytes",)),
        Field("kind", ("memKind",)),
        Field("operation", ("memoryOperationType",)),
    ),
    ("start", "bytes"),
)
GPU_METRICS = Table(("GPU_METRICS",), _same("timestamp", "typeId", "metricId", "value"), ("timestamp", "value"))
GPU_METRIC_NAMES = Table(
    ("TARGET_INFO_GPU_METRICS",), (*_same("typeId", "metricId"), Field("name", ("metricName",), text=True))
)

STRINGS = Table(("StringIds",), (Field("id", ("id", "_id_")), Field("value", ("value",), text=True)), ("id", "value"))
GPU = Table(
    ("TARGET_INFO_GPU", "TARGET_INFO_CUDA_GPU"),
    (
        Field("device", ("id", "gpuId", "deviceId")),
        Field("name", ("name",), text=True),
        Field("compute_major", ("computeMajor", "smMajor", "computeCapabilityMajor")),
        Field("compute_minor", ("computeMinor", "smMinor", "computeCapabilityMinor")),
        Field("sm_count", ("smCount", "numMultiprocessors")),
        Field("memory", ("totalMemory", "globalMemorySize")),
        Field("uuid", ("uuid",), text=True),
    ),
    ("device",),
)
CUDA_DEVICE = Table(("TARGET_INFO_CUDA_DEVICE",), _same("gpuId", "cudaId", "pid"), ("gpuId", "cudaId", "pid"))
PROCESSES = Table(("PROCESSES",), (PROCESS, Field("name", ("name",), text=True)), ("process",))
THREADS = Table(
    ("ThreadNames",), (PROCESS, THREAD, Field("name", ("nameId",)), Field("priority", ("priority",))), ("thread",)
)
_PAIRS = (Field("name", ("name",), text=True), Field("value", ("value",), text=True))
EXPORT_FACTS = Table(("META_DATA_EXPORT", "EXPORT_META_DATA"), _PAIRS)
CAPTURE_FACTS = Table(("META_DATA_CAPTURE", "CAPTURE_META_DATA"), _PAIRS)
SYSTEM_FACTS = Table(("TARGET_INFO_SYSTEM_ENV",), _PAIRS)
SESSION_START = Table(("TARGET_INFO_SESSION_START_TIME",), (Field("utc_ns", ("utcEpochNs",)),), ("utc_ns",))
ANALYSIS = Table(("ANALYSIS_DETAILS",), _same("duration"), ("duration",))
DIAGNOSTICS = Table(
    ("DIAGNOSTIC_EVENT",), (*_same("severity"), Field("text", ("text",), text=True)), ("severity", "text")
)
MEMORY_KINDS = Table(("ENUM_CUDA_MEM_KIND",), (*_same("id"), *(Field(n, (n,), text=True) for n in ("name", "label"))))
COPY_KINDS = Table(("ENUM_CUDA_MEMCPY_OPER",), MEMORY_KINDS.fields)
MEMORY_OPERATIONS = Table(("ENUM_CUDA_DEV_MEM_EVENT_OPER",), MEMORY_KINDS.fields)


def find(database: Database, table: Table) -> str | None:
    """The file's name of a table that has all required fields; None when it is not there or lacks one."""
    for name in table.names:
        found = database.find(name)
        if found is not None:
            columns = database.columns(found)
            needed = [field for field in table.fields if field.name in table.required]
            return found if all(_present(field, columns) for field in needed) else None
    return None


def select(database: Database, table: Table, where: str = "", order: str = "") -> str | None:
    """A select of all fields in their order, `where` and `order` in our names; None when the file lacks the table."""
    found = find(database, table)
    if found is None:
        return None
    columns = database.columns(found)
    chosen = ", ".join(f"{_expression(field, columns)} as {quoted(field.name)}" for field in table.fields)
    sql = f"select * from (select {chosen} from {quoted(found)})"
    return sql + (f" where {where}" if where else "") + (f" order by {order}" if order else "")


def union(database: Database, parts: list[Table], where: str, order: str = "") -> str | None:
    """One select over several tables with the fields of all of them; None when the file lacks every one."""
    names = list(dict.fromkeys(field.name for part in parts for field in part.fields))
    selects = []
    for part in parts:
        fields = {field.name: field for field in part.fields}
        aligned = Table(part.names, tuple(fields.get(name, Field(name, ())) for name in names), part.required)
        sql = select(database, aligned)
        if sql is not None:
            selects.append(sql)
    if not selects:
        return None
    return f"select * from ({' union all '.join(selects)}) where {where}" + (f" order by {order}" if order else "")


_ABSENT_TEXT = "''"
# Of numbers stored as text only whole ones count.
_INTEGER = (
    "case typeof({0}) when 'integer' then {0} when 'real' then cast({0} as integer) "
    "when 'text' then case when {0} glob '*[0-9]' and {0} not glob '*[^0-9-]*' then cast({0} as integer) end end"
)


def _present(field: Field, columns: dict[str, str]) -> bool:
    return any(name.lower() in columns for name in field.accepts)


def _expression(field: Field, columns: dict[str, str]) -> str:
    found = [quoted(columns[name.lower()]) for name in field.accepts if name.lower() in columns]
    if field.text:
        return f"coalesce({', '.join([f'cast({column} as text)' for column in found] + [_ABSENT_TEXT])})"
    if not found:
        return field.sql if "{}" not in field.sql else "null"
    values = [_INTEGER.format(column) for column in found]
    value = values[0] if len(values) == 1 else f"coalesce({', '.join(values)})"
    return field.sql.format(f"({value})")
