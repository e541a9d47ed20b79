"""Writing a store, part after part, by any number of processes and machines, each part whole or not at all.

A shelf holds the parts that are finished until all are; then they are put in place, and the manifest is written last. What stands on
it outlives a run that failed or was interrupted, and what stands in the store itself counts as well: neither is made again.

The shelf of a store on a disk is a hidden folder beside it (`layout`), which one process at a time holds. There the new store is put
together; it takes the place of the old one by two renames, and a kill between them leaves the new one to be found. Behind a URL nothing
can be renamed or locked: there the shelf is the folder `.parts` of the store, from which the parts are copied.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import tempfile
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import field
from pathlib import Path

import msgspec

from traceanalyzer.errors import InputError
from traceanalyzer.files import flush_to_disk, open_regular, set_usual_mode
from traceanalyzer.locks import HeldError, hold_lock
from traceanalyzer.model.schema import EVENT_TABLES, SCHEMA_VERSION
from traceanalyzer.model.stores.layout import (
    LOCK,
    MANIFEST,
    NEW,
    OLD,
    PART,
    PARTS,
    file_of,
    foreign,
    is_interrupted,
    is_key,
    is_rank,
    remove_part,
    remove_parts,
    remove_store,
    remove_unfinished,
    shelf_of,
)
from traceanalyzer.model.stores.parts import FinishedPart, Part, PartFile, digest
from traceanalyzer.model.stores.placing import check_place, check_replaceable
from traceanalyzer.model.stores.store import TOOL, Manifest, decode_manifest, read_statement, stated_tables
from traceanalyzer.model.table_specs import table_specs
from traceanalyzer.model.trace import Input
from traceanalyzer.records import dataclass
from traceanalyzer.urls import Place, RemoteFolder, shown_place, without_credentials

Placed = Sequence[tuple[Input, Part]]
"""Inputs in the order of their ranks, and what each gave."""

# Copies within a bucket are requests that wait, not work.
_COPIES_AT_ONCE = 16
_MOST_PART = 64 << 20


class StoreError(InputError):
    """A store that cannot be written."""


def writer_for(place: Place) -> StoreWriter:
    """The shelf of a store that is to be written. Raises InputError when something else is in its place."""
    checked = check_place(place)
    return (
        LocalStoreWriter(shown_place(place), checked)
        if isinstance(checked, Path)
        else RemoteStoreWriter(shown_place(place), checked)
    )


@dataclass(frozen=True)
class StoreWriter(ABC):
    """Where the parts of one store stand, for all processes that make them. `given` is what the user calls the store."""

    given: str

    @property
    @abstractmethod
    def place(self) -> Place:
        """Where the store is, for any process."""

    @abstractmethod
    def held(self) -> AbstractContextManager[None]:
        """For the process that writes the store, around all it does. What is left afterwards is worth keeping."""

    @abstractmethod
    def holds_any(self) -> bool:
        """Whether there may be parts from an earlier run."""

    @abstractmethod
    def find(self, key: str) -> Part | None:
        """The part of that key, if it is finished and undamaged, on the shelf or in the store."""

    @abstractmethod
    def scratch(self) -> AbstractContextManager[Path]:
        """A private folder on this machine, in which a part can be made."""

    @abstractmethod
    def add(self, made: Path, part: Part) -> None:
        """Put up a part whose files lie in the folder `made`. Raises OSError."""

    @abstractmethod
    def put_in_place(self, placed: Placed, tool_version: str) -> Manifest:
        """Make the store of these parts, all of them found or added before, and clear the shelf; return what it says of itself."""

    @contextmanager
    def writing(self) -> Iterator[None]:
        """What a disk or a bucket refuses becomes one clear line, a StoreError."""
        try:
            yield
        except OSError as error:
            why = without_credentials(str(error.strerror or error))
            raise StoreError(f"{self.given}: cannot be written ({why}); choose another place") from error

    def _stored(self) -> dict[str, tuple[int, Part]]:
        """The parts in the store by key, each with its rank; none where there is no store of this version that can be read."""
        try:
            manifest = read_statement(self.place)
        except InputError:
            return {}
        if manifest.schema_version != SCHEMA_VERSION:
            return {}
        return {part.key: (given.ordinal, part) for given, part in zip(manifest.inputs, manifest.parts, strict=True)}


@dataclass(frozen=True)
class LocalStoreWriter(StoreWriter):
    """On a disk that all processes see: a part is a folder that is called by its key, and is renamed to that when it is finished."""

    store: Path
    run: str = field(default_factory=lambda: uuid.uuid4().hex[:8])

    @property
    def place(self) -> Path:
        return self.store

    @property
    def folder(self) -> Path:
        """The shelf itself."""
        return shelf_of(self.store)

    @contextmanager
    def held(self) -> Iterator[None]:
        with ExitStack() as stack:
            stack.callback(self._clear_away)
            with self.writing():
                try:
                    stack.enter_context(hold_lock(self.folder / LOCK))
                except HeldError as error:
                    raise StoreError(
                        f"{self.given}: is being written by {error}; wait until that is done, or choose another name"
                    ) from error
                check_replaceable(self.given, self.store)
                self._settle()
                if self.store.exists():  # What is private stays so meanwhile.
                    shutil.copymode(self.store, self.folder)
            try:
                yield
            finally:
                remove_unfinished(self.folder)

    def _clear_away(self) -> None:
        with suppress(OSError):  # there are parts on it, or it is another's by now
            self.folder.rmdir()

    def _settle(self) -> None:
        """End what a process did not that was killed while it put a store in place. Raises OSError."""
        new, old = self.folder / NEW, self.folder / OLD
        if old.exists() and not os.path.lexists(self.store):
            (new if (new / MANIFEST).exists() else old).rename(self.store)
        for left in (new, old):
            if left.exists():
                remove_store(left)
        remove_unfinished(self.folder)

    def holds_any(self) -> bool:
        return self.store.exists() or any(is_key(folder.name) for folder in self.folder.iterdir())

    def find(self, key: str) -> Part | None:
        stored = self._stored()
        folder = self.folder / key
        if folder.exists():
            with suppress(OSError, ValueError, msgspec.MsgspecError):
                with open_regular(folder / PART) as stream:
                    part = FinishedPart.read(stream.read(_MOST_PART), key)
                if self._is_whole(part, stored):
                    return part
            remove_part(folder)
        if key in stored and self._is_whole(stored[key][1], stored):
            return stored[key][1]
        return None

    def _file(self, key: str, name: str, stored: dict[str, tuple[int, Part]]) -> Path:
        """Where a table of a part lies: on the shelf, else in the store."""
        folder = self.folder / key
        return folder / f"{name}.parquet" if folder.exists() else self.store / file_of(name, stored[key][0])

    def _is_whole(self, part: Part, stored: dict[str, tuple[int, Part]]) -> bool:
        with suppress(OSError):
            files = ((self._file(part.key, name, stored), known) for name, known in part.tables.items())
            return all(digest(file) == known.sha256 for file, known in files)
        return False

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        try:
            folder = tempfile.TemporaryDirectory(prefix=f"{self.run}-", dir=self.folder, ignore_cleanup_errors=True)
        except FileNotFoundError as error:
            raise StoreError(
                f"{self.given}: is not there on {socket.gethostname()}, where a worker runs; name a folder that all machines "
                "see under the same path, or a URL such as s3://bucket/run.store"
            ) from error
        except OSError as error:
            raise StoreError(f"{self.given}: cannot be written ({error.strerror}); choose another place") from error
        with folder as name:
            yield Path(name)

    def add(self, made: Path, part: Part) -> None:
        (made / PART).write_bytes(FinishedPart(part).encoded())
        set_usual_mode(made)
        place = self.folder / part.key
        try:
            made.rename(place)
        except OSError:  # the same content under two names, which another worker was quicker with
            if self.find(part.key) is None:
                raise

    def put_in_place(self, placed: Placed, tool_version: str) -> Manifest:
        content = _manifest(placed, tool_version)
        new = self.folder / NEW
        with self.writing():
            try:
                stored, replaces = self._stored(), self.store.exists()
                new.mkdir()
                if replaces:
                    shutil.copymode(self.store, new)
                for given, part in placed:
                    for name in part.tables:
                        target = new / file_of(name, given.ordinal)
                        target.parent.mkdir(parents=True)
                        _link(self._file(part.key, name, stored), target)
                        if replaces:  # The old store goes only when the new one is on the disk.
                            flush_to_disk(target)
                (new / MANIFEST).write_bytes(content)
                if replaces:
                    flush_to_disk(new / MANIFEST)
                self._swap(new)
            finally:
                if new.exists() and not is_interrupted(self.store):
                    with suppress(OSError):
                        remove_store(new)
            with suppress(OSError):  # The store is whole; the next run clears away what is left here.
                if (self.folder / OLD).exists():
                    remove_store(self.folder / OLD)
                remove_parts(self.folder)
        return decode_manifest(content)

    def _swap(self, new: Path) -> None:
        """Put the new store in the place of the old one, which then lies on the shelf. Between the two renames `located` finds it."""
        check_replaceable(self.given, self.store)
        if not self.store.exists():
            new.rename(self.store)
            return
        old = self.folder / OLD
        self.store.rename(old)
        try:
            if others := foreign(old):
                raise StoreError(f"{self.given}: holds {others[0]} now, which would be lost; choose another name")
            new.rename(self.store)
        except BaseException:
            if not self.store.exists():
                old.rename(self.store)
            raise


@dataclass(frozen=True)
class RemoteStoreWriter(StoreWriter):
    """Behind a URL: a part is finished when its description is there, which comes last."""

    url: str

    @property
    def place(self) -> str:
        return self.url

    @property
    def _folder(self) -> RemoteFolder:
        return RemoteFolder(self.url)

    @contextmanager
    def held(self) -> Iterator[None]:
        yield

    def holds_any(self) -> bool:
        with self.writing():
            return bool(self._folder.names())

    def find(self, key: str) -> Part | None:
        with self.writing(), suppress(FileNotFoundError, ValueError, msgspec.MsgspecError):
            return FinishedPart.read(self._folder.read(f"{PARTS}/{key}/{PART}"), key)
        if key in (stored := self._stored()):
            ordinal, part = stored[key]
            # By content: one that was being replaced when that ended early may hold files of both stores.
            files = ((file_of(name, ordinal), known) for name, known in part.tables.items())
            with self.writing(), suppress(FileNotFoundError):
                return part if all(self._is_whole(file, known) for file, known in files) else None
        return None

    def _is_whole(self, file: str, known: PartFile) -> bool:
        return hashlib.sha256(self._folder.read(file)).hexdigest() == known.sha256

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(prefix="traceanalyzer-", ignore_cleanup_errors=True) as name:
            yield Path(name)

    def add(self, made: Path, part: Part) -> None:
        for name in part.tables:
            self._folder.upload(made / f"{name}.parquet", _on_shelf(part.key, name))
        self._folder.write(f"{PARTS}/{part.key}/{PART}", FinishedPart(part).encoded())

    def put_in_place(self, placed: Placed, tool_version: str) -> Manifest:
        folder, stored, content = self._folder, self._stored(), _manifest(placed, tool_version)
        check_place(self.url)
        wanted = {file_of(name, given.ordinal).rpartition("/")[0] for given, part in placed for name in part.tables}
        tables = sorted({*table_specs(), *stated_tables(self.url)})
        before = [f"{name}/{rank}" for name in tables for rank in folder.within(name).names() if is_rank(rank)]
        with self.writing(), ThreadPoolExecutor(_COPIES_AT_ONCE) as pool:
            finished = set(folder.within(PARTS).names())

            def copy(files: Iterable[tuple[str, str]]) -> None:
                list(pool.map(lambda pair: folder.copy(*pair), list(files)))

            # Ranks that only change their number go over the shelf, lest one overwrites another.
            moved = [
                part for given, part in placed if part.key not in finished and stored[part.key][0] != given.ordinal
            ]
            copy((file_of(name, stored[p.key][0]), _on_shelf(p.key, name)) for p in moved for name in p.tables)
            finished |= {part.key for part in moved}
            copy(
                (_on_shelf(part.key, name), file_of(name, given.ordinal))
                for given, part in placed
                if part.key in finished
                for name in part.tables
            )
            folder.write(MANIFEST, content)
            list(pool.map(folder.remove, [rank for rank in before if rank not in wanted]))
            folder.remove(PARTS)
        return decode_manifest(content)


def _on_shelf(key: str, name: str) -> str:
    return f"{PARTS}/{key}/{name}.parquet"


def _manifest(placed: Placed, tool_version: str) -> bytes:
    names = [*EVENT_TABLES, *sorted({name for _, part in placed for name in part.tables} - EVENT_TABLES.keys())]
    rows = {name: sum(p.tables[name].rows for _, p in placed if name in p.tables) for name in names}
    inputs, parts = tuple(given for given, _ in placed), tuple(part for _, part in placed)
    return Manifest(SCHEMA_VERSION, {"name": TOOL, "version": tool_version}, inputs, rows, parts).encoded()


def _link(source: Path, target: Path) -> None:
    """The same file under another name: the one there was stays until the new store is in its place."""
    try:
        target.hardlink_to(source)
    except OSError:  # a disk without links
        shutil.copyfile(source, target)
