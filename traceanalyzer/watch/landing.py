"""The captures that lie in a folder or behind a URL, and which of them have landed: nobody writes to them any more."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path

from traceanalyzer.files import status_of
from traceanalyzer.records import dataclass
from traceanalyzer.urls import Place, RemoteFolder, local_of, url_of

_UNFINISHED = (".tmp", ".part", ".partial", ".crdownload", ".unfinished", ".swp", "~")
"""Endings by which programs mark what they are still writing."""


@dataclass(frozen=True)
class Landed:
    """A capture: a file, or a folder with the files of a job's ranks or a store. `name` is that in the folder that is watched,
    `stamp` what tells it from the same one with other content, and `changed_ns` when that last changed, where it is known."""

    name: str
    place: Place
    stamp: str
    changed_ns: int | None

    @property
    def key(self) -> str:
        """What stands for this capture with this content, fit for the name of a file."""
        return sha256(f"{self.name}\n{self.stamp}".encode("utf-8", "surrogateescape")).hexdigest()[:32]


def captures_in(watched: Place) -> list[Landed]:
    """All that lies there, by name; hidden files and what is marked as unfinished are left out. Raises OSError, and InputError for
    what no URL can be."""
    local = local_of(watched)
    return sorted(_local(local) if local is not None else _remote(url_of(watched) or ""), key=lambda one: one.name)


def _local(folder: Path) -> Iterator[Landed]:
    for entry in os.scandir(folder):
        if _is_hidden(entry.name):
            continue
        path = Path(entry.path)
        files = (
            [path] if not entry.is_dir() else [file for file in sorted(path.rglob("*")) if not _is_hidden(file.name)]
        )
        found = [(file, status) for file in files if (status := status_of(file)) is not None]
        regular = [(file, status) for file, status in found if file.is_file()]
        if regular:
            parts = [f"{file.relative_to(folder)} {status.st_size} {status.st_mtime_ns}" for file, status in regular]
            yield Landed(entry.name, path, "\n".join(parts), max(status.st_mtime_ns for _, status in regular))


def _remote(url: str) -> Iterator[Landed]:
    """Files of the folder, and folders in it with what is below them."""
    root = url.rstrip("/")
    parts: dict[str, list[str]] = {}
    for file, size in RemoteFolder(url).files():
        inside = file.rpartition(root.partition("://")[2])[2].lstrip("/")
        name = inside.partition("/")[0]
        if inside and not any(_is_hidden(part) for part in inside.split("/")):
            parts.setdefault(name, []).append(f"{inside} {size}")
    for name, files in parts.items():
        yield Landed(name, f"{root}/{name}", "\n".join(sorted(files)), None)


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or name.lower().endswith(_UNFINISHED)


class Settling:
    """Which captures have been the same for some time, as far as this process has seen. Times are in seconds of any one clock."""

    def __init__(self, settle_s: float) -> None:
        self._settle_s = settle_s
        self._since: dict[str, tuple[str, float]] = {}

    def settled(self, found: Iterable[Landed], now_s: float, now_ns: int) -> list[Landed]:
        """Those that have not changed for so long. Of a file on a disk its time tells that too, so one that lies there for an hour is
        taken at once."""
        found = list(found)
        known = {one.name: self._since.get(one.name, ("", now_s)) for one in found}
        self._since = {
            one.name: known[one.name] if known[one.name][0] == one.stamp else (one.stamp, now_s) for one in found
        }
        return [one for one in found if self._is_still(one, now_s, now_ns)]

    def _is_still(self, one: Landed, now_s: float, now_ns: int) -> bool:
        age_s = 0.0 if one.changed_ns is None else (now_ns - one.changed_ns) / 1e9
        return max(now_s - self._since[one.name][1], age_s) >= self._settle_s
