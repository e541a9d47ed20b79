"""Small traces are read by copies of this process, while this one loads what judges them: that takes about as long as one of them.

    with read_ahead(paths, how) as ahead:       the reading has begun
        ...
        ahead.traces()                          what was read, also here

A large one would cost more to hand over than there is to gain.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard

from traceanalyzer.forks import may_fork, shared
from traceanalyzer.records import dataclass
from traceanalyzer.urls import Place, url_of
from traceanalyzer.workers import cpus, processes_for

if TYPE_CHECKING:
    from traceanalyzer.ingest.bytes.remote import RemoteFile
    from traceanalyzer.ingest.bytes.source import Source
    from traceanalyzer.ingest.how import How
    from traceanalyzer.ingest.pipeline import ProgressFactory
    from traceanalyzer.model.trace import Trace

SMALL_BYTES = 32 << 20
"""A file up to this size is a small one."""
TOGETHER_BYTES = 64 << 20
"""Files that take less than this together stay in memory when they are read."""
PACKED = 16
"""About how many times as large a packed file is when it is unpacked."""


Traces = Callable[..., "list[Trace]"]
"""Gives what was read, by rank. If it is given something to call, it does so for each file. Raises InputError as `ingest_each`."""


@dataclass(frozen=True)
class Ahead:
    """What was found in the user's files, and its `traces`, if they are being read."""

    found: Sequence[Source]
    traces: Traces | None = None


@contextmanager
def read_ahead(paths: Sequence[Place], how: How) -> Iterator[Ahead | None]:
    """What is being read until the end of the context; None where there is no second CPU for it, or no files that may be small.

    Raises InputError for a file that nothing reads.
    """
    may_share = cpus() > 1 and how.jobs != 1 and how.scheduler is None and how.store is None
    if not may_share or not _may_be_small(paths):
        yield None
        return
    from traceanalyzer.ingest.registry import find_sources, kind_of

    found = find_sources([Path(path) for path in paths], how.max_bytes)
    for source in found:
        kind_of(source)
    # One that is handed over had better be small.
    alone = len(found) == 1 and _are_traces(found) and _unpacked(found[0]) <= SMALL_BYTES
    processes = 2 if alone else readers(found, how.jobs)
    if processes < 2:
        yield Ahead(found)
        return
    with reading(found, processes) as traces:
        yield Ahead(found, traces)


@contextmanager
def reading(sources: Sequence[Source], processes: int, progress: ProgressFactory | None = None) -> Iterator[Traces]:
    """The `traces` of `Ahead`: so many processes read them, one of which is this one, when it asks for them. `progress` hears of bytes
    that are read here."""
    from traceanalyzer.ingest.pipeline import FileTables, hashed, numbered, read_tables

    here = os.getpid()
    with tempfile.TemporaryDirectory(prefix="traceanalyzer-") as scratch:

        def read(at: int) -> FileTables:
            own = Path(scratch) / f"{at} of {os.getpid()}"
            if os.getpid() == here:
                return read_tables(sources[at], own, progress)
            # The files of a copy that is stopped go with those of its original.
            tempfile.tempdir = scratch
            return read_tables(sources[at], own)

        with shared(read, range(len(sources)), processes - 1) as results:

            def traces(done: Callable[[], None] | None = None) -> list[Trace]:
                with hashed(sources) as digests:
                    return numbered(sources, results(done or (lambda: None)), digests)

            yield traces


def readers(found: Sequence[Source | RemoteFile], jobs: int | None) -> int:
    """How many processes, this one and copies of it, read files together, where `jobs` are asked for: 1 for what is not several small
    traces of this machine."""
    if len(found) < 2 or jobs == 1 or not may_fork() or not are_few(found) or not _are_traces(found):
        return 1
    return min(jobs or processes_for(map(_unpacked, found)), len(found))


def are_few(found: Sequence[Source | RemoteFile]) -> bool:
    """Whether files are small enough to stay in memory together."""
    return sum(one.size for one in found) < TOGETHER_BYTES


def _are_traces(found: Sequence[Source | RemoteFile]) -> TypeGuard[Sequence[Source]]:
    """Of this machine, and no evidence, which may be read by other programs: a copy that is stopped would leave them behind."""
    from traceanalyzer.ingest.bytes.source import Source
    from traceanalyzer.ingest.registry import kind_of

    return all(isinstance(one, Source) and kind_of(one).role == "trace" for one in found)


def _unpacked(source: Source) -> int:
    return source.size * (PACKED if source.layers else 1)


def _may_be_small(paths: Sequence[Place]) -> bool:
    """Whether they are files that may be small, or folders of such, and no store."""
    if any(url_of(path) is not None for path in paths):
        return False
    files = [path for path in map(Path, paths) if path.is_file()]
    folders = [path for path in map(Path, paths) if path.is_dir()]
    most = SMALL_BYTES if len(paths) == 1 else TOGETHER_BYTES
    if len(files) + len(folders) < len(paths) or sum(path.stat().st_size for path in files) > most:
        return False
    if folders:
        from traceanalyzer.model.stores.store import is_store

        return not any(map(is_store, folders))
    return True
