"""Standard streams that can be trusted: each number is taken, and what cannot be written is an error, also at the end."""

from __future__ import annotations

import errno
import io
import os
import sys
from contextlib import suppress
from typing import Any

from traceanalyzer.errors import TraceAnalyzerError


class ReaderGoneError(Exception):
    """Nobody reads standard output any more, such as `| head` once it has its lines. That is no error: the rest is not wanted."""


class NotWrittenError(TraceAnalyzerError):
    """Results that did not reach standard output, all or in part."""


class _Out(io.FileIO):
    """Standard output as a file, with errors that no library takes for its own."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data) or 0
        except BrokenPipeError:
            raise ReaderGoneError from None
        except OSError as error:
            why = "it is closed" if error.errno == errno.EBADF else error.strerror
            raise NotWrittenError(f"standard output: cannot be written ({why})") from error


def open_standard_streams() -> None:
    """Call it before any file is opened: a stream that was closed has a number that the next file would get, a user's output too.

    In place of a closed standard output is one that cannot be written to, in place of standard error one that forgets.
    """
    for number, flags in enumerate((os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            with suppress(OSError):
                os.open(os.devnull, flags)  # It gets the lowest number that is free, which is this one.
    if sys.stdin is None:
        sys.stdin = open(0, closefd=False)  # noqa: SIM115
    # Texts in another encoding than UTF-8 may lack a letter; better an escape than no text.
    out = getattr(sys.stdout, "encoding", None) or "utf-8"
    sys.stdout = io.TextIOWrapper(io.BufferedWriter(_Out(1, "w", closefd=False)), out, "backslashreplace")
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115


def end_standard_streams() -> None:
    """Write out what is still held. Raises NotWrittenError."""
    with suppress(OSError, ValueError):
        sys.stderr.flush()
    with suppress(ReaderGoneError, ValueError):  # A ValueError: closed by somebody who had written all.
        sys.stdout.flush()
