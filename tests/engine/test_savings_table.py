"""docs/savings.md: what replaying the slow programs of the corpus predicts, against what the fixed ones took.

Renew the table with `python -m tests.engine.test_savings_table`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import yaml

import traceanalyzer as ta
from tests.support.places import CORPUS, needs_corpus
from traceanalyzer.catalog.catalog import Catalog
from traceanalyzer.model.trace import Trace
from traceanalyzer.result.document import Finding

PAGE = Path(__file__).parents[2] / "docs" / "savings.md"
START, END = "<!-- table -->\n", "<!-- end of table -->\n"
HOST_SIDE = ("INP", "HST", "LCH", "SYN", "MEM", "CPY", "COM")
"""Families of rules about the host, copies and communication: what their fixes give is for the replay to say."""
MEDIAN_ERROR = 0.15
HELD = 0.9
"""In so many of the pairs the range of an estimate holds what was measured."""


@dataclass(frozen=True)
class Pair:
    """One program with a fault and without it; times in ms a step. `range` is of speedups, for estimates."""

    name: str
    rule: str | None
    now: float | None
    predicted: float | None
    ceiling: float | None
    fixed: float | None
    unprofiled: tuple[float, float]
    range: tuple[float, float] | None = None

    @property
    def error(self) -> float | None:
        return self.predicted / self.fixed - 1 if self.predicted and self.fixed and not self.range else None

    @property
    def held(self) -> list[bool]:
        """Whether the range of an estimate holds the speedup that was measured: with the profiler, and without it."""
        if not (self.range and self.now and self.fixed):
            return []
        slow, fixed = self.unprofiled
        return [self.range[0] <= speedup <= self.range[1] for speedup in (self.now / self.fixed, slow / fixed)]


def truth() -> Iterator[tuple[str, str, dict[str, Any]]]:
    data = yaml.safe_load((CORPUS / "TRUTH.yaml").read_text())
    for folder in ("kineto", "multirank"):
        yield from ((folder, name, entry) for name, entry in data[folder].items() if "fixed" in entry)


def load(folder: str, name: str) -> Trace:
    return ta.load(CORPUS / folder / (f"{name}.pt.trace.json.gz" if folder == "kineto" else name))


def steps(trace: Trace, rank: int | None, device: int | None) -> float | None:
    """The mean time from the end of one step's GPU work to the next's, in ms."""
    stats = Catalog(trace).table("step_stats").to_pylist()
    done = [row["done_ns"] for row in stats if row["device"] == device and trace.rank_of(row["rank"]) == rank]
    return (done[-1] - done[0]) / (len(done) - 1) / 1e6 if len(done) > 1 else None


def planted(findings: list[Finding], find: dict[str, Any]) -> Finding | None:
    """The finding about the planted fault: of those that may come first, else of those that must be there, the largest."""
    wanted = [*find.get("first", ()), *find.get("some", ())]
    found = [f for f in findings if f.rule in wanted and f.saving.predicted_step_ns is not None]
    return min(
        found, key=lambda f: (f.rule not in find.get("first", f.rule), -(f.saving.recoverable_ns or 0)), default=None
    )


def pair(folder: str, name: str, entry: dict[str, Any]) -> Pair:
    finding = planted(ta.analyze(load(folder, f"{name}.slow")).findings, entry["slow_find"])
    unprofiled = (entry["slow"], entry["fixed"])
    if finding is None:
        return Pair(name, None, None, None, None, None, unprofiled)
    saving = finding.saving
    fixed = steps(load(folder, f"{name}.fixed"), finding.scope.rank, finding.scope.device)
    now = saving.step_ns / 1e6
    predicted, ceiling = saving.predicted_step_ns / 1e6, now / saving.speedup_ceiling
    return Pair(name, finding.rule, now, predicted, ceiling, fixed, unprofiled, saving.predicted_speedup_range)


def pairs() -> list[Pair]:
    return [pair(*one) for one in truth()]


def errors(found: list[Pair]) -> list[float]:
    """Absolute errors of the pairs whose fault is on the host, in copies or in communication."""
    return [abs(p.error) for p in found if p.rule and p.rule.startswith(HOST_SIDE) and p.error is not None]


def table(found: list[Pair]) -> str:
    def ms(value: float | None) -> str:
        return "–" if value is None else f"{value:.2f}"

    head = ("pair", "finding", "slow", "predicted", "fixed", "error", "ledger only", "unprofiled: slow", "fixed")
    lines = [" | ".join(head), " | ".join(["---"] * 2 + ["---:"] * 7)]
    for p in found:
        error, predicted = "–" if p.error is None else f"{p.error:+.0%}", ms(p.predicted)
        if p.range and p.now:
            predicted = f"{p.now / p.range[1]:.2f} to {p.now / p.range[0]:.2f}"
            error = "within" if all(p.held) else "not within"
        cells = (
            p.name,
            p.rule or "none",
            ms(p.now),
            predicted,
            ms(p.fixed),
            error,
            ms(p.ceiling),
            *map(ms, p.unprofiled),
        )
        lines.append(" | ".join(cells))
    middle = median(errors(found))
    said = f"Median error of the {len(errors(found))} pairs whose fault is on the host, in copies or in communication: {middle:.1%}."
    held = [one for p in found for one in p.held]
    said += f" Of {len(held)} speedups by other kernels, with and without the profiler, the ranges hold {sum(held)}."
    return "\n".join(f"| {line} |" for line in lines) + f"\n\n{said}\n"


@needs_corpus
def test_the_page_is_current_and_the_median_error_small() -> None:
    found = pairs()
    assert PAGE.read_text().split(START)[1].split(END)[0] == table(found)
    assert median(errors(found)) <= MEDIAN_ERROR
    held = [one for p in found for one in p.held]
    assert len(held) >= 10 and sum(held) >= HELD * len(held)


if __name__ == "__main__":
    before, after = PAGE.read_text().split(START)[0], PAGE.read_text().split(END)[1]
    PAGE.write_text(before + START + table(pairs()) + END + after)
