"""The categories of events that say what their events are; names of older releases beside the current ones."""

from __future__ import annotations

import re
from functools import lru_cache

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
    # NVTX ranges and calls of MPI and of the operating system, in what `traceanalyzer export` writes.
    "nvtx": "nvtx",
    "mpi_call": "mpi",
    "os_call": "os",
    **{kind: kind for kind in ("openacc", "openmp", "callback")},
    # VizTracer's functions.
    "FEE": "python",
}
OVERHEAD = "overhead"
STREAM_WAITS = "cuda_sync"
"""Records of streams and of the host that wait; of those, only the streams that wait for one another are read."""
# Annotations on the GPU's tracks, records of events, links and whole-window spans.
NO_WORK = frozenset(
    {
        "gpu_user_annotation",
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

_BY_SPELLING = {
    name.casefold(): name
    for name in (*GPU_KINDS, *API_CATEGORIES, *HOST_CATEGORIES, *NO_WORK, STREAM_WAITS)
    if "_" in name
}

# What the words of a category that is not in these tables say of its events on a GPU's track. What says both says nothing.
_WORK = (
    ("memset", re.compile(r"mem_?set|fill", re.IGNORECASE)),
    ("memcpy", re.compile(r"mem_?cpy|copy|p2p|peer|dma", re.IGNORECASE)),
    ("kernel", re.compile(r"kernel", re.IGNORECASE)),
)
_NO_WORK = re.compile(
    r"annotation|mark|range|scope|nvtx|roctx|sync|wait|barrier|fence|stall|idle|record|counter", re.IGNORECASE
)


@lru_cache(maxsize=1 << 10)
def usual(category: str | None) -> str | None:
    """A category as the tables spell it; one that is in none of them stays as it is."""
    return category if category is None else _BY_SPELLING.get(category.casefold(), category)


def kind_of_work(category: str) -> str | None:
    """kernel, memcpy or memset as the words of an unknown category say; None where they do not say one of these alone."""
    if _NO_WORK.search(category):
        return None
    return next((kind for kind, words in _WORK if words.search(category)), None)


def is_no_work(category: str) -> bool:
    """Whether the words of an unknown category speak of ranges, waits or marks, and not of work."""
    return _NO_WORK.search(category) is not None and not any(words.search(category) for _, words in _WORK)
