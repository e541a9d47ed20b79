"""Whether a comparison passes, as an exit code with its reasons."""

from __future__ import annotations

from traceanalyzer.exit_codes import FAILED, NOT_JUDGED, PASSED
from traceanalyzer.records import dataclass
from traceanalyzer.result.comparing.comparison import Comparison, ProblemChange
from traceanalyzer.result.comparing.words import ratio_words, unit_words
from traceanalyzer.result.gate import at_least
from traceanalyzer.units import format_share
from traceanalyzer.vocabulary.levels import COULD_NOT_JUDGE


@dataclass(frozen=True)
class Gate:
    """`exit_code` is PASSED, FAILED or NOT_JUDGED; `reasons` say what the headline of the comparison does not: why it is not the
    first."""

    exit_code: int
    reasons: list[str]


def gate(comparison: Comparison, fail_over: float, fail_on_new: str | None = None) -> Gate:
    """`fail_over` is the share of a step that it may be slower, `fail_on_new` the least severity at which a new finding fails.

    What is missing passes no gate: a damaged side is not judged unless something worse was found in what is left of it, and what is
    slower than allowed is not passed because the noise is larger still.
    """
    if comparison.outcome == COULD_NOT_JUDGE:
        return Gate(NOT_JUDGED, [])
    failed = []
    ratio = comparison.step.ratio if comparison.step else None
    if comparison.outcome == "slower" and ratio is not None and ratio - 1 > fail_over:
        failed.append(
            f"{ratio_words(ratio)} {unit_words(comparison)}, and --fail-over allows +{format_share(fail_over)}"
        )
    if fail_on_new is not None:
        failed += [
            f"new finding {one.rule} ({one.new_severity}): {one.title} (--fail-on-new {fail_on_new})"
            for one in comparison.problems
            if _is_new(one, fail_on_new)
        ]
    if failed:
        return Gate(FAILED, failed)
    unsure = [note.message for note in comparison.notes if note.about == "damage"]
    if comparison.outcome == "no_change" and ratio is not None and ratio - 1 > fail_over:
        unsure.append(
            f"{ratio_words(ratio)} {unit_words(comparison)} is over --fail-over, and with so much noise it may be chance or not; "
            "record more steps, or give several captures of each"
        )
    return Gate(NOT_JUDGED, unsure) if unsure else Gate(PASSED, [])


def _is_new(problem: ProblemChange, severity: str) -> bool:
    """Whether it has this severity and did not have it before."""
    if problem.state not in ("new", "worse") or problem.new_severity is None:
        return False
    had = problem.base_severity is not None and at_least(problem.base_severity, severity)
    return at_least(problem.new_severity, severity) and not had
