"""What became of the findings: fixed, better, worse, new, or only brought to light."""

from __future__ import annotations

from collections.abc import Sequence

from traceanalyzer.result.captures.capture import Capture, Problem
from traceanalyzer.result.comparing.comparison import ProblemChange
from traceanalyzer.vocabulary.levels import COULD_NOT_JUDGE, ERROR, NOT_APPLICABLE

GONE = 0.1
"""What is left of a finding that counts as fixed, as a share of what it was."""
SMALL = 0.05
"""Or as a share of a unit, where it is at most HALVED: the rules begin to speak at a twentieth."""
HALVED = 0.5
ALIKE = 0.1
"""A finding whose time changes by less than this share is the same one."""
GREW = 0.5
"""A finding is new, or worse, if its ledger lines have grown by at least this share of the time that it has more; else that time was
there before."""
UNJUDGED = (COULD_NOT_JUDGE, NOT_APPLICABLE, ERROR)


def problem_changes(base: Capture, new: Capture) -> list[ProblemChange]:
    """One a rule that found something on either side: what changed most first, what is unknown last."""
    before, after = ({problem.rule: problem for problem in capture.problems} for capture in (base, new))
    found = [_changed(before.get(rule), after.get(rule), base, new) for rule in dict.fromkeys([*before, *after])]
    return sorted(found, key=lambda one: (one.state == "unknown", -abs((one.new_ns or 0) - (one.base_ns or 0))))


def _changed(before: Problem | None, after: Problem | None, base: Capture, new: Capture) -> ProblemChange:
    said = after or before
    assert said is not None
    if before and after:
        state, reason = _of_both(before, after, base, new), None
    elif before:
        state, reason = _gone(before, new)
    else:
        state, reason = _appeared(said, base, new)
    return ProblemChange(
        rule=said.rule,
        title=said.title,
        state=state,
        base_ns=before.ns if before else None,
        new_ns=after.ns if after else None,
        base_severity=before.severity if before else None,
        new_severity=after.severity if after else None,
        message=said.message,
        reason=reason,
    )


def _of_both(before: Problem, after: Problem, base: Capture, new: Capture) -> str:
    was, left = before.ns or 0, after.ns or 0
    if abs(left - was) <= ALIKE * max(was, left):
        return "same"
    if left > was:
        return "uncovered" if _there_before(after, left - was, base, new) else "worse"
    small = left <= SMALL * _unit_ns(new) and left <= HALVED * was
    return "fixed" if small or left <= GONE * was else "better"


def _gone(before: Problem, new: Capture) -> tuple[str, str | None]:
    """A rule that is silent has nothing to find; one that cannot judge says nothing, unless no time is left that it could claim."""
    outcome = new.outcomes.get(before.rule, ERROR)
    if outcome not in UNJUDGED or (before.ns and _on_lines(before.lines, new) <= HALVED * before.ns):
        return "fixed", None
    reason = new.reasons.get(before.rule) or "the rule was not run"
    return "unknown", f"NEW cannot tell: {reason}"


def _appeared(after: Problem, base: Capture, new: Capture) -> tuple[str, str | None]:
    outcome = base.outcomes.get(after.rule, ERROR)
    if after.ns and _there_before(after, after.ns, base, new):
        return "uncovered", None
    if outcome in UNJUDGED and not (after.ns and _on_lines(after.lines, base) <= HALVED * after.ns):
        reason = base.reasons.get(after.rule) or "the rule was not run"
        return "unknown", f"BASE cannot tell: {reason}"
    return "new", None


def _there_before(after: Problem, more: int, base: Capture, new: Capture) -> bool:
    """Whether the time that a finding has `more` was there before, although the unit is shorter now: as a smaller share, or under
    another finding that has gone."""
    grown = _on_lines(after.lines, new) - _on_lines(after.lines, base)
    return _unit_ns(new) < _unit_ns(base) and grown < GREW * more


def _on_lines(lines: Sequence[str], capture: Capture) -> int:
    """ns a unit on these ledger lines."""
    return sum(capture.lines[line].mean_ns for line in lines if line in capture.lines)


def _unit_ns(capture: Capture) -> int:
    return capture.unit.time.mean_ns if capture.unit else 0
