"""Values of launches as they are met on a page, and the tables that they become once all are known."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from math import prod
from typing import Any

import pyarrow as pa

from traceanalyzer.evidence.kernel_counters.reading import own_rules
from traceanalyzer.evidence.kernel_counters.reading.metrics import Meaning, combined
from traceanalyzer.evidence.kernel_counters.reading.numbers import decimal_mark, number
from traceanalyzer.evidence.kernel_counters.tables import AXES, LAUNCHES, RULES
from traceanalyzer.model.schema import TableSpec
from traceanalyzer.names import function_path

MOST_LAUNCHES = 250_000
"""So many launches, but for those of which there are many alike."""
MOST_ALIKE = 200
"""Of one kernel with one grid and block the first launches tell what more of them would; the others are counted."""
BATCH = 20_000
"""So many launches are handed on at a time."""
MOST_TOLD = 20_000
"""Of so many values the mark of decimals is told."""
LONGEST_MESSAGE = 2_000
_BRACKET = re.compile(r"(?<=\w)<unnamed>::")
_TEXTS = ("gpu_name",)
_INTEGERS = frozenset({"blocks", "threads", *AXES})


@dataclass(slots=True)
class Launch:
    """One launch: what identifies it, and the columns known so far."""

    facts: dict[str, Any]
    values: list[tuple[Meaning, str, float]] = field(default_factory=list)
    told: dict[str, float | str] = field(default_factory=dict)
    skipped: bool = False


@dataclass
class Collected:
    """What a file holds, handed on in batches to `sink` (the name of a table, and rows of it without their rank).

    `count` are launches that are kept, `alike` all of them by kernel and size, `metrics` values of counters that are used, `bad` those
    that are no numbers, `odd` lines that could not be read. A launch that is met again after its batch is another row of the same.
    """

    file: int
    sink: Callable[[str, pa.Table], None]
    page: str = ""
    count: int = 0
    pids: set[int] = field(default_factory=set)
    metrics: int = 0
    bad: int = 0
    odd: int = 0
    example: str | None = None
    alike: Counter[Hashable] = field(default_factory=Counter)
    _launches: list[Launch] = field(default_factory=list)
    _rules: list[dict[str, Any]] = field(default_factory=list)
    _known: dict[Hashable, Launch] = field(default_factory=dict)
    _mark: str | None = None

    def launch(self, key: Hashable, facts: dict[str, Any], alike: Hashable = None) -> Launch:
        """The launch of this key, new with these facts where it was not met before; `alike` is its `likeness`, if that is known."""
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= BATCH:
                self.flush()
            same = alike or likeness(facts)
            self.alike[same] += facts["launches"]
            found = self._known[key] = Launch({**facts, "page": self.page})
            if self.alike[same] <= MOST_ALIKE or facts["launches"] > 1:
                if self.count >= MOST_LAUNCHES:
                    raise OverflowError(f"more than {MOST_LAUNCHES:,} launches that differ")
                self._launches.append(found)
                self.count += 1
            else:
                found.skipped = True
        return found

    def met(self, key: Hashable) -> Launch | None:
        """The launch of this key, if it was met before."""
        return self._known.get(key)

    def rule(
        self, launch: Launch, section: str, name: str | None, kind: str, message: str, scope: str, estimate: str
    ) -> None:
        """What a rule says; `estimate` is a percentage as printed."""
        if launch.skipped:
            return
        message = " ".join(message.split())
        name = name or own_rules.name_of(message)
        launch.told |= {key: value for key, value in own_rules.told(name, message).items() if key not in launch.told}
        share = number(estimate.replace("%", "").strip(), _mark_of(estimate)) if estimate else None
        self._rules.append(
            {
                "launch": launch.facts["launch"],
                "section": section or None,
                "name": name,
                "kind": kind or None,
                "message": message[:LONGEST_MESSAGE],
                "scope": scope or None,
                "estimate": None if share is None else min(max(share / 100, 0.0), 1.0),
            }
        )

    def finish(self) -> int:
        """Hand on the rest, and how many launches there were of what there are many alike; as many are counted and not kept."""
        left = 0
        for place, (same, count) in enumerate(self.alike.items()):
            if isinstance(same, tuple) and count > MOST_ALIKE and self.page != "summary":
                pid, device, name, *sizes = same
                more = {
                    "launch": -1 - place,
                    "launches": count - MOST_ALIKE,
                    "pid": pid,
                    "device": device,
                    "name": name,
                }
                more |= dict(zip(AXES, sizes, strict=True))
                self._launches.append(Launch({**more, "page": self.page, "compute_capability": None}))
                left += count - MOST_ALIKE
        self.flush()
        return left

    def flush(self) -> None:
        """Hand on what is known. The first batch tells the mark of decimals."""
        if self._mark is None:
            texts = (text for launch in self._launches for _, text, _ in launch.values)
            self._mark = decimal_mark(islice(texts, MOST_TOLD))
        mark = self._mark
        rows = [self._row(launch, mark) for launch in self._launches]
        self.pids |= {row["pid"] for row in rows if row["pid"] is not None}
        for spec, known in ((LAUNCHES, rows), (RULES, self._rules)):
            if known:
                self.sink(spec.name, _table(spec, known, self.file))
        self._launches, self._rules, self._known = [], [], {}

    def _row(self, launch: Launch, mark: str) -> dict[str, Any]:
        found: dict[str, float] = {}
        places: dict[str, int] = {}
        texts: dict[str, str] = {}
        for meaning, text, factor in launch.values:
            if meaning.column in _TEXTS:
                texts[meaning.column] = text
                continue
            value = number(text, mark)
            if value is None:
                self.bad += bool(text) and text not in ("nan", "n/a", "N/A", "-")
                continue
            value *= factor
            if meaning.sums:
                found[meaning.column] = found.get(meaning.column, 0.0) + value
            elif meaning.place < places.get(meaning.column, 1 << 30):
                found[meaning.column], places[meaning.column] = value, meaning.place
        self.metrics += len(found)
        row: dict[str, Any] = {**launch.told, **combined(found), **found, **texts, **launch.facts}
        for name in _INTEGERS & found.keys():
            row[name] = launch.facts.get(name) or int(found[name])
        for whole, axes in (("blocks", AXES[:3]), ("threads", AXES[3:])):
            sizes = [int(row.get(axis) or 0) for axis in axes]
            if all(sizes):
                row[whole] = prod(sizes)
        row["name"] = without_unnamed(row["name"])
        row["function"] = function_of(row["name"])
        return row


def likeness(facts: dict[str, Any]) -> Hashable:
    """What launches have in common that are of one kernel and size."""
    return (facts["pid"], facts["device"], facts["name"], *(facts.get(axis) for axis in AXES))


@lru_cache(maxsize=1 << 16)
def function_of(name: str) -> str:
    """The function's own name: what the profiler and a trace agree on, whatever else of it they print."""
    return function_path(name).rpartition("::")[2] or name


@lru_cache(maxsize=1 << 16)
def without_unnamed(name: str) -> str:
    """The name of a kernel without unnamed namespaces, of which some releases drop the bracket: `void unnamed>::f<unnamed>::T>`."""
    return _BRACKET.sub("<", name).replace("<unnamed>::", "").replace("unnamed>::", "")


def _mark_of(text: str) -> str:
    return "," if "," in text and "." not in text else "."


def _table(spec: TableSpec, rows: list[dict[str, Any]], file: int) -> pa.Table:
    fields = [one for one in spec.schema if one.name != "rank"]
    columns = []
    for one in fields:
        values = [file if one.name == "file" else row.get(one.name) for row in rows]
        columns.append(
            pa.array(values, pa.string()).dictionary_encode().cast(one.type)
            if pa.types.is_dictionary(one.type)
            else pa.array(values, one.type)
        )
    return pa.table(columns, schema=pa.schema(fields))
