"""Numbers with what is glued to them: "1.8 Gs", "464.03 GMACs", "113.31 M", "49.87 TFLOPS", "18.0 MB"."""

from __future__ import annotations

import math
import re
from functools import lru_cache

NUMBER = r"(?:[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?|[-+]?(?:nan|inf))"
_SCALES = {"T": 1e12, "G": 1e9, "B": 1e9, "M": 1e6, "K": 1e3, "k": 1e3, "": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9}
_QUANTITY = re.compile(rf"({NUMBER})\s*([TGBMKkmun]?)\s*(?:s|MACs|FLOPS|flops|)")
_SIZES = {name: 1024**power for power, name in enumerate(("B", "KB", "MB", "GB", "TB", "PB"))}
_SIZE = re.compile(rf"({NUMBER})\s*([KMGTP]?B)")
MOST = float(1 << 62)


@lru_cache(maxsize=1 << 14)
def quantity(text: str) -> float | None:
    """The number with its prefix applied: seconds, operations, operations a second or parameters; None for anything else."""
    found = _QUANTITY.fullmatch(text.strip())
    return None if found is None else number(found[1], _SCALES[found[2]])


def number(text: str, scale: float = 1.0) -> float | None:
    """The number times the scale; None for what is none, no finite one, or too large to count with."""
    try:
        value = float(text) * scale
    except ValueError:
        return None
    return value if math.isfinite(value) and abs(value) < MOST else None


def whole(text: str) -> int | None:
    """As `quantity`, for what is counted: not negative, and rounded."""
    value = quantity(text)
    return None if value is None or value < 0 else round(value)


def seconds(text: str) -> int | None:
    """A duration in nanoseconds; None for what is none or negative."""
    value = quantity(text)
    return None if value is None else ns_of(value, 1e9)


def milliseconds(text: str) -> int | None:
    """The same of a number of milliseconds."""
    try:
        value = float(text) * 1e6
    except ValueError:
        return None
    return round(value) if 0 <= value < MOST else None


def ns_of(value: float, scale: float) -> int | None:
    """A time as whole nanoseconds; None for one that is negative or beyond what can be counted."""
    return round(value * scale) if 0 <= value * scale < MOST else None


def size(text: str) -> int | None:
    """A size as the comms logger prints it, in bytes; its units are powers of 1024."""
    found = _SIZE.fullmatch(text.strip())
    value = None if found is None else number(found[1], _SIZES[found[2]])
    return None if value is None or value < 0 else round(value)
