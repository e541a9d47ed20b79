"""From input files to one trace in memory: find the importer, read, number the ranks."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import pyarrow as pa

from traceanalyzer.columns.frames import concatenated
from traceanalyzer.columns.spill import spilled
from traceanalyzer.ingest.bytes.source import Source
from traceanalyzer.ingest.contract import FileFacts
from traceanalyzer.ingest.registry import find_sources, kind_of, registry
from traceanalyzer.ingest.rows.collector import Blocks, Collector, replace_column
from traceanalyzer.ingest.rows.ranks import identify_all, input_of
from traceanalyzer.model.table_specs import table_specs
from traceanalyzer.model.trace import Input, Trace
from traceanalyzer.records import dataclass

ProgressFactory = Callable[[Source], Callable[[int], None]]


def ingest(paths: list[Path], progress: ProgressFactory | None = None, max_bytes: int | None = None) -> Trace:
    """Read every trace file behind `paths` into memory. `progress(source)` gives the function that hears of bytes read.

    `max_bytes` replaces the limits on sizes (`limits`).

    Raises InputError for what cannot be read.
    """
    return ingest_sources(find_sources(paths, max_bytes), progress)


def ingest_sources(sources: Sequence[Source], progress: ProgressFactory | None = None) -> Trace:
    """The same for traces that were found already."""
    traces = ingest_each(sources, progress)
    if len(traces) == 1:
        return traces[0]
    tables = {name: _stacked(name, [trace.table(name) for trace in traces]) for name in table_specs()}
    return Trace(tuple(given for trace in traces for given in trace.inputs), tables)


def ingest_each(sources: Sequence[Source], progress: ProgressFactory | None = None) -> list[Trace]:
    """The same, each file as a trace of its own, by rank."""
    with tempfile.TemporaryDirectory(prefix="traceanalyzer-") as scratch:
        files = _read(sources, Path(scratch), progress)
        return [
            Trace((file.input,), {name: _stacked(name, list(blocks)) for name, blocks in file.tables()})
            for file in files
        ]


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


def _read(sources: Sequence[Source], scratch: Path, progress: ProgressFactory | None) -> list[_File]:
    """Read the files, each with a folder of its own in `scratch`; return them by rank."""
    for source in sources:
        kind_of(source)
    read: list[tuple[str, FileFacts, Collector]] = []
    digests: dict[Path, Future[str]] = {}
    # Hashing does not hold the interpreter: it runs beside the reading.
    with ThreadPoolExecutor(1) as beside, set_on_failure() as stop:
        for source in sources:
            if source.origin not in digests:  # All members of an archive have its digest.
                digests[source.origin] = beside.submit(source.sha256, stop)
        for number, source in enumerate(sources):
            folder = scratch / str(number)
            folder.mkdir()
            read.append(read_file(source, folder, progress))
    facts = [fact for _, fact, _ in read]
    files = []
    names = [name for name, _, _ in read]
    roles = [registry().named(name).role for name in names]
    for number, identity in enumerate(identify_all(sources, names, roles, facts)):
        source, (format_, fact, collector) = sources[number], read[number]
        if identity.kept:
            sha256 = digests[source.origin].result()
            files.append(_File(input_of(source, format_, fact, identity, sha256, roles[number]), fact, collector))
        else:
            collector.close()
    return sorted(files, key=lambda file: file.input.ordinal)


def read_file(source: Source, folder: Path, progress: ProgressFactory | None) -> tuple[str, FileFacts, Collector]:
    """Read one file, with `folder` for what is needed meanwhile: its format, what it says of itself, and its tables without ranks.

    Raises InputError for what cannot be read.
    """
    kind = kind_of(source)
    collector = Collector(folder)
    for note in source.notes:
        collector.health(*note)
    return (
        kind.name,
        kind.read(source, collector, progress(source) if progress else lambda _: None),
        collector,
    )


@contextmanager
def set_on_failure() -> Iterator[Event]:
    """An event that tells threads when nobody waits for them any more."""
    event = Event()
    try:
        yield event
    except BaseException:
        event.set()
        raise


def _stacked(name: str, blocks: list[pa.Table]) -> pa.Table:
    if not blocks:
        return table_specs()[name].empty()
    return spilled(concatenated(blocks))


def _with_rank(table: pa.Table, ordinal: int) -> pa.Table:
    return replace_column(table, "rank", pa.repeat(pa.scalar(ordinal, pa.int32()), table.num_rows))
