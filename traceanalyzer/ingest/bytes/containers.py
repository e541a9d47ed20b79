"""Bytes out of what they are packed in: each layer turns an iterator of blocks into another one.

A layer never fails on damage: it ends where the damage begins and says so in the stream's `Condition`, so that everything before is
kept. Data that ends is told from data that is damaged, and both from harmless bytes after the end.
"""

from __future__ import annotations

import bz2
import codecs
import contextlib
import lzma
import re
import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import NamedTuple, Protocol

from traceanalyzer.records import dataclass
from traceanalyzer.vocabulary.health import NOT_ALL_READ, HealthCode
from traceanalyzer.vocabulary.levels import INFO, Severity

READ_BYTES = 64 << 10
SMALL_BYTES = 1 << 10
MAGIC_BYTES = 6
LOST = "what came after is lost"
# xz may ask for 4 GiB of dictionary; its highest preset takes 65 MiB.
XZ_MEMORY_BYTES = 512 << 20


class Note(NamedTuple):
    """Something worth a line in the trace's health, as `Sink.health` takes it."""

    code: HealthCode
    severity: Severity
    message: str
    number: int = 1
    example: str | None = None


@dataclass
class Condition:
    """What was met while a stream was read. `damage` says why it ended early; the layer nearest to the file speaks first."""

    damage: str | None = None
    notes: list[Note] = field(default_factory=list)

    def damaged(self, words: str) -> None:
        """Say why the stream ends here."""
        self.damage = self.damage or words


Layer = Callable[[Iterator[bytes], Condition], Iterator[bytes]]


class Decoder(Protocol):
    """What the decompressors of the standard library have in common."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int) -> bytes: ...


class _Inflater:
    """zlib's decompressor in the shape of the others; it gives what lies before damage, too, and raises at the next call."""

    def __init__(self, wbits: int) -> None:
        self._inner = zlib.decompressobj(wbits)
        self._failure: zlib.error | None = None
        self.needs_input = True

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        if self._failure:
            raise self._failure
        data = self._inner.unconsumed_tail + data
        before = self._inner.copy()
        try:
            given = self._inner.decompress(data, max_length)
        except zlib.error as error:
            self._failure, self.needs_input = error, False
            return _before_damage(before, data)
        # A full answer may have left some of it inside.
        self.needs_input = not self._inner.unconsumed_tail and len(given) < max_length
        return given


def _before_damage(decoder: zlib._Decompress, data: bytes) -> bytes:
    """What a decoder gives in small steps before it fails."""
    given = []
    with contextlib.suppress(zlib.error):
        while not decoder.eof:
            given.append(decoder.decompress(data, SMALL_BYTES))
            data = decoder.unconsumed_tail
    return b"".join(given)


def _zstd_decoder() -> Decoder:
    if sys.version_info >= (3, 14):
        from compression.zstd import ZstdDecompressor
    else:
        from backports.zstd import ZstdDecompressor
    return ZstdDecompressor()


@dataclass(frozen=True)
class Codec:
    """One kind of compressed data: the start of a member, what unpacks one, and how much that gives at a time.

    Much is fast, because another thread can run meanwhile; but a call that meets damage gives nothing, zlib's apart.
    """

    name: str
    start: re.Pattern[bytes]
    decoder: Callable[[], Decoder]
    step_bytes: int = 64 << 10


GZIP = Codec("gzip", re.compile(rb"\x1f\x8b\x08"), partial(_Inflater, 31), 1 << 20)
# Data and skippable frames; pzstd writes one of the latter first.
ZSTD = Codec("zstd", re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"), _zstd_decoder)
XZ = Codec("xz", re.compile(rb"\xfd7zXZ\x00"), partial(lzma.LZMADecompressor, memlimit=XZ_MEMORY_BYTES))
BZIP2 = Codec("bzip2", re.compile(rb"BZh[1-9][1\x17]"), bz2.BZ2Decompressor)
# Inside zip archives only; it has no start of its own, and no second member.
DEFLATE = Codec("deflate", re.compile(rb"(?!)"), partial(_Inflater, -15), 1 << 20)


def codec_of(head: bytes) -> Codec | None:
    """The codec of compressed data, told from its start."""
    return next((codec for codec in (GZIP, ZSTD, XZ, BZIP2) if codec.start.match(head)), None)


def decompress(codec: Codec, blocks: Iterator[bytes], condition: Condition) -> Iterator[bytes]:
    """The content of all members, one after the other."""
    pending = next(blocks, b"")
    while pending:
        decoder = codec.decoder()
        while not decoder.eof:
            try:
                given = decoder.decompress(pending, codec.step_bytes)
            except MemoryError:
                raise
            except Exception as error:  # Every library has its own, and none a common base.
                condition.damaged(_words(codec, error))
                return
            pending = b""
            if given:
                yield given
            if decoder.needs_input and not decoder.eof:
                pending = next(blocks, b"")
                if not pending:
                    condition.damaged(f"the {codec.name} data is cut short: {LOST}")
                    return
        pending = _next_member(codec, decoder.unused_data, blocks, condition)


def _words(codec: Codec, error: Exception) -> str:
    """What the failure of a decompressor means."""
    if "data check" in str(error) or "length check" in str(error):
        return (
            f"the {codec.name} data does not match its checksum: parts of it may be wrong, and what may follow is lost"
        )
    return f"the {codec.name} data is damaged ({str(error).rsplit(': ', 1)[-1]}): {LOST}"


def _next_member(codec: Codec, rest: bytes, blocks: Iterator[bytes], condition: Condition) -> bytes:
    """The start of the next member, behind zeros that pad; else empty, with a note of what else lies there."""
    rest = rest.lstrip(b"\0")
    while len(rest) < MAGIC_BYTES and (more := next(blocks, b"")):
        rest = (rest + more).lstrip(b"\0")
    if not rest or codec.start.match(rest):
        return rest
    count = len(rest) + sum(map(len, blocks))
    condition.notes.append(
        Note(NOT_ALL_READ, INFO, f"bytes after the end of the {codec.name} data were left out", count)
    )
    return b""


def utf16_of(head: bytes) -> str | None:
    """The encoding of UTF-16 text, told from its byte order mark or, for JSON, from where the zeros are."""
    if head.startswith(b"\xff\xfe") and not head.startswith(b"\xff\xfe\0\0"):
        return "utf-16-le"
    if head.startswith(b"\xfe\xff"):
        return "utf-16-be"
    if re.match(rb"(?:\s\0)*[\[{]\0[\s\"\[{}\]]\0", head):
        return "utf-16-le"
    return "utf-16-be" if re.match(rb"(?:\0\s)*\0[\[{]\0[\s\"\[{}\]]", head) else None


def transcode(encoding: str, blocks: Iterator[bytes], condition: Condition) -> Iterator[bytes]:
    """UTF-16 text as UTF-8. Half a character becomes bytes that are no UTF-8, which importers count."""
    decoder = codecs.getincrementaldecoder(encoding)("surrogatepass")
    for block in blocks:
        yield decoder.decode(block).encode("utf-8", "surrogatepass")
    if decoder.getstate()[0]:
        condition.damaged("the UTF-16 text ends in the middle of a character")


def part(start: int, length: int, blocks: Iterator[bytes], condition: Condition) -> Iterator[bytes]:
    """A stretch of the content: one member of a tar archive."""
    skip, left = start, length
    for block in blocks:
        kept = block[skip : skip + left]
        skip -= min(skip, len(block))
        left -= len(kept)
        if kept:
            yield kept
        if not left:
            return
    condition.damaged(f"the archive is cut short: {LOST}")


def check_blocks(crc: int, blocks: Iterator[bytes], condition: Condition) -> Iterator[bytes]:
    """The same blocks, held against the checksum that a zip archive gives."""
    found = 0
    for block in blocks:
        found = zlib.crc32(block, found)
        yield block
    if found != crc:
        condition.damaged("the content does not match its checksum: parts of it may be wrong")


def file_bytes(
    place: Path, span: tuple[int, int] | None, progress: Callable[[int], None] | None, condition: Condition
) -> Iterator[bytes]:
    """The file's own bytes, or `span` = (start, length) of them. `progress` hears of bytes read."""
    start, left = span or (0, sys.maxsize)
    try:
        with place.open("rb", buffering=0) as file:
            file.seek(start)
            while left and (block := file.read(min(READ_BYTES, left))):
                left -= len(block)
                if progress:
                    progress(len(block))
                yield block
    except OSError as error:
        condition.damaged(f"the file could not be read to its end ({error.strerror}): {LOST}")
        return
    if span and left:
        condition.damaged(f"the archive is cut short: {LOST}")
