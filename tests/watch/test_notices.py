"""Telling somebody of a verdict: once, also where nobody heard at first."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.history.nights import Case, entries_of, host_longer, other_gpu
from tests.support.captures import capture
from tests.watch.scene import Scene
from traceanalyzer.history.shelf import Shelf
from traceanalyzer.result.history.entry import Entry
from traceanalyzer.result.history.verdicts import HARDWARE, REAL
from traceanalyzer.watch.notices import Notices
from traceanalyzer.watch.watching import BLOCKED, KNOWN

CHANGED = Case("host", REAL, 0.08, host_longer, nights=20, change_at=12)
MOVED = Case("other GPU", HARDWARE, 0.2, other_gpu, nights=20, change_at=12)
LISTENS = "import sys; open(sys.argv[1], 'ab').write(sys.stdin.buffer.read() + b'\\n')"


@dataclass
class Heard:
    """What a server was told; it answers `code`."""

    url: str
    code: int = 200
    bodies: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)


@pytest.fixture
def server() -> Iterator[Heard]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            heard.bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            heard.keys.append(self.headers["Idempotency-Key"])
            self.send_response(heard.code)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as listening:
        heard = Heard(f"http://127.0.0.1:{listening.server_port}/hook")
        thread = threading.Thread(target=listening.serve_forever)
        thread.start()
        yield heard
        listening.shutdown()
        thread.join()


def fill(scene: Scene, entries: list[Entry]) -> None:
    shelf = Shelf(scene.history)
    for entry in entries:
        shelf.add(entry, capture())


def command(scene: Scene, verdicts: tuple[str, ...] = (REAL, HARDWARE)) -> Notices:
    return Notices([sys.executable, "-c", LISTENS, str(scene.folder / "heard")], None, verdicts)


def heard(folder: Path) -> list[dict[str, Any]]:
    place = folder / "heard"
    return [json.loads(line) for line in place.read_text().splitlines()] if place.exists() else []


def test_a_command_hears_of_a_verdict_once(scene: Scene) -> None:
    entries = entries_of(CHANGED, 0)
    fill(scene, entries[:8])
    notices = command(scene)
    scene.look(notices=notices)
    assert heard(scene.folder) == []
    for end in range(9, 21):
        fill(scene, entries[:end])
        assert scene.look(notices=notices) == KNOWN
    (told,) = heard(scene.folder)
    assert told["verdict"] == REAL
    assert told["commits"] == ["c0011", "c0012"]
    assert told["share"] == pytest.approx(0.08, abs=0.02)
    assert told["text"].startswith("all captures: ")
    assert told["series"] == {}


def test_a_verdict_that_nobody_asked_for_is_not_told(scene: Scene) -> None:
    fill(scene, entries_of(MOVED, 0))
    scene.look(notices=command(scene, (REAL,)))
    assert heard(scene.folder) == []
    scene.look(notices=command(scene, (HARDWARE,)))
    assert [one["verdict"] for one in heard(scene.folder)] == [HARDWARE]


def test_a_webhook_hears_of_a_verdict_once(scene: Scene, server: Heard) -> None:
    fill(scene, entries_of(CHANGED, 0))
    notices = Notices([], server.url, [REAL])
    watcher = scene.watcher(notices=notices)
    for _ in range(2):
        assert watcher.look() == KNOWN
    assert scene.look(notices=notices) == KNOWN
    (told,) = server.bodies
    assert server.keys == [told["id"]]
    assert (told["verdict"], told["commits"]) == (REAL, ["c0011", "c0012"])


def test_what_nobody_heard_is_told_again(scene: Scene, server: Heard, capsys: pytest.CaptureFixture[str]) -> None:
    fill(scene, entries_of(CHANGED, 0))
    server.code = 503
    watcher = scene.watcher(notices=Notices([], server.url, [REAL]))
    assert watcher.look() == BLOCKED
    assert "503" in capsys.readouterr().err
    assert len(scene.lines()) == 20  # What does not depend on it is up to date.
    server.code = 200
    assert watcher.look() == KNOWN
    assert watcher.look() == KNOWN
    assert len(server.bodies) == 2
    assert server.keys[0] == server.keys[1]


def test_a_command_that_fails_is_run_again(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    fill(scene, entries_of(CHANGED, 0))
    assert scene.look(notices=Notices([sys.executable, "-c", "raise SystemExit(3)"], None, [REAL])) == BLOCKED
    assert "exit code 3" in capsys.readouterr().err
    assert scene.look(notices=Notices(["/no/such/command"], None, [REAL])) == BLOCKED
    assert scene.look(notices=command(scene)) == KNOWN
    assert len(heard(scene.folder)) == 1
