"""From input files to one trace, in memory or in a store: find the importer, read, number the ranks."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event

import pyarrow as pa

from traceanalyzer.errors import InputError
from traceanalyzer.ingest.collector import Blocks, Collector, replaced
from traceanalyzer.ingest.contract import FileFacts, Importer
from traceanalyzer.ingest.registry import importer_of
from traceanalyzer.ingest.sources import Source, find_sources
from traceanalyzer.model.schema import EVENT_TABLES
from traceanalyzer.model.store import StoreWriter
from traceanalyzer.model.trace import Input, Trace

ProgressFactory = Callable[[Source], Callable[[int], None]]


def ingest(paths: list[Path], progress: ProgressFactory | None = None, max_bytes: int | None = None) -> Trace:
    """Read every trace file behind `paths` into memory. `progress(source)` gives the function that hears of bytes read.

    `max_bytes` replaces the limits on sizes (`limits`).

    Raises InputError for what cannot be read, and for two files that claim the same rank.
    """
    return ingest_sources(find_sources(paths, max_bytes), progress)


def ingest_sources(sources: list[Source], progress: ProgressFactory | None = None) -> Trace:
    """The same for traces that were found already."""
    with tempfile.TemporaryDirectory(prefix="traceanalyzer-") as scratch:
        files = _read(sources, Path(scratch), progress)
        parts: dict[str, list[pa.Table]] = {name: [] for name in EVENT_TABLES}
        for file in files:
            for name, blocks in file.tables():
                parts[name].extend(blocks)
    tables = {name: _stacked(name, part) for name, part in parts.items()}
    return Trace(tuple(file.input for file in files), tables)


def ingest_to_store(
    paths: list[Path],
    folder: Path,
    tool_version: str,
    progress: ProgressFactory | None = None,
    max_bytes: int | None = None,
) -> tuple[int, int]:
    """Read every trace file behind `paths` into a store, in memory that does not grow with them; return (files, rows).

    Raises InputError as `ingest` does, and where the store cannot be written.
    """
    with StoreWriter(folder, tool_version) as store:
        files = _read(find_sources(paths, max_bytes), store.scratch, progress)
        for file in files:
            for name, blocks in file.tables():
                store.write(name, file.input.ordinal, blocks)
        store.inputs = tuple(file.input for file in files)
        return len(files), store.rows


@dataclass(frozen=True)
class _File:
    """One file that was read: what it is, and its rows."""

    input: Input
    facts: FileFacts
    collector: Collector

    def tables(self) -> Iterator[tuple[str, Blocks]]:
        """As of the collector, with the rank in place."""
        for name, blocks in self.collector.tables(self.facts):
            yield name, (_with_rank(block, self.input.ordinal) for block in blocks)


def _read(sources: list[Source], scratch: Path, progress: ProgressFactory | None) -> list[_File]:
    """Read the files, each with a folder of its own in `scratch`; return them by rank."""
    importers = [importer_of(source) for source in sources]
    collectors: list[Collector] = []
    facts: list[FileFacts] = []
    digests: dict[Path, Future[str]] = {}
    # Hashing does not hold the interpreter: it runs beside the reading.
    with ThreadPoolExecutor(1) as beside, _set_on_failure() as stop:
        for source in sources:
            if source.origin not in digests:  # All members of an archive have its digest.
                digests[source.origin] = beside.submit(source.sha256, stop)
        for number, (source, importer) in enumerate(zip(sources, importers, strict=True)):
            folder = scratch / str(number)
            folder.mkdir()
            collectors.append(Collector(folder))
            for note in source.notes:
                collectors[-1].health(*note)
            facts.append(importer.read(source, collectors[-1], progress(source) if progress else lambda _: None))
    ordinals = _ordinals(sources, facts)
    files = []
    for number, (source, importer, ordinal) in enumerate(zip(sources, importers, ordinals, strict=True)):
        described = _input(source, importer, ordinal, facts[number], digests[source.origin].result())
        files.append(_File(described, facts[number], collectors[number]))
    return sorted(files, key=lambda file: file.input.ordinal)


@contextmanager
def _set_on_failure() -> Iterator[Event]:
    """An event that tells threads when nobody waits for them any more."""
    event = Event()
    try:
        yield event
    except BaseException:
        event.set()
        raise


def _input(source: Source, importer: Importer, ordinal: int, facts: FileFacts, sha256: str) -> Input:
    return Input(
        path=source.shown,
        sha256=sha256,
        bytes=source.size,
        format=importer.format,
        producer=facts.producer,
        rank=facts.rank,
        world_size=facts.world_size,
        ordinal=ordinal,
        clock_base_ns=facts.clock_base_ns,
    )


def _stacked(name: str, blocks: list[pa.Table]) -> pa.Table:
    if not blocks:
        return EVENT_TABLES[name].empty()
    return pa.concat_tables(blocks).unify_dictionaries().combine_chunks()


def _with_rank(table: pa.Table, ordinal: int) -> pa.Table:
    return replaced(table, "rank", pa.repeat(pa.scalar(ordinal, pa.int32()), table.num_rows))


def _ordinals(sources: list[Source], facts: list[FileFacts]) -> list[int]:
    """The value of the `rank` column for each file: the rank it states, else the next free number."""
    claimed: dict[int, Source] = {}
    for source, fact in zip(sources, facts, strict=True):
        if fact.rank is None:
            continue
        if fact.rank in claimed:
            raise InputError(
                f"{source.path}: says it is rank {fact.rank}, and so does {claimed[fact.rank].path}; leave one of them out"
            )
        claimed[fact.rank] = source
    free = (n for n in range(len(sources) + len(claimed)) if n not in claimed)
    return [next(free) if fact.rank is None else fact.rank for fact in facts]
