"""The charts, and the step times of each GPU beside them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from traceanalyzer.records import dataclass
from traceanalyzer.report.context import ReportContext
from traceanalyzer.report.section import PageSection
from traceanalyzer.report.sections.many_gpus import many_gpus
from traceanalyzer.report.sections.words import format_duration
from traceanalyzer.result.document import Result, Steps
from traceanalyzer.result.gpus import steps_of_gpus
from traceanalyzer.result.words.unprofiled import steps_without_profiler


@dataclass(frozen=True)
class StepsView:
    label: str
    steps: Steps
    without: str | None


def steps_views(shown: Sequence[int], result: Result, labels: Sequence[str]) -> list[StepsView]:
    """Of the GPUs at the positions `shown` those that have steps."""
    every = steps_of_gpus(result)
    return [
        StepsView(labels[at], steps, steps_without_profiler(steps, format_duration))
        for at in shown
        if (steps := every[at])
    ]


def _view(page: ReportContext) -> dict[str, Any] | None:
    steps, charts = steps_views(page.shown_gpus, page.result, page.labels), page.charts
    if not (steps or charts.of_gpu or charts.of_all):
        return None
    return {
        "steps": steps,
        "charts": charts,
        "unprofiled": any(one.unprofiled_step_ns is not None for one in page.result.steps),
        "shown_of_many": len(page.devices) if many_gpus(page.result, page.gpus) else None,
    }


SECTION = PageSection(
    name="charts", title="Charts", order=60, view=_view, styles=("charts.css",), scripts=("charts.js",)
)
