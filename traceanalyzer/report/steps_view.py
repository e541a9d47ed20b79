"""The step times of each GPU as the page shows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from traceanalyzer.report.words import gpu_label
from traceanalyzer.result.document import Steps


@dataclass(frozen=True)
class StepsView:
    label: str
    steps: Steps


def steps_views(shown: Sequence[Steps]) -> list[StepsView]:
    return [StepsView(gpu_label(steps.rank, steps.device), steps) for steps in shown]
