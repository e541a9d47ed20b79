"""Files are opened once, and closed once."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import pytest

from traceanalyzer import files
from traceanalyzer.files import open_regular


class _Stopped:
    """Within it, `files`, and what it calls of `os`, is stopped before its instruction of that number."""

    def __init__(self, number: int) -> None:
        self._left = number

    def __enter__(self) -> None:
        sys.settrace(self._trace)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        sys.settrace(None)

    def _trace(self, frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code.co_filename not in (files.__file__, os.fdopen.__code__.co_filename):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            self._left -= 1
            if self._left == 0:
                raise KeyboardInterrupt
        return self._trace


def test_who_is_stopped_while_a_file_is_opened_hears_of_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"content")
    for number in range(1, 1000):
        try:
            with _Stopped(number):
                stream = open_regular(file)
        except KeyboardInterrupt:
            continue
        with stream:
            assert stream.read() == b"content"
        break
    assert 50 < number < 999


def test_only_files_are_opened(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        open_regular(tmp_path)
    (tmp_path / "link").symlink_to(tmp_path / "nothing")
    with pytest.raises(OSError, match="link"):
        open_regular(tmp_path / "link", links=False)
