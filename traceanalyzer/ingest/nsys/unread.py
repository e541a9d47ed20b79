"""What an export holds that is not read, by kind: nobody shall think that all of it was looked at."""

from __future__ import annotations

import re

from traceanalyzer.ingest.nsys.database import Database

_TABLES = "select cast(name as text) as name from sqlite_master where type = 'table'"
# By the whole name of the table, and what its rows are. What is read has no place here.
_KINDS = (
    (r"CUDNN_EVENTS|CUBLAS_EVENTS|CUSPARSE_EVENTS|CUFFT_EVENTS", "calls of CUDA's libraries"),
    (r"UC[PXT]_\w+|UCX_\w+", "calls of UCX"),
    (r"SYSCALL", "system calls"),
    (r"OPENMP_EVENT_KIND_(?:TASK_SCHEDULE|CANCEL|MUTEX_RELEASED|LOCK_\w+|DISPATCH|FLUSH)", "moments of OpenMP"),
    (r"PMU_EVENTS|UNCORE_PMU_EVENTS|SOC_METRICS|BANDWIDTH_USAGE_EVENTS|GPU_MEMORY_\w+", "other counters"),
    (r"NET_IB_SWITCH_CONGESTION_EVENT", "congestion of InfiniBand"),
    (r"CUDA_CALLCHAINS|MPI_CALLCHAINS|SYSCALL_CALLCHAINS", "stacks of calls"),
    (r"GENERIC_EVENTS|ETW_EVENTS|FTRACE_EVENTS|LTTNG_EVENTS", "events of the system and of plugins"),
    (r"GPU_VIDEO_ENGINE_\w+|NVVIDEO_\w+|V4L2_\w+", "work of video engines"),
    (r"WDDM_\w+|DXGI_\w+|NVAPI_\w+", "queues of Windows' graphics"),
    (r"CUPTI_ACTIVITY_KIND_JIT", "compilation by the driver"),
    (r"OSRT_FILE_ACCESS_EVENTS", "file accesses"),
)


def count_unread(database: Database) -> dict[str, int]:
    """Rows by kind, the most first."""
    found = database.table(_TABLES)
    rows: dict[str, int] = {}
    for name in found["name"].to_pylist() if found else ():
        kind = next((what for pattern, what in _KINDS if re.fullmatch(pattern, str(name), re.IGNORECASE)), None)
        if kind is not None and (count := database.row_count(str(name))):
            rows[kind] = rows.get(kind, 0) + count
    return dict(sorted(rows.items(), key=lambda item: (-item[1], item[0])))
