"""Finds the tables of PyTorch's profiler among the lines of a text, whatever else is written around, before and between them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import field

from traceanalyzer.evidence.operator_tables.reading.content import HEADER
from traceanalyzer.records import dataclass

_GAP = re.compile(r" {2,}|\t+")
_RULE = re.compile(r"-{3,}(?: {2,}-{3,})*\s*")
_TOTAL = re.compile(r"(?:Self )?(\w+) time total: *(\S+(?: ?[mun]?s)?)\s*$")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_MOST_FOOTER = 6
"""Totals stand in so many lines after a table."""


@dataclass
class Lines:
    """A table as text: its columns, the cells of each row, and the totals below by what they are of. `strange` counts lines within it
    that are no rows, `ended` says that the line below the rows was met."""

    columns: list[str]
    rows: list[list[str]] = field(default_factory=list)
    totals: dict[str, str] = field(default_factory=dict)
    strange: int = 0
    first_strange: str | None = None
    ended: bool = False


def tables_in(lines: Iterable[str]) -> Iterator[Lines]:
    """Each table once it is over."""
    reader: _Reader | None = None
    before = ""
    for text in lines:
        line = _COLOUR.sub("", text) if "\x1b" in text else text
        header = HEADER.search(line) if "of Calls" in line else None
        columns = _GAP.split(line[header.start() :].strip()) if header else []
        if header and any(map(_is_calls, columns)):
            if reader:
                yield reader.table
            reader = _Reader(columns, line[: header.start()].rstrip(), before)
        elif reader and reader.is_over(line):
            yield reader.table
            reader = None
        before = line
    if reader:
        yield reader.table


def _is_calls(column: str) -> bool:
    return column.lower().endswith("of calls")


class _Reader:
    """Reads below a header with these columns, one of which counts calls; `lead` stands before them, `before` in the line above."""

    def __init__(self, columns: list[str], lead: str, before: str) -> None:
        self.table = Lines(columns)
        # Each line of a log may begin with a time, a rank or a comment's mark: the same in length, and but for digits.
        self._prefix = re.compile(re.sub(r"\d", r"\\d", re.escape(lead))) if lead else None
        self._cut = len(lead)
        self._spans = _spans(self._own(before))
        self._rules = 0
        self._after = 0
        self._calls = next(at for at, name in enumerate(columns) if _is_calls(name))
        names = [name.lower() for name in columns]
        self._sources = names.index("source location") if "source location" in names else None

    def is_over(self, line: str) -> bool:
        """Take one line; whether it lies behind the table."""
        line = self._own(line.rstrip("\r\n"))
        if "---" in line and _RULE.fullmatch(line.strip()):
            self._rules += 1
            self.table.ended = self._rules > 1 or bool(self.table.rows)
            if not self._spans:
                self._spans = _spans(line)
            return False
        if "time total" in line and (found := _TOTAL.search(line)):
            self.table.totals[found[1].upper()] = found[2]
            self.table.ended = True
            return False
        if self.table.ended:
            self._after += 1
            return self._after > _MOST_FOOTER
        self._row(line)
        return False

    def _own(self, line: str) -> str:
        return line[self._cut :] if self._prefix and self._prefix.match(line) else line

    def _row(self, line: str) -> None:
        text = line.strip()
        if not text:
            return
        expected = len(self.table.columns)
        cells = _GAP.split(text)
        if len(cells) > expected:
            more = len(cells) - expected + 1
            cells = ["  ".join(cells[:more]), *cells[more:]]
        if len(cells) == expected and cells[self._calls].isdecimal():
            self.table.rows.append(cells)
            return
        if self._spans and len(self._spans) == expected:
            cells = _sliced(line, self._spans)
            if cells[self._calls].isdecimal():
                self.table.rows.append(cells)
                return
            if self._sources is not None and not any(cells[: self._sources]):
                return
        elif self._sources is not None and len(cells) == 1:
            # More of a stack.
            return
        self.table.strange += 1
        self.table.first_strange = self.table.first_strange or text[:200]


def _spans(line: str) -> list[tuple[int, int]]:
    """Where the columns lie, told by the line of dashes around them."""
    line = line.rstrip()
    return [found.span() for found in re.finditer(r"-+", line)] if _RULE.fullmatch(line.strip()) and line else []


def _sliced(line: str, spans: list[tuple[int, int]]) -> list[str]:
    return [line[start:end].strip() for start, end in spans]
