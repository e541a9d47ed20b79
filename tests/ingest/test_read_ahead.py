"""Small traces are read by copies of this process while this one goes on, and what was read is what would have been read here."""

from __future__ import annotations

import gzip
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.places import FIXTURES
from traceanalyzer import forks
from traceanalyzer.errors import InputError
from traceanalyzer.ingest import ahead, pipeline, registry
from traceanalyzer.ingest.ahead import SMALL_BYTES, read_ahead, readers
from traceanalyzer.ingest.bytes.source import Source
from traceanalyzer.ingest.how import How
from traceanalyzer.ingest.pipeline import ingest, ingest_each
from traceanalyzer.ingest.registry import find_sources
from traceanalyzer.ingest.storing import ingest_to_store
from traceanalyzer.model.trace import Trace

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing is forked")
TRACE = FIXTURES / "kineto/clean_infer.slow.pt.trace.json.gz"
DATABASE = FIXTURES / "nsys/h2d_pageable.slow.sqlite"
JOB = FIXTURES / "multirank/gpu_straggler.slow"
RANKS = sorted(path.name for path in JOB.iterdir())


@pytest.fixture(autouse=True)
def two_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "cpus", lambda: 2)
    monkeypatch.setattr("traceanalyzer.workers.cpus", lambda: 2)
    for module in (ahead, forks):
        monkeypatch.setattr(module, "may_fork", lambda: True)


@pytest.mark.parametrize("path", [TRACE, DATABASE], ids=["kineto", "nsys"])
def test_what_a_copy_reads_is_what_is_in_the_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with read_ahead([path], How()) as found, monkeypatch.context() as here:
        here.setattr(pipeline, "read_file", None)  # Nothing is read here.
        assert found and found.traces
        (trace,) = found.traces()
    assert_same(trace, ingest([path]))


def assert_same(trace: Trace, expected: Trace) -> None:
    assert trace.inputs == expected.inputs and trace.tables.keys() == expected.tables.keys()
    for name, table in expected.tables.items():
        assert trace.table(name).equals(table), name
        assert [c.num_chunks for c in trace.table(name).columns] == [c.num_chunks for c in table.columns], name


@pytest.mark.parametrize("how", ["as it should", "killed", "no copy to have"])
def test_several_are_read_by_several(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each copy begins with a file of its own, and this process takes what is left when it asks."""
    here, read, read_file = os.getpid(), list[str](), pipeline.read_file

    def reads(source: Source, *more: Any) -> Any:
        if os.getpid() == here:
            read.append(source.path.name)
        elif how == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        return read_file(source, *more)

    monkeypatch.setattr(pipeline, "read_file", reads)
    if how == "no copy to have":
        monkeypatch.setattr(forks, "may_fork", lambda: False)
    done: list[None] = []
    with read_ahead([JOB], How()) as found:
        assert found and found.traces and not read
        traces = found.traces(lambda: done.append(None))
    assert len(done) == len(RANKS)
    assert (RANKS[0] not in read) if how == "as it should" else sorted(read) == RANKS
    for trace, expected in zip(traces, ingest_each(find_sources([JOB])), strict=True):
        assert_same(trace, expected)


def test_one_of_several_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    for name in RANKS:
        shutil.copy(JOB / name, tmp_path)
    (tmp_path / "rank9.sqlite").write_bytes(DATABASE.read_bytes()[:8192])
    with read_ahead([tmp_path], How()) as found:
        assert found and found.traces
        with pytest.raises(InputError, match=r"rank9\.sqlite"):
            found.traces()


@pytest.mark.parametrize(
    ("jobs", "sizes", "role", "expected"),
    [
        (None, [1, 1, 1], "trace", 3),
        (None, [1] * 9, "trace", 4),
        (2, [1] * 9, "trace", 2),
        (8, [1] * 9, "trace", 8),
        (8, [1, 1], "trace", 2),
        (1, [1, 1], "trace", 1),
        (8, [1], "trace", 1),
        (8, [1, 1], "evidence", 1),
        (8, [ahead.TOGETHER_BYTES - 1, 1], "trace", 1),
        (None, [40 << 20, 1 << 20], "trace", 1),  # of one, unpacked, all there is to share is made
    ],
)
def test_how_many_read(
    jobs: int | None, sizes: list[int], role: str, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("traceanalyzer.workers.cpus", lambda: 4)
    monkeypatch.setattr(registry, "kind_of", lambda _: SimpleNamespace(role=role))
    (one,) = find_sources([TRACE])
    assert readers([replace(one, size=size) for size in sizes], jobs) == expected


@pytest.mark.parametrize(
    ("paths", "how"),
    [
        ([TRACE, "no such file"], How()),
        (["-"], How()),
        (["s3://bucket/trace.json"], How()),
        ([TRACE], How(jobs=1)),
        ([TRACE], How(store=Path("kept"))),
        ([TRACE], How(scheduler="local")),
    ],
)
def test_no_files_of_this_machine(paths: list[Path | str], how: How) -> None:
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


@pytest.mark.parametrize("more", [[], [TRACE]], ids=["alone", "beside a trace"])
def test_evidence_is_found_and_not_read(more: list[Path]) -> None:
    path = next((FIXTURES / "evidence").rglob("*.csv"))
    with read_ahead([*more, path], How()) as found:
        assert found and found.found and found.traces is None


def test_a_store_is_no_folder_of_traces(tmp_path: Path) -> None:
    ingest_to_store([TRACE], tmp_path / "store", "1")
    with read_ahead([tmp_path / "store"], How()) as found:
        assert found is None


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


@pytest.mark.parametrize("path", [TRACE, DATABASE, JOB], ids=["kineto", "nsys", "job"])
def test_one_process_says_the_same(path: Path) -> None:
    """Where there are two CPUs, the others read ahead."""
    command = [sys.executable, "-m", "traceanalyzer", "analyze", str(path), "--format", "json"]
    assert (
        len(
            {
                subprocess.run([*command, *more], capture_output=True, check=True).stdout
                for more in ([], ["--jobs", "1"], ["--jobs", "3"])
            }
        )
        == 1
    )


def test_a_copy_that_is_stopped_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    begun = tmp_path / "begun"

    def reads_on(*_: object) -> None:
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(DATABASE, folder)
            begun.touch()
            time.sleep(60)

    monkeypatch.setattr(pipeline, "read_file", reads_on)
    with read_ahead([TRACE], How()):
        while not begun.exists():
            time.sleep(0.01)
        assert list(tmp_path.glob("*/*/*.sqlite"))
    assert list(tmp_path.iterdir()) == [begun]
