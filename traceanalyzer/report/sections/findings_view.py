"""The findings as the page shows them: one card a rule, its words, figures, evidence and advice."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from traceanalyzer.records import dataclass
from traceanalyzer.report.sections.advice import Advice, advice
from traceanalyzer.report.sections.words import format_duration, readable
from traceanalyzer.report.timeline.places import Place
from traceanalyzer.result.document import Evidence, Finding, Metric, Result, RuleOutcome
from traceanalyzer.result.ranks import share_range, whose_time
from traceanalyzer.result.words.gain import Gain, gain, is_of_all
from traceanalyzer.result.words.gpu_names import gpu_name
from traceanalyzer.units import NS, UNITS, format_count, format_share, format_value
from traceanalyzer.vocabulary.levels import FIRED, INFO

OTHERS = 16
"""Findings like the first of their rule that are shown in full."""
LONGEST = 120
"""A figure that is text, such as the name of a kernel, is cut to so many characters."""
AUDIENCES = {
    **{"pytorch": "PyTorch", "jax": "JAX", "cupy": "CuPy", "python": "Python", "julia": "Julia", "fortran": "Fortran"},
    **{
        "openacc": "OpenACC",
        "openmp": "OpenMP",
        "kokkos": "Kokkos",
        "cuda": "CUDA",
        "hip": "HIP",
        "any": "Any program",
    },
}
"""What is written above the advice for each audience of a rule."""


@dataclass(frozen=True)
class EvidenceView:
    """One item of evidence; `place` is where the timeline shows it, None when it does not."""

    label: str
    duration: str
    place: Place | None


@dataclass(frozen=True)
class Figure:
    """A figure of a finding, and how the rule computes it; None where it does not say. `full` is a long text that `value` cuts."""

    name: str
    value: str
    expression: str | None
    full: str | None


@dataclass(frozen=True)
class FindingView:
    """`share` is the part of the time `of` that the finding accounts for, None for none. `key` names it in links, the same from run to
    run: the rule's id, and for a second finding of a rule that with `.2`."""

    number: int
    key: str
    finding: Finding
    scope: str
    gain: Gain | None
    share: str | None
    of: str
    figures: list[Figure]
    evidence: list[EvidenceView]
    links: list[tuple[str, str | None]]

    @property
    def first_place(self) -> int | None:
        """The first item of evidence that the timeline shows."""
        return next((number for number, item in enumerate(self.evidence) if item.place), None)


@dataclass(frozen=True)
class FindingGroup:
    """What one rule found on one GPU or many: the largest finding, its like on other GPUs, and the advice for all of them.

    `rule` holds the rule's own words. Of `more` others the first are in `others`, and `left` says how many are not.
    """

    rule: RuleOutcome
    first: FindingView
    others: list[FindingView]
    recommend: list[tuple[str, list[Advice]]]
    more: int
    others_title: str
    left: str | None

    @property
    def minor(self) -> bool:
        """Whether it is for information only: nothing to be gained from it alone."""
        return all(f.finding.severity == INFO and not f.finding.saving.pays for f in self.shown)

    @property
    def shown(self) -> list[FindingView]:
        return [self.first, *self.others]


def finding_groups(
    result: Result, place: Callable[[Evidence], Place | None], group_label: Callable[[int], str] = str
) -> list[FindingGroup]:
    """Findings of one rule together, where the first of them stands; numbered by their place in the result.

    `group_label` is what the timeline calls a group: of files that do not say their rank only it tells whose GPU a finding is about.
    """
    groups: dict[str, list[tuple[int, Finding]]] = {}
    for number, finding in enumerate(result.findings):
        groups.setdefault(finding.rule, []).append((number, finding))
    rules = {outcome.rule: outcome for outcome in result.rules}
    together = is_of_all(result)
    return [
        _finding_group(
            rules.get(rule, RuleOutcome(rule, FIRED, None)),
            [
                _finding_view(rules.get(rule), number, _key(rule, at), finding, place, group_label, together)
                for at, (number, finding) in enumerate(findings[: OTHERS + 1])
            ],
            [finding for _, finding in findings],
        )
        for rule, findings in groups.items()
    ]


def _finding_group(rule: RuleOutcome, views: list[FindingView], findings: list[Finding]) -> FindingGroup:
    """`views` are those of the first of the findings."""
    gpus = {(finding.scope.rank, finding.scope.device) for finding in findings[1:]}
    more = len(findings) - 1
    what = "GPU" if len(gpus) == more and (None, None) not in gpus else "place"
    title = f"The same on {format_count(more)} more {what}{'s' if more > 1 else ''}"
    left, rest = findings[OTHERS + 1 :], None
    if left:
        share = share_range(left)
        rest = f"and on {format_count(len(left))} more {what}s" + (f": {share} of the window" if share else "")
    return FindingGroup(rule, views[0], views[1:], recommendations(findings), more, title, rest)


def recommendations(findings: Iterable[Finding]) -> list[tuple[str, list[Advice]]]:
    """The advice of all of the findings by whom it is for, each once."""
    found: dict[str, dict[str, None]] = {}
    for finding in findings:
        for audience, text in (item for entry in finding.recommend for item in entry.items()):
            found.setdefault(AUDIENCES.get(audience, audience), {})[text] = None
    return [(audience, [advice(text) for text in texts]) for audience, texts in found.items()]


def _finding_view(
    rule: RuleOutcome | None,
    number: int,
    key: str,
    finding: Finding,
    place: Callable[[Evidence], Place | None],
    group_label: Callable[[int], str],
    everywhere: bool,
) -> FindingView:
    evidence = [_evidence_view(item, place(item)) for item in finding.evidence]
    share = finding.saving.recoverable_share
    return FindingView(
        number=number,
        key=key,
        finding=finding,
        scope=_scope(finding, evidence, group_label),
        gain=gain(finding.saving, everywhere, format_duration),
        share=format_share(share) if share else None,
        of=whose_time(finding.saving),
        figures=_figures(rule, finding),
        evidence=evidence,
        links=[(text, text if text.startswith("https://") else None) for text in finding.references],
    )


def _key(rule: str, at: int) -> str:
    return f"{rule}.{at + 1}" if at else rule


def _scope(finding: Finding, evidence: list[EvidenceView], group_label: Callable[[int], str]) -> str:
    scope = finding.scope
    where = next((item.place.group for item in evidence if item.place), None)
    if scope.rank is None and scope.device is not None and where is not None:
        return group_label(where)
    return gpu_name(scope.rank, scope.device)


def _figures(rule: RuleOutcome | None, finding: Finding) -> list[Figure]:
    """What the rule has for people, as far as it is known of this finding."""
    if rule is None:
        return []
    known = {name: metric for name, metric in finding.metrics.items() if metric.value is not None}
    return [
        _figure(words, known[name], rule.metrics.get(name)) for name, words in rule.figures.items() if name in known
    ]


def _figure(name: str, metric: Metric, expression: str | None) -> Figure:
    words = readable(metric_words(metric))
    cut = f"{words[:LONGEST]}…" if len(words) > LONGEST else words
    return Figure(name, cut, expression, words if cut != words else None)


def _evidence_view(evidence: Evidence, place: Place | None) -> EvidenceView:
    """The duration is left out where there is none, or the label says it already."""
    label, duration = readable(evidence.label), format_duration(evidence.end_ns - evidence.start_ns)
    said = evidence.end_ns <= evidence.start_ns or readable(duration) in label
    return EvidenceView(label, "" if said else f"a stretch of {duration}", place)


def metric_words(metric: Metric) -> str:
    """A metric with its unit, as a person would write it."""
    value = metric.value
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    words = format_duration(value) if metric.unit == NS else format_value(value, metric.unit)
    return words if metric.unit in (None, *UNITS) else f"{words} {metric.unit}"
