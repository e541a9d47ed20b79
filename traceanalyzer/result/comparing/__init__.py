"""Two programs compared, from one or more captures of each: is the new one faster, by how much, where, and is that more than noise."""

from __future__ import annotations

from collections.abc import Sequence

from traceanalyzer.result.captures.capture import Capture
from traceanalyzer.result.comparing.alike import notes_on, operators_known
from traceanalyzer.result.comparing.changes import line_changes, path_changes, unit_change, work_changes
from traceanalyzer.result.comparing.comparison import Change, Comparison, Noise, Side
from traceanalyzer.result.comparing.figures import figure_changes, figures_headline
from traceanalyzer.result.comparing.headline import headline
from traceanalyzer.result.comparing.merge import merge_captures
from traceanalyzer.result.comparing.noise import LEAST, LEVEL, source, spread
from traceanalyzer.result.comparing.problems import problem_changes
from traceanalyzer.version import VERSION
from traceanalyzer.vocabulary.levels import COULD_NOT_JUDGE

NO_NOISE = "one unit of work on each side does not tell a change from noise; record more steps, or give several captures of each"
NO_TIME = "a unit of work takes no time on one side"
WORK = ("families", "kernels", "operators", "collectives")


def compare(base: Sequence[Capture], new: Sequence[Capture], anyway: bool = False) -> Comparison:
    """`base` and `new` hold at least one capture each; `anyway` compares what ran on other GPUs or in another number of ranks."""
    one, other = merge_captures(base), merge_captures(new)
    notes = notes_on(base, new, anyway)
    figures = figure_changes(one, other)
    by_figures = bool(figures) and one.unit is None and other.unit is None
    if by_figures:
        notes = [note for note in notes if note.about != "unit"]
    reason = next((note.message for note in notes if note.refuses), None)
    step = None if reason else unit_change(base, new, one, other)
    if step and not step.ratio:
        reason, step = NO_TIME, None
    if step and step.low is None and abs((step.ratio or 1) - 1) >= LEAST:
        reason = NO_NOISE
    outcome = COULD_NOT_JUDGE if reason or not step else {"same": "no_change"}.get(step.direction, step.direction)
    if by_figures and not reason:
        outcome = "figures"
    lines = line_changes(base, new, one, other) if step else []
    problems = problem_changes(one, other) if step or (by_figures and not reason) else []
    families, kernels, operators, collectives = (_work(name, one, other) if step else [] for name in WORK)
    return Comparison(
        tool={"name": "traceanalyzer", "version": VERSION},
        outcome=outcome,
        headline=figures_headline(figures)
        if outcome == "figures"
        else headline(outcome, reason, step, lines, problems),
        reason=reason,
        base=_side(base, one),
        new=_side(new, other),
        notes=notes,
        noise=Noise(source(base, new), spread(base), spread(new), LEAST, LEVEL),
        step=step,
        lines=lines,
        families=families,
        kernels=kernels,
        operators=operators,
        collectives=collectives,
        problems=problems,
        figures=figures,
        path=path_changes(one, other) if step else [],
    )


def _work(name: str, base: Capture, new: Capture) -> list[Change]:
    if name == "operators" and not (operators_known(base) and operators_known(new)):
        return []
    return work_changes(getattr(base, name), getattr(new, name), base, new)


def _side(captures: Sequence[Capture], one: Capture) -> Side:
    unit = one.unit
    return Side(
        name=one.name,
        captures=len(captures),
        gpu=", ".join(sorted({gpu for gpu in one.gpus if gpu})) or None,
        gpu_count=len(one.gpus),
        unit=unit.kind if unit else None,
        method=unit.method if unit else None,
        unit_count=sum(capture.unit.count for capture in captures if capture.unit),
        unit_ns=unit.time.mean_ns if unit else None,
        samples_ns=[ns for capture in captures if capture.unit for ns in capture.unit.time.samples_ns],
        headline=one.headline,
    )
