"""Geometry of the small inline charts. Positions are in the units of the SVG's view box; the templates only draw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from traceanalyzer.report.palette import SWATCHES, Swatch
from traceanalyzer.result.document import Device
from traceanalyzer.result.gpus import ledger_lines

BAR_LIMIT = 240


@dataclass(frozen=True)
class Segment:
    """One line of a GPU's ledger: its share of the window (0 to 1) and where its bar begins."""

    swatch: Swatch
    ns: int
    share: float
    begins: float


@dataclass(frozen=True)
class StepBar:
    """One bar of the step chart: steps `first` to `last`, the longest of them in ns, its height as a share of the tallest."""

    first: int
    last: int
    ns: int
    height: float


def ledger_segments(device: Device) -> list[Segment]:
    """The lines of a ledger in the palette's order, without the empty ones. Their ns add up to the window exactly."""
    amounts = ledger_lines(device)
    unknown = sum(ns for key, ns in amounts.items() if key not in {s.key for s in SWATCHES})
    amounts["idle.unattributed"] = amounts.get("idle.unattributed", 0) + unknown
    segments, passed = [], 0
    window = max(device.window_ns, 1)
    for swatch in SWATCHES:
        ns = amounts.get(swatch.key, 0)
        if ns > 0:
            segments.append(Segment(swatch, ns, ns / window, passed / window))
            passed += ns
    return segments


def step_bars(durations: Sequence[int]) -> list[StepBar]:
    """Bars over step durations in ns; when there are too many, each bar stands for a run of steps and shows the longest."""
    if not durations:
        return []
    run = -(-len(durations) // BAR_LIMIT)
    tallest = max(*durations, 1)
    bars = []
    for first in range(0, len(durations), run):
        chunk = durations[first : first + run]
        bars.append(StepBar(first, first + len(chunk) - 1, max(chunk), max(chunk) / tallest))
    return bars
