"""Figures of a CPU profile for comparisons and budgets: shares, since profiles are of any length."""

from __future__ import annotations

from collections.abc import Mapping

from traceanalyzer.model.tables import Tables

MOST_FUNCTIONS = 50


def measure(tables: Tables) -> Mapping[str, int | float]:
    """Of the threads that profiles are judged by, together. The import chain is no part of it: its share depends on how long was
    recorded."""
    threads = [row for row in tables.table("cpu_threads").to_pylist() if row["main"]]
    units = {row["unit"] for row in tables.table("cpu_profiles").to_pylist()}
    weight, startup, own = (sum(row[name] for row in threads) for name in ("weight", "startup", "own"))
    if not weight or len(units) != 1:
        return {}
    rest = weight - startup
    if rest <= 0:
        return {}
    found: dict[str, int | float] = {"own": own / rest}
    judged = {(row["rank"], row["thread"]) for row in threads}
    by_place: dict[str, int] = {}
    for row in tables.table("cpu_functions").to_pylist():
        if (row["rank"], row["thread"]) in judged:
            name = function_only(row["place"])
            by_place[name] = by_place.get(name, 0) + row["weight"]
    most = sorted(by_place.items(), key=lambda one: (-one[1], one[0]))[:MOST_FUNCTIONS]
    if most:
        found["hottest"] = most[0][1] / rest
    return found | {f"hottest[{place}]": ns / rest for place, ns in most}


def function_only(place: str) -> str:
    """`bpe_merge (train.py)` of `bpe_merge (train.py:17)`: the line moves with every edit of a file."""
    head, colon, line = place.rpartition(":")
    return f"{head})" if colon and line.rstrip(")").isdigit() else place
