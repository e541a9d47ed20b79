"""A folder that only ever grows, on a disk or behind a URL: files are written whole, once, and never changed."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from traceanalyzer.files import open_regular, replacing, resolve_place
from traceanalyzer.records import dataclass
from traceanalyzer.urls import Place, RemoteFolder, local_of, url_of


class Folder(Protocol):
    """What a history needs of a folder. Names are relative to it, with "/"; all of it raises OSError."""

    def names(self, within: str) -> list[str]:
        """The files of a folder in it, in no order; none where there is no such folder."""

    def read(self, name: str) -> bytes:
        """The content of a file."""

    def write(self, name: str, content: bytes) -> None:
        """Write a file: it is there whole or not at all."""


def folder_at(place: Place) -> Folder:
    """The folder at a place. Raises InputError for what no place can be."""
    local = local_of(place)
    return RemotePlace(RemoteFolder(url_of(place) or "")) if local is None else LocalPlace(resolve_place(local))


@dataclass(frozen=True)
class LocalPlace:
    """A folder on a disk."""

    path: Path

    def names(self, within: str) -> list[str]:
        """Also what others are just writing, under names that begin with a dot, is left out."""
        try:
            return [one.name for one in (self.path / within).iterdir() if not one.name.startswith(".")]
        except FileNotFoundError:
            return []

    def read(self, name: str) -> bytes:
        with open_regular(self.path / name) as file:
            return file.read()

    def write(self, name: str, content: bytes) -> None:
        with replacing(self.path / name) as file:
            file.write(content)


@dataclass(frozen=True)
class RemotePlace:
    """A folder behind a URL. Object stores show a file when all of it is there."""

    folder: RemoteFolder

    def names(self, within: str) -> list[str]:
        return self.folder.within(within).names()

    def read(self, name: str) -> bytes:
        return self.folder.read(name)

    def write(self, name: str, content: bytes) -> None:
        self.folder.write(name, content)
