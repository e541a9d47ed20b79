"""Figures for comparisons and budgets: of several tables the one whose device, else host, took longest."""

from __future__ import annotations

from collections.abc import Mapping

from traceanalyzer.model.tables import Tables


def measure(tables: Tables) -> Mapping[str, int | float]:
    """As far as they are known."""
    found: dict[str, int | float] = {}
    sums = tables.table("operator_sums").to_pylist()
    if sums:
        row = max(sums, key=lambda one: (one["device_total"] or 0, one["host_total"] or 0))
        for name, column, known in (
            ("device", "device_total", True),
            ("host", "host_total", True),
            ("kernel", "kernel_mean", row["whole"]),
            ("launches", "launches", row["host_whole"]),
        ):
            if known and row[column] is not None:
                found[name] = row[column]
    if traces := tables.table("execution_summary").to_pylist():
        found["operators"] = sum(row["operators"] for row in traces)
    return found
