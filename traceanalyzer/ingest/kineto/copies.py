"""What a Kineto copy name says: "Memcpy HtoD (Pageable -> Device)" is direction and memory kinds."""

from __future__ import annotations

import re

_COPY = re.compile(r"(?:Memcpy|Copy)\s*(\w+)?(?:\s*\((.+?)\s*->\s*(.+?)\))?", re.IGNORECASE)
_KINDS = {
    "htod": "htod",
    "dtoh": "dtoh",
    "dtod": "dtod",
    "htoh": "htoh",
    "ptop": "ptop",
    "hosttodevice": "htod",
    "devicetohost": "dtoh",
    "devicetodevice": "dtod",
    "hosttohost": "htoh",
    "peertopeer": "ptop",
}
_MEMORY = {"pageable": "pageable", "pinned": "pinned", "device": "device", "managed": "managed", "array": "array"}


def copy_kind(name: str) -> str:
    """htod, dtoh, dtod, ptop, htoh or other."""
    found = _COPY.match(name)
    return _KINDS.get((found[1] or "").lower(), "other") if found else "other"


def source_memory(name: str) -> str:
    """Memory kind of the source, "unknown" when the name does not say."""
    return _memory(name, 2)


def target_memory(name: str) -> str:
    """Memory kind of the destination, "unknown" when the name does not say."""
    return _memory(name, 3)


def _memory(name: str, group: int) -> str:
    found = _COPY.match(name)
    return _MEMORY.get((found[group] or "").lower(), "unknown") if found else "unknown"
