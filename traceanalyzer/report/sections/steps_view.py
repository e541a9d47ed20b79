"""The step times of each GPU as the page shows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from traceanalyzer.report.sections.words import format_duration
from traceanalyzer.result.document import Result, Steps
from traceanalyzer.result.gpus import steps_of_gpus
from traceanalyzer.result.unprofiled_words import steps_without_profiler


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
