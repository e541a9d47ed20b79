"""A private temporary folder that lives as long as what was read from it."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from pathlib import Path


class ScratchFolder:
    """Removed when nothing refers to it any more, and at the end of the process, an interrupted one included."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="traceanalyzer-"))
        weakref.finalize(self, _remove, self.path, os.getpid())


def _remove(folder: Path, owner: int) -> None:
    if os.getpid() == owner:  # A forked worker that ends takes nothing away from its parent.
        shutil.rmtree(folder, ignore_errors=True)
