"""From input files to a store: each file a task, in this process or in others, and none that was read before.

What a file gives depends on its content and on the program alone, so that is what a finished part is known by. Ranks are told
when all files have been read, since it takes them all to tell.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence, Set
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from traceanalyzer.errors import InputError, UnreachableError, WorkerError
from traceanalyzer.ingest.bytes.remote import RemoteFile, remote_files
from traceanalyzer.ingest.bytes.source import Source
from traceanalyzer.ingest.contract import FileFacts, Marks
from traceanalyzer.ingest.pipeline import ProgressFactory, read_file, set_on_failure
from traceanalyzer.ingest.reader_key import reader_key
from traceanalyzer.ingest.registry import find_sources, kind_of, registry
from traceanalyzer.ingest.rows.ranks import identify_all, input_of
from traceanalyzer.model.stores.parts import Part, digest, key_of, write_tables
from traceanalyzer.model.stores.store import Manifest
from traceanalyzer.model.stores.store_writer import StoreError, StoreWriter, writer_for
from traceanalyzer.records import dataclass
from traceanalyzer.urls import Place, may_pass, shown_place, url_of
from traceanalyzer.workers import map_parts

_MOST_NAMED = 3


@dataclass(frozen=True)
class Stored:
    """What is in a store that was written: files and rows, how many of the files had been read before, and what it says of itself."""

    files: int
    rows: int
    there_already: int
    manifest: Manifest


def ingest_to_store(
    paths: Sequence[Place],
    folder: Place,
    tool_version: str,
    progress: ProgressFactory | None = None,
    max_bytes: int | None = None,
    executor: Executor | None = None,
) -> Stored:
    """Read every trace file behind `paths` into a store, in memory that does not grow with them.

    `max_bytes` replaces the limits on sizes (`limits`). Raises InputError for what cannot be read, and where the store cannot be
    written.
    """
    return write_store(find_inputs(paths, max_bytes), folder, tool_version, progress, executor)


def find_inputs(paths: Sequence[Place], max_bytes: int | None = None) -> list[Source | RemoteFile]:
    """The traces behind the given paths, and the files behind URLs, which are not fetched yet. Raises InputError as `find_sources`."""
    files = [
        file for path in paths if (url := url_of(path)) is not None for file in remote_files(url, registry(), max_bytes)
    ]
    twice = [url for url, count in Counter(file.url for file in files).items() if count > 1]
    if twice:
        raise InputError(f"{shown_place(twice[0])}: is given twice; name every trace once")
    sources = find_sources([Path(path) for path in paths if url_of(path) is None], max_bytes)
    for source in sources:
        kind_of(source)
    return [*sources, *files]


def write_store(
    inputs: Sequence[Source | RemoteFile],
    folder: Place,
    tool_version: str,
    progress: ProgressFactory | None = None,
    executor: Executor | None = None,
    done: Callable[[], None] | None = None,
    processes: int = 1,
) -> Stored:
    """Read what `find_inputs` found into a store, each file by one of the executor's workers, without one by this process, or by so
    many `processes`: copies of this one help.

    `done` is called after each file; `progress` hears of the bytes that this process reads. What an earlier run read, finished or not,
    is not read again while the file has the same content. A file that cannot be read does not keep the others from being read.

    Raises InputError as `ingest_to_store`; the store that was there is then as it was.
    """
    shelf = writer_for(folder)
    with shelf.held():
        outcomes = _outcomes(inputs, shelf, tool_version, progress, executor, done, processes)
        made = [one for outcome in outcomes for one in outcome.made]
        if failures := [outcome.failure for outcome in outcomes if outcome.failure]:
            kind = UnreachableError if any(outcome.may_pass for outcome in outcomes) else InputError
            raise kind(_said_of(failures, len(made)))
        if not made:
            raise InputError(f"{', '.join(_name(one) for one in inputs[:_MOST_NAMED])}: none of the files is a trace")
        names = [one.part.format for one in made]
        roles = [registry().named(name).role for name in names]
        facts = [
            msgspec.convert(one.part.facts, FileFacts if role == "trace" else Marks)
            for one, role in zip(made, roles, strict=True)
        ]
        sources = [one.source for one in made]
        identities = identify_all(sources, names, roles, facts, lambda at: _content(made[at].part))
        placed = [
            (input_of(one.source, one.part.format, fact, identity, one.part.sha256, role), one)
            for one, fact, identity, role in zip(made, facts, identities, roles, strict=True)
            if identity.kept
        ]
        placed.sort(key=lambda pair: pair[0].ordinal)
        manifest = shelf.put_in_place([(given, one.part) for given, one in placed], tool_version)
    rows = sum(table.rows for _, one in placed for table in one.part.tables.values())
    return Stored(len(placed), rows, sum(one.there_already for _, one in placed), manifest)


@dataclass(frozen=True)
class _Task:
    """One input on its way to a shelf, perhaps on another machine. `reader` is what must read it, `sha256` its file's where known."""

    input: Source | RemoteFile
    shelf: StoreWriter
    tool_version: str
    reader: str
    resumed: bool
    sha256: str | None


@dataclass(frozen=True)
class _Made:
    """A part, and what it was made of."""

    source: Source
    part: Part
    there_already: bool


@dataclass(frozen=True)
class _Outcome:
    """What became of a task: parts, or why there are none, and whether a disk or network is to blame for that."""

    made: tuple[_Made, ...] = ()
    failure: str = ""
    may_pass: bool = False


def _outcomes(
    inputs: Sequence[Source | RemoteFile],
    shelf: StoreWriter,
    tool_version: str,
    progress: ProgressFactory | None,
    executor: Executor | None,
    done: Callable[[], None] | None,
    processes: int,
) -> list[_Outcome]:
    """What became of each input, in their order."""
    members = Counter(one.origin for one in inputs if isinstance(one, Source))
    digests = {origin: digest(origin) for origin, count in members.items() if count > 1}  # archives
    reader, resumed = reader_key(tool_version), shelf.holds_any()
    tasks = [
        _Task(
            _from_anywhere(one),
            shelf,
            tool_version,
            reader,
            resumed,
            digests.get(one.origin) if isinstance(one, Source) else None,
        )
        for one in inputs
    ]
    # What lies in a temporary folder is on this machine alone.
    near = [executor is None or (isinstance(one, Source) and one.kept is not None) for one in inputs]
    far_tasks = [task for task, here in zip(tasks, near, strict=True) if not here]
    near_tasks = [task for task, here in zip(tasks, near, strict=True) if here]
    far = iter(map_parts(executor, _make, far_tasks, done, lambda task: _name(task.input)))
    own = iter(map_parts(None, lambda task: _make(task, progress), near_tasks, done, processes=processes))
    return [next(own) if here else next(far) for here in near]


def _from_anywhere(one: Source | RemoteFile) -> Source | RemoteFile:
    """The input with paths that do not depend on the folder a process is in."""
    if isinstance(one, RemoteFile):
        return one
    return replace(one, origin=one.origin.absolute(), place=one.place.absolute())


def _name(one: Source | RemoteFile) -> str:
    return shown_place(one.url) if isinstance(one, RemoteFile) else one.shown


def _make(task: _Task, progress: ProgressFactory | None = None) -> _Outcome:
    """Put the parts of one input on the shelf, in whatever process. Raises StoreError when the store cannot be written."""
    if task.reader != reader_key(task.tool_version):
        raise WorkerError(
            "the workers have another version of traceanalyzer, or of what it reads with (pyarrow, msgspec, numpy, adbc); install the "
            "same on all machines"
        )
    try:
        sources = task.input.fetch(registry()) if isinstance(task.input, RemoteFile) else [task.input]
        return _Outcome(tuple(_part_of(source, task, progress) for source in sources))
    except StoreError:
        raise
    except InputError as error:
        return _Outcome(failure=str(error), may_pass=may_pass(error))


def _part_of(source: Source, task: _Task, progress: ProgressFactory | None) -> _Made:
    slim = replace(source, head=b"", layers=(), kept=None)
    with ThreadPoolExecutor(1) as beside, set_on_failure() as stop:
        sha256 = beside.submit(lambda: task.sha256 or source.sha256(stop))

        def key() -> str:
            return key_of(sha256.result(), source.member, source.notes, task.reader)

        if task.resumed and (part := task.shelf.find(key())) is not None:
            if progress is not None:
                progress(source)(source.size)
            return _Made(slim, part, True)
        with task.shelf.writing(), task.shelf.scratch() as scratch:
            rows, made = scratch / "rows", scratch / "part"
            rows.mkdir()
            made.mkdir()
            format_, facts, collector = read_file(source, rows, progress)
            tables = write_tables(made, collector.tables(facts))
            part = Part(key(), sha256.result(), format_, _plain(facts), tables)
            task.shelf.add(made, part)
    return _Made(slim, part, False)


def _plain(facts: FileFacts | Marks) -> dict[str, Any]:
    """What a file says of itself, for JSON to write down. Sets are in order: the same file gives the same bytes."""
    said: dict[str, Any] = msgspec.to_builtins(facts)
    return {name: sorted(value) if isinstance(getattr(facts, name), Set) else value for name, value in said.items()}


def _content(part: Part) -> str:
    """What two copies of a file share, however they are packed: all rows but those on what was met while they were read."""
    return key_of({name: table.sha256 for name, table in part.tables.items() if name != "health"})


def _said_of(failures: list[str], made: int) -> str:
    """One line on all that could not be read."""
    said = failures[0]
    if others := [failure.partition(": ")[0] for failure in failures[1:]]:
        names = ", ".join(others[:_MOST_NAMED]) + (", ..." if len(others) > _MOST_NAMED else "")
        said += f" ({len(others)} more cannot be read: {names})"
    if made:
        said += f"; what the other {'file' if made == 1 else f'{made} files'} gave is kept, and the same command goes on from there"
    return said
