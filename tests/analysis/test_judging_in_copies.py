"""Ranks in memory are judged by copies of the process, one a CPU: the same bytes as in one process alone."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.analysis.test_shared_gpus import EPOCH, MS, export
from tests.cli.test_cli import run
from tests.support.places import FIXTURES
from traceanalyzer import forks

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
    monkeypatch.setattr(forks, "may_fork", lambda: True)
    monkeypatch.setattr("traceanalyzer.workers._cpus", lambda: 4)
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
    assert len(copies) == (3 if job == "straggler" else 1)
