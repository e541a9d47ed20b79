"""What findings say, in words that text and Markdown share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from traceanalyzer.names import capitalized
from traceanalyzer.result.document import Evidence, Finding, RuleOutcome
from traceanalyzer.result.ranks import share_range, whose_time
from traceanalyzer.result.words import gain as gain_words
from traceanalyzer.result.words.gpu_names import gpu_name
from traceanalyzer.units import format_count, format_duration, format_share
from traceanalyzer.vocabulary.levels import COULD_NOT_JUDGE, ERROR

MOST_ALIKE, FIRST_ALIKE = 7, 3
"""So many findings of one rule are named; of more the first, and the rest by their range."""


def group_by_rule(findings: list[Finding]) -> list[list[Finding]]:
    """Findings of one rule together, where the first of them stands: on many GPUs they say the same."""
    groups: dict[str, list[Finding]] = {}
    for finding in findings:
        groups.setdefault(finding.rule, []).append(finding)
    return list(groups.values())


def gain(finding: Finding, everywhere: bool) -> str:
    """What a finding accounts for, what leaving it out gives, and how sure that is: two or three sentences. `everywhere` is
    `gain_words.is_of_all` of the result."""
    saving = finding.saving
    found = gain_words.gain(saving, everywhere)
    if not saving.recoverable_ns or found is None:
        return "No saving of its own."
    # What an estimate may come to is a range; all else is never more than the ledger says.
    about = "About" if saving.predicted_speedup_range else "Up to"
    text = f"{about} {format_duration(saving.recoverable_ns)} ({format_share(saving.recoverable_share or 0)} of {whose_time(saving)})"
    if saving.per_step_ns and saving.predicted_speedup is not None:
        text += f", {format_duration(saving.per_step_ns)} a step"
    said = [text] if found.term == "claimed" else [text, capitalized(found.words)]
    if saving.predicted_speedup is None and saving.prediction_note:
        said.append(saving.prediction_note)
    return " ".join(f"{one}." for one in (*said, f"Confidence {finding.confidence}"))


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
    return f"{where}, {format_share(share)}" if share else where


def proofs(evidence: Iterable[Evidence]) -> list[str]:
    """Pieces of evidence, each with its length; those that read the same once, with how many they are."""
    count = Counter(map(proof, evidence))
    return [f"{text} ({count[text]}×)" if count[text] > 1 else text for text in count]


def proof(evidence: Evidence) -> str:
    """A piece of evidence with its length, where it has one."""
    if evidence.end_ns <= evidence.start_ns:
        return evidence.label
    length = format_duration(evidence.end_ns - evidence.start_ns)
    return evidence.label if length in evidence.label else f"{evidence.label}, a stretch of {length}"


def silent_rules(rules: Iterable[RuleOutcome]) -> list[tuple[list[str], str, str]]:
    """Rules that could not judge, or failed: those with the same reason together, what became of them, and why."""
    found: dict[tuple[str, str], list[str]] = {}
    for rule in rules:
        if rule.outcome in (COULD_NOT_JUDGE, ERROR):
            key = (rule.outcome.replace("_", " "), rule.reason or "no reason given")
            found.setdefault(key, []).append(rule.rule)
    return [(ids, outcome, reason) for (outcome, reason), ids in found.items()]
