"""The files in a zip or tar archive, each read where it lies: nothing is written to disk."""

from __future__ import annotations

import io
import struct
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from traceanalyzer.errors import InputError
from traceanalyzer.ingest.containers import BZIP2, DEFLATE, ZSTD, Condition, Layer, Note, checked, decompressed, part
from traceanalyzer.ingest.source import Source, unpacked, with_head

COPY_BYTES = 1 << 20
_ZIP_MAGICS = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08PK")
_TAR_MAGIC = (257, b"ustar")
_LOCAL_HEADER = struct.Struct("<26xHH")
_METHODS = {zipfile.ZIP_DEFLATED: DEFLATE, zipfile.ZIP_BZIP2: BZIP2, 93: ZSTD}


def kind_of(head: bytes) -> str | None:
    """Which archive this is the start of: "zip", "tar" or none."""
    if head.startswith(_ZIP_MAGICS):
        return "zip"
    return "tar" if head.startswith(_TAR_MAGIC[1], _TAR_MAGIC[0]) else None


class Member:
    """A file in an archive, not yet looked into."""

    def __init__(self, archive: Source, name: str, span: tuple[int, int], layers: tuple[Layer, ...], refusal: str = ""):
        self.archive, self.name, self._span, self._layers, self._refusal = (
            archive,
            name.lstrip("/"),
            span,
            layers,
            refusal,
        )

    def source(self) -> Source:
        """The member, with compression undone. Raises InputError when it cannot be read."""
        archive = self.archive
        path = archive.path / self.name
        if self._refusal:
            raise InputError(f"{path}: {self._refusal}")
        if archive.layers:
            layers: tuple[Layer, ...] = (*archive.layers, partial(part, *self._span))
            return unpacked(with_head(replace(archive, path=path, member=self.name, layers=layers)))
        return unpacked(
            with_head(
                replace(archive, path=path, member=self.name, size=self._span[1], span=self._span, layers=self._layers)
            )
        )


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
            for info in opened.infolist():
                if info.is_dir():
                    continue
                file.seek(info.header_offset)
                name_bytes, extra_bytes = _LOCAL_HEADER.unpack(file.read(_LOCAL_HEADER.size))
                start = info.header_offset + _LOCAL_HEADER.size + name_bytes + extra_bytes
                layers: list[Layer] = [partial(checked, info.CRC)]
                refusal = ""
                if info.flag_bits & 1:
                    refusal = "encrypted; unpack it with its password and name the trace inside"
                elif info.compress_type in _METHODS:
                    layers.insert(0, partial(decompressed, _METHODS[info.compress_type]))
                elif info.compress_type != zipfile.ZIP_STORED:
                    refusal = f"packed by method {info.compress_type}, which is not read; unpack it and name the trace"
                yield Member(archive, info.filename, (start, info.compress_size), tuple(layers), refusal)
    except (zipfile.BadZipFile, NotImplementedError, OSError, ValueError, struct.error) as error:
        raise InputError(f"{archive.path}: a zip archive that cannot be read ({error}); copy it again") from error


def _tar_members(archive: Source) -> tuple[list[Member], tuple[Note, ...]]:
    """Read through the whole archive once: tar has no directory. What a damaged archive still holds is given."""
    condition = Condition()
    blocks = _Blocks(archive.blocks(condition))
    members = []
    end = 0
    try:
        with tarfile.open(fileobj=io.BufferedReader(blocks), mode="r|") as opened:
            for info in opened:
                end = info.offset_data + info.size
                if info.isreg() and not info.issparse():
                    members.append(Member(archive, info.name, (info.offset_data, info.size), ()))
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
    return members, (Note("TRC001", "medium", message, 1, members[-1].name),)


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
