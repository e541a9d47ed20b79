"""Ways of copies, and what a process does once, in the words of sentences, tables and labels."""

from __future__ import annotations

CONTEXT, MODULES = "creating the CUDA context", "loading CUDA modules"
"""What a process does once, before its first work on a GPU."""
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


def way(copy_kind: str | None) -> str:
    """Which way a copy goes, to follow "copy" or its size."""
    return COPIES.get(copy_kind or "", UNKNOWN_WAY)
