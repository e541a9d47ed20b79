"""What reading and writing files needs beside the standard library.

Places that are written to are resolved once, so that what was checked is what is written; a file is there whole or not at all.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from traceanalyzer.errors import ConfigError, InputError
from traceanalyzer.locks import lock

# A name may have 255 bytes; what is added must fit too.
_KEPT_OF_NAME = 40
_UNFINISHED = ".unfinished"


def resolve_place(path: Path) -> Path:
    """The place that a path leads to, through all links and `..`, whether something is there or not; `~` is the user's home.

    Raises InputError for a loop of links, and for what no path can be.
    """
    try:
        place = Path(os.path.realpath(os.path.expanduser(path)))  # noqa: PTH111  Path.expanduser fails for unknown users
        loop = stat.S_ISLNK(place.lstat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return place
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path}: cannot be used ({getattr(error, 'strerror', error)}); choose another name"
        ) from error
    if loop:
        raise InputError(f"{path}: a loop of links; choose another name")
    return place


def status_of(path: Path) -> os.stat_result | None:
    """What the system says of a file or folder, through links; None where nothing is, or where one may not look."""
    try:
        return path.stat()
    except (OSError, ValueError):
        return None


def is_folder(path: Path) -> bool:
    """Whether a folder is there, as far as one may look."""
    status = status_of(path)
    return status is not None and stat.S_ISDIR(status.st_mode)


def open_regular(path: Path, links: bool = True, pipes: bool = False) -> IO[bytes]:
    """Open a regular file for reading, or what `links` lead to, or one of the `pipes`.

    Raises OSError, also for pipes, devices and sockets: to open one could wait without end.
    """
    flags = 0 if links else getattr(os, "O_NOFOLLOW", 0)
    for name in ("O_NONBLOCK", "O_NOCTTY", "O_BINARY"):
        flags |= getattr(os, name, 0)

    def opened(name: str, _: int) -> int:
        file = os.open(name, os.O_RDONLY | flags)
        try:
            kind = os.fstat(file).st_mode
            if stat.S_ISDIR(kind):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
            if stat.S_ISFIFO(kind) and pipes:
                os.set_blocking(file, True)
            elif not stat.S_ISREG(kind):
                raise OSError("it is no regular file")
        except BaseException:
            os.close(file)
            raise
        return file

    return open(path, "rb", opener=opened)


@contextmanager
def replacing(place: Path) -> Iterator[IO[bytes]]:
    """A file to write to, which takes the place of what is at `place` when all is written; else that stays as it is. Raises OSError.

    What a process that was killed at it has left is removed by the next one.
    """
    missing = [folder for folder in (place.parent, *place.parent.parents) if not folder.exists()]
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        _remove_unfinished(place)
        with _beside(place) as aside:
            try:
                yield aside
                aside.flush()
                os.fsync(aside.fileno())  # Disks elsewhere say only now that they are full.
                _take_mode(Path(aside.name), place)
                Path(aside.name).replace(place)
            except BaseException:
                Path(aside.name).unlink(missing_ok=True)
                raise
    except BaseException:
        for folder in missing:
            with suppress(OSError):
                folder.rmdir()
        raise


def _prefix(place: Path) -> str:
    return f".{place.name[:_KEPT_OF_NAME]}."


def _beside(place: Path) -> IO[bytes]:
    """A new file in the same folder, locked, so that others see that somebody writes it."""
    while True:
        aside = tempfile.NamedTemporaryFile(  # noqa: SIM115  The caller closes it.
            dir=place.parent, prefix=_prefix(place), suffix=_UNFINISHED, delete=False, buffering=1 << 20
        )
        with suppress(OSError):  # where there are no locks, nothing is removed either
            lock(aside.fileno())
        if os.fstat(aside.fileno()).st_nlink:
            return aside
        aside.close()  # Somebody took it for one that was left, before it was locked.


def _remove_unfinished(place: Path) -> None:
    """Remove what processes that are gone have left of the same output."""
    ours = re.compile(re.escape(_prefix(place)) + r"\w{8}" + re.escape(_UNFINISHED))
    for path in [Path(entry.path) for entry in os.scandir(place.parent) if ours.fullmatch(entry.name)]:
        with suppress(OSError):
            file = os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
            try:
                if lock(file):
                    path.unlink()
            finally:
                os.close(file)


def _take_mode(aside: Path, place: Path) -> None:
    """The permissions of the file that is replaced, else those of an ordinary new one."""
    try:
        aside.chmod(stat.S_IMODE(place.stat().st_mode))
    except FileNotFoundError:
        set_usual_mode(aside)


def set_usual_mode(path: Path) -> None:
    """Give a temporary file or folder, which only its owner may read, the permissions of an ordinary new one."""
    mask = os.umask(0)
    os.umask(mask)
    if path.is_dir():
        path.chmod(0o777 & ~mask | path.stat().st_mode & stat.S_ISGID)  # a group's folder stays one
    else:
        path.chmod(0o666 & ~mask)


def flush_to_disk(path: Path) -> None:
    """Wait until a file's content is on the disk. Raises OSError."""
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def read_settings(path: Path, most: int, pipes: bool = False) -> str:
    """The text of a file that a person wrote, which is UTF-8 and no longer than `most` bytes.

    A pipe, which may be anything that somebody put there, is read where `pipes` says so. Raises ConfigError.
    """
    try:
        with open_regular(path, pipes=pipes) as file:
            content = file.read(most + 1)
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{path}: cannot be read ({getattr(error, 'strerror', None) or error}); check the path"
        ) from error
    if len(content) > most:
        raise ConfigError(f"{path}: is larger than {most:,} bytes, which no file of this kind is")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}:{line}: is not UTF-8 text; save it as UTF-8") from error
