"""Figures of a snapshot for comparisons and budgets: of several GPUs the one that has most."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from traceanalyzer.evidence.memory_snapshot.answers.owners import NO_FRAME
from traceanalyzer.model.tables import Tables

MOST_OWNERS = 50


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
    if "peak" in found:
        found |= {f"peak[{place}]": held for place, held in _owners(tables).most_common(MOST_OWNERS)}
    return found


def _owners(tables: Tables) -> Counter[str]:
    """Bytes at the peak by who asked for them, all GPUs together."""
    held: Counter[str] = Counter()
    for row in tables.table("snapshot_owners").to_pylist():
        held[row["place"] or NO_FRAME] += row["peak_bytes"] or 0
    return held
