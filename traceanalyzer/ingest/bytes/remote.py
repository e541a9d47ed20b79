"""Traces behind URLs (`s3://bucket/run/`): found by name, fetched one by one by whoever reads them, and read as local files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path, PurePosixPath

from traceanalyzer.errors import InputError
from traceanalyzer.ingest.bytes import folders
from traceanalyzer.ingest.bytes.kinds import Kinds
from traceanalyzer.ingest.bytes.limits import allowed_bytes, check_size
from traceanalyzer.ingest.bytes.scratch import ScratchFolder
from traceanalyzer.ingest.bytes.source import Source, source_of
from traceanalyzer.records import dataclass
from traceanalyzer.urls import RemoteFolder, shown_place, without_credentials


@dataclass(frozen=True)
class RemoteFile:
    """A file that may be a trace, or an archive of them. `named` says that the user named it, so that it has to be one."""

    path: Path
    url: str
    size: int
    named: bool
    max_bytes: int | None

    def fetch(self, kinds: Kinds) -> list[Source]:
        """The traces in it, in a temporary folder that lives as long as they do. Raises InputError for what cannot be read."""
        try:
            check_size(self.path, self.size, allowed_bytes(self.size, self.max_bytes))
            folder = ScratchFolder()
            place = folder.path / self.path.name
            RemoteFolder(self.url).download("", place)
            return self._traces(place, kinds, folder)
        except OSError as error:
            raise InputError(f"{shown_place(self.url)}: cannot be read ({_why(error)})") from error
        except InputError as error:
            # A path has swallowed one slash of the URL.
            raise InputError(str(error).replace(str(self.path), shown_place(self.url))) from error

    def _traces(self, place: Path, kinds: Kinds, folder: ScratchFolder) -> list[Source]:
        if conversion := kinds.conversion(place):
            return [replace(folders.converted(place, conversion, kinds, self.max_bytes), path=self.path)]
        if not self.named:
            return folders.trace_in(self.path, place, kinds, self.max_bytes, folder)
        return folders.named(source_of(self.path, place, self.max_bytes, folder), kinds)


def remote_files(url: str, kinds: Kinds, max_bytes: int | None) -> list[RemoteFile]:
    """The files behind a URL: the one that it names, those that match its pattern, or those in a folder that are called like traces.

    In natural order. Raises InputError when there are none, or none can be listed.
    """
    there = RemoteFolder(url)
    try:
        everything = not there.is_folder()
        found = there.files()
    except FileNotFoundError as error:
        raise InputError(f"{shown_place(url)}: no such file or folder; check the URL") from error
    except OSError as error:
        raise InputError(f"{shown_place(url)}: cannot be read ({_why(error)})") from error
    files = [
        RemoteFile(Path(shown_place(name)), name, size, everything, max_bytes)
        for name, size in found
        if everything or kinds.is_called(PurePosixPath(shown_place(name)).name)
    ]
    if not files:
        raise InputError(
            f"{shown_place(url)}: there are no traces ({kinds.listed}, also packed); name the files themselves"
        )
    return sorted(files, key=lambda file: folders.natural(file.path))


def _why(error: OSError) -> str:
    """What a file system says, which may name the URL."""
    return without_credentials(str(error.strerror or error))
