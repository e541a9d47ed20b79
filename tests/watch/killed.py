"""`python -m tests.watch.killed FOLDER KILLS SEED`: captures land in a folder while a watcher of it is killed again and again, and one
that nobody kills ends the work.

Each watcher and all of its processes are a copy of this one, in which everything is imported already: so what is killed is work, hardly
ever the start of Python. A watcher that ends before it is killed does not count: the next ones are killed sooner, and each one that was
killed gives the next one a little more time. So the moments lie all over what a watcher does, however fast the machine is.
"""

from __future__ import annotations

import os
import pkgutil
import random
import signal
import sys
import time
from contextlib import suppress
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path

import traceanalyzer
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


def work(folder: Path, kills: int, seed: int) -> int:
    """How many captures landed: one whenever all are taken, and some meanwhile."""
    most_s = took(apart(folder / "first", 1))
    scene, moments = apart(folder / "killed", 1), random.Random(seed)
    met, captures = 0, 1
    while met < kills:
        at_work = killed(scene, moments.uniform(0, most_s))
        met += at_work
        most_s *= 1.1 if at_work else 0.6
        if not at_work or met % 15 == 0:
            land(scene, captures)
            captures += 1
    took(scene)
    took(apart(folder / "alone", captures))
    return captures


def apart(folder: Path, captures: int) -> Scene:
    """A scene in which captures have landed."""
    scene = Scene(folder)
    for number in range(captures):
        land(scene, number)
    return scene


def import_all() -> None:
    """All modules, as far as what they need is there."""
    for one in pkgutil.walk_packages(traceanalyzer.__path__, "traceanalyzer."):
        if not one.name.endswith("__main__"):
            with suppress(ImportError):
                import_module(one.name)


if __name__ == "__main__":
    import_all()
    watching.get_context = lambda _: get_context("fork")  # type: ignore[assignment]
    print(work(Path(sys.argv[1]), *map(int, sys.argv[2:])))
