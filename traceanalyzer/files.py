"""What reading and writing files needs beside the standard library."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from traceanalyzer.errors import ConfigError


def set_usual_mode(path: Path) -> None:
    """Give a temporary file or folder, which only its owner may read, the permissions of an ordinary new one."""
    mask = os.umask(0)
    os.umask(mask)
    path.chmod((0o777 if path.is_dir() else 0o666) & ~mask)


def read_settings(path: Path, most: int, pipes: bool = False) -> str:
    """The text of a file that a person wrote, which is UTF-8 and no longer than `most` bytes.

    Opening it waits for nobody: a pipe, which may be anything that somebody put there, is read where `pipes` says so and else refused,
    as devices, sockets and folders are. Raises ConfigError.
    """
    try:
        number = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0))
        with os.fdopen(number, "rb") as file:
            kind = os.fstat(number).st_mode
            if not stat.S_ISREG(kind) and not (pipes and stat.S_ISFIFO(kind)):
                raise ConfigError(f"{path}: is no file that can be read as text; name a file, or take it away")
            os.set_blocking(number, True)
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
