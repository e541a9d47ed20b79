"""The step times of each GPU as the page shows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from traceanalyzer.result.document import Result, Steps
from traceanalyzer.result.gpus import steps_of_gpus


@dataclass(frozen=True)
class StepsView:
    label: str
    steps: Steps


def steps_views(shown: Sequence[int], result: Result, labels: Sequence[str]) -> list[StepsView]:
    """Of the GPUs at the positions `shown` those that have steps."""
    every = steps_of_gpus(result)
    return [StepsView(labels[at], steps) for at in shown if (steps := every[at])]
