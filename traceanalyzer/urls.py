"""Files that lie elsewhere: folders named by a URL (`s3://bucket/run.store`), through fsspec.

Whatever a file system raises becomes an OSError here, so that callers treat a bucket as they treat a disk. Only kinds of URLs that are
files and nothing else are opened, never a chain of them (`zip://…::http://…`), and no server can lead to another one.
"""

from __future__ import annotations

import errno
import posixpath
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from traceanalyzer.errors import InputError
from traceanalyzer.records import dataclass

Place = str | Path
"""A local path, or a URL."""

INSTALL = 'pip install "traceanalyzer[cluster]"'
# One letter before a colon is a drive. A Path keeps one slash of those behind it.
_URL = re.compile(r"([a-z][a-z0-9+.-]+):/(/?)(.*)", re.IGNORECASE | re.DOTALL)
_ON_THIS_MACHINE = ("file", "local")
_OVER_HTTP = ("http", "https")
_BUCKETS = ("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "oci", "oss", "hf", "hdfs", "webhdfs", "memory")
SCHEMES = (*_ON_THIS_MACHINE, *_OVER_HTTP, *_BUCKETS)
"""The kinds of URLs that are opened."""
# Who asks, and the query, in which a signature may stand.
_USER = re.compile(r"(?<=://)[^/\s'\"@]{1,512}+@")
_QUERY = re.compile(r"(?<=[^\s?])\?[^\s'\"?=]{1,128}=[^\s'\"]*")


def url_of(place: Place) -> str | None:
    """The URL that a place is, also one that went through `Path`; None for a local path."""
    if not (match := _URL.fullmatch(str(place))):
        return None
    scheme, second, rest = match.groups()
    if second:
        return str(place)
    return f"{scheme}:///{rest}" if scheme.lower() in _ON_THIS_MACHINE else f"{scheme}://{rest}"


def local_of(place: Place) -> Path | None:
    """The local path that a place is, also one that a URL of this machine (`file:///tmp/x`) names; None for what lies elsewhere."""
    url = url_of(place)
    if url is None:
        return Path(place)
    scheme, _, rest = url.partition("://")
    return Path(rest) if scheme.lower() in _ON_THIS_MACHINE else None


def shown_place(place: Place) -> str:
    """A place as messages name it: without the credentials that a URL may hold."""
    url = url_of(place)
    return str(place) if url is None else without_credentials(url)


def without_credentials(text: str) -> str:
    """A text without the users, passwords and queries of URLs in it."""
    return _QUERY.sub("", _USER.sub("", text)) if "://" in text else text


class ElsewhereError(OSError):
    """A server answers with another place than the one that was asked for."""


class RemoteError(OSError):
    """Who speaks to a server gave up, in words of its own: no such bucket, no credentials, too much to do."""


_PASSING = frozenset(
    (
        *(errno.EIO, errno.ESTALE, errno.EAGAIN, errno.EBUSY, errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE),
        *(errno.ENETDOWN, errno.ENETUNREACH, errno.EHOSTDOWN, errno.EHOSTUNREACH),
    )
)


def may_pass(error: BaseException | None) -> bool:
    """Whether a disk or network is to blame for an error, not the file that could not be read."""
    while error is not None:
        if isinstance(error, ConnectionError | TimeoutError | RemoteError):
            return True
        if isinstance(error, OSError) and error.errno in _PASSING:
            return True
        error = error.__cause__ or error.__context__
    return False


@dataclass(frozen=True)
class RemoteFolder:
    """A folder behind a URL. Names are relative to it. Raises InputError for a URL that cannot be understood, else OSError."""

    url: str

    def _open(self) -> tuple[Any, str]:
        """The file system, which fsspec keeps, and the folder in it."""
        place, scheme = shown_place(self.url), self.url.partition(":")[0].lower()
        if scheme not in SCHEMES or "::" in self.url:
            what = "chained URLs" if "::" in self.url else f"URLs that begin with {scheme}:"
            raise InputError(f"{place}: {what} are not opened; name a local path, or a URL such as s3://bucket/folder")
        try:
            from fsspec.core import url_to_fs
        except ImportError as error:
            raise InputError(f"{place}: to read and write URLs, {INSTALL}") from error
        try:
            filesystem, root = url_to_fs(self.url, **({"get_client": _client} if scheme in _OVER_HTTP else {}))
        except ImportError as error:  # what speaks to one kind of store is a package of its own
            raise InputError(f"{place}: {error}") from error
        except ValueError as error:
            told = without_credentials(str(error))
            raise InputError(f"{place}: {told}; name a local path, or a URL such as s3://bucket/folder") from error
        return filesystem, root.rstrip("/")

    def within(self, name: str) -> RemoteFolder:
        """A folder in this one."""
        return RemoteFolder(f"{self.url.rstrip('/')}/{name}")

    def holds(self, url: str) -> bool:
        """Whether the URL names this folder or something in it, however it is spelled."""
        filesystem, root = self._open()
        other, place = RemoteFolder(url)._open()
        if filesystem != other:
            return False
        own, place = (posixpath.normpath(f"/{path}") for path in (root, place))
        return place == own or place.startswith(f"{own.rstrip('/')}/")

    def read(self, name: str) -> bytes:
        """The content of a file."""
        with self._errors() as (filesystem, root):
            return bytes(filesystem.cat_file(_join(root, name)))

    def write(self, name: str, content: bytes) -> None:
        """Write a file, replacing one that is there."""
        with self._errors() as (filesystem, root):
            filesystem.makedirs(_above(_join(root, name)), exist_ok=True)
            filesystem.pipe_file(_join(root, name), content)

    def upload(self, local: Path, name: str) -> None:
        """Write a file with the content of a local one."""
        with self._errors() as (filesystem, root):
            filesystem.makedirs(_above(_join(root, name)), exist_ok=True)
            filesystem.put_file(str(local), _join(root, name))

    def download(self, name: str, local: Path) -> None:
        """Write a local file with the content of one here."""
        with self._errors() as (filesystem, root):
            filesystem.get_file(_join(root, name), str(local))

    def copy(self, name: str, target: str) -> None:
        """Copy a file within the folder."""
        with self._errors() as (filesystem, root):
            filesystem.makedirs(_above(_join(root, target)), exist_ok=True)
            filesystem.cp_file(_join(root, name), _join(root, target))

    def remove(self, name: str) -> None:
        """Remove a file, or a folder with all that is in it, if it is there."""
        with self._errors() as (filesystem, root):
            if filesystem.exists(_join(root, name)):
                filesystem.rm(_join(root, name), recursive=True)

    def size(self, name: str) -> int | None:
        """The bytes of a file, None when there is none of the name."""
        try:
            with self._errors() as (filesystem, root):
                return int(filesystem.info(_join(root, name))["size"])
        except FileNotFoundError:
            return None

    def names(self) -> list[str]:
        """What lies in the folder; nothing where there is none."""
        try:
            with self._errors() as (filesystem, root):
                filesystem.invalidate_cache()
                return [str(path).rstrip("/").rpartition("/")[2] for path in filesystem.ls(root, detail=False)]
        except (FileNotFoundError, NotADirectoryError):
            return []

    def files(self) -> list[tuple[str, int]]:
        """(URL, bytes) of all files behind the URL: the one that it names, those that match its pattern, or all below a folder."""
        with self._errors() as (filesystem, root):
            if any(sign in root for sign in "*?["):
                found = filesystem.glob(root, detail=True)
            elif filesystem.isdir(root):
                found = filesystem.find(root, detail=True)
            else:
                found = {root: filesystem.info(root)}
            files = [(name, facts) for name, facts in found.items() if facts["type"] == "file"]
            return [(str(filesystem.unstrip_protocol(name)), int(facts["size"])) for name, facts in files]

    def is_folder(self) -> bool:
        """Whether the URL names a folder, not a file or a pattern."""
        with self._errors() as (filesystem, root):
            return bool(filesystem.isdir(root))

    @contextmanager
    def _errors(self) -> Iterator[tuple[Any, str]]:
        """The same, for use. Its clients have errors of their own: no credentials, no such bucket."""
        there = self._open()
        try:
            yield there
        except Exception as error:
            if (elsewhere := _elsewhere(error)) is not None:
                raise elsewhere from error
            if isinstance(error, OSError):
                raise
            raise RemoteError(without_credentials(f"{type(error).__name__}: {error}")) from error


def _elsewhere(error: BaseException | None) -> ElsewhereError | None:
    """What a file system made another error of, such as a missing file."""
    while error is not None and not isinstance(error, ElsewhereError):
        error = error.__cause__ or error.__context__
    return error


async def _client(**options: Any) -> Any:
    """An HTTP client that follows a server to no other one, and from https to nothing less."""
    import aiohttp

    async def check(_: Any, __: Any, asked: Any) -> None:
        location = asked.response.headers.get("Location") or asked.response.headers.get("URI") or ""
        there = asked.url.join(type(asked.url)(location))
        same = there.scheme == asked.url.scheme and there.port == asked.url.port
        secured = (asked.url.scheme, asked.url.port, there.scheme, there.port) == ("http", 80, "https", 443)
        if there.host != asked.url.host or not (same or secured):
            asked.response.close()
            raise ElsewhereError(
                f"it redirects to {there.scheme}://{there.host}, which is not followed; name that URL itself"
            )

    watch = aiohttp.TraceConfig()
    watch.on_request_redirect.append(check)
    return aiohttp.ClientSession(trace_configs=[watch], **options)


def _join(root: str, name: str) -> str:
    return f"{root}/{name}" if name else root


def _above(path: str) -> str:
    return path.rpartition("/")[0]
