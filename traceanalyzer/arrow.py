"""Arrow as a program needs it that reads a trace, writes it and ends."""

from __future__ import annotations

import sys

import pyarrow as pa


class _NoPandas:
    """An import hook that finds pandas nowhere."""

    @staticmethod
    def find_spec(name: str, *_: object) -> None:
        if name == "pandas":
            raise ImportError(name)


def use_little_memory() -> None:
    """Give memory back at once, and leave pandas unloaded. Call it before anything else of Arrow.

    Arrow's usual pool keeps what it once had, for a next time that does not come here. And Arrow imports pandas with the first
    array, only to ask whether it was given something of pandas: that takes longer than reading a small trace, and an interrupt
    that comes meanwhile is lost. Whoever asks Arrow for pandas by name still gets it.
    """
    pa.set_memory_pool(pa.system_memory_pool())
    sys.meta_path.insert(0, _NoPandas)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(_NoPandas)
