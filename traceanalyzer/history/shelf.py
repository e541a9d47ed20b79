"""A history on its place: a Parquet row and a baseline file for each capture, and packs of many rows, which only make reading quick.

    history.json                 what the folder is
    captures/<id>.json           the capture, as `baseline save` writes one
    rows/<id>.parquet            its row: with it the capture is in the history
    packs/<digest>.parquet       rows of `rows/` once more, many in a file

Nothing that is written is changed or removed, and a name stands for its content, so any number of writers may add at once, and one
that is stopped has added what it has added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

import msgspec

from traceanalyzer.errors import InputError
from traceanalyzer.history.folders import Folder, folder_at
from traceanalyzer.history.rows import decoded, encoded
from traceanalyzer.records import dataclass
from traceanalyzer.result.captures.baseline_file import baseline_bytes
from traceanalyzer.result.captures.capture import Baseline, Capture
from traceanalyzer.result.history.entry import Entry
from traceanalyzer.urls import Place, shown_place
from traceanalyzer.version import VERSION

FORMAT, FORMAT_VERSION = "traceanalyzer history", 1
PACK = 512
"""So many rows are packed together."""
_WHAT, _ROWS, _CAPTURES, _PACKS = "history.json", "rows", "captures", "packs"
_AT_ONCE = 8
"""Files that are read at once: those behind a URL take their time."""
T = TypeVar("T")


class HistoryError(InputError):
    """A history that cannot be read or written: for now, as on a disk that is full, or because the place holds something else."""


def is_history(folder: Path) -> bool:
    """Whether a folder on this machine is a history."""
    try:
        said = msgspec.json.decode((folder / _WHAT).read_bytes())
    except (OSError, msgspec.DecodeError):
        return False
    return isinstance(said, dict) and said.get("format") == FORMAT


@dataclass(frozen=True)
class Damaged:
    """A file of a history that cannot be read, and why."""

    name: str
    reason: str


@dataclass(frozen=True)
class Contents:
    """The entries of a history by time, and what of it cannot be read."""

    entries: list[Entry]
    damaged: list[Damaged]


class Shelf:
    """A history at a place, which is there or not yet. All of it raises HistoryError."""

    def __init__(self, place: Place, folder: Folder | None = None) -> None:
        self.place = place
        self._folder = folder or folder_at(place)

    def check(self) -> None:
        """Raises HistoryError where the place holds something else, so that no capture can be added."""
        if not self._check(make=False):
            self._refuse_others()

    def holds(self, id: str) -> bool:
        """Whether a capture is in the history."""
        return f"{id}.parquet" in self._names(_ROWS)

    def ids(self) -> set[str]:
        """The captures that are in the history."""
        return {name.removesuffix(".parquet") for name in self._names(_ROWS) if name.endswith(".parquet")}

    def add(self, entry: Entry, capture: Capture) -> bool:
        """Put a capture into the history; whether it was not there before."""
        self._check()
        if self.holds(entry.id):
            return False
        tool = {"name": "traceanalyzer", "version": VERSION}
        self._write(f"{_CAPTURES}/{entry.id}.json", baseline_bytes(Baseline(tool, [capture])))
        self._write(f"{_ROWS}/{entry.id}.parquet", encoded([entry]))
        return True

    def read(self) -> Contents:
        """All entries. Raises HistoryError where there is no history."""
        if not self._check(make=False):
            raise HistoryError(
                f"{shown_place(self.place)}: holds no history; begin one with `traceanalyzer history add`"
            )
        contents, _ = self._read()
        return contents

    def pack(self) -> None:
        """Pack rows that are in no pack yet, where there are many of them."""
        contents, loose = self._read()
        by_id = {entry.id: entry for entry in contents.entries if entry.id in loose}
        names = sorted(by_id)
        for first in range(0, len(names) - PACK + 1, PACK):
            chosen = names[first : first + PACK]
            digest = sha256("\n".join(chosen).encode()).hexdigest()[:32]
            self._write(f"{_PACKS}/{digest}.parquet", encoded([by_id[name] for name in chosen]))

    def _read(self) -> tuple[Contents, set[str]]:
        """All entries, and the ids of those that are in no pack."""
        rows = self.ids()
        found: dict[str, Entry] = {}
        # What a pack lacks or hides is still among the rows.
        for _, entries, _ in self._all(_PACKS, self._names(_PACKS)):
            found.update((entry.id, entry) for entry in entries if entry.id in rows)
        loose = rows - found.keys()
        damaged = []
        for name, entries, reason in self._all(_ROWS, [f"{id}.parquet" for id in sorted(loose)]):
            if reason:
                damaged.append(Damaged(f"{_ROWS}/{name}", reason))
            found.update((entry.id, entry) for entry in entries)
        ordered = sorted(found.values(), key=lambda one: (one.time_ns, one.id))
        return Contents(ordered, damaged), loose

    def _all(self, within: str, names: Iterable[str]) -> Iterable[tuple[str, list[Entry], str | None]]:
        """The entries of some files, each by its name, or why it has none."""

        def one(name: str) -> tuple[str, list[Entry], str | None]:
            try:
                return name, decoded(self._folder.read(f"{within}/{name}")), None
            except (OSError, ValueError) as error:
                return name, [], str(error)

        with ThreadPoolExecutor(_AT_ONCE) as readers:
            yield from readers.map(one, names)

    def capture_place(self, id: str) -> str:
        """Where the baseline file of a capture lies, relative to the history."""
        return f"{_CAPTURES}/{id}.json"

    def capture_bytes(self, id: str) -> bytes:
        """The baseline file of a capture."""
        return self._asked(lambda: self._folder.read(self.capture_place(id)))

    def _check(self, make: bool = True) -> bool:
        """Whether the place is a history; it is made one where nothing is there."""
        try:
            said = msgspec.json.decode(self._folder.read(_WHAT))
        except FileNotFoundError:
            if not make:
                return False
            self._refuse_others()
            self._write(_WHAT, msgspec.json.encode({"format": FORMAT, "version": FORMAT_VERSION}) + b"\n")
            return True
        except (OSError, msgspec.DecodeError) as error:
            raise HistoryError(f"{shown_place(self.place)}: {_WHAT} cannot be read ({error})") from error
        if not isinstance(said, dict) or said.get("format") != FORMAT:
            raise HistoryError(f"{shown_place(self.place)}: {_WHAT} is not that of a history; name another folder")
        if said.get("version") != FORMAT_VERSION:
            raise HistoryError(
                f"{shown_place(self.place)}: a history of version {said.get('version')}; this traceanalyzer reads version "
                f"{FORMAT_VERSION}: update it"
            )
        return True

    def _refuse_others(self) -> None:
        if others := set(self._names("")) - {_WHAT, _ROWS, _CAPTURES, _PACKS}:
            raise HistoryError(
                f"{shown_place(self.place)}: holds other things ({', '.join(sorted(others)[:3])}) and no history; name a new "
                "folder, or one that is empty"
            )

    def _names(self, within: str) -> list[str]:
        return self._asked(lambda: self._folder.names(within))

    def _write(self, name: str, content: bytes) -> None:
        self._asked(lambda: self._folder.write(name, content))

    def _asked(self, what: Callable[[], T]) -> T:
        try:
            return what()
        except OSError as error:
            raise HistoryError(f"{shown_place(self.place)}: {error.strerror or error}") from error
