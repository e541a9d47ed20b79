"""What the page of a comparison says: the two sides, the step's change line by line, and what became of the findings."""

from __future__ import annotations

from collections.abc import Sequence

from traceanalyzer.records import dataclass
from traceanalyzer.report.charts.figure import in_words
from traceanalyzer.report.palette import BY_KEY, Swatch
from traceanalyzer.report.sections.ledger_bar import Segment, segments_of
from traceanalyzer.report.sections.words import format_duration
from traceanalyzer.result.comparing.comparison import Change, Comparison, ProblemChange, Side
from traceanalyzer.result.comparing.words import (
    STATE_WORDS,
    UNCOVERED,
    by_state,
    problem_words,
    relative_words,
    side_words,
    unit_words,
)
from traceanalyzer.vocabulary.levels import INFO
from traceanalyzer.vocabulary.lines import UNATTRIBUTED

BASE, NEW = "BASE", "NEW"
MEANINGS = {
    "fixed": "no longer found in NEW",
    "new": "found in NEW only",
    "worse": "takes longer in NEW",
    "better": "takes less time in NEW",
    "uncovered": UNCOVERED,
    "unknown": "one of the sides does not allow to tell",
    "same": "on both sides alike",
}
"""What it means, of a finding's state."""
FOLDED = ("same", "unknown")


@dataclass(frozen=True)
class SideView:
    """One of the two: what the page calls it, and clauses about it. `segments` are the lines of its step, `share` is how long that is
    beside the longer one."""

    title: str
    side: Side
    clauses: list[str]
    segments: list[Segment]
    share: float


@dataclass(frozen=True)
class LineView:
    """A ledger line of a step on both sides. `begins` and `width` are of the bar of its change, as shares of the drawing, whose middle
    is no change."""

    label: str
    css: str
    change: Change
    words: str
    begins: float
    width: float


@dataclass(frozen=True)
class ProblemView:
    """What became of a rule's findings. `shows` are the places of their evidence: the words of a button, the finding's number and which
    item of its evidence."""

    problem: ProblemChange
    words: str
    severity: str
    before: str | None
    shows: list[tuple[str, int, int]]


@dataclass(frozen=True)
class ProblemGroup:
    """The problems of one state."""

    state: str
    heading: str
    meaning: str
    problems: list[ProblemView]

    @property
    def folded(self) -> bool:
        return self.state in FOLDED


def side_views(comparison: Comparison) -> list[SideView]:
    """BASE and NEW."""
    amounts = [
        {line.name: line.base_ns or 0 for line in comparison.lines},
        {line.name: line.new_ns or 0 for line in comparison.lines},
    ]
    longest = max((sum(one.values()) for one in amounts), default=0)
    return [
        SideView(
            title,
            side,
            side_words(side, spread),
            segments_of(own, sum(own.values())),
            sum(own.values()) / max(longest, 1),
        )
        for title, side, spread, own in zip(
            (BASE, NEW),
            (comparison.base, comparison.new),
            (comparison.noise.base, comparison.noise.new),
            amounts,
            strict=True,
        )
    ]


def _swatch(name: str) -> Swatch:
    return BY_KEY.get(name, BY_KEY[UNATTRIBUTED.name])


def line_views(comparison: Comparison) -> list[LineView]:
    """The lines that changed most first, those without a change last."""
    lines = sorted(comparison.lines, key=lambda line: (line.direction == "same", -abs(line.change_ns), line.name))
    most = max((abs(line.change_ns) for line in lines), default=0) or 1
    views = []
    for line in lines:
        width = abs(line.change_ns) / most / 2
        begins = 0.5 if line.change_ns >= 0 else 0.5 - width
        label = BY_KEY[line.name].label if line.name in BY_KEY else line.name
        views.append(LineView(label, _swatch(line.name).css, line, relative_words(line), begins, width))
    return views


@dataclass(frozen=True)
class Sum:
    """What lines add up to, in ns, and the change of all of it in words."""

    base_ns: int
    new_ns: int
    change_ns: int
    words: str


def sum_of_lines(comparison: Comparison) -> Sum:
    lines, step = comparison.lines, comparison.step
    return Sum(
        sum(line.base_ns or 0 for line in lines),
        sum(line.new_ns or 0 for line in lines),
        sum(line.change_ns for line in lines),
        relative_words(step) if step else "",
    )


def main_cause(comparison: Comparison) -> str | None:
    """The line that explains most of the step's change, as a sentence; None where the step did not change."""
    step = comparison.step
    if step is None or step.direction not in ("faster", "slower"):
        return None
    sign = 1 if step.change_ns > 0 else -1
    line = max(comparison.lines, key=lambda line: sign * line.change_ns, default=None)
    if line is None or sign * line.change_ns <= 0 or line.direction == "same":
        return None
    what = in_words(BY_KEY[line.name]) if line.name in BY_KEY else line.name
    more = "more" if sign > 0 else "less"
    words = f"{what}, {format_duration(abs(line.change_ns))} {more} {unit_words(comparison)}"
    return f"What changed most is {words}; the whole takes {format_duration(abs(step.change_ns))} {more}."


def problem_groups(
    problems: Sequence[ProblemChange], shows: dict[str, list[tuple[str, int, int]]]
) -> list[ProblemGroup]:
    """What became of the findings, by state. `shows` has the buttons by rule."""
    return [
        ProblemGroup(
            state,
            STATE_WORDS.get(state, state),
            MEANINGS.get(state, ""),
            [_problem_view(one, shows.get(one.rule, [])) for one in mine],
        )
        for state, mine in by_state(problems).items()
    ]


def _problem_view(problem: ProblemChange, shows: list[tuple[str, int, int]]) -> ProblemView:
    severity = problem.new_severity or problem.base_severity or INFO
    before = problem.base_severity if problem.new_severity and problem.base_severity != severity else None
    return ProblemView(problem, problem_words(problem), severity, before, shows)
