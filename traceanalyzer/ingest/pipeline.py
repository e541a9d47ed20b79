"""From input files to one trace in memory: find the importer, read, number the ranks."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import pyarrow as pa

from traceanalyzer.columns.frames import concatenated
from traceanalyzer.columns.lean import repeated
from traceanalyzer.columns.spill import spilled
from traceanalyzer.ingest.bytes.source import Source
from traceanalyzer.ingest.contract import FileFacts
from traceanalyzer.ingest.registry import find_sources, kind_of, registry
from traceanalyzer.ingest.rows.collector import Collector, replace_column
from traceanalyzer.ingest.rows.ranks import identify_all, input_of
from traceanalyzer.model.table_specs import table_specs
from traceanalyzer.model.trace import Trace
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
    for source in sources:
        kind_of(source)
    with tempfile.TemporaryDirectory(prefix="traceanalyzer-") as scratch, hashed(sources) as digests:
        return numbered(
            sources, [read_tables(one, Path(scratch) / str(at), progress) for at, one in enumerate(sources)], digests
        )


@dataclass(frozen=True)
class FileTables:
    """What was read of one file: its format, what it says of itself, and its tables, whose `rank` is null."""

    format: str
    facts: FileFacts
    tables: dict[str, pa.Table]


def read_tables(source: Source, folder: Path, progress: ProgressFactory | None = None) -> FileTables:
    """Read one file, with `folder`, which is not there yet, for what is needed meanwhile. Raises InputError for what cannot be read."""
    folder.mkdir()
    format_, facts, collector = read_file(source, folder, progress)
    return FileTables(format_, facts, {name: _stacked(name, list(blocks)) for name, blocks in collector.tables(facts)})


Digests = Callable[[Source], str]
"""The SHA-256 of a source's file."""


@contextmanager
def hashed(sources: Sequence[Source]) -> Iterator[Digests]:
    """Hash the files. That does not hold the interpreter: it runs beside the reading."""
    with ThreadPoolExecutor(1) as beside, set_on_failure() as stop:
        # All members of an archive have its digest.
        first = {source.origin: source for source in sources}
        digests = {origin: beside.submit(source.sha256, stop) for origin, source in first.items()}
        yield lambda source: digests[source.origin].result()


def numbered(sources: Sequence[Source], read: Sequence[FileTables], digests: Digests) -> list[Trace]:
    """The traces by rank, which takes all files to tell. Of several copies of a file one is kept."""
    names = [one.format for one in read]
    roles = [registry().named(name).role for name in names]
    identities = identify_all(sources, names, roles, [one.facts for one in read])
    traces = []
    for source, one, role, identity in zip(sources, read, roles, identities, strict=True):
        if identity.kept:
            given = input_of(source, one.format, one.facts, identity, digests(source), role)
            tables = {name: _with_rank(table, given.ordinal) for name, table in one.tables.items()}
            traces.append(Trace((given,), tables))
    return sorted(traces, key=lambda trace: trace.inputs[0].ordinal)


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
    if not table.num_rows:
        return table
    return replace_column(table, "rank", repeated(pa.array([ordinal], pa.int32()), table.num_rows))
