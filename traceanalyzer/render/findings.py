"""What findings say, in words that text and Markdown share."""

from __future__ import annotations

from traceanalyzer.render.ledgers import gpu_words
from traceanalyzer.result.document import Evidence, Finding, Saving
from traceanalyzer.result.ranks import share_range, whose_time
from traceanalyzer.result.unprofiled_words import saving_without_profiler
from traceanalyzer.units import format_count, format_duration, format_share

MOST_ALIKE, FIRST_ALIKE = 7, 3
"""So many findings of one rule are named; of more the first, and the rest by their range."""


def grouped(findings: list[Finding]) -> list[list[Finding]]:
    """Findings of one rule together, where the first of them stands: on many GPUs they say the same."""
    groups: dict[str, list[Finding]] = {}
    for finding in findings:
        groups.setdefault(finding.rule, []).append(finding)
    return list(groups.values())


def gain(finding: Finding) -> str:
    """What a finding gives, and how sure that is: one to three sentences."""
    saving = finding.saving
    if not saving.recoverable_ns:
        return f"No saving of its own. Confidence {finding.confidence}."
    text = f"Up to {format_duration(saving.recoverable_ns)} ({format_share(saving.recoverable_share or 0)} of {whose_time(saving)})"
    if saving.per_step_ns:
        text += f", {format_duration(saving.per_step_ns)} a step"
    if saving.predicted_speedup is None and saving.speedup_ceiling:
        text += f": at most {saving.speedup_ceiling:.2f}× faster"
    said = _predicted(saving) or saving.prediction_note
    return f"{text}. {said}. Confidence {finding.confidence}." if said else f"{text}. Confidence {finding.confidence}."


def _predicted(saving: Saving) -> str | None:
    """What the replayed timeline says of a cause, in words; None when there is no prediction.

    Beside a prediction, the note is the condition under which it holds.
    """
    if saving.predicted_speedup is None:
        return None
    condition = saving.prediction_note
    if not saving.pays:
        rest = "something else sets the pace"
        if condition:
            return f"{condition}, the same work would take as long: {rest}"
        return f"Replayed without it alone, the same work takes as long: {rest}"
    faster = f"{saving.predicted_speedup:.2f}×"
    if saving.step_ns is None or saving.predicted_step_ns is None:
        if condition:
            return f"{condition}, the same work would be done {faster} as fast"
        return f"Replayed without it, the same work is done {faster} as fast"
    now, then = format_duration(saving.step_ns), format_duration(saving.predicted_step_ns)
    does = f"{condition}, a step would take" if condition else "Replayed without it, a step takes"
    without = saving_without_profiler(saving, format_duration)
    return f"{does} {then} instead of {now} ({faster})" + (f"; {without}" if without else "")


def alike(findings: list[Finding]) -> str:
    """The other GPUs of a finding with what each could win; of many the first, and how many more there are."""
    if len(findings) <= MOST_ALIKE:
        return "; ".join(map(_brief, findings))
    shown, rest = findings[:FIRST_ALIKE], findings[FIRST_ALIKE:]
    range_ = share_range(rest)
    more = f"on {format_count(len(rest))} more GPUs" + (f" ({range_})" if range_ else "")
    return "; ".join(map(_brief, shown)) + f"; and {more}"


def _brief(finding: Finding) -> str:
    where = gpu_words(finding.scope.rank, finding.scope.device) or "the whole job"
    share = finding.saving.recoverable_share
    return f"{where} ({format_share(share)})" if share else where


def proof(evidence: Evidence) -> str:
    """A piece of evidence with its length."""
    length = format_duration(evidence.end_ns - evidence.start_ns)
    return evidence.label if length in evidence.label else f"{evidence.label} ({length})"
