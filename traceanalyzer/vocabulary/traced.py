"""Kinds of events that a profiler is told to record, as it calls them."""

from __future__ import annotations

TRACEABLE = (
    "cuda",
    "nvtx",
    "osrt",
    "mpi",
    "ucx",
    "openacc",
    "openmp",
    "cublas",
    "cudnn",
    "cusparse",
    "vulkan",
    "opengl",
)
"""What `--trace=` takes, in the order in which it is written; `Input.traced` may hold others."""
