"""Values of launches as they are met on a page, and the tables that they become once all are known."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator
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

MOST_LAUNCHES = 2_000_000
MOST_TOLD = 20_000
"""Of so many values the mark of decimals is told."""
LONGEST_MESSAGE = 2_000
_BRACKET = re.compile(r"(?<=\w)<unnamed>::")
_TEXTS = ("gpu_name",)
_INTEGERS = frozenset({"blocks", "threads", *AXES})


@dataclass
class Launch:
    """One launch: what identifies it, and the columns known so far."""

    facts: dict[str, Any]
    values: list[tuple[Meaning, str, float]] = field(default_factory=list)
    told: dict[str, float | str] = field(default_factory=dict)


@dataclass
class Collected:
    """What a file holds. `bad` counts values of counters that are no numbers, `odd` lines that could not be read."""

    page: str = ""
    launches: list[Launch] = field(default_factory=list)
    rules: list[dict[str, Any]] = field(default_factory=list)
    metrics: int = 0
    bad: int = 0
    odd: int = 0
    example: str | None = None
    _known: dict[Hashable, Launch] = field(default_factory=dict)

    def launch(self, key: Hashable, facts: dict[str, Any]) -> Launch:
        """The launch of this key, new with these facts where it was not met before."""
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = Launch({**facts, "page": self.page})
            self.launches.append(found)
        return found

    def met(self, key: Hashable) -> Launch | None:
        """The launch of this key, if it was met before."""
        return self._known.get(key)

    def rule(
        self, launch: Launch, section: str, name: str | None, kind: str, message: str, scope: str, estimate: str
    ) -> None:
        """What a rule says; `estimate` is a percentage as printed."""
        message = " ".join(message.split())
        name = name or own_rules.name_of(message)
        launch.told |= {key: value for key, value in own_rules.told(name, message).items() if key not in launch.told}
        share = number(estimate.replace("%", "").strip(), _mark_of(estimate)) if estimate else None
        self.rules.append(
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

    def mark(self) -> str:
        """The mark of decimals in this file."""
        texts = (text for launch in self.launches for _, text, _ in launch.values)
        return decimal_mark(islice(texts, MOST_TOLD))

    def tables(self, file: int) -> Iterator[tuple[str, pa.Table]]:
        """Both tables, without their rank."""
        mark = self.mark()
        yield LAUNCHES.name, _table(LAUNCHES, [self._row(launch, mark) | {"file": file} for launch in self.launches])
        yield RULES.name, _table(RULES, [row | {"file": file} for row in self.rules])

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


def _table(spec: TableSpec, rows: list[dict[str, Any]]) -> pa.Table:
    fields = [one for one in spec.schema if one.name != "rank"]
    columns = []
    for one in fields:
        values = [row.get(one.name) for row in rows]
        columns.append(
            pa.array(values, pa.string()).dictionary_encode().cast(one.type)
            if pa.types.is_dictionary(one.type)
            else pa.array(values, one.type)
        )
    return pa.table(columns, schema=pa.schema(fields))
