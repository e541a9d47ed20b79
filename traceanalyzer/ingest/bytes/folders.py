"""The traces in a folder or an archive: which of its files are read, which are passed over, and what is said of those.

A file is a trace because of its content. Its name only decides what happens when the content does not say: what is called like a
trace and cannot be read stops everything, so that no rank is lost silently; anything else is passed over.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable
from dataclasses import field, replace
from functools import partial
from pathlib import Path

from traceanalyzer.errors import InputError
from traceanalyzer.ingest.bytes import archives
from traceanalyzer.ingest.bytes.containers import Note
from traceanalyzer.ingest.bytes.kinds import Conversion, Kinds
from traceanalyzer.ingest.bytes.source import Source, source_of
from traceanalyzer.records import dataclass
from traceanalyzer.vocabulary.health import NOT_ALL_READ, RANKS_IN_DOUBT
from traceanalyzer.vocabulary.levels import INFO, LOW

_PACKED = r"\.(?:gz|zst|xz|bz2)$"
_UNFINISHED = re.compile(r"\.json(?:\.gz)?\.tmp$", re.IGNORECASE)
# Members of archives; "./" is no hidden folder.
_HIDDEN = re.compile(r"(?:^|/)(?:\.(?!\.?/)|__MACOSX/)")
_NAMED_MEMBERS = 3
# A rank may be missing.
UNFINISHED = Note(
    RANKS_IN_DOUBT, LOW, "unfinished recordings among the files were passed over; name one to read what it holds"
)
ARCHIVED = Note(NOT_ALL_READ, INFO, "archives among the files were passed over; name one to read it")
DOUBLED = Note(NOT_ALL_READ, INFO, "packed traces were passed over, because they lie there unpacked too")

OTHERS = "files of no kind that is read here were passed over"
_NAMED = 5


def in_folder(folder: Path, kinds: Kinds, max_bytes: int | None) -> list[Source]:
    """The traces in a folder and the folders below it, in natural order. Raises InputError when there are none."""
    files = sorted(_files(folder, kinds), key=natural)
    there = set(files)
    choice = _Choice(kinds)
    for path in files:
        if conversion := kinds.conversion(path):
            choice.convert(path, conversion, there, max_bytes)
        elif _UNFINISHED.search(path.name):
            choice.unfinished.append(path)
        else:
            choice.offer(path, partial(source_of, path, path, max_bytes))
    found = choice.settled()
    if not found:
        raise InputError(f"{folder}: the folder holds no trace files ({kinds.listed}, also packed); {choice.hint()}")
    return found


def in_archive(archive: Source, kind: str, kinds: Kinds) -> list[Source]:
    """The traces in an archive; for a single one, the archive's name will do. Raises InputError when there are none."""
    members, notes = archives.members_of(archive, kind)
    members = [member for member in members if not _HIDDEN.search(member.name)]
    wanted = [member for member in members if kinds.is_called(member.name) or len(members) == 1]
    choice = _Choice(kinds)
    wanted.sort(key=lambda member: natural(Path(member.name)))
    for member, opened in archives.sources_of(wanted):
        choice.offer(archive.path / member.name, opened)
    choice.other += [archive.path / member.name for member in members if member not in wanted]
    found = choice.settled()
    if not found:
        held = ", ".join(
            [member.name for member in members[:_NAMED_MEMBERS]] + ["..."] * (len(members) > _NAMED_MEMBERS)
        )
        raise InputError(f"{archive.path}: a {kind} archive without a trace; it holds {held or 'no files'}")
    path = archive.path if len(found) == 1 else found[0].path
    return [replace(found[0], path=path, notes=(*found[0].notes, *notes)), *found[1:]]


def is_recording_in(folder: Path, place: Path, kinds: Kinds) -> bool:
    """Whether the file at `place` is one of those in a folder that hold what was recorded, read or passed over, under whatever name.

    Raises InputError for a folder that cannot be read.
    """
    status = place.stat()
    return any(os.path.samestat(path.stat(), status) and _is_recording(path, kinds) for path in _files(folder, kinds))


def _is_recording(path: Path, kinds: Kinds) -> bool:
    if kinds.conversion(path) or _UNFINISHED.search(path.name):
        return True
    choice = _Choice(kinds)
    try:
        choice.offer(path, partial(source_of, path, path, None))
    except InputError:  # damaged
        return True
    return bool(choice.found or choice.archived)


@dataclass
class _Choice:
    """What was found among the files of one folder or archive."""

    kinds: Kinds
    found: list[Source] = field(default_factory=list)
    unfinished: list[Path] = field(default_factory=list)
    archived: list[Path] = field(default_factory=list)
    other: list[Path] = field(default_factory=list)

    def offer(self, path: Path, opened: Callable[[], Source]) -> None:
        """Take the file if it is of a kind. Raises InputError for one that is called like a trace and cannot be read."""
        try:
            source = opened()
        except InputError:
            if self.kinds.is_called_trace(path.name):
                raise
            self.other.append(path)
            return
        if archives.kind_of(source.head):
            self.archived.append(path)
        elif known := self.kinds.known(source, named=False):
            self.found.append(known)
        elif not self.kinds.is_own(source):
            self.other.append(path)

    def convert(self, path: Path, conversion: Conversion, there: set[Path], max_bytes: int | None) -> None:
        """Convert a recording, unless what it is converted to lies beside it."""
        if not there.isdisjoint(conversion.results_of(path)):
            return
        if conversion.is_unfinished(path):
            self.unfinished.append(path)
        else:
            self.found.append(converted(path, conversion, self.kinds, max_bytes))

    def settled(self) -> list[Source]:
        """The traces, each once; the first one carries the notes on what was passed over."""
        kept: dict[str, Source] = {}
        doubled: list[Path] = []
        for source in self.found:
            name = re.sub(_PACKED, "", str(source.path), flags=re.IGNORECASE)
            if name in kept:
                doubled.append(max(kept[name], source, key=lambda s: s.packed).path)
            kept[name] = min(kept.get(name, source), source, key=lambda s: s.packed)
        found = list(kept.values())
        notes = [
            note._replace(number=len(paths), example=paths[0].name)
            for note, paths in ((UNFINISHED, self.unfinished), (ARCHIVED, self.archived), (DOUBLED, doubled))
            if paths
        ]
        if self.other:
            names = [path.name for path in self.other[:_NAMED]]
            left = len(self.other) - len(names)
            words = f"{OTHERS}: {', '.join(names)}{f' and {left} more' if left else ''}"
            notes.append(Note(NOT_ALL_READ, INFO, words, len(self.other)))
        if found:
            found[0] = replace(found[0], notes=(*found[0].notes, *notes))
        return found

    def hint(self) -> str:
        """What to do about a folder without traces."""
        if self.unfinished:
            first = self.unfinished[0]
            if conversion := self.kinds.called(first):
                return f"{first}: {conversion.advice(first)}"
            return f"to read what is in {first}, which is unfinished, name it"
        if self.archived:
            return f"to read {self.archived[0]}, name it"
        known = (f"{path}: {words}" for path in self.other if (words := self.kinds.explain_suffix(path)))
        return next(known, "name the files themselves")


def trace_in(path: Path, place: Path, kinds: Kinds, max_bytes: int | None, kept: object) -> list[Source]:
    """The trace that one file of a folder is, read at `place`, or nothing. Raises InputError for one that cannot be read."""
    choice = _Choice(kinds)
    choice.offer(path, partial(source_of, path, place, max_bytes, kept))
    return choice.found


def converted(path: Path, conversion: Conversion, kinds: Kinds, max_bytes: int | None) -> Source:
    """What a recording is converted to. Raises InputError where that cannot be done."""
    made, folder = conversion.convert(path)
    source = replace(source_of(path, made, max_bytes, kept=folder), origin=path, size=path.stat().st_size)
    return kinds.known(source, named=True) or source


def named(source: Source, kinds: Kinds) -> list[Source]:
    """The file that the user named, or the traces in it. Raises InputError for what is known to be none that is read."""
    if kind := archives.kind_of(source.head):
        return in_archive(source, kind, kinds)
    return [kinds.known(source, named=True) or source]


def _files(folder: Path, kinds: Kinds) -> Iterable[Path]:
    """All regular files that are not hidden, each once, under the name that leads over the fewest links."""
    seen: set[tuple[int, int]] = set()
    pending = [folder]
    while pending:
        for top, folders, names in os.walk(pending.pop(0), onerror=_refuse):
            if not _first(Path(top).stat(), seen):
                folders.clear()
                continue
            folders[:] = [name for name in folders if not name.startswith(".")]
            pending += [path for name in folders if (path := Path(top, name)).is_symlink()]
            paths = [Path(top, name) for name in names if not name.startswith(".")]
            for path in sorted(paths, key=lambda path: path.is_symlink()):
                try:
                    status = path.stat()
                except OSError as error:
                    if kinds.is_called_trace(path.name):
                        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
                    continue
                if stat.S_ISREG(status.st_mode) and _first(status, seen):
                    yield path


def _refuse(error: OSError) -> None:
    raise InputError(f"{error.filename}: cannot be read ({error.strerror})") from error


def _first(status: os.stat_result, seen: set[tuple[int, int]]) -> bool:
    """Whether a file or folder has not been met before."""
    key = (status.st_dev, status.st_ino)
    if key in seen:
        return False
    seen.add(key)
    return True


def natural(path: Path) -> list[tuple[str, int, str]]:
    """Sorts rank2 before rank10."""
    parts = re.split(r"([0-9]+)", str(path))
    numbers = [digits.lstrip("0") for digits in (*parts[1::2], "")]
    # Of two numbers the one with more digits is larger.
    return [(text, len(number), number) for text, number in zip(parts[::2], numbers, strict=True)]
