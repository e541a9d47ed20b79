"""The categories of events that say what their events are; names of older releases beside the current ones."""

from __future__ import annotations

GPU_KINDS = {
    "kernel": "kernel",
    "Kernel": "kernel",
    "gpu_memcpy": "memcpy",
    "Memcpy": "memcpy",
    "gpu_memset": "memset",
    "Memset": "memset",
    # A CUDA graph recorded as a whole, in what `traceanalyzer export` writes.
    "graph": "graph",
}
API_CATEGORIES = frozenset({"cuda_runtime", "cuda_driver", "Runtime"})
HOST_CATEGORIES = {
    "cpu_op": "operator",
    "Operator": "operator",
    "user_annotation": "annotation",
    "python_function": "python",
    # VizTracer's functions.
    "FEE": "python",
}
OVERHEAD = "overhead"
# Annotations on the GPU's tracks, records of streams and events that wait, links and whole-window spans.
NO_WORK = frozenset(
    {
        "gpu_user_annotation",
        "cuda_sync",
        "cuda_event",
        "cuda_profiler_range",
        "external_correlation",
        "collective_comm",
        "Trace",
        "fwdbwd",
        "ac2g",
        "async",
        "async_cpu_to_gpu",
        # What `traceanalyzer export` adds to what was recorded.
        "traceanalyzer.finding",
        "traceanalyzer.ledger",
        "traceanalyzer.step",
    }
)
