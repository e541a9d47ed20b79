"""CSV of Nsight Compute: the details page, the raw page, and summaries of either, in whatever columns a version has."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import lru_cache
from typing import Any

from traceanalyzer.evidence.kernel_counters.reading.collected import Collected, Launch, likeness
from traceanalyzer.evidence.kernel_counters.reading.metrics import Meaning, meaning
from traceanalyzer.evidence.kernel_counters.reading.numbers import number, scale
from traceanalyzer.evidence.kernel_counters.tables import AXES
from traceanalyzer.records import dataclass

KERNEL = "Kernel Name"
_DELIMITERS = (",", ";", "\t")
_SIZES = re.compile(r"\(?\s*(\d+)\s*[,;x]\s*(\d+)\s*[,;x]\s*(\d+)\s*\)?")
_LONGEST_FIELD = 1 << 20
Take = Callable[[Sequence[str]], bool]


@dataclass(frozen=True)
class Header:
    """The columns of a page by name, and what separates them."""

    names: tuple[str, ...]
    delimiter: str
    page: str

    def place(self, *names: str) -> int | None:
        """The place of the first of these columns that there is."""
        return next((self.names.index(name) for name in names if name in self.names), None)


def header_of(line: str) -> Header | None:
    """The header that a line is; None for any other."""
    if KERNEL not in line:
        return None
    for delimiter in _DELIMITERS:
        names = tuple(name.strip() for name in _fields(line, delimiter))
        if KERNEL not in names:
            continue
        if "Metric Name" in names:
            if "Metric Value" in names:
                return Header(names, delimiter, "details")
            return Header(names, delimiter, "summary") if "Average" in names else None
        if any("__" in name for name in names):
            return Header(names, delimiter, "summary" if "Invocations" in names else "raw")
        return None
    return None


def _fields(line: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader((line,), delimiter=delimiter, skipinitialspace=True), [])
    except csv.Error:
        return []


def read_pages(lines: Iterable[str], header: Header, found: Collected) -> None:
    """All rows after a header, to the end of the file; another header begins another run of the profiler."""
    csv.field_size_limit(_LONGEST_FIELD)
    run = 0
    found.page = header.page
    take = _taker(header, found, run)
    for line in lines:
        if not line.strip() or line.startswith("=="):
            continue
        if KERNEL in line and (other := header_of(line)):
            run += 1
            header, found.page = other, other.page
            take = _taker(header, found, run)
            continue
        quoted = line.count('"')
        fields = _fields(line, header.delimiter) if not quoted % 2 else []
        if fields and take(fields):
            continue
        # What the program printed meanwhile is no row, and nothing is lost by it.
        if quoted >= 2:
            found.odd += 1
            found.example = found.example or line[:120]


def _taker(header: Header, found: Collected, run: int) -> Take:
    return (
        _wide(header, found, run)
        if header.page == "raw" or "Metric Name" not in header.names
        else _long(header, found, run)
    )


def _launches(header: Header, found: Collected, run: int) -> Callable[[Sequence[str]], Launch | None]:
    """What finds the launch that a row is of; None for a row that is of none."""
    names = ("Process ID", KERNEL, "Context", "Stream", "Block Size", "Grid Size", "Device", "CC", "Invocations")
    at = {name: place for name in names if (place := header.place(name)) is not None}
    places, kernel, number = list(at.values()), header.names.index(KERNEL), header.place("ID")
    needed = max(*places, number or 0)
    shapes: dict[tuple[str, ...], tuple[dict[str, Any], Hashable]] = {}

    def launch(fields: Sequence[str]) -> Launch | None:
        if len(fields) <= needed or not fields[kernel]:
            return None
        shape = tuple([fields[place] for place in places])
        ordinal = fields[number] if number is not None else ""
        key = (run, ordinal, shape)
        known = found.met(key)
        if known is not None:
            return known
        if shape not in shapes:
            facts = _facts(dict(zip(at, shape, strict=True)))
            shapes[shape] = facts, likeness(facts)
        facts, alike = shapes[shape]
        told = _whole(ordinal)
        return found.launch(key, {**facts, "launch": found.count if told is None else told}, alike)

    return launch


def _facts(told: dict[str, str]) -> dict[str, Any]:
    capability = told.get("CC")
    facts: dict[str, Any] = {
        "launches": _whole(told.get("Invocations")) or 1,
        "pid": _whole(told.get("Process ID")),
        "device": _whole(told.get("Device")),
        "name": told[KERNEL],
        "compute_capability": number(capability, ".") if capability else None,
    }
    for axes, size in ((AXES[:3], told.get("Grid Size")), (AXES[3:], told.get("Block Size"))):
        if size and (sizes := _SIZES.fullmatch(size.strip())):
            facts |= dict(zip(axes, map(int, sizes.groups()), strict=True))
    return facts


def _whole(text: str | None) -> int | None:
    digits = (text or "").strip()
    return int(digits) if digits.isdecimal() and len(digits) < 19 else None


@lru_cache(maxsize=16384)
def _meant(name: str, section: str, unit: str) -> tuple[Meaning, float] | None:
    """The column of a counter, and what its value is multiplied by; None for one that is not used.

    Names of the details page stand for several things, which their units tell apart.
    """
    found = meaning(name, section)
    if found is None:
        return None
    if found.column == "memory" and not unit.startswith("%"):
        found = Meaning("dram_rate")
    elif found.column == "dram_rate" and unit.startswith("%"):
        found = Meaning("memory")
    return found, scale(unit)


def _long(header: Header, found: Collected, run: int) -> Take:
    """Rows of one counter or rule each."""
    launch_of = _launches(header, found, run)
    name = header.place("Metric Name")
    unit, value, section = (
        header.place("Metric Unit"),
        header.place("Metric Value", "Average"),
        header.place("Section Name"),
    )
    assert name is not None and value is not None
    rule, kind, message = (header.place(f"Rule {one}") for one in ("Name", "Type", "Description"))
    scope, estimate = header.place("Estimated Speedup Type"), header.place("Estimated Speedup")

    def get(fields: Sequence[str], place: int | None) -> str:
        return fields[place] if place is not None and place < len(fields) else ""

    def take(fields: Sequence[str]) -> bool:
        # A row that was cut off may name another launch.
        if len(fields) <= value or (launch := launch_of(fields)) is None:
            return False
        title = get(fields, section)
        if words := get(fields, message):
            found.rule(
                *(launch, title, get(fields, rule) or None, get(fields, kind), words),
                *(get(fields, scope), get(fields, estimate)),
            )
        if not (called := get(fields, name)):
            return bool(words)
        if known := _meant(called, title, get(fields, unit)):
            launch.values.append((known[0], fields[value], known[1]))
        return True

    return take


def _wide(header: Header, found: Collected, run: int) -> Take:
    """Rows of one launch each; the first that names none holds the units."""
    launch_of = _launches(header, found, run)
    kernel = header.names.index(KERNEL)
    known = [(at, told) for at, name in enumerate(header.names) if "__" in name and (told := meaning(_plain(name)))]
    factors: dict[int, float] = {at: 0.01 if "pct" in header.names[at] else 1.0 for at, _ in known}
    width = len(header.names)

    def take(fields: Sequence[str]) -> bool:
        if len(fields) > kernel and not fields[kernel]:
            factors.update((at, scale(fields[at])) for at, _ in known if at < len(fields))
            return True
        if len(fields) < width or (launch := launch_of(fields)) is None:
            return False
        launch.values.extend((told, fields[at], factors[at]) for at, told in known if fields[at])
        return True

    return take


def _plain(name: str) -> str:
    """A metric's name without the average, minimum or maximum that a summary adds."""
    return name.removesuffix(" (Average)").removesuffix(" (avg)")
