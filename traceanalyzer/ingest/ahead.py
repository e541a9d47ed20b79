"""A small trace is read by a copy of this process, while this one loads what judges it: that takes about as long.

    with read_ahead(paths, how) as ahead:       the reading has begun
        ...
        ahead.traces()                          what was read

A large one would cost more to hand over than there is to gain.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from traceanalyzer.forks import beside
from traceanalyzer.records import dataclass
from traceanalyzer.urls import Place, url_of
from traceanalyzer.workers import cpus

if TYPE_CHECKING:
    from traceanalyzer.ingest.bytes.source import Source
    from traceanalyzer.ingest.how import How
    from traceanalyzer.model.trace import Trace

SMALL_BYTES = 32 << 20
"""A file up to this size is a small one."""
PACKED = 16
"""About how many times as large a packed file is when it is unpacked."""


@dataclass(frozen=True)
class Ahead:
    """What was found in the user's file. If it is being read, `traces` gives what was read, by rank, and raises InputError as
    `ingest_each` does."""

    found: Sequence[Source]
    traces: Callable[[], list[Trace]] | None = None


@contextmanager
def read_ahead(paths: Sequence[Place], how: How) -> Iterator[Ahead | None]:
    """What is being read until the end of the context; None where there is no second CPU for it, or not one file that may be small.

    Raises InputError for a file that nothing reads.
    """
    may_share = cpus() > 1 and how.jobs != 1 and how.scheduler is None and how.store is None
    path = _small_file(paths) if may_share else None
    if path is None:
        yield None
        return
    from traceanalyzer.ingest.pipeline import ingest_each
    from traceanalyzer.ingest.registry import find_sources, kind_of

    found = find_sources([path], how.max_bytes)
    # Evidence may be read by other programs, which a copy that is stopped would leave behind.
    are_traces = all(kind_of(source).role == "trace" for source in found)
    if not are_traces or sum(source.size * (PACKED if source.layers else 1) for source in found) > SMALL_BYTES:
        yield Ahead(found)
        return
    here = os.getpid()
    with tempfile.TemporaryDirectory(prefix="traceanalyzer-") as scratch:

        def read() -> list[Trace]:
            if os.getpid() != here:
                # The files of a copy that is stopped go with those of its original.
                tempfile.tempdir = scratch
            return ingest_each(found)

        with beside(read) as traces:
            yield Ahead(found, traces)


def _small_file(paths: Sequence[Place]) -> Path | None:
    """The one path, if it is a file that may be small."""
    if len(paths) != 1 or url_of(paths[0]) is not None:
        return None
    path = Path(paths[0])
    return path if path.is_file() and path.stat().st_size <= SMALL_BYTES else None
