"""Where bytes come from: files and directories, plain or gzipped, told apart by content and only ever opened for reading."""

from __future__ import annotations

import gzip
import hashlib
import io
import re
import shlex
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
NSYS_SUFFIXES = (".nsys-rep", ".qdrep", ".qdstrm")

# Starts of files that people hand over by mistake, and what to do with them.
_KNOWN_STARTS: tuple[tuple[bytes, str], ...] = (
    (b"PK\x03\x04", "a zip archive; unpack it and name the trace inside"),
    (b"\x28\xb5\x2f\xfd", "zstandard data; unpack it first: zstd -d {path}"),
    (b"\xfd7zXZ\x00", "xz data; unpack it first: xz -dk {path}"),
    (b"BZh", "bzip2 data; unpack it first: bunzip2 -k {path}"),
    (b"\xff\xfe", "UTF-16 text; convert it first: iconv -f UTF-16 -t UTF-8 {path} > trace.json"),
    (b"\xfe\xff", "UTF-16 text; convert it first: iconv -f UTF-16 -t UTF-8 {path} > trace.json"),
    (b"PAR1", "a Parquet table; to read a store, name its folder"),
)
_TAR = (257, b"ustar")


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

    Results and stores of this tool that lie in a directory are passed over. Raises InputError for a path that does not exist,
    cannot be read or is empty, for one that is named twice, and for a directory without trace files.
    """
    found = [source for given in inputs for source in (_folder(given) if given.is_dir() else [_file(given)])]
    seen: set[Path] = set()
    for source in found:
        if source.path.resolve() in seen:
            raise InputError(f"{source.path}: is given twice; name every trace once")
        seen.add(source.path.resolve())
    return found


def _folder(given: Path) -> list[Source]:
    try:
        files = sorted((p for p in given.rglob("*") if p.is_file()), key=_natural)
    except OSError as error:
        raise InputError(f"{given}: cannot be read ({error.strerror})") from error
    named = (_open_source(p) for p in files if p.name.lower().endswith(TRACE_SUFFIXES))
    found = [source for source in named if not _is_own(source)]
    if not found:
        for path in files:
            if path.name.lower().endswith(NSYS_SUFFIXES):
                raise InputError(_nsys_words(path))
        suffixes = ", ".join(TRACE_SUFFIXES)
        raise InputError(f"{given}: the folder holds no trace files ({suffixes}); name the files themselves")
    return found


def _file(given: Path) -> Source:
    if str(given) == "-":
        raise InputError("-: a trace cannot be read from standard input; write it to a file first")
    if given.is_symlink() and not given.exists():
        raise InputError(f"{given}: a link to {given.readlink()}, which does not exist")
    if not given.exists():
        raise InputError(f"{given}: no such file or folder; check the path")
    if given.is_fifo():
        raise InputError(f"{given}: a pipe; a trace is read more than once, write it to a file first")
    source = _open_source(given)
    if _is_own(source):
        raise InputError(f"{given}: written by traceanalyzer itself; name the trace, or the folder of the store")
    return source


def _natural(path: Path) -> list[tuple[str, int]]:
    """Sorts rank2 before rank10."""
    parts = re.split(r"(\d+)", str(path))
    return [(text, int(number)) for text, number in zip(parts[::2], [*parts[1::2], "0"], strict=True)]


def _is_own(source: Source) -> bool:
    """Whether it is a result document or the manifest of a store."""
    return b'"schema_version"' in source.head[:40] and b'"traceanalyzer"' in source.head[:120]


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
    if name.endswith(NSYS_SUFFIXES):
        return _nsys_words(path)
    for start, words in _KNOWN_STARTS:
        if source.head.startswith(start):
            return f"{path}: {words.format(path=shlex.quote(str(path)))}"
    if source.head[_TAR[0] :].startswith(_TAR[1]):
        return f"{path}: a tar archive; unpack it and name the trace inside"
    return (
        f"{path}: neither a PyTorch/Chrome trace (JSON) nor an Nsight Systems SQLite export; "
        "record with torch.profiler's export_chrome_trace, or run nsys export --type sqlite"
    )


def _nsys_words(path: Path) -> str:
    report = path.with_suffix(".nsys-rep")
    export = shlex.join(["nsys", "export", "--type", "sqlite", "--output", str(path.with_suffix(".sqlite"))])
    if path.suffix.lower() == ".qdstrm":
        return (
            f"{path}: an unfinished Nsight Systems capture; convert it first: QdstrmImporter -i {shlex.quote(str(path))}, "
            f"then {export} {shlex.quote(str(report))}"
        )
    return f"{path}: an Nsight Systems report; export it first: {export} {shlex.quote(str(path))}"
