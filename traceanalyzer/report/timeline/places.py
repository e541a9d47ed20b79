"""Where evidence lies on the timeline: its time since the origin, and the lanes of the GPU that it is about."""

from __future__ import annotations

from collections.abc import Mapping

from traceanalyzer.records import dataclass
from traceanalyzer.report.timeline.lanes import Group, rank_spans
from traceanalyzer.result.document import Evidence


@dataclass(frozen=True)
class Place:
    """Where a piece of evidence lies on the timeline: ns since the origin, and the group of lanes to look at."""

    start: int
    end: int
    group: int


class Places:
    """Finds the places of evidence. Made while the groups still hold the tables' own times and every event.

    `origins` is for each rank of the tables the time that is shown as 0, `claims` how many files say that they are a rank of the job. A
    file that says none, and a second one of a rank, has a number of its own in the tables, which the evidence does not have. `before`
    is how many groups of other traces the timeline has above these.
    """

    def __init__(
        self, groups: list[Group], origins: Mapping[int, int], claims: Mapping[int, int], before: int = 0
    ) -> None:
        self._groups, self._origins, self._claims, self._before = groups, origins, claims, before
        self._all_named = all(group.rank in claims for group in groups)
        self._spans = rank_spans(groups)
        # Of one file nobody asks for the slices.
        several = len(self._spans) > 1 or any(files > 1 for files in claims.values())
        self._slices = [group.slices if several and group.device is not None else [] for group in groups]

    def put_below(self, count: int) -> None:
        """There are so many more groups above these."""
        self._before += count

    def find(self, evidence: Evidence) -> Place | None:
        """None when it has no time, when no lanes show that GPU, or when it cannot be told which of them do."""
        if not evidence.has_time:
            return None
        fits = [
            number
            for number, group in enumerate(self._groups)
            if group.device is not None and evidence.device in (None, group.device) and self._can_be(evidence, group)
        ]
        files = 1 if evidence.rank is None else self._claims.get(evidence.rank, 1)
        all_shown = len(self._ranks(fits)) >= files
        if files > 1 or len(self._ranks(fits)) > 1:
            fits = [number for number in fits if self._recorded(evidence, number)]
            if not all_shown or len(self._ranks(fits)) > 1:
                fits = [number for number in fits if self._has_edge(evidence, number)]
        if len(self._ranks(fits)) != 1:
            return None
        running = [n for n in fits if self._groups[n].window[0] <= evidence.start_ns <= self._groups[n].window[1]]
        number = (running or fits)[0]
        origin = self._origins[self._groups[number].rank]
        return Place(evidence.start_ns - origin, evidence.end_ns - origin, self._before + number)

    def _can_be(self, evidence: Evidence, group: Group) -> bool:
        nameless = group.rank not in self._claims
        if evidence.rank is None:
            return nameless or self._all_named
        return evidence.rank == group.rank or (nameless and self._claims.get(evidence.rank, 1) > 1)

    def _ranks(self, numbers: list[int]) -> set[int]:
        return {self._groups[number].rank for number in numbers}

    def _recorded(self, evidence: Evidence, number: int) -> bool:
        low, high = self._spans[self._groups[number].rank]
        return evidence.start_ns <= high and evidence.end_ns >= low

    def _has_edge(self, evidence: Evidence, number: int) -> bool:
        """Whether something on that GPU begins or ends just where the evidence does: times are exact, and rarely the same on two."""
        times = evidence.start_ns, evidence.end_ns
        return any(
            bool((edges == time).any())
            for row in self._slices[number]
            for edges in (row.start, row.end)
            for time in times
        )
