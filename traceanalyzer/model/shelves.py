"""Writing a store, part after part, by any number of processes and machines, each part whole or not at all.

A shelf holds the parts that are finished until all are; then they are put in place, and the manifest is written last. What stands on
it outlives a run that failed or was interrupted, and what stands in the store itself counts as well: neither is made again. The shelf
of a store on a disk is a hidden folder beside it, and the store is renamed into its place. Behind a URL nothing can be renamed: there
the shelf is the folder `.parts` of the store, from which the parts are copied.
"""

from __future__ import annotations

import shutil
import socket
import tempfile
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from traceanalyzer.errors import InputError
from traceanalyzer.files import set_usual_mode
from traceanalyzer.model.parts import Part, digest
from traceanalyzer.model.schema import EVENT_TABLES, SCHEMA_VERSION
from traceanalyzer.model.store import MANIFEST, PARTS, TOOL, Manifest, check_place, file_of, read_manifest
from traceanalyzer.model.trace import Input
from traceanalyzer.urls import Place, RemoteFolder, url_of

PART = "part.json"
Placed = Sequence[tuple[Input, Part]]
"""Inputs in the order of their ranks, and what each gave."""

# Copies within a bucket are requests that wait, not work.
_COPIES_AT_ONCE = 16


class StoreError(InputError):
    """A store that cannot be written."""


def shelf_for(place: Place) -> Shelf:
    """The shelf of a store that is to be written. Raises InputError when something else is in its place."""
    check_place(place)
    url = url_of(place)
    return LocalShelf(str(place), Path(place).resolve()) if url is None else RemoteShelf(url)


@dataclass(frozen=True)
class Shelf(ABC):
    """Where the parts of one store stand, for all processes that make them. `given` is what the user calls the store."""

    given: str

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
    def put_in_place(self, placed: Placed, tool_version: str) -> None:
        """Make the store of these parts, all of them found or added before, and clear the shelf."""

    @contextmanager
    def writing(self) -> Iterator[None]:
        """What a disk or a bucket refuses becomes one clear line, a StoreError."""
        try:
            yield
        except OSError as error:
            raise StoreError(
                f"{self.given}: cannot be written ({error.strerror or error}); choose another place"
            ) from error

    def _stored(self) -> dict[str, tuple[int, Part]]:
        """The parts in the store by key, each with its rank; none where there is no store that can be read."""
        try:
            manifest = read_manifest(self.given)
        except InputError:
            return {}
        return {part.key: (given.ordinal, part) for given, part in zip(manifest.inputs, manifest.parts, strict=True)}


@dataclass(frozen=True)
class LocalShelf(Shelf):
    """On a disk that all processes see: a part is a folder that is called by its key, and is renamed to that when it is finished."""

    store: Path
    run: str = field(default_factory=lambda: uuid.uuid4().hex[:8])

    @property
    def folder(self) -> Path:
        """The shelf itself."""
        return self.store.parent / f".{self.store.name}.parts"

    @contextmanager
    def held(self) -> Iterator[None]:
        with self.writing():
            self.folder.mkdir(parents=True, exist_ok=True)
        try:
            yield
        finally:
            for unfinished in self.folder.glob(f"{self.run}-*"):
                shutil.rmtree(unfinished, ignore_errors=True)
            with suppress(OSError):  # there are parts on it
                self.folder.rmdir()

    def holds_any(self) -> bool:
        return self.store.exists() or any(self.folder.iterdir())

    def find(self, key: str) -> Part | None:
        stored = self._stored()
        folder = self.folder / key
        if folder.exists():
            with suppress(OSError, msgspec.MsgspecError):
                part = msgspec.json.decode((folder / PART).read_bytes(), type=Part)
                if self._is_whole(part, stored):
                    return part
            shutil.rmtree(folder, ignore_errors=True)
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
        with folder as name:
            yield Path(name)

    def add(self, made: Path, part: Part) -> None:
        (made / PART).write_bytes(msgspec.json.encode(part))
        set_usual_mode(made)
        place = self.folder / part.key
        try:
            made.rename(place)
        except OSError:  # the same content under two names, which another worker was quicker with
            if self.find(part.key) is None:
                raise

    def put_in_place(self, placed: Placed, tool_version: str) -> None:
        with self.writing():
            aside = Path(tempfile.mkdtemp(prefix=f".{self.store.name}.", dir=self.store.parent))
            try:
                stored = self._stored()
                for given, part in placed:
                    for name in part.tables:
                        target = aside / file_of(name, given.ordinal)
                        target.parent.mkdir(parents=True)
                        _link(self._file(part.key, name, stored), target)
                (aside / MANIFEST).write_bytes(_manifest(placed, tool_version))
                set_usual_mode(aside)
                self._swap(aside)
            finally:
                shutil.rmtree(aside, ignore_errors=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _swap(self, aside: Path) -> None:
        if not self.store.exists():
            aside.rename(self.store)
            return
        # Renamed and not removed in place: when the last step fails, the old store comes back.
        old = Path(tempfile.mkdtemp(prefix=f".{self.store.name}.", dir=self.store.parent)) / "old"
        self.store.rename(old)
        try:
            aside.rename(self.store)
        except BaseException:
            old.rename(self.store)
            raise
        finally:
            shutil.rmtree(old.parent, ignore_errors=True)


@dataclass(frozen=True)
class RemoteShelf(Shelf):
    """Behind a URL: a part is finished when its description is there, which comes last."""

    @property
    def _folder(self) -> RemoteFolder:
        return RemoteFolder(self.given)

    @contextmanager
    def held(self) -> Iterator[None]:
        yield

    def holds_any(self) -> bool:
        with self.writing():
            return bool(self._folder.names())

    def find(self, key: str) -> Part | None:
        with self.writing(), suppress(FileNotFoundError, msgspec.MsgspecError):
            return msgspec.json.decode(self._folder.read(f"{PARTS}/{key}/{PART}"), type=Part)
        if key in (stored := self._stored()):
            ordinal, part = stored[key]
            # The size will do: a bucket checks its bytes itself.
            sizes = ((self._folder.size(file_of(name, ordinal)), known.bytes) for name, known in part.tables.items())
            with self.writing():
                return part if all(there == known for there, known in sizes) else None
        return None

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(prefix="traceanalyzer-", ignore_cleanup_errors=True) as name:
            yield Path(name)

    def add(self, made: Path, part: Part) -> None:
        for name in part.tables:
            self._folder.upload(made / f"{name}.parquet", _on_shelf(part.key, name))
        self._folder.write(f"{PARTS}/{part.key}/{PART}", msgspec.json.encode(part))

    def put_in_place(self, placed: Placed, tool_version: str) -> None:
        folder, stored = self._folder, self._stored()
        wanted = {file_of(name, given.ordinal).rpartition("/")[0] for given, part in placed for name in part.tables}
        before = [f"{name}/{rank}" for name in EVENT_TABLES for rank in folder.within(name).names()]
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
            folder.write(MANIFEST, _manifest(placed, tool_version))
            list(pool.map(folder.remove, [rank for rank in before if rank not in wanted]))
            folder.remove(PARTS)


def _on_shelf(key: str, name: str) -> str:
    return f"{PARTS}/{key}/{name}.parquet"


def _manifest(placed: Placed, tool_version: str) -> bytes:
    rows = {name: sum(p.tables[name].rows for _, p in placed if name in p.tables) for name in EVENT_TABLES}
    inputs, parts = tuple(given for given, _ in placed), tuple(part for _, part in placed)
    return Manifest(SCHEMA_VERSION, {"name": TOOL, "version": tool_version}, inputs, rows, parts).encoded()


def _link(source: Path, target: Path) -> None:
    """The same file under another name: the one there was stays until the new store is in its place."""
    try:
        target.hardlink_to(source)
    except OSError:  # a disk without links
        shutil.copyfile(source, target)
