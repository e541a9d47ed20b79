"""Every write, rename and removal fails in turn, and every one is the last before a kill: old or new, whole, and never neither."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import traceanalyzer as ta
from tests.support.faults import Disk, failing
from tests.support.kineto import KinetoTrace
from tests.test_cli import run
from tests.test_store import contents
from traceanalyzer.model.stores.store import read_manifest

ERRORS = (errno.ENOSPC, errno.EIO, errno.EACCES)


def trace_of(length: int) -> KinetoTrace:
    made = KinetoTrace()
    for step in range(6):
        made.op(step * 100, step * 100 + length, launch=(step * 100 - 20, step * 100 - 10))
    return made


class Scene:
    """A folder with a trace and an output that is there already, what a command makes of it, and how it looks afterwards."""

    def __init__(self, folder: Path, command: list[str], output: str, earlier: Callable[[Path, str], None]) -> None:
        self.folder, self.command, self.output = folder, command, output
        self.start = folder / "start"
        self.start.mkdir(parents=True)
        trace_of(30).write(self.start / "t.json")
        earlier(self.start, output)
        self.before = content_of(self.start / output)
        self.after: object = None
        self.made: object = None

    def args(self, folder: Path) -> list[str]:
        return [part.format(folder) for part in self.command]

    def check(self, capsysbinary, folder: Path, what: str) -> None:
        """Old or new, the input as it was, and the same command again ends well and leaves nothing behind."""
        assert (folder / "t.json").read_bytes() == (self.start / "t.json").read_bytes(), what
        assert content_of(folder / self.output) in (self.before, self.after), what
        code, _, err = run(capsysbinary, *self.args(folder))
        assert code == 0, (what, err)
        assert bytes_of(folder / self.output) == self.made, what
        assert sorted(path.name for path in folder.iterdir()) == sorted([self.output, "t.json"]), what


def bytes_of(output: Path) -> object:
    if output.is_file():
        return output.read_bytes()
    read_manifest(output)  # It names the traces by their paths, which differ.
    return {name: digest for name, digest in contents(output).items() if name != "manifest.json"}


def content_of(output: Path) -> object:
    """What a reader finds there: the figures of a store, or the content of a file."""
    if output.is_file():
        return output.read_bytes()
    trace = ta.load(output)
    return [(name, table.to_pylist()) for name, table in trace.tables.items()]


def old_store(folder: Path, output: str) -> None:
    from traceanalyzer.ingest.storing import ingest_to_store

    other = trace_of(20).write(folder / "other.json")
    ingest_to_store([other], folder / output, "test")
    other.unlink()


def old_file(folder: Path, output: str) -> None:
    (folder / output).write_bytes(b"the old one")


SCENES = {
    "ingest": (["ingest", "{}/t.json", "-o", "{}/out"], old_store),
    "output": (["analyze", "{}/t.json", "-f", "csv", "-o", "{}/out"], old_file),
    "baseline": (["baseline", "save", "{}/t.json", "--anyway", "-o", "{}/out"], old_file),
}


@pytest.fixture(params=SCENES)
def scene(request, tmp_path, capsysbinary) -> Scene:
    command, earlier = SCENES[request.param]
    made = Scene(tmp_path / "scene", command, "out", earlier)
    done = Path(shutil.copytree(made.start, tmp_path / "done"))
    assert run(capsysbinary, *made.args(done))[0] == 0
    made.after, made.made = content_of(done / "out"), bytes_of(done / "out")
    assert made.after != made.before
    return made


def test_every_call_that_fails_leaves_old_or_new(scene, tmp_path, capsysbinary):
    reached = True
    at = 0
    while reached:
        at += 1
        folder = Path(shutil.copytree(scene.start, tmp_path / "copy"))
        failed: list[str] = []

        def fail(what: str, at: int = at, failed: list[str] = failed) -> None:
            failed.append(what)
            number = ERRORS[at % len(ERRORS)]
            raise OSError(number, os.strerror(number))

        with failing(Disk(folder, at, fail)):
            code, _, err = run(capsysbinary, *scene.args(folder))
        what = f"call {at}: {failed}: {err}"
        reached = bool(failed)
        assert code in (0, 2), what
        assert "fault in traceanalyzer" not in err and "Traceback" not in err, what
        if code == 2:
            assert sum(line.startswith("error: ") for line in err.splitlines()) == 1, what
            assert "cannot be written" in err, what
            if not (folder / "out").is_dir():
                assert (folder / "out").read_bytes() == scene.before, what
        scene.check(capsysbinary, folder, what)
        shutil.rmtree(folder)
    assert at > 5


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_every_call_may_be_the_last(scene, capsysbinary):
    command = [sys.executable, "-m", "tests.support.kills", str(scene.folder), *scene.command]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    copies = [path for path in scene.folder.iterdir() if path.name.isdigit()]
    assert len(copies) > 5
    for folder in sorted(copies, key=lambda path: int(path.name)):
        scene.check(capsysbinary, folder, f"killed at call {folder.name}")
