"""The traces in a folder or an archive: which of its files are read, which are passed over, and what is said of those.

A file is a trace because of its content. Its name only decides what happens when the content does not say: what is called like a
trace and cannot be read stops everything, so that no rank is lost silently; anything else is passed over.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path

from traceanalyzer.errors import InputError
from traceanalyzer.ingest.bytes import archives, foreign, nsys_reports
from traceanalyzer.ingest.bytes.containers import READ_BYTES, Condition, Note
from traceanalyzer.ingest.bytes.source import HEAD_BYTES, SQLITE_MAGIC, Source, source_of
from traceanalyzer.vocabulary.health import NOT_ALL_READ, RANKS_IN_DOUBT
from traceanalyzer.vocabulary.levels import INFO, LOW

_PACKED = r"\.(?:gz|zst|xz|bz2)$"
_TRACE_NAME = re.compile(rf"\.(?:json|sqlite)(?:{_PACKED})?$", re.IGNORECASE)
_UNFINISHED = re.compile(r"\.json(?:\.gz)?\.tmp$", re.IGNORECASE)
# Members of archives; "./" is no hidden folder.
_HIDDEN = re.compile(r"(?:^|/)(?:\.(?!\.?/)|__MACOSX/)")
_NSYS_TABLES = re.compile(rb"CUPTI_ACTIVITY_KIND_|NVTX_EVENTS|TARGET_INFO_")
# Metadata before the events may be long: custom metadata holds whole configurations.
_SEARCHED_BYTES = 8 << 20
_NAMED_MEMBERS = 3
# A rank may be missing.
UNFINISHED = Note(
    RANKS_IN_DOUBT, LOW, "unfinished recordings among the files were passed over; name one to read what it holds"
)
ARCHIVED = Note(NOT_ALL_READ, INFO, "archives among the files were passed over; name one to read it")
DOUBLED = Note(NOT_ALL_READ, INFO, "packed traces were passed over, because they lie there unpacked too")


def is_own(head: bytes) -> bool:
    """Whether it is a result document or the manifest of a store."""
    return b'"schema_version"' in head[:40] and b'"traceanalyzer"' in head[:120]


def in_folder(folder: Path, max_bytes: int | None) -> list[Source]:
    """The traces in a folder and the folders below it, in natural order. Raises InputError when there are none."""
    files = sorted(_files(folder), key=natural)
    there = set(files)
    choice = _Choice()
    for path in files:
        if to_convert(path):
            choice.report(path, there, max_bytes)
        elif _UNFINISHED.search(path.name):
            choice.unfinished.append(path)
        else:
            choice.offer(path, partial(source_of, path, path, max_bytes))
    found = choice.settled()
    if not found:
        raise InputError(f"{folder}: the folder holds no trace files (.json or .sqlite, also packed); {choice.hint()}")
    return found


def in_archive(archive: Source, kind: str) -> list[Source]:
    """The traces in an archive; for a single one, the archive's name will do. Raises InputError when there are none."""
    members, notes = archives.members_of(archive, kind)
    members = [member for member in members if not _HIDDEN.search(member.name)]
    wanted = [member for member in members if _TRACE_NAME.search(member.name) or len(members) == 1]
    choice = _Choice()
    wanted.sort(key=lambda member: natural(Path(member.name)))
    for member, opened in archives.sources_of(wanted):
        choice.offer(archive.path / member.name, opened)
    found = choice.settled()
    if not found:
        held = ", ".join(
            [member.name for member in members[:_NAMED_MEMBERS]] + ["..."] * (len(members) > _NAMED_MEMBERS)
        )
        raise InputError(f"{archive.path}: a {kind} archive without a trace; it holds {held or 'no files'}")
    path = archive.path if len(found) == 1 else found[0].path
    return [replace(found[0], path=path, notes=(*found[0].notes, *notes)), *found[1:]]


def is_recording_in(folder: Path, place: Path) -> bool:
    """Whether the file at `place` is one of those in a folder that hold what was recorded, read or passed over, under whatever name.

    Raises InputError for a folder that cannot be read.
    """
    status = place.stat()
    return any(os.path.samestat(path.stat(), status) and _is_recording(path) for path in _files(folder))


def _is_recording(path: Path) -> bool:
    if to_convert(path) or _UNFINISHED.search(path.name):
        return True
    choice = _Choice()
    try:
        choice.offer(path, partial(source_of, path, path, None))
    except InputError:  # damaged
        return True
    return bool(choice.found or choice.archived)


@dataclass
class _Choice:
    """What was found among the files of one folder or archive."""

    found: list[Source] = field(default_factory=list)
    unfinished: list[Path] = field(default_factory=list)
    archived: list[Path] = field(default_factory=list)
    other: list[Path] = field(default_factory=list)

    def offer(self, path: Path, opened: Callable[[], Source]) -> None:
        """Take the file if it is a trace. Raises InputError for one that is called like a trace and cannot be read."""
        called_trace = is_called_trace(path.name)
        try:
            source = opened()
        except InputError:
            if called_trace:
                raise
            return
        if archives.kind_of(source.head):
            self.archived.append(path)
        elif _is_trace(source, called_trace):
            self.found.append(source)
        else:
            self.other.append(path)

    def report(self, path: Path, there: set[Path], max_bytes: int | None) -> None:
        """Convert a report, unless its export lies beside it."""
        if not there.isdisjoint(nsys_reports.exports_of(path)):
            return
        if nsys_reports.is_capture(path):
            self.unfinished.append(path)
        else:
            self.found.append(from_report(path, max_bytes))

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
        if found:
            found[0] = replace(found[0], notes=(*found[0].notes, *notes))
        return found

    def hint(self) -> str:
        """What to do about a folder without traces."""
        if self.unfinished:
            first = self.unfinished[0]
            if nsys_reports.is_capture(first):
                return f"{first}: {nsys_reports.advice(first)}"
            return f"to read what is in {first}, which is unfinished, name it"
        if self.archived:
            return f"to read {self.archived[0]}, name it"
        known = (f"{path}: {words}" for path in self.other if (words := foreign.explain_suffix(path)))
        return next(known, "name the files themselves")


def is_called_trace(name: str) -> bool:
    """Whether a file has the name of a trace or of a report of Nsight Systems."""
    return bool(_TRACE_NAME.search(name)) or nsys_reports.is_report(Path(name))


def trace_in(path: Path, place: Path, max_bytes: int | None, kept: object) -> list[Source]:
    """The trace that one file of a folder is, read at `place`, or nothing. Raises InputError for one that cannot be read."""
    choice = _Choice()
    choice.offer(path, partial(source_of, path, place, max_bytes, kept))
    return choice.found


def to_convert(path: Path) -> bool:
    """Whether a file is a report of Nsight Systems: called so, and nothing else that is known."""
    if not nsys_reports.is_report(path):
        return False
    try:
        with path.open("rb") as stream:
            head = stream.read(HEAD_BYTES)
    except OSError:
        return False
    return bool(head) and not head.startswith(SQLITE_MAGIC) and foreign.explain(path, head) is None


def from_report(path: Path, max_bytes: int | None) -> Source:
    """A report of Nsight Systems, converted. Raises InputError where that cannot be done."""
    export, folder = nsys_reports.exported(path)
    return replace(source_of(path, export, max_bytes, kept=folder), origin=path, size=path.stat().st_size)


def _is_trace(source: Source, called_trace: bool) -> bool:
    head, name = source.head, source.path.name.lower()
    if is_own(head):
        return False
    if words := foreign.explain(source.path, head):
        if called_trace and not foreign.starts_as_json(head):
            raise InputError(f"{source.path}: {words}")
        return False
    if head.startswith(SQLITE_MAGIC):
        return called_trace or bool(_NSYS_TABLES.search(head))
    if not foreign.starts_as_json(head):
        return called_trace
    return foreign.is_events(head) or (called_trace and ("trace" in name or _names_events(source)))


def _names_events(source: Source) -> bool:
    """Whether events begin behind the head."""
    start = b"".join(islice(source.blocks(Condition()), _SEARCHED_BYTES // READ_BYTES))
    return foreign.is_events(start)


def _files(folder: Path) -> Iterable[Path]:
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
                    if _TRACE_NAME.search(path.name):
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
