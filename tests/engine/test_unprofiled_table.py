"""docs/savings.md: what steps are estimated to take without the profiler, against what was measured without one.

Renew the table with `python -m tests.engine.test_unprofiled_table`; with `fit` behind it, it shows how the constants fit one half of
the programs and do on the other.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import log
from pathlib import Path
from statistics import fmean, median
from typing import Any
from unittest.mock import patch

import yaml

import traceanalyzer as ta
from tests.support.places import CORPUS, needs_corpus
from traceanalyzer.catalog.catalog import Catalog
from traceanalyzer.derive.replay import profiler_cost
from traceanalyzer.derive.replay.unprofiled import job_unprofiled_steps, unprofiled_steps

PAGE = Path(__file__).parents[2] / "docs" / "savings.md"
START, END = "<!-- unprofiled table -->\n", "<!-- end of unprofiled table -->\n"
SLOWED = 1.2
"""A program that recording slows so many times is one whose time without the profiler is worth estimating."""
MOST_SLOWED_ERROR, MOST_OTHER_ERROR, LEAST_IN_RANGE = 0.2, 0.05, 0.8
EVIDENCE = ("cpu_profile", "deepspeed_log", "jobs", "memory", "serving")
VARIANTS = ("slow", "fixed")


@dataclass(frozen=True)
class Program:
    """One program's trace and what its step takes without a profiler, in ms. Its constants were fitted on those that are not `new`."""

    name: str
    path: Path
    measured: float
    new: bool


@dataclass(frozen=True)
class Estimate:
    """Of one program, ms a step."""

    program: Program
    recorded: float
    unprofiled: float
    least: float
    most: float

    @property
    def slowed(self) -> bool:
        return self.recorded >= SLOWED * self.program.measured

    @property
    def error(self) -> float:
        return self.unprofiled / self.program.measured - 1

    @property
    def error_of_recorded(self) -> float:
        return self.recorded / self.program.measured - 1

    @property
    def in_range(self) -> bool:
        return self.least <= self.program.measured <= self.most


def programs() -> Iterator[Program]:
    data = yaml.safe_load((CORPUS / "TRUTH.yaml").read_text())
    for folder, ending in (("kineto", ".pt.trace.json.gz"), ("multirank", "")):
        for name, entry in data[folder].items():
            for variant in VARIANTS:
                if variant in entry:
                    path = CORPUS / folder / f"{name}.{variant}{ending}"
                    yield Program(f"{name}.{variant}", path, entry[variant], new=False)
    for folder in EVIDENCE:
        root = CORPUS / "evidence" / folder
        for name, entry in yaml.safe_load((root / "TRUTH.yaml").read_text()).items():
            yield from _evidence(root, name, entry)


def _evidence(root: Path, name: str, entry: dict[str, Any]) -> Iterator[Program]:
    """Where another recorder ran beside the profiler, the step without a profiler is one with that."""
    measured = entry.get("fixed" if ".fixed" in name else "slow")
    files = [
        file for file in entry.get("files", ()) if file.endswith(".pt.trace.json.gz") and ".with_pyspy" not in file
    ]
    if measured and files:
        path = root / files[0]
        yield Program(name, path if path.parent == root else path.parent, measured, new=True)


def catalogs() -> list[tuple[Program, Catalog]]:
    """Of the programs whose traces have steps."""
    loaded = ((program, Catalog(ta.load(program.path))) for program in programs())
    return [(program, catalog) for program, catalog in loaded if catalog.table("unprofiled_steps").num_rows]


def estimate(program: Program, catalog: Catalog) -> Estimate:
    """Of a job, that of its first GPU."""
    alone = unprofiled_steps(catalog.value("what_if"), catalog.table("step_stats"))
    steps = job_unprofiled_steps(alone, catalog.table("communication"))
    row = min(steps.to_pylist(), key=lambda row: (row["rank"], row["device"]))
    return Estimate(program, *(row[name] / 1e6 for name in ("step", "unprofiled", "least", "most")))


def estimates() -> list[Estimate]:
    return [estimate(*one) for one in catalogs()]


def error(found: list[Estimate], slowed: bool, new: bool | None = None) -> float:
    """The median error of those that recording slows, or of the others."""
    return median(abs(e.error) for e in found if e.slowed == slowed and new in (None, e.program.new))


def table(found: list[Estimate]) -> str:
    head = ("program", "recorded", "estimated", "range", "measured", "error", "of the recorded")
    lines = [" | ".join(head), " | ".join(["---", "---:", "---:", "---", *["---:"] * 3])]
    ordered = sorted(found, key=lambda e: (not e.slowed, e.program.new))
    for e in ordered:
        about, low, high, most = (f"{ms:.2f}" for ms in (e.unprofiled, e.least, e.most, e.program.measured))
        name = f"**{e.program.name}**" if e.slowed else e.program.name
        range_ = f"{low} to {high}" if e.in_range else f"({low} to {high})"
        new = " ¹" if e.program.new else ""
        cells = (name + new, f"{e.recorded:.2f}", about, range_, most, f"{e.error:+.0%}", f"{e.error_of_recorded:+.0%}")
        lines.append(" | ".join(cells))
    return "\n".join(f"| {line} |" for line in lines) + "\n\n" + summary(found)


def summary(found: list[Estimate]) -> str:
    slowed = [e for e in found if e.slowed]
    others = [e for e in found if not e.slowed]
    recorded = median(abs(e.error_of_recorded) for e in slowed)
    inside = fmean(e.in_range for e in found)
    return (
        f"Median error of the {len(slowed)} programs that recording slows by 20% or more (bold): {error(found, True):.1%}, of those "
        f"among them on which nothing was fitted (¹) {error(found, True, new=True):.1%}; the recorded step is off by {recorded:.0%}. "
        f"Of the {len(others)} others: {error(found, False):.1%}. The range holds what was measured for {inside:.0%} of all "
        "programs; where it does not, it stands in brackets.\n"
    )


@needs_corpus
def test_the_page_is_current_and_the_estimates_are_good() -> None:
    found = estimates()
    assert PAGE.read_text().split(START)[1].split(END)[0] == table(found)
    assert error(found, slowed=True) <= MOST_SLOWED_ERROR and error(found, slowed=True, new=True) <= MOST_SLOWED_ERROR
    assert error(found, slowed=False) <= MOST_OTHER_ERROR
    assert fmean(e.in_range for e in found) >= LEAST_IN_RANGE


def fit() -> Iterator[str]:
    """For each half of the pairs the constants with the least mean absolute logarithm of estimated / measured, and what they do on the
    other half."""
    loaded = [(program, catalog) for program, catalog in catalogs() if not program.new]
    tried: dict[tuple[int, float], list[Estimate]] = {}
    for launch, slower in product((1000, 2000, 3000, 4000), (0.25, 0.3, 0.35, 0.4, 0.45)):
        with patch.multiple(profiler_cost, LAUNCH_NS=launch, SLOWER=slower):
            tried[launch, slower] = [estimate(*one) for one in loaded]
    pairs = sorted({_pair(program) for program, _ in loaded})
    for half in (set(pairs[::2]), set(pairs[1::2])):
        best = min(tried, key=lambda one: fmean(abs(log(1 + e.error)) for e in tried[one] if _pair(e.program) in half))
        other = [e for e in tried[best] if _pair(e.program) not in half]
        yield f"LAUNCH_NS, SLOWER = {best}: on the other half {error(other, True):.1%} where slowed, else {error(other, False):.1%}"


def _pair(program: Program) -> str:
    return program.name.rsplit(".", 1)[0]


if __name__ == "__main__":
    if sys.argv[1:] == ["fit"]:
        print("\n".join(fit()))
    else:
        before, after = PAGE.read_text().split(START)[0], PAGE.read_text().split(END)[1]
        PAGE.write_text(before + START + table(estimates()) + END + after)
