"""The lines of a log: split at line feeds and carriage returns, without colours, and what loggers and launchers put before them."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from datetime import date
from functools import lru_cache

from traceanalyzer.ingest.bytes.streams import BLOCK_BYTES, ByteStream

LONGEST = 1 << 16
"""Characters of a line that are looked at: no line of DeepSpeed's is as long."""
_ENDS = re.compile(r"\r\n|\n|\r")
_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]{0,200}\x07")
_RANK = re.compile(r"\[Rank (\d{1,7})\]|\brank=(\d{1,7}) time|^\s*\[(?:default|rank)(\d{1,7})\]:|^\s*(\d{1,7}): ")
_WHEN = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?")


def lines_of(stream: ByteStream) -> Iterator[str]:
    """Every line, with what is longer than LONGEST cut off. Bytes that are no text are replaced."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    rest = ""
    while block := stream.read(BLOCK_BYTES):
        text = rest + decoder.decode(block)
        # What a carriage return at the end of a block ends, the next block tells: it may begin with the line feed.
        held = "\r" if text.endswith("\r") else ""
        *whole, rest = _ENDS.split(text.removesuffix("\r") if held else text)
        rest = rest[:LONGEST] + held
        yield from whole
    rest += decoder.decode(b"", final=True)
    if rest:
        yield rest


def plain(line: str) -> str:
    """The line without colours."""
    return _COLOUR.sub("", line) if "\x1b" in line else line


def rank_of(line: str) -> int | None:
    """The rank that a line says it is of: what DeepSpeed prints before a message, else what the launcher does."""
    found = _RANK.search(line)
    return int(next(group for group in found.groups() if group is not None)) if found else None


def logged_at(line: str) -> int | None:
    """The time in a line's prefix as nanoseconds, as if it were in UTC; None without."""
    found = _WHEN.search(line, 0, 200)
    if found is None:
        return None
    of, hour, minute, second, fraction = found.groups()
    day = _day(of)
    if day is None or hour > "23" or minute > "59":
        return None
    whole = day + int(hour) * 3600 + int(minute) * 60 + min(int(second), 59)
    return whole * 1_000_000_000 + int((fraction or "0").ljust(9, "0"))


_DAYS = (1 << 63) // (86_400 * 10**9)


@lru_cache(maxsize=1024)
def _day(text: str) -> int | None:
    """The seconds from 1970 to a day; None for one before, or after what 64 bits of ns hold, or that no calendar has."""
    try:
        days = date.fromisoformat(text) - date(1970, 1, 1)
    except ValueError:
        return None
    return days.days * 86_400 if 0 <= days.days < _DAYS else None


class Prefix:
    """What stands before each line of a report of many lines, as its first line shows it; numbers in it may change."""

    def __init__(self, before: str) -> None:
        words = [re.escape(part) for part in re.split(r"\d+", before)]
        self._pattern = re.compile(r"\d+".join(words)) if before.strip() else None

    def without(self, line: str) -> str | None:
        """The line without it; None for a line of somebody else's."""
        if self._pattern is None:
            return line
        found = self._pattern.match(line)
        return line[found.end() :] if found else None
