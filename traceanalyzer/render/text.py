"""The result as plain text for a terminal."""

from __future__ import annotations

from collections import Counter

from traceanalyzer.render.job import job_section
from traceanalyzer.render.ledgers import gpu_words, ledgers
from traceanalyzer.render.lines import printable, wrap
from traceanalyzer.result.document import Evidence, Finding, Result, Saving
from traceanalyzer.result.ranks import notes, rank_list, share_range, whose_time
from traceanalyzer.units import format_count, format_duration, format_share

EVIDENCE_ROWS = 3
MOST_INPUTS = 4
MOST_ALIKE, FIRST_ALIKE = 7, 3
"""So many findings of one rule are named; of more the first, and the rest by their range."""


def render_text(result: Result) -> str:
    """Headline, health, ledgers, job, findings and the rules that stayed silent. Ends in a newline."""
    lines = wrap(result.verdict.headline, "", "")
    if result.devices:
        lines.append(f"bound by: {result.verdict.bound_by.replace('_', ' ')}")
    lines += ["", *_inputs(result)]
    for note in notes(result.health):
        count = f" ({format_count(note.count)}×)" if note.count > 1 else ""
        ranks = f" [rank{'s' if len(set(note.ranks)) > 1 else ''} {rank_list(note.ranks)}]" if note.ranks else ""
        lines += wrap(f"{note.code} {note.message}{count}{ranks}", "health  ", "        ")
    lines += [*ledgers(result), *job_section(result)]
    groups = _grouped(result.findings)
    lines += ["", *(["FINDINGS"] if groups else _calm(result))]
    for number, group in enumerate(groups, 1):
        lines += ["", *_finding(number, group)]
    lines += ["", *_silent(result)]
    return "\n".join(map(printable, lines)) + "\n"


def _inputs(result: Result) -> list[str]:
    lines = []
    for item in result.inputs[:MOST_INPUTS]:
        rank = (
            "" if item.rank is None else f", rank {item.rank}" + (f" of {item.world_size}" if item.world_size else "")
        )
        lines.append(f"input   {item.path} ({item.producer}{rank})")
    left = len(result.inputs) - MOST_INPUTS
    return [*lines, f"        and {left} more"] if left > 0 else lines


def _calm(result: Result) -> list[str]:
    if not result.devices:
        text = (
            "No findings, because there is no GPU work to look at. Record the GPU too: torch.profiler with "
            "ProfilerActivity.CUDA, or nsys profile --trace cuda,nvtx."
        )
        return wrap(text, "", "")
    return ["No findings: nothing worth fixing was seen."]


def _grouped(findings: list[Finding]) -> list[list[Finding]]:
    """Findings of one rule together, where the first of them stands: on many GPUs they say the same."""
    groups: dict[str, list[Finding]] = {}
    for finding in findings:
        groups.setdefault(finding.rule, []).append(finding)
    return list(groups.values())


def _finding(number: int, group: list[Finding]) -> list[str]:
    first = group[0]
    indent = " " * (len(str(number)) + 2)
    lines = [
        *wrap(f"{first.title} [{first.rule}, {first.severity}]", f"{number}. ", indent),
        *wrap(_gain(first), indent, indent),
        *wrap(first.message, indent, indent),
    ]
    if len(group) > 1:
        lines += wrap(f"The same on {_alike(group[1:])}.", indent, indent)
    if all(finding.severity == "info" and finding.saving.recoverable_ns == 0 for finding in group):
        # The findings that account for this time have said what to do.
        return lines
    for evidence in first.evidence[:EVIDENCE_ROWS]:
        lines += wrap(_proof(evidence), f"{indent}· ", f"{indent}  ")
    left = len(first.evidence) - EVIDENCE_ROWS
    if left > 0:
        lines.append(f"{indent}· and {left} more in the report")
    said: set[tuple[str, str]] = set()
    for finding in group:
        for advice in finding.recommend:
            for item in advice.items():
                if item not in said:
                    said.add(item)
                    lines += wrap(f"{item[0]}: {item[1]}", f"{indent}→ ", f"{indent}  ")
    return lines


def _gain(finding: Finding) -> str:
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
    return f"{does} {then} instead of {now} ({faster})"


def _alike(findings: list[Finding]) -> str:
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


def _proof(evidence: Evidence) -> str:
    length = format_duration(evidence.end_ns - evidence.start_ns)
    return evidence.label if length in evidence.label else f"{evidence.label} ({length})"


def _silent(result: Result) -> list[str]:
    counts = Counter(rule.outcome for rule in result.rules)
    summary = ", ".join(f"{count} {outcome.replace('_', ' ')}" for outcome, count in sorted(counts.items()))
    lines = [f"Rules: {summary}"]
    for rule in result.rules:
        if rule.outcome in ("could_not_judge", "error"):
            lines += wrap(f"{rule.rule} {rule.outcome.replace('_', ' ')}: {rule.reason}", "  ", "    ")
    return lines
