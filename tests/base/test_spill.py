"""Tables in files are what they were, and are in memory only while they are read."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from traceanalyzer.columns import spill
from traceanalyzer.columns.lean import WORTH, repeated, repeats
from traceanalyzer.columns.spill import LARGE_BYTES, forget, spilled

ROWS = 2 * LARGE_BYTES // 8
pytestmark = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="tells what is in memory from /proc")


def in_memory() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def table() -> pa.Table:
    names = pa.DictionaryArray.from_arrays(pa.array(np.arange(ROWS, dtype=np.int32) % 3), pa.array(["a", "b", "c"]))
    gaps = pa.array(np.arange(ROWS), mask=np.arange(ROWS) % 7 == 0)
    return pa.table({"number": np.arange(ROWS), "gaps": gaps, "name": names, "same": repeated(pa.array([5]), ROWS)})


def test_it_is_the_same_table() -> None:
    plain = table()
    own = spilled(plain)
    assert own.equals(plain) and own.schema == plain.schema
    assert repeats(own["same"])
    forget()
    assert own.equals(plain)


def test_what_is_not_read_is_not_in_memory() -> None:
    own = spilled(table())
    forget()
    before = in_memory()
    assert own["number"].to_numpy().sum() == ROWS * (ROWS - 1) // 2
    assert in_memory() - before > 1.5 * LARGE_BYTES
    forget()
    assert in_memory() - before < LARGE_BYTES / 4


def test_a_file_goes_with_its_table() -> None:
    own = spilled(table())
    held = len(spill._MAPS)
    del own
    assert len(spill._MAPS) == held - 1


def test_parts_of_it_may_outlive_it() -> None:
    own = spilled(table())
    part = own.slice(9, 3)
    del own
    forget()
    assert part["number"].to_pylist() == [9, 10, 11]


def test_small_tables_stay() -> None:
    small = pa.table({"number": np.arange(WORTH)})
    assert spilled(small) is small


@pytest.mark.parametrize("fault", ["full", "failing"])
def test_without_a_disk_it_stays_in_memory(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> object:
        raise OSError(28, "No space left on device")

    if fault == "full":
        monkeypatch.setattr(spill, "disk_usage", lambda _: type("Usage", (), {"free": 0}))
    else:
        monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    plain = table()
    assert spilled(plain) is plain
