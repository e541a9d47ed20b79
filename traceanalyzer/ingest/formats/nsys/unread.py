"""What an export holds that is not read, by kind: nobody shall think that all of it was looked at."""

from __future__ import annotations

from traceanalyzer.ingest.formats.nsys.sqlite.database import Database

_TABLES = "select cast(name as text) as name from sqlite_master where type = 'table'"
# By the whole name of the table, or (*) how it begins, and what its rows are. What is read has no place here.
_KINDS = (
    ("CUDNN_EVENTS CUBLAS_EVENTS CUSPARSE_EVENTS CUFFT_EVENTS", "calls of CUDA's libraries"),
    ("UCP_* UCX_* UCT_*", "calls of UCX"),
    ("SYSCALL", "system calls"),
    (
        "OPENMP_EVENT_KIND_TASK_SCHEDULE OPENMP_EVENT_KIND_CANCEL OPENMP_EVENT_KIND_MUTEX_RELEASED OPENMP_EVENT_KIND_LOCK_* "
        "OPENMP_EVENT_KIND_DISPATCH OPENMP_EVENT_KIND_FLUSH",
        "moments of OpenMP",
    ),
    ("PMU_EVENTS UNCORE_PMU_EVENTS SOC_METRICS BANDWIDTH_USAGE_EVENTS GPU_MEMORY_*", "other counters"),
    ("NET_IB_SWITCH_CONGESTION_EVENT", "congestion of InfiniBand"),
    ("CUDA_CALLCHAINS MPI_CALLCHAINS SYSCALL_CALLCHAINS", "stacks of calls"),
    ("GENERIC_EVENTS ETW_EVENTS FTRACE_EVENTS LTTNG_EVENTS", "events of the system and of plugins"),
    ("GPU_VIDEO_ENGINE_* NVVIDEO_* V4L2_*", "work of video engines"),
    ("WDDM_* DXGI_* NVAPI_*", "queues of Windows' graphics"),
    ("CUPTI_ACTIVITY_KIND_JIT", "compilation by the driver"),
    ("OSRT_FILE_ACCESS_EVENTS", "file accesses"),
)


def count_unread(database: Database) -> dict[str, int]:
    """Rows by kind, the most first."""
    found = database.table(_TABLES)
    rows: dict[str, int] = {}
    for name in found["name"].to_pylist() if found else ():
        kind = next((what for names, what in _KINDS if _is_one(str(name).upper(), names.split())), None)
        if kind is not None and (count := database.row_count(str(name))):
            rows[kind] = rows.get(kind, 0) + count
    return dict(sorted(rows.items(), key=lambda item: (-item[1], item[0])))


def _is_one(name: str, of: list[str]) -> bool:
    # No patterns: compiling them takes longer than reading a small export.
    return any(name.startswith(one[:-1]) if one.endswith("*") else name == one for one in of)
