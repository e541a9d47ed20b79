"""Changes of single lines of the ledger and of single rules' findings, also where a unit takes the time that it took."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import numpy as np

from traceanalyzer.records import dataclass
from traceanalyzer.result.history.changepoints import FEWEST, levels_of
from traceanalyzer.result.history.entry import Entry
from traceanalyzer.result.history.verdicts import METHOD, NEAR, Verdict, verdict_on_part
from traceanalyzer.vocabulary.lines import LINES

LEAST = 0.02
"""Of a unit's median time; what changes by less is not told."""
_LEAST_NOISE = 0.002
_BESIDE = 2
LINE, RULE = "line", "rule"


@dataclass(frozen=True)
class PartShift:
    """From capture `after` on (`before` is the last one before it; both are ids) a line of the ledger or a rule's findings, as
    `kind` says, take `after_ns` of a unit instead of `before_ns`. `verdict` is one of VERDICTS, and `reason` says why; `with_unit`
    says that the unit's time changed in the same night."""

    kind: str
    name: str
    words: str
    before: str
    after: str
    before_ns: int
    after_ns: int
    verdict: str
    reason: str
    with_unit: bool


def part_shifts(entries: Sequence[Entry], cuts: Sequence[tuple[int, Verdict]]) -> list[PartShift]:
    """Of captures of one series that could all be judged, in order of time; `cuts` are where the time of the unit changes, with the
    verdicts. The largest first."""
    if len(entries) < FEWEST:
        return []
    rules = {one.rule: one.title for entry in entries for one in entry.findings}
    lines = sorted({line for entry in entries for line in entry.lines})
    found = [shift for line in lines for shift in _of(entries, LINE, line, _line_words(line), _ns_of_line(line), cuts)]
    found += [
        shift
        for rule, title in sorted(rules.items())
        for shift in _of(entries, RULE, rule, f"{rule} {title}", _ns_of_rule(rule), cuts)
    ]
    return sorted(found, key=lambda one: (-abs(one.after_ns - one.before_ns), one.kind, one.name))


def _line_words(line: str) -> str:
    return LINES[line].words if line in LINES else line


def _ns_of_line(line: str) -> Callable[[Entry], int | None]:
    return lambda entry: entry.lines.get(line, 0)


def _ns_of_rule(rule: str) -> Callable[[Entry], int | None]:
    """None where it was not judged, which says nothing."""

    def ns(entry: Entry) -> int | None:
        found = [one.ns or 0 for one in entry.findings if one.rule == rule]
        return sum(found) if found else 0 if rule in entry.judged else None

    return ns


def _of(
    entries: Sequence[Entry],
    kind: str,
    name: str,
    words: str,
    ns_of: Callable[[Entry], int | None],
    cuts: Sequence[tuple[int, Verdict]],
) -> Iterator[PartShift]:
    told = [(at, ns, entry) for at, entry in enumerate(entries) if (ns := ns_of(entry)) is not None]
    if len(told) < FEWEST:
        return
    unit_ns = float(np.median([entry.unit_ns or 0 for entry in entries]))
    for one, other in pairwise(levels_of(np.array([ns for _, ns, _ in told]) / unit_ns, _LEAST_NOISE).parts):
        if abs(other.mean - one.mean) < LEAST:
            continue
        before, after = ([entry for _, _, entry in told[part.first : part.end]] for part in (one, other))
        at = told[other.first][0]
        shared = next((verdict for cut, verdict in cuts if abs(cut - at) <= _BESIDE), None)
        was, now = round(one.mean * unit_ns), round(other.mean * unit_ns)
        verdict = shared or _settings(before, after, kind) or verdict_on_part(before, after, name, now - was)
        yield PartShift(
            kind, name, words, before[-1].id, after[0].id, was, now, verdict.kind, verdict.reason, shared is not None
        )


def _settings(before: Sequence[Entry], after: Sequence[Entry], kind: str) -> Verdict | None:
    """Thresholds of the user's that are others from that night on: findings come and go with them."""
    was, now = ({tuple(sorted(entry.settings.items())) for entry in side} for side in (before[-NEAR:], after[:NEAR]))
    if kind != RULE or was & now:
        return None
    names = sorted({name for one in was ^ now for name, _ in one})
    return Verdict(METHOD, f"it is judged by other thresholds ({', '.join(names)})", [])
