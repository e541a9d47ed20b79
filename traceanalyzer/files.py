"""What writing files needs beside the standard library."""

from __future__ import annotations

import os
from pathlib import Path


def set_usual_mode(path: Path) -> None:
    """Give a temporary file or folder, which only its owner may read, the permissions of an ordinary new one."""
    mask = os.umask(0)
    os.umask(mask)
    path.chmod((0o777 if path.is_dir() else 0o666) & ~mask)
