"""Bytes of a stream as valid UTF-8."""

from __future__ import annotations

import codecs
import re
from typing import Protocol

_BAD = re.compile("[\udc80-\udcff]")


class Bytes(Protocol):
    """What is read: up to `size` bytes at a time, none at the end."""

    def read(self, size: int, /) -> bytes: ...


class Utf8Stream:
    """Reads a stream; every byte that is no UTF-8 comes as a question mark. `bad_bytes` counts them."""

    def __init__(self, stream: Bytes) -> None:
        self._stream = stream
        self._begun = b""
        self.bad_bytes = 0

    def read(self, size: int) -> bytes:
        """About `size` bytes of whole characters; nothing at the end of the stream."""
        text = b""
        final = False
        while not text and not final:
            block = self._stream.read(size)
            final = not block
            text = self._clean(self._begun + block if self._begun else block, final)
        return text

    def _clean(self, text: bytes, final: bool) -> bytes:
        if text.isascii():
            self._begun = b""
            return text
        try:
            used = codecs.utf_8_decode(text, "strict", final)[1]
        except UnicodeDecodeError:
            plain, used = codecs.utf_8_decode(text, "surrogateescape", final)
            plain, bad = _BAD.subn("?", plain)
            self.bad_bytes += bad
            self._begun = text[used:]
            return plain.encode()
        self._begun = text[used:]
        return text[:used]
