"""`python -m tests.watch.killed FOLDER CAPTURES KILLS SEED`: captures land in a folder while a watcher of it is killed again and again, and
one that nobody kills ends the work.

Each watcher and all of its processes are a copy of this one, in which everything is imported already: so what is killed is work, hardly
ever the start of Python. First a watcher takes the first capture in a folder beside it, which says how long that takes; the moments of
the kills are spread over half as long again.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from multiprocessing import get_context
from pathlib import Path

import traceanalyzer.analysis.captures
import traceanalyzer.watch.taking  # noqa: F401  imported once, for all copies
from tests.watch.scene import Scene, trace
from traceanalyzer.cli.app import main
from traceanalyzer.watch import watching


def begun(scene: Scene) -> int:
    """The process of a watcher that ends when all is taken, and leads a group of its own."""
    child = os.fork()
    if child:
        return child
    os.setsid()
    places = ["--history", scene.history, "--reports", scene.reports, "--metrics", scene.metrics, "--log", scene.log]
    given = [scene.landing, *places, "--once", "--settle", "0", "--jobs", "1", "--label", "commit=c1"]
    sys.argv = ["traceanalyzer", "watch", *map(str, given)]
    try:
        main()
    except SystemExit as end:
        os._exit(int(end.code or 0))
    os._exit(0)


def took(scene: Scene) -> float:
    """Seconds that a watcher needs for what lies there."""
    start = time.monotonic()
    if os.waitpid(begun(scene), 0)[1]:
        sys.exit("a watcher that nobody killed failed")
    return time.monotonic() - start


def killed(scene: Scene, after_s: float) -> bool:
    """Whether a watcher was still at work when it was killed."""
    child = begun(scene)
    time.sleep(after_s)
    try:
        os.killpg(child, signal.SIGKILL)
    except ProcessLookupError:  # It has not made its group yet.
        os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def land(scene: Scene, number: int) -> None:
    scene.land(f"night{number:02d}.json", trace(number, 300 + number % 3))


def work(folder: Path, captures: int, kills: int, seed: int) -> int:
    """How many watchers were killed at work."""
    (folder / "alone").mkdir()
    alone, scene, random_ = Scene(folder / "alone"), Scene(folder), random.Random(seed)
    land(alone, 0)
    whole_s = took(alone)
    met = 0
    for number in range(kills):
        if number % (kills // captures) == 0 and number // (kills // captures) < captures:
            land(scene, number // (kills // captures))
        met += killed(scene, random_.uniform(0, 1.5 * whole_s))
    took(scene)
    for number in range(1, captures):
        land(alone, number)
    took(alone)
    return met


if __name__ == "__main__":
    watching.get_context = lambda _: get_context("fork")  # type: ignore[assignment]
    print(work(Path(sys.argv[1]), *map(int, sys.argv[2:])))
