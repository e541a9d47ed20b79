"""The critical path of the result: of a single GPU its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from traceanalyzer.model.tables import Tables
from traceanalyzer.result.critical_path import CriticalPath, PathKind, PathLink

MOST_LINKS = 100
"""So many links are listed."""


def critical_path_of(tables: Tables, ranks: Mapping[int, int | None], gpus: int) -> CriticalPath | None:
    """None without GPU work, and where there are several GPUs of which nobody knows who waited for whom. `ranks` are the job's by the
    tables'."""
    rows = tables.table("path_links").to_pylist()
    if gpus != 1 or not rows:
        return None
    kinds: dict[tuple[int, int, str], int] = {}
    for row in rows:
        key = row["rank"], row["device"], row["kind"]
        kinds[key] = kinds.get(key, 0) + row["duration"]
    left = rows[MOST_LINKS:]
    return CriticalPath(
        step_count=rows[0]["steps"] or 0,
        ns=sum(row["duration"] for row in rows),
        kinds=[
            PathKind(ranks[rank], device, kind, ns)
            for (rank, device, kind), ns in sorted(kinds.items(), key=lambda one: (-one[1], one[0]))
        ],
        links=[_link(row, ranks) for row in rows[:MOST_LINKS]],
        left=len(left),
        left_ns=sum(row["duration"] for row in left),
    )


def _link(row: Mapping[str, Any], ranks: Mapping[int, int | None]) -> PathLink:
    return PathLink(
        ranks[row["rank"]], row["device"], row["kind"], row["name"], row["duration"], row["gain"], row["deviation"]
    )
