"""The bar that counts ranks on a terminal."""

from __future__ import annotations

import io
import sys
import threading

import pytest

from traceanalyzer.cli.common import counting


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
