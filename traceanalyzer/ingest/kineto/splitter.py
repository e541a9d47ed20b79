"""Cut a Chrome trace into chunks of whole events, without holding the file.

A chunk ends at a `},{` seam. A seam may lie inside an event (a list of objects among its arguments), so a cut counts only when
what it gives decodes; if it does not, the seam before it is tried. The metadata may stand before or after the event array.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import IO, Generic, TypeVar

import msgspec

CHUNK_BYTES = 2 << 20
MAX_METADATA_BYTES = 64 << 20
MAX_EVENT_BYTES = 64 << 20
MAX_NESTED_SEAMS = 16
SEAM_WINDOW = 64 << 10
SEAM = re.compile(rb"\}\s*,\s*\{")
EVENTS_KEY = re.compile(rb'"traceEvents"\s*:\s*\[')
TRAILING = re.compile(r"trailing characters \(byte (\d+)\)")
PHASE = re.compile(rb'"ph"\s*:')
UTF8_BOM = b"\xef\xbb\xbf"

Chunk = TypeVar("Chunk")


class NoEventsError(ValueError):
    """The content holds no event array."""


class Splitter(Generic[Chunk]):
    """Iterate over decoded chunks; afterwards `header` and `trailer` hold the text around the event array.

    `decode` turns the text of a JSON array into a chunk and raises msgspec.DecodeError when it cannot. `dropped` counts the
    stretches between seams that could not be decoded, `first_dropped` shows the first, and `truncated` says that the array never
    ended. Raises NoEventsError when there is no event array.
    """

    def __init__(self, stream: IO[bytes], decode: Callable[[bytes], Chunk], chunk_bytes: int = CHUNK_BYTES) -> None:
        self._stream, self._decode, self._chunk_bytes = stream, decode, chunk_bytes
        self.header = self.trailer = b""
        self.dropped = 0
        self.first_dropped: bytes | None = None
        self.truncated = False

    def __iter__(self) -> Iterator[Chunk]:
        pending = self._skip_header()
        while block := self._stream.read(self._chunk_bytes):
            pending += block
            chunks, pending, ended = self._cut(pending)
            yield from chunks
            if ended:
                self.trailer = pending + self._stream.read(MAX_METADATA_BYTES)
                return
        chunks, self.trailer, ended = self._close(pending)
        self.truncated = not ended
        yield from chunks

    def _skip_header(self) -> bytes:
        """Read up to the event array; return what was read of it."""
        text = b""
        while block := self._stream.read(self._chunk_bytes):
            text += block
            start = text.removeprefix(UTF8_BOM).lstrip()
            if start.startswith(b"["):
                return start[1:]
            if found := EVENTS_KEY.search(text):
                self.header = text[: found.start()].removeprefix(UTF8_BOM)
                return text[found.end() :]
            if len(text) > MAX_METADATA_BYTES:
                break
        raise NoEventsError("no traceEvents array")

    def _cut(self, pending: bytes) -> tuple[list[Chunk], bytes, bool]:
        """Decode as much of `pending` as ends at a seam: (chunks, rest, whether the array ended)."""
        window = max(0, len(pending) - SEAM_WINDOW)
        seams = list(SEAM.finditer(pending, window)) or list(SEAM.finditer(pending))
        for seam in reversed(seams[-MAX_NESTED_SEAMS:]):
            try:
                chunk = self._decode(b"[" + pending[: seam.start() + 1] + b"]")
            except msgspec.DecodeError as error:
                if found := TRAILING.search(str(error)):
                    return self._end(pending, int(found[1]))
            else:
                return [chunk], pending[seam.end() - 1 :], False
        if len(seams) > MAX_NESTED_SEAMS or (seams and len(pending) > MAX_EVENT_BYTES):
            return self._salvage(pending)
        return [], pending, False

    def _close(self, pending: bytes) -> tuple[list[Chunk], bytes, bool]:
        """Decode what is left at the end of the file: (chunks, trailer, whether the array ended)."""
        try:
            return [self._decode(b"[" + pending)], b"", True
        except msgspec.DecodeError as error:
            if found := TRAILING.search(str(error)):
                return self._end(pending, int(found[1]))
        return self._salvage(pending, final=True)

    def _end(self, pending: bytes, byte: int) -> tuple[list[Chunk], bytes, bool]:
        """The array closed before the 1-based `byte` of "[" + pending."""
        return [self._decode(b"[" + pending[: byte - 2])], pending[byte - 2 :], True

    def _salvage(self, pending: bytes, final: bool = False) -> tuple[list[Chunk], bytes, bool]:
        """Keep every stretch between seams that decodes, drop the others: (chunks, rest, whether the array ended).

        What may be whole once more is read stays in the rest, unless `final` says that there is no more.
        """
        seams = list(SEAM.finditer(pending))
        starts = [0, *(seam.end() - 1 for seam in seams)]
        ends = [*(seam.start() + 1 for seam in seams), len(pending)]
        kept: list[bytes] = []
        first = 0
        while first < len(starts):
            low = starts[first]
            for last in range(first, min(first + MAX_NESTED_SEAMS, len(starts))):
                text = pending[low : ends[last]]
                close = self._try(text)
                if close == len(text):
                    kept.append(text)
                    first = last + 1
                    break
                # The end of the array, if what it closes is an event and not a list inside a broken one.
                if close and PHASE.search(text[:close]):
                    kept.append(text[:close].rstrip()[:-1])
                    return self._joined(kept), text[close:], True
            else:
                if first + MAX_NESTED_SEAMS >= len(starts) and not final:
                    return self._joined(kept), pending[low:], False
                self._drop(pending[low : ends[first]])
                first += 1
        return self._joined(kept), b"", False

    def _try(self, text: bytes) -> int:
        """How much of `text` is whole: all of it, up to the end of the array in it, or nothing."""
        try:
            self._decode(b"[" + text + b"]")
        except msgspec.DecodeError as error:
            found = TRAILING.search(str(error))
            return int(found[1]) - 2 if found else 0
        return len(text)

    def _joined(self, kept: list[bytes]) -> list[Chunk]:
        text = b",".join(part for part in kept if part.strip())
        return [self._decode(b"[" + text + b"]")] if text else []

    def _drop(self, text: bytes) -> None:
        self.dropped += 1
        if self.first_dropped is None:
            self.first_dropped = text[:200]
