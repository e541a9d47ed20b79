"""Histories on their place: what is added is there once, whoever adds, stops or damages what."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import fsspec
import msgspec
import numpy as np
import pytest

from tests.history.nights import night
from tests.support.captures import capture
from traceanalyzer.errors import InputError
from traceanalyzer.history import shelf as module
from traceanalyzer.history.folders import LocalPlace
from traceanalyzer.history.rows import decoded, encoded
from traceanalyzer.history.shelf import FORMAT, FORMAT_VERSION, Shelf
from traceanalyzer.result.captures.capture import Baseline
from traceanalyzer.result.history.entry import Entry
from traceanalyzer.urls import Place

CAPTURE = capture()


@pytest.fixture(params=["folder", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """A place where nothing is yet: a folder, or one in a file system that only this process has."""
    if request.param == "folder":
        yield tmp_path / "history"
        return
    name = uuid.uuid4().hex
    there = fsspec.filesystem("memory")
    yield f"memory://{name}/history"
    if there.exists(f"/{name}"):
        there.rm(f"/{name}", recursive=True)


@pytest.fixture
def small_packs(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(module, "PACK", 4)
    return 4


def entries(count: int, first: int = 0) -> list[Entry]:
    return [night(number, np.random.default_rng(number)) for number in range(first, first + count)]


def filled(place: Place, count: int) -> Shelf:
    shelf = Shelf(place)
    for entry in entries(count):
        assert shelf.add(entry, CAPTURE)
    return shelf


def names(folder: Path, within: str) -> list[str]:
    return sorted(one.name for one in (folder / within).iterdir())


def test_what_was_added_is_read_in_order_of_time(place: Place) -> None:
    shelf = Shelf(place)
    for entry in reversed(entries(5)):
        assert shelf.add(entry, CAPTURE)
    contents = Shelf(place).read()
    assert contents.entries == entries(5)
    assert contents.damaged == []
    assert shelf.ids() == {entry.id for entry in entries(5)}
    assert msgspec.json.decode(shelf.capture_bytes(entries(1)[0].id), type=Baseline).captures == [CAPTURE]


def test_the_same_capture_is_there_once(place: Place) -> None:
    shelf = filled(place, 2)
    other = replace(entries(1)[0], name="another name of it")
    assert not shelf.add(other, capture("another"))
    assert Shelf(place).read().entries == entries(2)
    assert shelf.holds(other.id)


def test_a_packed_history_reads_the_same(place: Place, small_packs: int) -> None:
    shelf = filled(place, 10)
    shelf.pack()
    shelf.pack()
    assert Shelf(place).read().entries == entries(10)
    for entry in entries(3, 10):
        shelf.add(entry, CAPTURE)
    shelf.pack()
    assert Shelf(place).read().entries == entries(13)


def test_packs_are_made_of_full_numbers_of_rows(tmp_path: Path, small_packs: int) -> None:
    shelf = filled(tmp_path, 10)
    shelf.pack()
    made = names(tmp_path, "packs")
    assert len(made) == 2
    assert all(len(decoded((tmp_path / "packs" / name).read_bytes())) == small_packs for name in made)
    assert len(names(tmp_path, "rows")) == 10
    shelf.pack()
    assert names(tmp_path, "packs") == made


def test_what_is_packed_is_read_from_there(tmp_path: Path, small_packs: int) -> None:
    filled(tmp_path, 8).pack()

    class Counting(LocalPlace):
        read_names: list[str] = []  # noqa: RUF012

        def read(self, name: str) -> bytes:
            self.read_names.append(name)
            return super().read(name)

    folder = Counting(tmp_path)
    assert Shelf(tmp_path, folder).read().entries == entries(8)
    assert [name for name in folder.read_names if name.startswith("rows/")] == []


def test_a_row_that_a_pack_lacks_is_read_from_the_rows(tmp_path: Path, small_packs: int) -> None:
    filled(tmp_path, 8).pack()
    first, _ = names(tmp_path, "packs")
    path = tmp_path / "packs" / first
    path.write_bytes(encoded(decoded(path.read_bytes())[1:]))
    assert Shelf(tmp_path).read().entries == entries(8)


def test_an_entry_of_a_pack_without_a_row_is_not_in_the_history(tmp_path: Path, small_packs: int) -> None:
    filled(tmp_path, 8).pack()
    (tmp_path / "rows" / f"{entries(1)[0].id}.parquet").unlink()
    assert Shelf(tmp_path).read().entries == entries(8)[1:]


@pytest.mark.parametrize("content", [b"", b"PAR1", b"not a pack"])
def test_a_damaged_pack_costs_nothing(tmp_path: Path, small_packs: int, content: bytes) -> None:
    filled(tmp_path, 8).pack()
    for name in names(tmp_path, "packs"):
        (tmp_path / "packs" / name).write_bytes(content)
    contents = Shelf(tmp_path).read()
    assert contents.entries == entries(8)
    assert contents.damaged == []


def test_a_damaged_row_is_told_and_left_out(tmp_path: Path) -> None:
    filled(tmp_path, 4)
    broken, cut = (f"{entry.id}.parquet" for entry in entries(2))
    (tmp_path / "rows" / broken).write_bytes(b"nonsense")
    path = tmp_path / "rows" / cut
    path.write_bytes(path.read_bytes()[:-20])
    contents = Shelf(tmp_path).read()
    assert contents.entries == entries(4)[2:]
    assert [one.name for one in contents.damaged] == [f"rows/{broken}", f"rows/{cut}"]
    assert all(one.reason for one in contents.damaged)


def test_a_row_in_which_one_byte_is_another_is_told_or_read_as_it_was(tmp_path: Path) -> None:
    """Wherever that byte is, nothing fails, and the other rows are read."""
    filled(tmp_path, 2)
    path = tmp_path / "rows" / f"{entries(1)[0].id}.parquet"
    whole = path.read_bytes()
    for at in range(0, len(whole), max(len(whole) // 150, 1)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        contents = Shelf(tmp_path).read()
        assert contents.entries[-1] == entries(2)[-1]
        assert len(contents.entries) + len(contents.damaged) == 2


def test_a_folder_with_other_things_is_refused(place: Place) -> None:
    there = fsspec.filesystem("memory") if isinstance(place, str) else fsspec.filesystem("file")
    root = place.removeprefix("memory:/") if isinstance(place, str) else str(place)
    there.makedirs(root, exist_ok=True)
    there.pipe_file(f"{root}/thesis.tex", b"months of work")
    with pytest.raises(InputError, match=r"holds other things \(thesis\.tex\) and no history; name a new folder"):
        Shelf(place).add(entries(1)[0], CAPTURE)
    assert [str(one).rpartition("/")[2] for one in there.ls(root, detail=False)] == ["thesis.tex"]


def test_an_empty_folder_becomes_a_history(tmp_path: Path) -> None:
    filled(tmp_path, 1)
    assert names(tmp_path, "") == ["captures", "history.json", "rows"]
    assert msgspec.json.decode((tmp_path / "history.json").read_bytes()) == {
        "format": FORMAT,
        "version": FORMAT_VERSION,
    }


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"format": "traceanalyzer history", "version": 2}', "a history of version 2; this traceanalyzer reads version 1: update it"),
        (b'{"format": "other", "version": 1}', "history.json is not that of a history; name another folder"),
        (b"[]", "history.json is not that of a history"),
        (b'{"format": "trace', "history.json cannot be read"),
    ],
)  # fmt: skip
def test_what_is_no_history_of_ours_is_refused(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "history.json").write_bytes(content)
    for use in (Shelf.read, lambda shelf: shelf.add(entries(1)[0], CAPTURE)):
        with pytest.raises(InputError, match=words):
            use(Shelf(tmp_path))
    assert names(tmp_path, "") == ["history.json"]


def test_where_there_is_no_history_none_is_made_by_reading(place: Place) -> None:
    with pytest.raises(InputError, match="holds no history; begin one with `traceanalyzer history add`"):
        Shelf(place).read()
    assert not isinstance(place, Path) or not place.exists()


WRITER = """
import sys, os, signal
from pathlib import Path
import numpy as np
from tests.history.nights import night
from tests.support.captures import capture
from traceanalyzer.history import shelf as module
from traceanalyzer.history.folders import LocalPlace
from traceanalyzer.history.shelf import Shelf

class Ends(LocalPlace):
    "It ends before its `left`th file is written, or in the midst of that."
    left = int(sys.argv[3])
    def write(self, name, content):
        Ends.left -= 1
        if Ends.left == 0:
            if sys.argv[4] == "within":
                (self.path / name).parent.mkdir(parents=True, exist_ok=True)
                (self.path / name).with_name(f".{name.rpartition('/')[2]}.abcdefgh.unfinished").write_bytes(content[:50])
            os.kill(os.getpid(), signal.SIGKILL)
        super().write(name, content)

module.PACK = 4
place = Path(sys.argv[1])
shelf = Shelf(place, Ends(place))
for number in map(int, sys.argv[2].split(",")):
    shelf.add(night(number, np.random.default_rng(number)), capture())
    shelf.pack()
"""


def writer(place: Path, numbers: range, ends: int = 0, how: str = "before") -> subprocess.Popen[bytes]:
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", WRITER, str(place), ",".join(map(str, numbers)), str(ends), how]
    return subprocess.Popen(command, cwd=root, env={**os.environ, "PYTHONPATH": str(root)})


def test_several_writers_at_once(tmp_path: Path) -> None:
    """Each adds and packs; what two of them add is there once."""
    running = [writer(tmp_path / "history", numbers) for numbers in (range(8), range(4, 12), range(10, 18))]
    assert [one.wait() for one in running] == [0, 0, 0]
    contents = Shelf(tmp_path / "history").read()
    assert contents.entries == entries(18)
    assert contents.damaged == []
    assert len(names(tmp_path / "history", "rows")) == len(names(tmp_path / "history", "captures")) == 18


@pytest.mark.parametrize(("ends", "how"), [(1, "within"), (2, "before"), (3, "before"), (3, "within"), (5, "within")])
def test_a_writer_that_is_killed_has_added_what_it_has_added(tmp_path: Path, ends: int, how: str) -> None:
    """Its files are history.json, then two for each capture."""
    place = tmp_path / "history"
    assert writer(place, range(4), ends, how).wait() == -signal.SIGKILL
    whole = max(ends - 2, 0) // 2
    if ends == 1:
        with pytest.raises(InputError, match="holds no history"):
            Shelf(place).read()
    else:
        assert Shelf(place).read().entries == entries(whole)
    shelf = Shelf(place)
    assert [shelf.add(entry, CAPTURE) for entry in entries(4)] == [number >= whole for number in range(4)]
    assert shelf.read().entries == entries(4)
    assert all(msgspec.json.decode(shelf.capture_bytes(entry.id), type=Baseline).captures for entry in entries(4))


def test_a_disk_that_is_full_is_an_error_and_leaves_nothing_half(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(tmp_path, 1)
    before = {within: names(tmp_path, within) for within in ("rows", "captures")}

    def full(self: LocalPlace, name: str, content: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(LocalPlace, "write", full)
    with pytest.raises(InputError, match="No space left on device"):
        Shelf(tmp_path).add(entries(2)[1], CAPTURE)
    assert {within: names(tmp_path, within) for within in before} == before


def test_rows_can_be_asked_with_other_tools(tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    filled(tmp_path, 2)
    (row,) = pq.read_table(tmp_path / "rows" / f"{entries(1)[0].id}.parquet").to_pylist()
    assert (row["name"], row["commit"], row["unit_ns"]) == ("night-0", "c0000", 50_000_000)
    assert dict(row["lines_ns"]) == entries(1)[0].lines
