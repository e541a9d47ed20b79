"""Results of traces as they lie among the fixtures and in the corpus, each made once in a run of the suite."""

from __future__ import annotations

import hashlib
import os
import pickle
from functools import cache
from pathlib import Path

import traceanalyzer as ta
from traceanalyzer.result.document import Result

_folder: Path | None = None


def share(folder: Path) -> None:
    """Keep results in a folder of this run, which its processes share."""
    global _folder  # noqa: PLW0603  set once, by the suite's settings
    folder.mkdir(exist_ok=True)
    _folder = folder


@cache
def result_of(path: Path) -> Result:
    """The result of a file or folder that no test changes; it must not be changed either. Raises InputError as loading does."""
    kept = _folder / hashlib.sha256(os.fsencode(path.absolute())).hexdigest() if _folder else None
    if kept and kept.exists():
        found: Result = pickle.loads(kept.read_bytes())
        return found
    result = ta.analyze(ta.load(path))
    if kept:
        whole = kept.with_suffix(f".{os.getpid()}")
        whole.write_bytes(pickle.dumps(result))
        whole.replace(kept)
    return result
