"""The result as plain text for a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from traceanalyzer.render.critical_path import path_section
from traceanalyzer.render.findings import alike, gain, group_by_rule, proofs, silent_rules
from traceanalyzer.render.job import job_section
from traceanalyzer.render.ledgers import ledgers
from traceanalyzer.render.lines import page, wrap
from traceanalyzer.render.sections import section_lines
from traceanalyzer.result.advice import plain
from traceanalyzer.result.document import Finding, Result
from traceanalyzer.result.programs import may_be_python
from traceanalyzer.result.ranks import notes, rank_list
from traceanalyzer.result.roofline import leaves_room, near_peak_unjudged
from traceanalyzer.result.sections import Section
from traceanalyzer.result.settings import settings_sentence
from traceanalyzer.result.words.evidence import evidence_words
from traceanalyzer.result.words.gain import is_of_all
from traceanalyzer.result.words.outside import outside_lines
from traceanalyzer.units import format_count
from traceanalyzer.vocabulary.levels import INFO
from traceanalyzer.vocabulary.losses import BY_COMPUTE, bound_by_words

EVIDENCE_ROWS = 3
HEALTH = "TRC"
"""What findings about the trace itself are called: that they save nothing need not be said."""
MOST_INPUTS = 4


def render_text(result: Result, sections: Sequence[Section] = ()) -> str:
    """Headline, health, ledgers, critical path, job, findings, other evidence, and the rules that stayed silent. Ends in a newline."""
    lines = wrap(result.verdict.headline, "", "")
    if result.devices:
        lines.append(f"bound by: {bound_by_words(result.verdict.bound_by)}")
    lines += ["", *_inputs(result)]
    for note in notes(result.health):
        count = f" ({format_count(note.count)}×)" if note.count > 1 else ""
        ranks = f" [rank{'s' if len(set(note.ranks)) > 1 else ''} {rank_list(note.ranks)}]" if note.ranks else ""
        lines += wrap(f"{note.code} {note.message}{count}{ranks}", "health  ", "        ")
    if settings := settings_sentence(result.settings):
        lines += wrap(f"{settings}.", "set     ", "        ")
    lines += [*ledgers(result), *path_section(result), *job_section(result)]
    groups = group_by_rule(result.findings)
    said = _said(result)
    lines += ["", *(["FINDINGS"] if groups else _calm(result))]
    for number, group in enumerate(groups, 1):
        lines += ["", *_finding(number, group, said, is_of_all(result))]
    lines += [*section_lines(sections), "", *_silent(result)]
    return page(lines)


def _inputs(result: Result) -> list[str]:
    lines = []
    for item in result.inputs[:MOST_INPUTS]:
        rank = (
            "" if item.rank is None else f", rank {item.rank}" + (f" of {item.world_size}" if item.world_size else "")
        )
        lines.append(f"input   {item.path} ({item.producer}{rank})")
    left = len(result.inputs) - MOST_INPUTS
    lines += [f"        and {left} more"] if left > 0 else []
    for beside in result.evidence[:MOST_INPUTS]:
        label = "beside  " if beside.placed_by else "input   "
        lines += wrap(evidence_words(beside), label, "        ")
    left = len(result.evidence) - MOST_INPUTS
    lines += [f"        and {left} more"] if left > 0 else []
    for line in outside_lines(result.recordings):
        lines += wrap(line, "length  ", "        ")
    return lines


def _calm(result: Result) -> list[str]:
    if result.evidence and not result.inputs:
        if not result.rules:
            return ["No findings: no rule judges files of this kind; what they show is below."]
        return ["No findings: nothing worth fixing was seen."]
    if not result.devices:
        python = "torch.profiler with ProfilerActivity.CUDA, or " if may_be_python(result) else ""
        text = f"No findings, because there is no GPU work to look at. Record the GPU too: {python}nsys profile --trace=cuda,nvtx."
        return wrap(text, "", "")
    if result.verdict.bound_by == BY_COMPUTE.name and not leaves_room(result.roofline):
        words = f"No findings: nothing worth fixing was seen. {near_peak_unjudged(result.roofline)}"
        return wrap(words.strip(), "", "")
    return ["No findings: no rule knows what would save time."]


def _said(result: Result) -> set[str]:
    """What the notes of health say above the findings."""
    return {_plain(note.message) for note in result.health}


def _plain(sentence: str) -> str:
    return sentence.rstrip(".").casefold()


def _finding(number: int, group: list[Finding], said_above: Collection[str], everywhere: bool) -> list[str]:
    first = group[0]
    indent = " " * (len(str(number)) + 2)
    lines = [
        *wrap(f"{first.title} [{first.rule}, {first.severity}]", f"{number}. ", indent),
        *([] if first.rule.startswith(HEALTH) else wrap(gain(first, everywhere), indent, indent)),
        *([] if _plain(first.message) in said_above else wrap(first.message, indent, indent)),
    ]
    if len(group) > 1:
        lines += wrap(f"The same on {alike(group[1:])}.", indent, indent)
    if all(finding.severity == INFO and finding.saving.recoverable_ns == 0 for finding in group):
        # The findings that account for this time have said what to do.
        return lines
    shown = proofs(first.evidence)
    for text in shown[:EVIDENCE_ROWS]:
        lines += wrap(text, f"{indent}· ", f"{indent}  ")
    left = len(shown) - EVIDENCE_ROWS
    if left > 0:
        lines.append(f"{indent}· {left} more in the report")
    said: set[tuple[str, str]] = set()
    for finding in group:
        for advice in finding.recommend:
            for item in advice.items():
                if item not in said:
                    said.add(item)
                    lines += wrap(f"{item[0]}: {plain(item[1])}", f"{indent}→ ", f"{indent}  ")
    return lines


def _silent(result: Result) -> list[str]:
    counts = Counter(rule.outcome for rule in result.rules)
    summary = ", ".join(f"{count} {outcome.replace('_', ' ')}" for outcome, count in sorted(counts.items()))
    lines = [f"Rules: {summary}"]
    for rules, outcome, reason in silent_rules(result.rules):
        lines += wrap(f"{', '.join(rules)} {outcome}: {reason}", "  ", "    ")
    return lines
