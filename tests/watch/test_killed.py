"""A watcher that is killed at any moment loses nothing and doubles nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.watch.scene import Scene
from traceanalyzer.history.shelf import Shelf

KILLS, SEED = 50, 22


def files(folder: Path) -> dict[str, bytes]:
    """All that a watcher keeps but its notes, and the log, whose lines are in the order in which they were written."""
    kept = [one for one in folder.rglob("*") if one.is_file() and ".watch" not in one.parts]
    return {str(one.relative_to(folder)): one.read_bytes() for one in kept if one.name != "captures.jsonl"}


def test_a_watcher_that_is_killed_at_fifty_moments(tmp_path: Path) -> None:
    """What is there in the end is, to the byte, what one leaves that nobody killed."""
    command = [sys.executable, "-m", "tests.watch.killed", str(tmp_path), str(KILLS), str(SEED)]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    killed, alone = Scene(tmp_path / "killed"), Scene(tmp_path / "alone")
    names = [f"night{number:02d}.json" for number in range(int(done.stdout.split()[-1]))]
    assert [entry.name for entry in killed.entries()] == names
    assert Shelf(killed.history).read().damaged == []
    assert [line["name"] for line in sorted(killed.lines(), key=lambda line: line["time_ns"])] == names
    assert sorted(killed.log.read_bytes().splitlines()) == sorted(alone.log.read_bytes().splitlines())
    assert killed.pages() == {f"{entry.id}.html" for entry in killed.entries()}
    assert all(page.read_bytes().rstrip().endswith(b"</html>") for page in killed.reports.glob("*.html"))
    one, other = files(killed.folder), files(alone.folder)
    assert one.keys() == other.keys()
    assert [name for name in one if one[name] != other[name]] == []
