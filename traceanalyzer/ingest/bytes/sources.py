"""From what the user names to the traces behind it: files, folders, archives, reports, pipes and standard input."""

from __future__ import annotations

import io
import os
import select
import stat
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from traceanalyzer.errors import InputError
from traceanalyzer.ingest.bytes import folders
from traceanalyzer.ingest.bytes.kinds import Kinds
from traceanalyzer.ingest.bytes.limits import MOST_BYTES, check_size
from traceanalyzer.ingest.bytes.remote import remote_files
from traceanalyzer.ingest.bytes.scratch import ScratchFolder
from traceanalyzer.ingest.bytes.source import Source, source_of
from traceanalyzer.model.stores.store import is_store
from traceanalyzer.urls import url_of

STDIN = Path("<stdin>")
COPY_BYTES = 1 << 20
# A pipe that somebody opens for reading only waits for ever.
PIPE_WAIT_S = 10


def sources_behind(inputs: Sequence[Path], kinds: Kinds, max_bytes: int | None = None) -> list[Source]:
    """The files of `kinds` behind the given paths (`-` is standard input), those of a folder or archive in natural order.

    `max_bytes` replaces the limits on sizes (`limits`). Raises InputError for a path that does not exist or cannot be read, for
    a store and what else is no trace, for one that is named twice, and for a folder or archive without traces.
    """
    found = [source for given in inputs for source in _behind(given, kinds, max_bytes)]
    seen: set[Path] = set()
    for source in found:
        if source.path.resolve() in seen:
            raise InputError(f"{source.shown}: is given twice; name every trace once")
        seen.add(source.path.resolve())
    return [replace(source, notes=(*source.notes, *kinds.stale(source))) for source in found]


def _behind(given: Path, kinds: Kinds, max_bytes: int | None) -> list[Source]:
    if str(given) == "-":
        if sys.stdin is None or sys.stdin.isatty():
            raise InputError("-: standard input is a terminal; pipe a trace into it, or name a file")
        return _piped(STDIN, sys.stdin.buffer, kinds, max_bytes)
    if (url := url_of(given)) is not None:
        return [source for file in remote_files(url, kinds, max_bytes) for source in file.fetch(kinds)]
    try:
        mode = given.stat().st_mode
    except (FileNotFoundError, NotADirectoryError) as error:
        if given.is_symlink():
            raise InputError(f"{given}: a link to {given.readlink()}, which does not exist") from error
        raise InputError(f"{given}: no such file or folder; check the path") from error
    except (OSError, ValueError) as error:
        raise InputError(f"{given}: cannot be read ({getattr(error, 'strerror', error)})") from error
    if is_store(given):
        raise InputError(
            f"{given}: a store, not a trace; analyze or report it alone, or name the traces that it was made of"
        )
    if stat.S_ISDIR(mode):
        return folders.in_folder(given, kinds, max_bytes)
    if stat.S_ISFIFO(mode):
        return _pipe(given, kinds, max_bytes)
    if not stat.S_ISREG(mode):
        raise InputError(f"{given}: a device or socket, not a file; name a trace")
    if conversion := kinds.conversion(given):
        return [folders.converted(given, conversion, kinds, max_bytes)]
    return folders.named(source_of(given, given, max_bytes), kinds)


def _pipe(given: Path, kinds: Kinds, max_bytes: int | None) -> list[Source]:
    """What comes through a named pipe or a process substitution."""
    try:
        descriptor = os.open(given, os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        raise InputError(f"{given}: cannot be read ({error.strerror})") from error
    with io.FileIO(descriptor) as stream:
        if not select.select([stream], [], [], PIPE_WAIT_S)[0]:
            raise InputError(f"{given}: a pipe into which nothing is written; start the program that writes it")
        os.set_blocking(descriptor, True)
        return _piped(given, stream, kinds, max_bytes)


def _piped(shown: Path, stream: BinaryIO | io.FileIO, kinds: Kinds, max_bytes: int | None) -> list[Source]:
    """A stream, kept in a temporary file: a trace is read more than once."""
    folder = ScratchFolder()
    place = folder.path / "input"
    allowed = MOST_BYTES if max_bytes is None else max_bytes
    size = 0
    try:
        with place.open("wb") as target:
            while block := stream.read(COPY_BYTES):
                size += len(block)
                check_size(shown, size, allowed)
                target.write(block)
    except OSError as error:
        raise InputError(f"{shown}: cannot be copied to a temporary file ({error.strerror})") from error
    return folders.named(source_of(shown, place, max_bytes, kept=folder), kinds)
