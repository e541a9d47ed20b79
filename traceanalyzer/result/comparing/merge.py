"""Several captures of one program as one: the mean of each figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from traceanalyzer.result.captures.capture import Capture, Problem, Samples, Unit, Work
from traceanalyzer.vocabulary.levels import SEVERITIES


def merge_captures(captures: Sequence[Capture]) -> Capture:
    """What is of one capture only (name, headline, metrics, shapes) is that of the first."""
    first, timed = captures[0], [capture for capture in captures if capture.unit]
    if len(captures) == 1 or not timed:
        return first
    unit = _unit([capture.unit for capture in timed if capture.unit])
    return replace(
        first,
        damage=list(dict.fromkeys(text for capture in captures for text in capture.damage)),
        unit=unit,
        no_unit=None,
        lines=_lines(timed, unit.time.mean_ns),
        families=_work([capture.families for capture in timed]),
        kernels=_work([capture.kernels for capture in timed]),
        operators=_work([capture.operators for capture in timed]),
        collectives=_work([capture.collectives for capture in timed]),
        problems=_problems(captures),
        path=_work([capture.path for capture in timed]),
    )


def _unit(units: Sequence[Unit]) -> Unit:
    firsts = [unit.first_ns for unit in units if unit.first_ns is not None]
    return replace(
        units[0],
        count=sum(unit.count for unit in units),
        time=_samples([unit.time for unit in units]),
        first_ns=min(firsts, default=None),
        kernels=sum(unit.kernels for unit in units) / len(units),
    )


def _samples(times: Sequence[Samples]) -> Samples:
    return Samples(sum(t.mean_ns for t in times) // len(times), [ns for time in times for ns in time.samples_ns])


def _lines(captures: Sequence[Capture], whole: int) -> dict[str, Samples]:
    """The lines of any of the captures; they add up to `whole`, the mean unit."""
    names = dict.fromkeys(name for capture in captures for name in capture.lines)
    none = Samples(0, [])
    found, done = {}, 0
    before = 0
    for name in names:
        own = [capture.lines.get(name, none) for capture in captures]
        # Rounded as a running sum, so that what one line loses the next one gains.
        done += sum(line.mean_ns for line in own)
        upto = min(done // len(captures), whole)
        found[name] = replace(_samples(own), mean_ns=upto - before)
        before = upto
    return found


def _work(lists: Sequence[Sequence[Work]]) -> list[Work]:
    by_name: dict[str, list[Work]] = {}
    for one in (one for works in lists for one in works):
        by_name.setdefault(one.name, []).append(one)
    found = []
    for name, works in by_name.items():
        varies = [one.deviation_ns for one in works if one.deviation_ns is not None]
        count = sum(one.count for one in works) / len(lists)
        deviation = sum(varies) // len(varies) if varies else None
        found.append(Work(name, count, sum(one.ns for one in works) // len(lists), deviation))
    return sorted(found, key=lambda one: (-one.ns, one.name))


def _problems(captures: Sequence[Capture]) -> list[Problem]:
    """Rules that found something in at least half of the captures; where one did not, it accounts for nothing."""
    by_rule: dict[str, list[Problem]] = {}
    for problem in (problem for capture in captures for problem in capture.problems):
        by_rule.setdefault(problem.rule, []).append(problem)
    found = []
    for problems in by_rule.values():
        if 2 * len(problems) >= len(captures):
            known = [problem.ns for problem in problems if problem.ns is not None]
            severity = max((problem.severity for problem in problems), key=SEVERITIES.index)
            mean = sum(known) // len(captures) if known else None
            found.append(replace(problems[0], severity=severity, ns=mean))
    return sorted(found, key=lambda problem: -(problem.ns or 0))
