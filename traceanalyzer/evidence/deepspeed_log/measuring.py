"""Figures of DeepSpeed's logs for comparisons and budgets: of several logs those of the slowest."""

from __future__ import annotations

from collections.abc import Mapping

from traceanalyzer.evidence.deepspeed_log.tables import STEP
from traceanalyzer.model.tables import Tables

_PHASES = {"fwd": "forward", "bwd": "backward", "step": "optimizer"}


def measure(tables: Tables) -> Mapping[str, int | float]:
    """As far as they are known; ns, and operations of a forward pass."""
    found: dict[str, int | float] = {}
    totals = [row["total"] for row in tables.table("deepspeed_run").to_pylist() if row["total"]]
    if totals:
        found["step"] = max(totals)
    for row in tables.table("deepspeed_phases").to_pylist():
        name = _PHASES.get(row["phase"])
        if row["group"] == STEP and name:
            found[name] = max(row["median"], found.get(name, 0))
    grown = [row["last"] - row["first"] for row in tables.table("deepspeed_growth").to_pylist() if row["steady"]]
    if grown:
        found["growth"] = max(0, *grown)
    elif tables.table("deepspeed_growth").num_rows:
        found["growth"] = 0
    once = [
        row["once"] for row in tables.table("deepspeed_module_costs").to_pylist() if row["depth"] == 0 and row["once"]
    ]
    if once:
        found["flops"] = 2 * max(once)
    return found
