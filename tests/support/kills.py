"""`python -m tests.support.kills SCENE COMMAND...`: a command is killed at each call by which it changes the disk.

SCENE/0, SCENE/1, ... become copies of SCENE/start in which it ended at its first call, its second, and so on; in the last one it ran to
its end. `{}` in the command stands for the copy.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import traceanalyzer.analysis.baselines
import traceanalyzer.analysis.captures
import traceanalyzer.ingest.storing
import traceanalyzer.render.formats  # noqa: F401  imported once, for all copies
from tests.support.faults import Disk, failing
from traceanalyzer.cli.app import main

_KILLED = 99


def _run(folder: Path, at: int, command: list[str]) -> None:
    sys.argv = ["traceanalyzer", *(part.format(folder) for part in command)]
    with failing(Disk(folder, at, lambda _: os._exit(_KILLED))):
        try:
            main()
        except SystemExit as end:
            sys.stderr.flush()
            os._exit(int(end.code or 0))
    os._exit(0)


def kill_everywhere(scene: Path, command: list[str]) -> None:
    at = 0
    while True:
        folder = scene / str(at)
        shutil.copytree(scene / "start", folder)
        child = os.fork()
        if child == 0:
            _run(folder, at + 1, command)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if code != _KILLED:
            sys.exit(code)
        at += 1


if __name__ == "__main__":
    kill_everywhere(Path(sys.argv[1]), sys.argv[2:])
