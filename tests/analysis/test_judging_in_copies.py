"""Ranks in memory are read and judged by copies of the process, one a CPU: the same bytes as in one process alone."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.analysis.test_shared_gpus import EPOCH, MS, export
from tests.cli.test_cli import run
from tests.support.catalogs import tables_made
from tests.support.places import FIXTURES
from traceanalyzer import forks, workers
from traceanalyzer.analysis import opening
from traceanalyzer.ingest import ahead

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing is forked")


@pytest.fixture
def copies(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """One entry for each copy that was made, on a machine with four CPUs."""
    made: list[None] = []
    fork = os.fork

    def counted() -> int:
        made.append(None)
        return fork()

    monkeypatch.setattr(os, "fork", counted)
    for module in (forks, ahead, opening):
        monkeypatch.setattr(module, "may_fork", lambda: True)
    for module in (workers, ahead):
        monkeypatch.setattr(module, "cpus", lambda: 4)
    return made


def shared_gpu(folder: Path) -> Path:
    """Of two ranks each has a part of the one GPU, which is told of neither by its own file."""
    folder.mkdir()
    export(folder, 0, [(at * MS, (at + 10) * MS) for at in range(1, 100, 20)])
    export(folder, 1, [(at * MS, (at + 6) * MS) for at in range(13, 100, 20)], at=EPOCH)
    return folder


@pytest.mark.parametrize("job", ["straggler", "shared GPU"])
@pytest.mark.parametrize("command", ["analyze", "report"])
def test_the_same_as_alone(
    job: str, command: str, tmp_path: Path, copies: list[None], capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    folder = FIXTURES / "multirank" / "gpu_straggler.slow" if job == "straggler" else shared_gpu(tmp_path / "job")
    page = tmp_path / "page.html"
    how = ["-f", "json"] if command == "analyze" else ["-o", page]

    def made(*more: object) -> tuple[object, bytes]:
        said = run(capsysbinary, command, folder, *how, *more)
        return said, page.read_bytes() if command == "report" else b""

    alone = made("--jobs", 1)
    assert not copies
    assert made() == alone
    # They are read by some, and judged by others.
    assert len(copies) == 2 * (3 if job == "straggler" else 1)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The derived tables that this process made; every trace passes for a large one, and is read by this process."""
    monkeypatch.setattr("traceanalyzer.catalog.catalog._LARGE", 0)
    monkeypatch.setattr("traceanalyzer.ingest.ahead.cpus", lambda: 1)
    for module in ("traceanalyzer.analysis", "traceanalyzer.analysis.report_tables"):
        monkeypatch.setattr(f"{module}.cpus", lambda: 2)
    return tables_made(monkeypatch)


@pytest.mark.parametrize("name", ["dataloader.slow.pt.trace.json.gz", "h2d_pageable.slow.sqlite"])
def test_the_page_of_a_large_trace_is_made_by_two(
    name: str,
    tmp_path: Path,
    copies: list[None],
    made: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    """A copy makes its slow tables, which the trees of calls are drawn from: the same page as by one process alone, also where that
    copy is killed."""
    (trace,) = FIXTURES.rglob(name)
    page = tmp_path / "page.html"

    def written(*more: str) -> tuple[object, bytes, int]:
        made.clear()
        said = run(capsysbinary, "report", trace, "-o", page, *more)
        assert said[0] == 0
        return said, page.read_bytes(), made.count("call_trees") + made.count("operator_stats")

    alone = written("--jobs", "1")
    assert not copies and alone[2] == 2
    assert written() == (*alone[:2], 0)
    monkeypatch.setattr(forks._Copy, "brought", lambda _: ())
    assert written() == alone
    assert len(copies) == 2


@pytest.mark.parametrize("command", ["analyze", "baseline save"])
def test_a_large_trace_of_several_gpus_is_judged_by_two(
    command: str,
    tmp_path: Path,
    copies: list[None],
    made: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    """A copy makes tables that nothing is predicted from: the same as by one process alone, also where that copy is killed."""
    trace, file = FIXTURES / "nsys" / "comm_not_overlapped.slow.4gpu.sqlite.xz", tmp_path / "result"
    how = ["-f", "json"] if command == "analyze" else ["-o", file]

    def judged(*more: str) -> tuple[object, bytes, int]:
        made.clear()
        file.unlink(missing_ok=True)
        said = run(capsysbinary, *command.split(), trace, *how, *more)
        assert made.count("gaps") == 1
        return said, file.read_bytes() if file.exists() else b"", made.count("path_hops")

    alone = judged("--jobs", "1")
    assert not copies and alone[2] == 1
    assert judged() == (*alone[:2], 0)
    monkeypatch.setattr(forks._Copy, "brought", lambda _: ())
    assert judged() == alone
    assert len(copies) == 2
