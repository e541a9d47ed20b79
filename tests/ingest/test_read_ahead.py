"""A small trace is read by a copy of this process while this one goes on, and what was read is what would have been read here."""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from tests.support.places import FIXTURES
from traceanalyzer import forks
from traceanalyzer.errors import InputError
from traceanalyzer.ingest import ahead, pipeline
from traceanalyzer.ingest.ahead import SMALL_BYTES, read_ahead
from traceanalyzer.ingest.how import How
from traceanalyzer.ingest.pipeline import ingest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing is forked")
TRACE = FIXTURES / "kineto/clean_infer.slow.pt.trace.json.gz"
DATABASE = FIXTURES / "nsys/h2d_pageable.slow.sqlite"


@pytest.fixture(autouse=True)
def two_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "cpus", lambda: 2)
    monkeypatch.setattr(forks, "may_fork", lambda: True)


@pytest.mark.parametrize("path", [TRACE, DATABASE], ids=["kineto", "nsys"])
def test_what_a_copy_reads_is_what_is_in_the_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with read_ahead([path], How()) as found, monkeypatch.context() as here:
        here.setattr(pipeline, "ingest_each", None)  # Nothing is read here.
        assert found and found.traces
        (trace,) = found.traces()
    expected = ingest([path])
    assert trace.inputs == expected.inputs and trace.tables.keys() == expected.tables.keys()
    for name, table in expected.tables.items():
        assert trace.table(name).equals(table), name
        assert [c.num_chunks for c in trace.table(name).columns] == [c.num_chunks for c in table.columns], name


def test_another_process_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "ingest_each", lambda _: [os.getpid()])
    with read_ahead([TRACE], How()) as found:
        assert found and found.traces and found.traces() != [os.getpid()]


@pytest.mark.parametrize(
    ("paths", "how"),
    [
        ([TRACE, DATABASE], How()),
        ([TRACE.parent], How()),
        (["s3://bucket/trace.json"], How()),
        ([TRACE], How(jobs=1)),
        ([TRACE], How(store=Path("kept"))),
        ([TRACE], How(scheduler="local")),
    ],
)
def test_not_one_file_of_this_machine(paths: list[Path | str], how: How) -> None:
    with read_ahead(paths, how) as found:
        assert found is None


def test_one_cpu_reads_as_it_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "cpus", lambda: 1)
    with read_ahead([TRACE], How()) as found:
        assert found is None


@pytest.mark.parametrize("packed", [False, True])
def test_a_large_file_is_found_and_not_read(packed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = gzip.decompress(TRACE.read_bytes())
    path = tmp_path / "trace.json"
    path.write_bytes(gzip.compress(plain) if packed else plain)
    size = path.stat().st_size
    monkeypatch.setattr(ahead, "SMALL_BYTES", size * ahead.PACKED - 1 if packed else size)
    with read_ahead([path], How()) as found:
        assert found and (found.traces is None) == packed and [one.path for one in found.found] == [path]


def test_a_file_that_cannot_be_small_is_not_looked_into(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    with path.open("wb") as file:
        file.truncate(SMALL_BYTES + 1)
    with read_ahead([path], How()) as found:
        assert found is None


def test_evidence_is_found_and_not_read() -> None:
    path = next((FIXTURES / "evidence").rglob("*.csv"))
    with read_ahead([path], How()) as found:
        assert found and found.found and found.traces is None


def test_what_nothing_reads_is_said_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("nothing")
    with pytest.raises(InputError, match=r"a\.txt"), read_ahead([tmp_path / "a.txt"], How()):
        pass


def test_what_cannot_be_read_is_said_here(tmp_path: Path) -> None:
    database = tmp_path / "a.sqlite"
    database.write_bytes(DATABASE.read_bytes()[:8192])
    with read_ahead([database], How()) as found:
        assert found and found.traces
        with pytest.raises(InputError, match=r"a\.sqlite"):
            found.traces()


@pytest.mark.parametrize("path", [TRACE, DATABASE], ids=["kineto", "nsys"])
def test_one_process_says_the_same(path: Path) -> None:
    """Where there are two CPUs, the first of these reads ahead."""
    command = [sys.executable, "-m", "traceanalyzer", "analyze", str(path), "--format", "json"]
    assert (
        len(
            {
                subprocess.run([*command, *more], capture_output=True, check=True).stdout
                for more in ([], ["--jobs", "1"])
            }
        )
        == 1
    )


def test_a_copy_that_is_stopped_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    begun = tmp_path / "begun"

    def reads_on(_: object) -> list[object]:
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(DATABASE, folder)
            begun.touch()
            time.sleep(60)
        return []

    monkeypatch.setattr(pipeline, "ingest_each", reads_on)
    with read_ahead([TRACE], How()):
        while not begun.exists():
            time.sleep(0.01)
        assert list(tmp_path.glob("*/*/*.sqlite"))
    assert list(tmp_path.iterdir()) == [begun]
