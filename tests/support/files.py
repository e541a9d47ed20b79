"""Files of kinds that hold no data."""

from __future__ import annotations

import os
import socket
from pathlib import Path


def bound_socket(path: Path) -> None:
    """A socket at `path`, which may be longer than the name of one."""
    before = Path.cwd()
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(before)
