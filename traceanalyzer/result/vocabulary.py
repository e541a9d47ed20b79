"""What things are called wherever people read of them: in sentences, on the page, in tables and in labels."""

from __future__ import annotations

IDLE = {
    "turnaround": "turnaround",
    "dependency": "dependency",
    "queued": "queued",
    "launch_latency": "launch latency",
    "input": "input",
    "memory_management": "memory management",
    "synchronization": "synchronization",
    "mpi": "MPI",
    "os": "system calls",
    "host_work": "host work",
    "host_untraced": "host untraced",
    "profiler": "profiler",
    "unattributed": "unattributed",
}
"""Causes of idle time, shortly."""
IDLE_ABOUT = {
    "turnaround": "the hardware's hand-over between operations",
    "dependency": "waiting for another stream or device",
    "queued": "launched work that did not run, with nothing recorded that says why",
    "launch_latency": "launches that arrive late",
    "input": "the data loader",
    "memory_management": "allocating and freeing memory",
    "synchronization": "the host waiting for the GPU before it goes on",
    "mpi": "waiting in MPI calls",
    "os": "system calls of the launching thread",
    "host_work": "work on the host between launches",
    "host_untraced": "host time in which no call or range was recorded",
    "profiler": "the profiler itself",
    "unattributed": "launches that were not recorded",
}
"""The same as sentences have them."""
LINES = {
    "compute": "compute",
    "exposed_communication": "exposed communication",
    "exposed_memcpy": "exposed copies",
    "exposed_memset": "exposed memsets",
    **{f"idle.{cause}": f"idle: {words}" for cause, words in IDLE.items()},
}
"""Lines of the ledger."""
CONTEXT, MODULES = "creating the CUDA context", "loading CUDA modules"
"""What a process does once, before its first work on a GPU."""
BOUND_BY = {"memcpy": "copies", "memory_management": "memory management", "mpi": "MPI", "os": "system calls"}
"""What `bound_by` says, where its name is not the word."""
COPIES = {
    "htod": "from host to GPU",
    "dtoh": "from GPU to host",
    "dtod": "within the GPU",
    "ptop": "from GPU to GPU",
    "htoh": "within the host",
    "uvm_htod": "of managed memory from host to GPU",
    "uvm_dtoh": "of managed memory from GPU to host",
    "uvm_dtod": "of managed memory from GPU to GPU",
}
"""Ways of copies."""
UNKNOWN_WAY = "in a direction that was not recorded"


def line_words(line: str) -> str:
    """A line of the ledger in words; one that only a later version knows, nearly so."""
    return LINES.get(line) or line.replace("idle.", "idle: ").replace("_", " ")


def cause_words(cause: str) -> str:
    """A cause of idle time in words."""
    return IDLE.get(cause) or cause.replace("_", " ")


def bound_by_words(bound_by: str) -> str:
    return BOUND_BY.get(bound_by, bound_by)


def way(copy_kind: str | None) -> str:
    """Which way a copy goes, to follow "copy" or its size."""
    return COPIES.get(copy_kind or "", UNKNOWN_WAY)
