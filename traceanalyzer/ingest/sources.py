"""Where bytes come from: files and directories, plain or gzipped, told apart by content and only ever opened for reading."""

from __future__ import annotations

import gzip
import hashlib
import io
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from traceanalyzer.errors import InputError

GZIP_MAGIC = b"\x1f\x8b"
SQLITE_MAGIC = b"SQLite format 3\x00"
LFS_MAGIC = b"version https://git-lfs"
HEAD_BYTES = 64 * 1024
TRACE_SUFFIXES = (".json", ".json.gz", ".sqlite", ".sqlite.gz")


@dataclass(frozen=True)
class Source:
    """One input file. `head` is the start of its content after decompression, `size` its bytes on disk."""

    path: Path
    size: int
    compressed: bool
    head: bytes

    def open(self, progress: Callable[[int], None] | None = None) -> IO[bytes]:
        """Open the decompressed content from its start; `progress` hears of bytes read from disk. The caller closes it."""
        raw = self.path.open("rb")
        counted: IO[bytes] = io.BufferedReader(_Counted(raw, progress), 1 << 20) if progress else raw
        return cast("IO[bytes]", gzip.GzipFile(fileobj=counted, mode="rb")) if self.compressed else counted

    def sha256(self) -> str:
        """Hex digest of the file as it lies on disk."""
        with self.path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()


class _Counted(io.RawIOBase):
    """A raw stream that reports how much was read."""

    def __init__(self, stream: IO[bytes], progress: Callable[[int], None]) -> None:
        self._stream, self._progress = stream, progress

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        self._progress(len(data))
        return len(data)

    def close(self) -> None:
        self._stream.close()
        super().close()


def find_sources(inputs: list[Path]) -> list[Source]:
    """The trace files behind the given files and directories, sorted within each directory.

    Raises InputError for a path that does not exist, cannot be read or is empty, and for a directory without trace files.
    """
    return [_open_source(path) for given in inputs for path in _files(given)]


def _files(given: Path) -> list[Path]:
    if given.is_dir():
        found = sorted(p for p in given.rglob("*") if p.is_file() and p.name.lower().endswith(TRACE_SUFFIXES))
        if not found:
            suffixes = ", ".join(TRACE_SUFFIXES)
            raise InputError(f"{given}: the folder holds no trace files ({suffixes}); name the files themselves")
        return found
    if not given.exists():
        raise InputError(f"{given}: no such file or folder")
    return [given]


def _open_source(path: Path) -> Source:
    try:
        size = path.stat().st_size
        with path.open("rb") as stream:
            start = stream.read(HEAD_BYTES)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    if not start:
        raise InputError(f"{path}: the file is empty; record or export the trace again")
    if start.startswith(LFS_MAGIC):
        raise InputError(f"{path}: this is a Git LFS pointer, not the trace; run `git lfs pull` first")
    compressed = start.startswith(GZIP_MAGIC)
    return Source(path, size, compressed, _inflate(path, start) if compressed else start)


def _inflate(path: Path, start: bytes) -> bytes:
    """What can be decompressed from the first bytes of a gzip file."""
    try:
        return zlib.decompressobj(wbits=31).decompress(start, HEAD_BYTES)
    except zlib.error as error:
        raise InputError(f"{path}: damaged gzip data ({error}); copy or record the trace again") from error


def explain_unknown(source: Source) -> str:
    """One line for a file that no importer reads. The suffix may choose the words, never the format."""
    path, name = source.path, source.path.name.lower()
    if name.endswith((".nsys-rep", ".qdrep")):
        return f"{path}: a Nsight Systems report; export it first: nsys export --type sqlite --output {path.stem}.sqlite {path}"
    if name.endswith(".qdstrm"):
        return f"{path}: an unfinished Nsight Systems capture; import it with QdstrmImporter, then nsys export --type sqlite"
    return (
        f"{path}: neither a PyTorch/Chrome trace (JSON) nor a Nsight Systems SQLite export; "
        "record with torch.profiler's export_chrome_trace, or run nsys export --type sqlite"
    )
