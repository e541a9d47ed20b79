"""From what the user names to the parts of a job: in memory where they are few and small, else in a store that workers share."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from traceanalyzer.analysis.parts import MemoryPart, Part, StoredPart
from traceanalyzer.errors import InputError
from traceanalyzer.forks import may_fork
from traceanalyzer.ingest.ahead import are_few, readers, reading
from traceanalyzer.ingest.how import How
from traceanalyzer.model.stores.store import Manifest, is_store, read_manifest, read_part
from traceanalyzer.urls import Place, local_of, shown_place
from traceanalyzer.version import VERSION
from traceanalyzer.workers import LOCAL, jobs_for, workers

if TYPE_CHECKING:
    from traceanalyzer.ingest.ahead import Ahead
    from traceanalyzer.ingest.bytes.remote import RemoteFile
    from traceanalyzer.ingest.bytes.source import Source

IN_MEMORY_BYTES = 64 << 20
"""Parts of a store that are smaller than this together stay in memory, where they and what is derived of them take some twenty times
as much; larger ones are read as they are needed."""


@contextmanager
def open_parts(
    paths: Sequence[Place], how: How, ahead: Ahead | None = None
) -> Iterator[tuple[list[Part], Executor | None]]:
    """The parts, by ordinal, and what works on them; None stands for this process. `ahead` is what was found or read before.

    Raises InputError for what cannot be read. A store that is replaced before all is done raises ChangedError, then or later.
    """
    stores = [path for path in paths if is_store(path)]
    if stores and len(paths) > 1:
        raise InputError(
            f"{shown_place(stores[0])}: a store is analysed alone; ingest the traces together into one store instead"
        )
    if stores and how.store is not None:
        raise InputError(
            f"--store {shown_place(how.store)}: {shown_place(stores[0])} is a store already; leave --store out"
        )
    with _stored(stores[0], how) if stores else _read(paths, how, ahead) as found:
        yield found


@contextmanager
def _stored(place: Place, how: How) -> Iterator[tuple[list[Part], Executor | None]]:
    manifest = read_manifest(place)
    sizes = [sum(table.bytes for table in part.tables.values()) for part in manifest.parts]
    small = sum(sizes) < IN_MEMORY_BYTES
    # Copies of this process work on what it has in memory, which other processes would have to read first.
    copies = small and how.scheduler is None and may_fork()
    with workers(1 if copies else jobs_for(sizes, how.jobs, how.scheduler), how.scheduler) as executor:
        yield _parts(place, manifest, executor, small), executor


@contextmanager
def _read(paths: Sequence[Place], how: How, ahead: Ahead | None) -> Iterator[tuple[list[Part], Executor | None]]:
    if ahead and ahead.traces:
        yield [MemoryPart(trace) for trace in ahead.traces(how.done)], None
        return
    # A store is read without any of the readers.
    from traceanalyzer.ingest.storing import find_inputs, write_store

    found = ahead.found if ahead else find_inputs(paths, how.max_bytes)
    sizes = [one.size for one in found]
    sources = _local(found) if how.store is None and how.scheduler is None else []
    jobs = jobs_for(sizes, how.jobs, how.scheduler)
    # As in `_stored`, of files that are few.
    if sources and (len(sources) == 1 or (are_few(sources) and (jobs == 1 or may_fork()))):
        with reading(sources, readers(sources, how.jobs), how.progress) as traces:
            parts: list[Part] = [MemoryPart(trace) for trace in traces()]
        yield parts, None
        return
    with ExitStack() as stack:
        executor = stack.enter_context(workers(jobs, how.scheduler))
        place = how.store
        if place is None:
            if how.scheduler not in (None, LOCAL):
                raise InputError(
                    f"--scheduler {how.scheduler}: its workers need a place that all of them see; name one with --store"
                )
            place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="traceanalyzer-"))) / "store"
        # What was written is what is read, also when somebody else writes there next.
        manifest = write_store(found, place, VERSION, how.progress, executor).manifest
        yield _parts(place, manifest, executor, small=False), executor


def _local(found: Sequence[Source | RemoteFile]) -> list[Source]:
    """The files of this machine; none if there are others too."""
    from traceanalyzer.ingest.bytes.source import Source

    local = [one for one in found if isinstance(one, Source)]
    return local if len(local) == len(found) else []


def _parts(place: Place, manifest: Manifest, executor: Executor | None, small: bool) -> list[Part]:
    found = list(zip(manifest.inputs, manifest.parts, strict=True))
    if executor is None and (small or len(found) == 1):
        return [MemoryPart(read_part(place, manifest.edition, *one)) for one in found]
    # Workers have a current folder of their own.
    local = local_of(place)
    seen = place if local is None else local.absolute()
    return [StoredPart(seen, manifest.edition, *one) for one in found]
