"""Files are opened once, and closed once."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from traceanalyzer import files
from traceanalyzer.files import open_regular


@contextmanager
def stopped(number: int) -> Iterator[None]:
    """Within it, `files`, and what it calls of `os`, is stopped before its instruction of that number."""
    left = number

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal left
        if frame.f_code.co_filename not in (files.__file__, os.fdopen.__code__.co_filename):
            return None
        frame.f_trace_opcodes = True
        left -= event == "opcode"
        if left == 0:
            raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(None)


def test_who_is_stopped_while_a_file_is_opened_hears_of_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"content")
    for number in range(1, 1000):
        try:
            with stopped(number):
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
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="no regular file"):
        open_regular(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "nothing")
    with pytest.raises(OSError, match="link"):
        open_regular(tmp_path / "link", links=False)
