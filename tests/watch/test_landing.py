"""What lies in a place, and when it has landed."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest

from traceanalyzer.watch.landing import Landed, Settling, captures_in


@pytest.fixture
def bucket() -> Iterator[str]:
    name = uuid.uuid4().hex
    yield f"memory://{name}/traces"
    there = fsspec.filesystem("memory")
    if there.exists(f"/{name}"):
        there.rm(f"/{name}", recursive=True)


def test_files_and_folders_behind_a_url(bucket: str) -> None:
    there, root = fsspec.filesystem("memory"), bucket.removeprefix("memory:/")
    there.makedirs(root)
    for name in ("b.json", "a.json", "job/rank1.json", "job/rank0.json", ".hidden", "c.json.tmp", "job/.x"):
        there.pipe_file(f"{root}/{name}", b"12345")
    found = captures_in(bucket)
    assert [one.name for one in found] == ["a.json", "b.json", "job"]
    assert [one.place for one in found] == [f"{bucket}/{name}" for name in ("a.json", "b.json", "job")]
    assert found[2].stamp == "job/rank0.json 5\njob/rank1.json 5"
    keys = [one.key for one in found]
    there.pipe_file(f"{root}/a.json", b"123456")
    assert [one.key == key for one, key in zip(captures_in(bucket), keys, strict=True)] == [False, True, True]


def test_a_key_is_that_of_a_name_with_a_content(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1")
    (tmp_path / "b").write_bytes(b"1")
    one, other = captures_in(tmp_path)
    assert one.key != other.key
    assert [found.key for found in captures_in(tmp_path)] == [one.key, other.key]
    (tmp_path / "a").write_bytes(b"12")
    assert captures_in(tmp_path)[0].key != one.key


def test_names_that_are_no_text(tmp_path: Path) -> None:
    try:
        (tmp_path / "a\udcff.json").write_bytes(b"1")
    except OSError:
        pytest.skip("no such names here")
    (found,) = captures_in(tmp_path)
    assert len(found.key) == 32


def landed(stamp: str, changed_ns: int | None = None) -> Landed:
    return Landed("a", "memory://b/a", stamp, changed_ns)


def test_what_is_the_same_for_long_enough_has_landed() -> None:
    settling = Settling(10)
    assert settling.settled([landed("1")], 100, 0) == []
    assert settling.settled([landed("1")], 109, 0) == []
    assert settling.settled([landed("2")], 111, 0) == []
    assert settling.settled([landed("2")], 120, 0) == []
    assert settling.settled([landed("2")], 121, 0) == [landed("2")]


def test_what_went_and_came_back_waits_anew() -> None:
    settling = Settling(10)
    settling.settled([landed("1")], 100, 0)
    settling.settled([], 105, 0)
    assert settling.settled([landed("1")], 111, 0) == []


def test_a_file_that_lies_there_for_long_has_landed_at_once() -> None:
    second = 10**9
    assert Settling(10).settled([landed("1", 0)], 5, 10 * second) == [landed("1", 0)]
    assert Settling(10).settled([landed("1", 0)], 5, 9 * second) == []
    assert Settling(10).settled([landed("1", 20 * second)], 5, 9 * second) == []  # its clock is ahead
    assert Settling(0).settled([landed("1")], 5, 0) == [landed("1")]
