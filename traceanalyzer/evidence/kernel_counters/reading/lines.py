"""The lines of a file, one after another, however long the file is."""

from __future__ import annotations

import codecs
from collections.abc import Iterator

from traceanalyzer.ingest.bytes.streams import ByteStream

BLOCK = 1 << 20
LONGEST = 8 << 20
"""A line that is longer is no line of a table: a raw page has some 25 KB a launch."""


def lines_of(stream: ByteStream) -> Iterator[str]:
    """Each line without its end. The last one ends with the file; whether it was complete is not known."""
    decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
    rest = ""
    while block := stream.read(BLOCK):
        text = rest + decoder.decode(block)
        *whole, rest = text.split("\n")
        yield from (line.rstrip("\r") for line in whole)
        if len(rest) > LONGEST:
            yield rest
            rest = ""
    if rest:
        yield rest
