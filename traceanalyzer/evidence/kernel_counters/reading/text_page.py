"""The details page as text, as `ncu` prints it and people paste it: launches, sections with their tables, and what rules say."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from traceanalyzer.evidence.kernel_counters.reading.collected import Collected, Launch
from traceanalyzer.evidence.kernel_counters.reading.metrics import meaning
from traceanalyzer.evidence.kernel_counters.reading.numbers import number, scale
from traceanalyzer.evidence.kernel_counters.tables import AXES

_PROCESS = re.compile(r"^\s*\[(\d+)\] \S.*@\S+\s*$")
_LAUNCH = re.compile(
    r"^\s*(?P<name>\S.*?)"
    r"(?: \((\d+), (\d+), (\d+)\)x\((\d+), (\d+), (\d+)\)|, \d{4}-\w{3}-\d{2} \d{2}:\d{2}:\d{2})"
    r", Context \d+, Stream \d+(?:, Device (\d+))?(?:, CC (\d+\.\d+))?\s*$"
)
_SECTION = re.compile(r"^\s*Section: (\S.*?)\s*$")
_RULE = re.compile(r"^\s*(OPT|INF|WRN|ERR|OK)\s{2,}(\S.*?)\s*$")
_ESTIMATE = re.compile(r"^Est\. (Local )?Speedup: ([\d.,eE+-]+)\s?%\s*(.*)$")
_RULED = re.compile(r"^[-\s]+$")
_UNIT = re.compile(r"%|[A-Za-zµ]+(?:/[A-Za-z]+)?")


def is_launch(line: str) -> bool:
    """Whether a line names a launch."""
    return ", Context " in line and _LAUNCH.match(line) is not None


def read_text(lines: Iterable[str], found: Collected) -> None:
    """All launches to the end of the file; what lies between them and is no table of theirs is passed over."""
    page = _Page(found)
    for line in lines:
        page.take(line)
    page.finish()


class _Page:
    def __init__(self, found: Collected) -> None:
        self._found = found
        found.page = "text"
        self._pid: int | None = None
        self._launch: Launch | None = None
        self._section = ""
        self._rule: tuple[str, list[str]] | None = None

    def take(self, line: str) -> None:
        text = line.strip()
        if not text or _RULED.match(line):
            self.finish()
        elif ", Context " in line and (found := _LAUNCH.match(line)):
            self.finish()
            self._begin(found)
        elif process := _PROCESS.match(line):
            self.finish()
            self._pid = int(process[1])
            self._launch = None
        elif self._launch is None:
            return
        elif section := _SECTION.match(line):
            self.finish()
            self._section = section[1]
        elif rule := _RULE.match(line):
            self.finish()
            self._rule = rule[1], [rule[2]]
        elif self._rule is not None:
            self._rule[1].append(text)
        else:
            self._value(self._launch, text.split())

    def finish(self) -> None:
        """The rule that was being read is complete."""
        if self._rule is None or self._launch is None:
            self._rule = None
            return
        kind, parts = self._rule
        self._rule = None
        words, scope, estimate = " ".join(parts), "", ""
        if found := _ESTIMATE.match(words):
            scope, estimate, words = "local" if found[1] else "global", found[2], found[3]
        if words:
            self._found.rule(self._launch, self._section, None, kind, words, scope, estimate)

    def _begin(self, line: re.Match[str]) -> None:
        _, *sizes, device, capability = line.groups()
        ordinal = self._found.count
        facts: dict[str, Any] = {
            "launch": ordinal,
            "launches": 1,
            "pid": self._pid,
            "device": int(device) if device else None,
            "name": line["name"].strip(),
            "compute_capability": number(capability, ".") if capability else None,
        }
        if sizes[0]:
            facts |= dict(zip(AXES, map(int, sizes), strict=True))
        self._launch = self._found.launch(ordinal, facts)
        self._section = ""

    def _value(self, launch: Launch, words: list[str]) -> None:
        """A row of a table: a name of several words, a unit where it has one, and a value."""
        if len(words) < 2:
            return
        whole = " ".join(words[:-1])
        unit = ""
        told = meaning(whole, self._section)
        if told is None and len(words) > 2 and _UNIT.fullmatch(words[-2]):
            unit = words[-2]
            told = meaning(" ".join(words[:-2]), self._section)
        if told is not None:
            launch.values.append((told, words[-1], scale(unit)))
