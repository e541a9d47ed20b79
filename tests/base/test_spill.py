"""Tables in files are what they were, and are in memory only while they are read."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from traceanalyzer.columns import spill
from traceanalyzer.columns.lean import repeated, repeats
from traceanalyzer.columns.spill import LARGE_BYTES, Growing, Narrow, forget, spilled, stored

BYTES = 32 << 20
ROWS = BYTES // 8
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
    assert in_memory() - before > BYTES / 2
    forget()
    assert in_memory() - before < BYTES / 8


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


def test_what_lies_in_a_file_is_not_written_again() -> None:
    own = spilled(table())
    assert all(
        spilled(own)[name].chunk(0).buffers()[1] == own[name].chunk(0).buffers()[1] for name in ("number", "name")
    )
    assert len(spill._MAPS) == 1


def test_arrays() -> None:
    values = np.arange(ROWS)
    own = stored(values)
    before = in_memory()
    assert own.sum() == values.sum()
    assert in_memory() - before > BYTES / 2
    forget()
    assert in_memory() - before < BYTES / 8
    assert (own == values).all()
    few = np.arange(3)
    assert stored(few) is few
    same = np.broadcast_to(np.int64(5), ROWS)
    assert stored(same) is same


@pytest.mark.parametrize("blocks", [[3], [3, 5, 200_000, 7], [400_000], [100_000] * 9])
def test_an_array_that_grows(blocks: list[int]) -> None:
    own, parts = Growing(), [np.arange(count) + 10 * count for count in blocks]
    for part in parts:
        own.add(part)
    assert (own.array() == np.concatenate(parts)).all()


@pytest.mark.parametrize(
    "largest", [[], [3], [(1 << 31) - 1, -(1 << 31)], [5, 1 << 31, 7], [5, -(1 << 31) - 1], [1 << 62, 3]]
)
def test_whole_numbers_that_grow_take_32_bits_where_these_do(largest: list[int]) -> None:
    own, parts = Narrow(), [np.append(np.arange(200_000), one) for one in largest]
    for part in parts:
        own.add(part)
    found = own.array()
    assert (found == np.concatenate([np.empty(0, np.int64), *parts])).all()
    if parts:
        assert (found.itemsize == 4) == all(-(1 << 31) <= one < 1 << 31 for one in largest)


def test_a_disk_that_fills_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is in the file stays there, the rest in memory."""
    own, parts = Growing(), [np.arange(300_000) + at for at in range(5)]
    for at, part in enumerate(parts):
        if at == 2:
            monkeypatch.setattr(spill, "disk_usage", lambda _: type("Usage", (), {"free": 0}))
        own.add(part)
    assert (own.array() == np.concatenate(parts)).all()


def test_small_tables_stay() -> None:
    small = pa.table({"number": np.arange(LARGE_BYTES // 16)})
    assert spilled(small) is small


@pytest.mark.parametrize("fault", ["full", "failing", "without a folder"])
def test_without_a_disk_it_stays_in_memory(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> object:
        raise OSError(28, "No space left on device")

    if fault == "full":
        monkeypatch.setattr(spill, "disk_usage", lambda _: type("Usage", (), {"free": 0}))
    else:
        monkeypatch.setattr(tempfile, "TemporaryFile" if fault == "failing" else "gettempdir", refuse)
    plain = table()
    assert spilled(plain) is plain
    assert (stored(np.arange(ROWS)) == np.arange(ROWS)).all()
