"""The files in a zip or tar archive, each read where it lies.

A tar archive that is packed again has to be unpacked from its start for each of them; one with many is unpacked once, to disk. What all
files of an archive unpack to counts together: those that are plain have the size that the archive states, and what is left
of the limit is shared among the others by their size.
"""

from __future__ import annotations

import io
import struct
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from traceanalyzer.errors import InputError
from traceanalyzer.ingest.bytes.containers import (
    BZIP2,
    DEFLATE,
    ZSTD,
    Condition,
    Layer,
    Note,
    check_blocks,
    decompress,
    part,
)
from traceanalyzer.ingest.bytes.limits import check_count, check_name, check_total
from traceanalyzer.ingest.bytes.scratch import ScratchFolder
from traceanalyzer.ingest.bytes.source import Source, unpack, with_head
from traceanalyzer.records import dataclass
from traceanalyzer.vocabulary.health import NOT_ALL_READ
from traceanalyzer.vocabulary.levels import MEDIUM

COPY_BYTES = 1 << 20
MOST_PASSES = 32
"""So many files of one packed archive are found by reading it from its start again."""
# A name, or what else stands about a file in blocks of their own.
_MOST_HEADER_BYTES = 1 << 20
_HEADERS = (
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
)
_ZIP_MAGICS = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08PK")
_TAR_MAGIC = (257, b"ustar")
_LOCAL_HEADER = struct.Struct("<26xHH")
_METHODS = {zipfile.ZIP_DEFLATED: DEFLATE, zipfile.ZIP_BZIP2: BZIP2, 93: ZSTD}


def kind_of(head: bytes) -> str | None:
    """Which archive this is the start of: "zip", "tar" or none."""
    if head.startswith(_ZIP_MAGICS):
        return "zip"
    return "tar" if head.startswith(_TAR_MAGIC[1], _TAR_MAGIC[0]) else None


@dataclass(frozen=True)
class Member:
    """A file in an archive, not yet looked into. It lies at `span` = (start, length) and has `size` bytes, as the archive states."""

    archive: Source
    name: str
    span: tuple[int, int]
    size: int
    layers: tuple[Layer, ...] = ()
    refusal: str = ""

    def source(self, allowed: int) -> Source:
        """The member, with compression undone, of which each layer gives `allowed` bytes. Raises InputError when it cannot be read."""
        archive = self.archive
        path = archive.path / self.name
        if self.refusal:
            raise InputError(f"{path}: {self.refusal}")
        placed = replace(archive, path=path, member=self.name, allowed=allowed)
        if archive.layers:
            placed = replace(placed, layers=(*archive.layers, partial(part, *self.span)))
        else:
            placed = replace(placed, size=self.span[1], span=self.span)
        for layer in self.layers:
            placed = placed.within(layer)
        return unpack(with_head(placed))


def sources_of(members: Sequence[Member]) -> Iterator[tuple[Member, Callable[[], Source]]]:
    """Members, each with what opens it, with compression undone; all of them together stay within the archive's limit.

    Opening raises InputError for one that cannot be read. Raises InputError when they are too large together.
    """
    if not members:
        return
    archive = members[0].archive
    total = sum(member.size for member in members)
    check_total(archive.path, total, archive.allowed)
    if archive.layers and len(members) > MOST_PASSES:
        archive = _on_disk(archive)
        members = [replace(member, archive=archive) for member in members]
    left = archive.allowed - total

    for member in members:
        # What is in it may be packed again, and what the archive states may be wrong.
        yield member, partial(member.source, member.size + left * member.size // max(total, 1))


def _on_disk(archive: Source) -> Source:
    """A packed tar archive, unpacked to a temporary folder."""
    folder = ScratchFolder()
    place = folder.path / "archive.tar"
    try:
        with place.open("wb") as target:
            target.writelines(archive.blocks(Condition()))
    except OSError as error:
        raise InputError(f"{archive.path}: cannot be unpacked to a temporary file ({error.strerror})") from error
    return replace(archive, place=place, layers=(), kept=(archive.kept, folder))


def members_of(archive: Source, kind: str) -> tuple[list[Member], tuple[Note, ...]]:
    """All files in an archive, and what to say of it in health. Raises InputError when the archive cannot be read."""
    if kind == "tar":
        return _tar_members(archive)
    if archive.layers:
        raise InputError(f"{archive.path}: a zip archive that is packed again; unpack it and name the trace inside")
    return list(_zip_members(archive)), ()


def _zip_members(archive: Source) -> Iterator[Member]:
    try:
        with archive.place.open("rb") as file, zipfile.ZipFile(file) as opened:
            check_count(archive.path, len(opened.infolist()))
            for info in opened.infolist():
                if info.is_dir():
                    continue
                check_name(archive.path, info.filename)
                file.seek(info.header_offset)
                name_bytes, extra_bytes = _LOCAL_HEADER.unpack(file.read(_LOCAL_HEADER.size))
                start = info.header_offset + _LOCAL_HEADER.size + name_bytes + extra_bytes
                layers: list[Layer] = [partial(check_blocks, info.CRC)]
                refusal = ""
                if info.flag_bits & 1:
                    refusal = "encrypted; unpack it with its password and name the trace inside"
                elif info.compress_type in _METHODS:
                    layers.insert(0, partial(decompress, _METHODS[info.compress_type]))
                elif info.compress_type != zipfile.ZIP_STORED:
                    refusal = f"packed by method {info.compress_type}, which is not read; unpack it and name the trace"
                span = (start, info.compress_size)
                yield Member(archive, info.filename.lstrip("/"), span, info.file_size, tuple(layers), refusal)
    except (zipfile.BadZipFile, NotImplementedError, OSError, ValueError, struct.error) as error:
        raise InputError(f"{archive.path}: a zip archive that cannot be read ({error}); copy it again") from error


def _tar_members(archive: Source) -> tuple[list[Member], tuple[Note, ...]]:
    """Read through the whole archive once: tar has no directory. What a damaged archive still holds is given."""
    condition = Condition()
    blocks = _Blocks(archive.blocks(condition))
    members: list[Member] = []
    end = 0

    try:
        with tarfile.open(fileobj=io.BufferedReader(blocks), mode="r|", tarinfo=_Header) as opened:
            for info in opened:
                end = info.offset_data + info.size
                opened.members.clear()  # type: ignore[attr-defined]  # Else it keeps all of them.
                if info.isreg() and not info.issparse():
                    check_name(archive.path, info.name)
                    members.append(Member(archive, info.name.lstrip("/"), (info.offset_data, info.size), info.size))
                    check_count(archive.path, len(members))
            while blocks.read(COPY_BYTES):
                pass
    except (tarfile.TarError, OSError, ValueError) as error:
        condition.damaged(str(error))
    if blocks.filled > -(-end // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE:
        condition.damaged("a header is not valid")  # To tarfile, it is the end.
    if not condition.damage:
        return members, ()
    if not members:
        raise InputError(f"{archive.path}: a tar archive that cannot be read ({condition.damage}); copy it again")
    message = "the tar archive is damaged: what lies in it behind the last file that was found is lost"
    return members, (Note(NOT_ALL_READ, MEDIUM, message, 1, members[-1].name),)


class _Header(tarfile.TarInfo):
    """Of a file in a tar archive; what is written about it must fit into memory, whatever it says of its own size."""

    def _proc_member(self, opened: tarfile.TarFile) -> tarfile.TarInfo:
        if self.type in _HEADERS and self.size > _MOST_HEADER_BYTES:
            raise tarfile.InvalidHeaderError("a name is too long")  # type: ignore[attr-defined]
        return super()._proc_member(opened)  # type: ignore[misc,no-any-return]


class _Blocks(io.RawIOBase):
    """A readable stream over blocks. `filled` is where the last byte ends that is not zero, of those that were read."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks, self._held = blocks, memoryview(b"")
        self._size = self.filled = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        if not self._held:
            block = next(self._blocks, b"")
            if content := block.rstrip(b"\0"):
                self.filled = self._size + len(content)
            self._size += len(block)
            self._held = memoryview(block)
        count = min(len(buffer), len(self._held))
        buffer[:count] = self._held[:count]
        self._held = self._held[count:]
        return count
