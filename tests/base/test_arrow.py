"""Memory that was freed goes back to the system where it is much, and is kept for the next step where it is little."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from traceanalyzer import arrow

STATM = Path("/proc/self/statm")
MEGABYTE = 1 << 20
pytestmark = pytest.mark.skipif(
    not STATM.exists() or arrow._of_glibc("malloc_trim") is None, reason="only glibc keeps what is freed"
)


def in_memory() -> int:
    return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize("much", [False, True])
def test_only_much_is_given_back(monkeypatch: pytest.MonkeyPatch, much: bool) -> None:
    monkeypatch.setattr(arrow, "_ENOUGH", 0 if much else 1 << 40)
    # Too small to be mapped one by one, and between some that stay.
    held = [np.ones(8_000) for _ in range(2_000)]
    held = held[::200]
    before = in_memory()
    arrow.give_back()
    assert (before - in_memory() > 64 * MEGABYTE) is much
    assert held


def test_without_proc_it_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> str:
        raise OSError(2, "No such file or directory")

    monkeypatch.setattr(Path, "read_text", refuse)
    assert arrow._own_bytes() >= arrow._ENOUGH
