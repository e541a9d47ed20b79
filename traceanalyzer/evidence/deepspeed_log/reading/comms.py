"""Summaries of the comms logger: a table of operations and sizes, and with show_straggler=True a second one."""

from __future__ import annotations

import re

from traceanalyzer.evidence.deepspeed_log.reading.lines import Prefix
from traceanalyzer.evidence.deepspeed_log.reading.quantities import NUMBER, milliseconds, number, size
from traceanalyzer.records import dataclass

HEADER = "Comm. Op"
_HEADER = re.compile(r"Comm\. Op\s+Message Size\s+Count\s+(.+)")
_ROW = re.compile(rf"\s{{8,}}(\d[\d.]*\s?[KMGTP]?B)\s{{2,}}(\d{{1,15}})((?:\s+{NUMBER})+)\s*")
_OP = re.compile(r"([A-Za-z]\w{2,60})(?: \| \[Caller Func: [^\]]{0,100}\])?\s*")
_COLUMNS = {
    "total latency(ms)": "total",
    "avg latency(ms)": "average",
    "tput_avg (gbps)": "throughput",
    "busbw_avg (gbps)": "bus_bandwidth",
    "total comm lat(ms)": "transfer",
    "total straggler(ms)": "straggler",
    "avg comm lat(ms)": "",
    "avg straggler(ms)": "",
}
_NAME = re.compile("|".join(map(re.escape, _COLUMNS)), re.IGNORECASE)
_RATES = ("throughput", "bus_bandwidth")
PATIENCE = 50
"""Lines of others between those of a table, after which it is over."""


@dataclass
class Entry:
    """One line of a summary; what its columns say, by name."""

    summary: int
    op: str
    bytes: int
    calls: int
    values: dict[str, int | float | None]


class Comms:
    """The summaries of one file. A table of stragglers follows that of the latencies, with the same lines in the same order."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.summaries = 0
        self.unread = 0
        self._prefix = Prefix("")
        self._columns: list[str] = []
        self._op: str | None = None
        self._left = 0
        self._again: list[Entry] | None = None

    @property
    def inside(self) -> bool:
        """Whether lines of a table may follow."""
        return self._left > 0

    def begins(self, line: str) -> bool:
        """Whether the line is the head of a table, which is then open."""
        found = _HEADER.search(line)
        if found is None or _NAME.sub("", found[1]).strip():
            return False
        self._columns = [_COLUMNS[name.lower()] for name in _NAME.findall(found[1])]
        self._prefix = Prefix(line[: found.start()])
        self._op, self._left = None, PATIENCE
        if "total" in self._columns:
            self._again = None
            self.summaries += 1
        else:
            last = self.summaries - 1
            self._again = [one for one in self.entries if one.summary == last]
        return True

    def read(self, line: str) -> None:
        """Take a line after the head of a table: that of an operation, that of a size, or one of somebody else's."""
        own = self._prefix.without(line)
        if own is None:
            return
        if (found := _ROW.fullmatch(own)) and self._op:
            self._left = PATIENCE
            self._row(found, self._op)
        elif found := _OP.fullmatch(own):
            self._op, self._left = found[1], PATIENCE
        else:
            self._left -= 1

    def _row(self, found: re.Match[str], op: str) -> None:
        much, calls, values = size(found[1]), int(found[2]), found[3].split()
        if much is None or len(values) != len(self._columns):
            self.unread += 1
            return
        told = {
            name: number(value) if name in _RATES else milliseconds(value)
            for name, value in zip(self._columns, values, strict=True)
            if name
        }
        if self._again is None:
            self.entries.append(Entry(self.summaries - 1, op, much, calls, told))
            return
        # The same dictionary is printed twice, in one order: sizes that are rounded alike are told apart by it.
        at = next(
            (at for at, one in enumerate(self._again) if (one.op, one.bytes, one.calls) == (op, much, calls)), None
        )
        if at is None:
            self.unread += 1
        else:
            self._again.pop(at).values.update(told)
