"""The allocator's settings as plain values: what a hostile file puts in their place is left out."""

from __future__ import annotations

import json
import math
from typing import Any

from traceanalyzer.evidence.memory_snapshot.reading.columns import clean

_MOST_TEXT = 4096
_MOST = 1 << 63
_MOST_NAMES = 1000


def plain_settings(found: dict[Any, Any]) -> dict[str, Any]:
    """The settings that are plain values, or dictionaries of such."""
    nested = {
        clean(name): _plain(value)
        for name, value in list(found.items())[:_MOST_NAMES]
        if type(name) is str and type(value) is dict
    }
    return _plain(found) | nested


def _plain(found: dict[Any, Any]) -> dict[str, Any]:
    return {
        clean(name): value
        for name, value in list(found.items())[:_MOST_NAMES]
        if type(name) is str and _is_plain(value)
    }


def _is_plain(value: Any) -> bool:
    if type(value) is str:
        return len(value) <= _MOST_TEXT
    if type(value) is float:
        return math.isfinite(value)
    return type(value) is bool or (type(value) is int and -_MOST <= value < _MOST)


def settings_text(settings: dict[str, Any]) -> str | None:
    """The settings as JSON; None when none are recorded."""
    return clean(json.dumps(settings)) if settings else None


def max_split_bytes(settings: dict[str, Any]) -> int | None:
    """Blocks larger than this are never split; None when all may be."""
    found = settings.get("max_split_size")
    return found if type(found) is int and found > 0 else None
