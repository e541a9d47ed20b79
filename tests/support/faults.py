"""Disks that fail: every single call by which a program changes what is on a disk can be made to fail, or to be its last one.

Calls are counted as they come, wherever they stand: Python itself tells of them (its audit events); what Arrow writes, and what only
empties a buffer, is told of by wrappers.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

_CHANGES = ("os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.chmod", "os.truncate")
_TO_WRITE = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


class Disk:
    """The disk below a folder. `at` is the number of the call at which `fail` is called with what it is; `calls` counts them."""

    def __init__(self, folder: Path, at: int, fail: Callable[[str], None]) -> None:
        self.folder, self.at, self.fail, self.calls = str(folder), at, fail, 0

    def met(self, what: str) -> None:
        self.calls += 1
        if self.calls == self.at:
            self.fail(what)

    def heard(self, event: str, args: tuple[Any, ...]) -> None:
        if event == "open":
            path, mode, flags = args
            changes = bool(flags & _TO_WRITE) if mode is None else not set("wxa+").isdisjoint(mode)
            if changes and isinstance(path, str | bytes) and os.fsdecode(path).startswith(self.folder):
                self.met(f"open {path!r}")
        elif event in _CHANGES:
            paths = [os.fsdecode(one) for one in args if isinstance(one, str | bytes | os.PathLike)]
            if any(self.folder in path for path in paths):
                self.met(f"{event} {paths}")


_disk: Disk | None = None
_listening = False


def _listen(event: str, args: tuple[Any, ...]) -> None:
    if _disk is not None:
        _disk.heard(event, args)


@contextmanager
def failing(disk: Disk) -> Iterator[Disk]:
    """The disk fails meanwhile."""
    global _disk, _listening  # noqa: PLW0603  a hook cannot be taken away again
    if not _listening:
        sys.addaudithook(_listen)
        _listening = True
    undo = [_told(os, "fsync", disk), _told(os, "pwrite", disk)]
    undo += [_told(pq.ParquetWriter, name, disk) for name in ("__init__", "write_table", "close")]
    undo += [_told(Path, "write_bytes", disk), _told_of_temporary(disk)]
    _disk = disk
    try:
        yield disk
    finally:
        _disk = None
        for one in undo:
            one()


def _told(owner: Any, name: str, disk: Disk) -> Callable[[], None]:
    before = getattr(owner, name)

    def told(*args: Any, **kwargs: Any) -> Any:
        disk.met(name)
        return before(*args, **kwargs)

    setattr(owner, name, told)
    return lambda: setattr(owner, name, before)


def _told_of_temporary(disk: Disk) -> Callable[[], None]:
    """Writes to temporary files: half of each is on the disk when it fails."""
    before = tempfile.NamedTemporaryFile

    def made(*args: Any, **kwargs: Any) -> Any:
        file = before(*args, **kwargs)
        write = file.write

        def told(content: bytes) -> int:
            write(content[: len(content) // 2])
            file.flush()
            disk.met("write")
            return int(write(content[len(content) // 2 :]))

        file.write = told
        return file

    tempfile.NamedTemporaryFile = made  # type: ignore[assignment,misc]
    return lambda: setattr(tempfile, "NamedTemporaryFile", before)
