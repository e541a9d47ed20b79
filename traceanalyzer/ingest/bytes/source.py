"""One input file: where its bytes lie, how they are unpacked, how it begins. Told from content, and only ever opened for reading."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event

from traceanalyzer.errors import InputError
from traceanalyzer.ingest.bytes.containers import (
    Condition,
    Layer,
    Note,
    codec_of,
    decompress,
    file_bytes,
    transcode,
    utf16_of,
)
from traceanalyzer.ingest.bytes.limits import allowed_bytes, check_size, limit_blocks
from traceanalyzer.ingest.bytes.streams import ByteStream, PackedStream, PlainStream
from traceanalyzer.records import dataclass
from traceanalyzer.urls import shown_place

HEAD_BYTES = 64 << 10
HASH_BYTES = 1 << 20
# A gzipped trace in a gzipped tar archive is three deep.
MOST_LAYERS = 3


@dataclass(frozen=True)
class Source:
    """One trace: what the user calls it, and how to read it.

    `path` is what messages and results show: the file, or archive/member, or `<stdin>`. `size` counts the bytes on disk that
    reading it takes, packed as they are; `head` is the start of the unpacked content. The rest is for this package: `origin` is the
    user's file and `place` the one that is opened (they differ for a report that was converted), `span` = (start, length) the
    stretch of it, `member` its name in an archive, `layers` what it is packed in, `allowed` the most bytes it may unpack to, `notes`
    what to say of it in health. `kept` is whatever must live as long as the source, such as a temporary folder. `kind` is what read it
    is to be, by name, once it was asked.
    """

    path: Path
    size: int
    head: bytes
    origin: Path
    place: Path
    allowed: int
    span: tuple[int, int] | None = None
    member: str = ""
    layers: tuple[Layer, ...] = ()
    notes: tuple[Note, ...] = ()
    kept: object = None
    kind: str = ""

    @property
    def shown(self) -> str:
        """The path as text that can be written anywhere, whatever bytes it is made of."""
        return shown_place(os.fsencode(self.path).decode("utf-8", "backslashreplace"))

    @property
    def packed(self) -> bool:
        """Whether the content is something else than the file at `place`."""
        return bool(self.layers or self.span)

    def open(self, progress: Callable[[int], None] | None = None) -> ByteStream:
        """Open the unpacked content from its start; `progress` hears of bytes read from disk. The caller closes it."""
        if not self.packed:
            try:
                return PlainStream(self.place, progress)
            except OSError as error:
                raise InputError(f"{self.path}: cannot be read ({error.strerror})") from error
        condition = Condition()
        return PackedStream(self.blocks(condition, progress), condition)

    def blocks(self, condition: Condition, progress: Callable[[int], None] | None = None) -> Iterator[bytes]:
        """The unpacked content, block by block. Raises InputError when it is more than allowed."""
        blocks = file_bytes(self.place, self.span, progress, condition)
        for layer in self.layers:
            blocks = layer(blocks, condition)
        return blocks

    def sha256(self, stop: Event) -> str:
        """Hex digest of the user's file as it lies on disk; of the archive for a member of one. Gives up when `stop` is set."""
        digest = hashlib.sha256()
        try:
            block = memoryview(bytearray(HASH_BYTES))
            with self.origin.open("rb", buffering=0) as stream:
                while (size := stream.readinto(block)) and not stop.is_set():
                    digest.update(block[:size])
            return digest.hexdigest()
        except OSError as error:
            raise InputError(f"{self.path}: cannot be read ({error.strerror})") from error

    def within(self, layer: Layer) -> Source:
        """This source, read through one more layer, as far as allowed; its head is still that without it."""
        return replace(self, layers=(*self.layers, partial(_bounded, layer, self.path, self.allowed)))


def _bounded(layer: Layer, path: Path, allowed: int, blocks: Iterator[bytes], condition: Condition) -> Iterator[bytes]:
    """What a layer gives, up to the most bytes that are allowed."""
    return limit_blocks(path, layer(blocks, condition), allowed)


def source_of(path: Path, place: Path, max_bytes: int | None, kept: object = None) -> Source:
    """The file at `place`, with compression and UTF-16 undone; archives are left as they are. `path` is what it is called.

    Raises InputError for a file that cannot be read, is empty, or is larger than allowed.
    """
    try:
        size = place.stat().st_size
        with place.open("rb") as stream:
            head = stream.read(HEAD_BYTES)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    if not head:
        raise InputError(f"{path}: the file is empty; record or export the trace again")
    allowed = allowed_bytes(size, max_bytes)
    check_size(path, size, allowed)
    return unpack(Source(path, size, head, place, place, allowed, kept=kept))


def unpack(source: Source) -> Source:
    """The source with compression and UTF-16 undone, whatever is in what."""
    while codec := codec_of(source.head):
        if len(source.layers) >= MOST_LAYERS:
            raise InputError(f"{source.path}: packed more than {MOST_LAYERS} times over; unpack it first")
        source = with_head(source.within(partial(decompress, codec)))
    if encoding := utf16_of(source.head):
        source = with_head(source.within(partial(transcode, encoding)))
    return source


def with_head(source: Source) -> Source:
    """The source with the head that its place and layers give. Raises InputError when nothing comes out of them."""
    condition = Condition()
    head = b""
    for block in source.blocks(condition):
        head += block
        if len(head) >= HEAD_BYTES:
            break
    if not head:
        why = condition.damage or "there is nothing in it"
        raise InputError(f"{source.path}: {why}; copy or record the trace again")
    return replace(source, head=head[:HEAD_BYTES])
