"""Arrow as a program needs it that reads a trace, writes it and ends."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pyarrow as pa

_TRIM_THRESHOLD, _MMAP_MAX = -1, -4
"""The numbers of these options in glibc's malloc.h."""
_KEPT = 32 << 20
"""What of freed memory at its end the C library keeps."""
_ENOUGH = 256 << 20
"""Giving back less than that costs more, in pages that are made anew for the next step, than it is worth."""


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
    _keep_freed()
    pa.set_memory_pool(pa.system_memory_pool())
    sys.meta_path.insert(0, _NoPandas)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(_NoPandas)


def load_the_rest() -> None:
    """Import what Arrow itself imports with the first array of numpy's, and where rows are grouped."""
    import numpy.ma  # noqa: F401
    import pyarrow.acero  # noqa: F401


def _keep_freed() -> None:
    """Have the C library keep what was freed for the next block, large ones included, which it would map anew each time: work in blocks
    asks for the same sizes again and again, and a page that was given back costs as much as what is done with it."""
    mallopt = _of_glibc("mallopt")
    if mallopt is not None:
        for option, value in ((_TRIM_THRESHOLD, _KEPT), (_MMAP_MAX, 0)):
            mallopt(option, value)


def give_back() -> None:
    """Give memory that was freed back to the system, where the C library keeps it and this process has more than `_ENOUGH`: arrays that
    were held for a moment only would be there as long as the program runs."""
    trim = _of_glibc("malloc_trim")
    if trim is not None and _own_bytes() >= _ENOUGH:
        trim(0)


def _own_bytes() -> int:
    """What this process has in memory beside what lies in files."""
    try:
        _, resident, in_files, *_ = map(int, Path("/proc/self/statm").read_text().split())
    except OSError:
        return _ENOUGH
    return (resident - in_files) * os.sysconf("SC_PAGE_SIZE")


@cache
def _of_glibc(name: str) -> Callable[..., int] | None:
    """A function of glibc, which others have not."""
    try:
        return getattr(ctypes.CDLL(None), name)  # type: ignore[no-any-return]
    except (OSError, AttributeError, TypeError):
        return None
