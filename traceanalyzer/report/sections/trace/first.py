"""What the first screen says: the verdict and its meaning, the findings that matter, and the trace's health in one line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from traceanalyzer.records import dataclass
from traceanalyzer.report.context import ReportContext
from traceanalyzer.report.palette import BOUND_BY_KEYS, BY_KEY, Swatch
from traceanalyzer.report.section import PageSection
from traceanalyzer.report.sections.advice import Advice, advice
from traceanalyzer.report.sections.findings_view import FindingView, recommendations
from traceanalyzer.report.sections.glossary import BOUND_BY
from traceanalyzer.result.document import Result
from traceanalyzer.result.programs import may_be_python
from traceanalyzer.result.ranks import Note, notes
from traceanalyzer.result.roofline import leaves_room, near_peak_unjudged
from traceanalyzer.result.settings import settings_sentence
from traceanalyzer.result.words.evidence import evidence_words
from traceanalyzer.result.words.outside import outside_lines
from traceanalyzer.vocabulary.levels import COULD_NOT_JUDGE, ERROR, HIGH, JUDGED, SEVERITIES
from traceanalyzer.vocabulary.losses import BY_COMPUTE, UNKNOWN, bound_by_words

MATTERING = 3
"""So many findings fit on the first screen."""
RECORD_PYTORCH = "With PyTorch: `torch.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])`"
RECORD_ANY = "With Nsight Systems: `nsys profile --trace=cuda,nvtx ./program`"
"""How to record what every analysis needs."""


@dataclass(frozen=True)
class HealthLine:
    """The health of the trace: how many notes of each severity, the gravest first, and each note with why it matters."""

    counts: list[tuple[str, int]]
    notes: list[tuple[Note, str]]


@dataclass(frozen=True)
class FirstView:
    """`judged` is False where the recording does not allow a verdict; `record` is then what to do about it.

    `findings` are the first that matter, at most MATTERING; where there is none, `calm` says so. `beside` names the files of evidence,
    `outside` says what of the recordings is not judged, `settings` what is not judged as shipped.
    """

    judged: bool
    bound_by: str
    meaning: str
    swatch: Swatch | None
    findings: list[FindingView]
    more: int
    calm: str | None
    health: HealthLine
    beside: list[str]
    record: list[tuple[str, list[Advice]]]
    outside: list[str]
    settings: str | None


def first_view(result: Result, findings: Sequence[FindingView]) -> FirstView:
    """`findings` are the first of each rule, in the order of the result."""
    judged = is_judged(result)
    alone = bool(result.evidence) and not result.inputs and not _grave(result)
    matter = [view for view in findings if view.finding.matters] if judged or alone else []
    bound_by = result.verdict.bound_by
    return FirstView(
        judged=judged,
        bound_by=bound_by_words(bound_by),
        meaning=BOUND_BY.get(bound_by, BOUND_BY[UNKNOWN.name]),
        swatch=BY_KEY.get(BOUND_BY_KEYS.get(bound_by, "")),
        findings=matter[:MATTERING],
        more=len(matter[MATTERING:]),
        calm=_calm(result, findings) if judged and not matter else None,
        health=_health(result),
        beside=[evidence_words(one, short=True) for one in result.evidence],
        record=[] if judged or alone else _what_to_record(result),
        outside=outside_lines(result.recordings),
        settings=settings_sentence(result.settings),
    )


def is_judged(result: Result) -> bool:
    """Whether the recording allows a verdict."""
    return any(device.window_ns for device in result.devices) and not _grave(result)


def _grave(result: Result) -> list[str]:
    """Codes of the health notes that make a verdict impossible."""
    return [note.code for note in result.health if note.severity == HIGH]


def _calm(result: Result, findings: Sequence[FindingView]) -> str:
    looked = sum(rule.outcome in JUDGED for rule in result.rules)
    silent = sum(rule.outcome in (COULD_NOT_JUDGE, ERROR) for rule in result.rules)
    computes = result.verdict.bound_by == BY_COMPUTE.name
    words = (
        "Nothing worth fixing found."
        if computes and not leaves_room(result.roofline)
        else "No rule knows what would save time."
    )
    words += f" {looked} rules looked" + (f"; {silent} could not judge." if silent else ".")
    if any(view.finding.saving.pays for view in findings):
        words += " What little there is to gain is listed below."
    unjudged = near_peak_unjudged(result.roofline) if computes else ""
    return f"{words} {unjudged}".strip()


def _health(result: Result) -> HealthLine:
    found = sorted(notes(result.health), key=lambda note: -SEVERITIES.index(note.severity))
    count = Counter(note.severity for note in found)
    why = {rule.rule: rule.why for rule in result.rules}
    return HealthLine(
        [(level, count[level]) for level in reversed(SEVERITIES) if count[level]],
        [(note, why.get(note.code, "")) for note in found],
    )


def _what_to_record(result: Result) -> list[tuple[str, list[Advice]]]:
    """The advice of the rules about what the trace lacks; the basics where they have none."""
    about = [finding for finding in result.findings if finding.rule in _grave(result)]
    ways = [RECORD_PYTORCH, RECORD_ANY] if may_be_python(result) else [RECORD_ANY]
    return recommendations(about) or [("Record the GPU, and the host that launches its work", list(map(advice, ways)))]


def _view(page: ReportContext) -> dict[str, Any]:
    return {
        "result": page.result,
        "input_names": page.input_names,
        "first": first_view(page.result, [group.first for group in page.groups]),
        "groups": page.groups,
        "devices": page.devices,
    }


SECTION = PageSection(name="top", title="Verdict", template="first.html.j2", order=10, view=_view, needs=("timeline",))
