"""Figures of a snapshot for comparisons and budgets: of several GPUs the one that has most."""

from __future__ import annotations

from collections.abc import Mapping

from traceanalyzer.model.tables import Tables


def measure(tables: Tables) -> Mapping[str, int | float]:
    """As far as they are known; bytes. Without a history there is no peak: what is held at a snapshot is no measure of one."""
    memory = [row for row in tables.table("snapshot_memory").to_pylist() if row["recorded"]]
    found: dict[str, int | float] = {}
    for name, column in (("peak", "peak_allocated"), ("reserved", "peak_reserved"), ("level", "steady")):
        known = [row[column] for row in memory if row[column] is not None]
        if known:
            found[name] = max(known)
    grown = [row["growth"] for row in memory if row["growth"] is not None]
    if grown:
        found["growth"] = max(grown)
    return found
