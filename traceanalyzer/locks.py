"""Locks on files: the system takes them from a process that ends, however it ends."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

try:
    import fcntl
except ImportError:  # no POSIX system
    fcntl = None  # type: ignore[assignment]

_MOST_SAID = 300


class HeldError(Exception):
    """A lock that another process holds: the text says which, and since when."""


def lock(file: int) -> bool:
    """Whether the open file is this process's alone now, until it is closed. Raises OSError where the file system knows no locks."""
    if fcntl is None:
        raise OSError("no locks")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def hold_lock(path: Path) -> Iterator[None]:
    """Hold the lock `path`, a file that is there as long as it is held. Its folder is made.

    Where the file system knows no locks, the file itself stands for one, and a process that is killed leaves it. Raises HeldError when
    another process holds it, and OSError.
    """
    file = _taken(path)
    try:
        yield
    finally:
        with suppress(OSError):
            path.unlink()
        os.close(file)


def _taken(path: Path) -> int:
    while True:
        file = _opened(path)
        try:
            _take(path, file)
            if os.fstat(file).st_nlink:
                os.ftruncate(file, 0)
                os.pwrite(file, _who().encode(), 0)
                return file
        except BaseException:
            os.close(file)
            raise
        os.close(file)  # Its holder has removed it in the meantime.


def _opened(path: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        file = os.open(path, flags, 0o666)
    except FileNotFoundError:  # Who held it has just removed the folder.
        path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(path, flags, 0o666)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(f"{path} is not a regular file")
    return file


def _take(path: Path, file: int) -> None:
    said = os.pread(file, _MOST_SAID, 0).decode(errors="replace")
    try:
        free, hint = lock(file), ""
    except OSError:
        free, hint = not said, f" (if it is gone, remove {path})"
    if not free:
        raise HeldError((said or "another process") + hint)


def _who() -> str:
    return f"process {os.getpid()} on {socket.gethostname()} since {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
