"""What findings say, in words that text and Markdown share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from traceanalyzer.result.document import Evidence, Finding, RuleOutcome, Saving
from traceanalyzer.result.gpu_names import gpu_name
from traceanalyzer.result.ranks import share_range, whose_time
from traceanalyzer.result.speedups import place_name, times, times_range, told_apart
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
        return "No saving of its own."
    # What an estimate may come to is a range; all else is never more than the ledger says.
    about = "About" if saving.predicted_speedup_range else "Up to"
    text = f"{about} {format_duration(saving.recoverable_ns)} ({format_share(saving.recoverable_share or 0)} of {whose_time(saving)})"
    if saving.per_step_ns:
        text += f", {format_duration(saving.per_step_ns)} a step"
    if saving.predicted_speedup is None and saving.speedup_ceiling:
        text += f": at most {times(saving.speedup_ceiling)} faster"
    predicted = _predicted(saving)
    bare = saving_without_profiler(saving, format_duration) if predicted and saving.pays else None
    said = f"{predicted}; {bare}" if bare else predicted or saving.prediction_note
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
    if saving.predicted_speedup_range:
        faster = times_range(saving.predicted_speedup_range)
        return f"Estimated from what the GPU can do, the same work is done {faster} as fast"
    faster, without, alone, place = times(saving.predicted_speedup), "it", "", told_apart(saving)
    if place is not None and place.predicted_speedup is not None:
        rest = _lasts("takes", saving.step_ns, place.predicted_step_ns, times(place.predicted_speedup))
        alone, without = f"Without {place_name(place)} alone, {rest}. ", "all of it"
    if condition:
        condition += ", without all of it" if alone else ""
        return f"{alone}{condition}, {_lasts('would take', saving.step_ns, saving.predicted_step_ns, faster)}"
    if saving.place is not None and place is None:
        without = place_name(saving.place)
    return f"{alone}Replayed without {without}, {_lasts('takes', saving.step_ns, saving.predicted_step_ns, faster)}"


def _lasts(verb: str, now: int | None, then: int | None, faster: str) -> str:
    if now is None or then is None:
        return f"the same work {'is' if verb == 'takes' else 'would be'} done {faster} as fast"
    return f"a step {verb} {format_duration(then)} instead of {format_duration(now)} ({faster})"


def alike(findings: list[Finding]) -> str:
    """The other GPUs of a finding with what each could win; of many the first, and how many more there are."""
    if len(findings) <= MOST_ALIKE:
        return "; ".join(map(_brief, findings))
    shown, rest = findings[:FIRST_ALIKE], findings[FIRST_ALIKE:]
    range_ = share_range(rest)
    more = f"on {format_count(len(rest))} more GPUs" + (f" ({range_})" if range_ else "")
    return "; ".join(map(_brief, shown)) + f"; and {more}"


def _brief(finding: Finding) -> str:
    where = gpu_name(finding.scope.rank, finding.scope.device) or "the whole job"
    share = finding.saving.recoverable_share
    return f"{where} ({format_share(share)})" if share else where


def proofs(evidence: Iterable[Evidence]) -> list[str]:
    """Pieces of evidence, each with its length; those that read the same once, with how many they are."""
    count = Counter(map(proof, evidence))
    return [f"{text} ({count[text]}×)" if count[text] > 1 else text for text in count]


def proof(evidence: Evidence) -> str:
    """A piece of evidence with its length."""
    length = format_duration(evidence.end_ns - evidence.start_ns)
    return evidence.label if length in evidence.label else f"{evidence.label}, a stretch of {length}"


def silent_rules(rules: Iterable[RuleOutcome]) -> list[tuple[list[str], str, str]]:
    """Rules that could not judge, or failed: those with the same reason together, what became of them, and why."""
    found: dict[tuple[str, str], list[str]] = {}
    for rule in rules:
        if rule.outcome in ("could_not_judge", "error"):
            key = (rule.outcome.replace("_", " "), rule.reason or "no reason given")
            found.setdefault(key, []).append(rule.rule)
    return [(ids, outcome, reason) for (outcome, reason), ids in found.items()]
