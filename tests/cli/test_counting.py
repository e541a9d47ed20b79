"""The bars on a terminal: of ranks that are counted, and of bytes that are read."""

from __future__ import annotations

import io
import sys
import threading

import pytest

from tests.support.places import FIXTURES
from traceanalyzer.cli import common
from traceanalyzer.cli.common import counting, reading
from traceanalyzer.ingest.registry import find_sources


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_it_shows_each_and_has_no_thread_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside another thread the process would make no copies of itself, and judge ranks one after another."""
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    monkeypatch.setenv("TERM", "xterm")
    before = threading.enumerate()
    with counting("judging ranks", 3) as done:
        for number in range(1, 4):
            done()
            assert f"{number}/3" in terminal.getvalue()
        assert threading.enumerate() == before


def test_bytes_are_shown_without_a_thread_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    monkeypatch.setattr(common, "_REFRESH_S", 0)
    monkeypatch.setenv("TERM", "xterm")
    before = threading.enumerate()
    (source,) = find_sources([FIXTURES / "kineto/clean_infer.slow.pt.trace.json.gz"])
    with reading() as progress:
        assert progress
        heard = progress(source)
        for share in (3, 2):
            heard(source.size // share)
        assert threading.enumerate() == before and source.path.name[:9] in terminal.getvalue()
