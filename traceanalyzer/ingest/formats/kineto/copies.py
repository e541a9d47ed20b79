"""What the name of a copy says: "Memcpy HtoD (Pageable -> Device)" is direction and memory kinds."""

from __future__ import annotations

import re

# HtoD, H2D, HostToDevice, "Host to Device"; ROCm's names begin with Copy.
_DIRECTION = re.compile(
    r"(?:Mem)?c(?:o)?py\s*(?:Async)?\s*(Unified )?(H|D|P|Host|Device|Peer)\s*(?:to|2)\s*(H|D|P|Host|Device|Peer)(?![a-z])",
    re.IGNORECASE,
)
_MEMORIES = re.compile(r"\(\s*([^()]+?)\s*->\s*([^()]+?)\s*\)")
_KINDS = frozenset({"htod", "dtoh", "dtod", "htoh", "ptop"})
_MEMORY = frozenset({"pageable", "pinned", "device", "managed", "array"})


def copy_kind(name: str) -> str:
    """htod, dtoh, dtod, ptop, htoh or other; of migrations of managed memory uvm_htod and the like."""
    found = _DIRECTION.match(name)
    kind = f"{found[2][0]}to{found[3][0]}".lower() if found else ""
    return ("uvm_" if found and found[1] else "") + kind if kind in _KINDS else "other"


def source_memory(name: str) -> str:
    """Memory kind of the source, "unknown" when the name does not say."""
    return _memory(name, 1)


def target_memory(name: str) -> str:
    """Memory kind of the destination, "unknown" when the name does not say."""
    return _memory(name, 2)


def _memory(name: str, side: int) -> str:
    found = _MEMORIES.search(name)
    return memory_kind(found[side]) if found else "unknown"


def memory_kind(word: str) -> str:
    """The word for a kind of memory as the tables spell it."""
    kind = word.lower()
    return kind if kind in _MEMORY else "unknown"
