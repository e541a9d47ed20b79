"""A baseline as plain text: what it is of, and what it says."""

from __future__ import annotations

import re
from collections.abc import Sequence

from traceanalyzer.names import readable_name
from traceanalyzer.render.lines import page, wrap
from traceanalyzer.result.captures.capture import Baseline, Capture, Problem, Samples, Unit, Value, Work
from traceanalyzer.result.comparing.words import COUNT_WORDS, UNIT_WORDS
from traceanalyzer.units import format_count, format_duration, format_share, format_value
from traceanalyzer.vocabulary.lines import line_words

MOST = 8
"""So many kernels, operators and collectives are named."""
LABEL, TIME = 62, 10
RULE_METRIC = re.compile(r"[A-Z]+\d+\.")


def summary(baseline: Baseline) -> str:
    """One line: how many captures, of what, and how long a unit takes."""
    captures = f"{len(baseline.captures)} capture{'s' if len(baseline.captures) > 1 else ''}"
    return ", ".join([captures, _gpus(baseline.captures[0]), *_times(baseline.captures)])


def render_baseline(baseline: Baseline) -> str:
    """What it is of, ledger, largest kernels, findings and figures; of several captures the first, and the times of all."""
    first = baseline.captures[0]
    version = f"written by {baseline.tool.get('name', '')} {baseline.tool.get('version', '')}".rstrip()
    lines = [*wrap(summary(baseline), "", ""), version, ""]
    for one in baseline.captures:
        lines += _capture(one)
    if len(baseline.captures) > 1:
        lines += ["", f"All that follows is of the first capture, {first.name}."]
    lines += _ledger(first)
    for title, work in (
        ("KINDS OF KERNELS", first.families),
        ("KERNELS", first.kernels),
        ("OPERATORS", first.operators),
        ("COLLECTIVES", first.collectives),
    ):
        lines += _work(title, work)
    lines += [*_problems(first.problems), *_metrics(first.metrics)]
    return page(lines)


def _gpus(capture: Capture) -> str:
    names = list(dict.fromkeys(name or "GPU not recorded" for name in capture.gpus))
    if not names:
        return "no GPU work"
    count = f"{format_count(len(capture.gpus))} × " if len(capture.gpus) > 1 else ""
    return count + " and ".join(names)


def _times(captures: Sequence[Capture]) -> list[str]:
    """How long a unit takes, over all captures that have one."""
    units = [one.unit for one in captures if one.unit]
    if not units:
        return ["no unit of work"]
    means = [unit.time.mean_ns for unit in units]
    least, most = format_duration(min(means)), format_duration(max(means))
    return [f"{UNIT_WORDS.get(units[0].kind, 'a unit')} takes {least if least == most else f'{least} to {most}'}"]


def _capture(capture: Capture) -> list[str]:
    lines = wrap(
        ", ".join([_unit(capture.unit) if capture.unit else capture.no_unit or "no unit of work"]),
        f"{capture.name}: ",
        "  ",
    )
    lines += wrap(capture.headline, "  ", "  ")
    if versions := ", ".join(f"{name}: {version}" for name, version in capture.versions.items()):
        lines += wrap(versions, "  ", "  ")
    lines += [line for damage in capture.damage for line in wrap(damage, "  damaged  ", "           ")]
    return lines


def _unit(unit: Unit) -> str:
    one, many = COUNT_WORDS.get(unit.kind, ("unit", "units"))
    how = f" ({unit.method})" if unit.method and unit.kind == "step" else ""
    said = f"{format_count(unit.count)} {one if unit.count == 1 else many}{how}, {format_duration(unit.time.mean_ns)} on average"
    samples = unit.time.samples_ns
    if len(samples) > 1 and unit.time.mean_ns:
        said += f", {format_duration(min(samples))} to {format_duration(max(samples))}"
    return f"{said}, {format_count(unit.kernels)} kernels each"


def _ledger(capture: Capture) -> list[str]:
    if not capture.lines or not capture.unit:
        return []
    whole = max(capture.unit.time.mean_ns, 1)
    ordered: list[tuple[str, Samples]] = sorted(capture.lines.items(), key=lambda item: -item[1].mean_ns)
    lines = ["", f"WHERE THE TIME GOES, {UNIT_WORDS.get(capture.unit.kind, 'a unit')}"]
    lines += [_row(line_words(name), one.mean_ns, format_share(one.mean_ns / whole)) for name, one in ordered]
    return [*lines, _row("= all of it", capture.unit.time.mean_ns, "100%")]


def _work(title: str, work: Sequence[Work]) -> list[str]:
    if not work:
        return []
    ordered = sorted(work, key=lambda one: (-one.ns, one.name))
    rows = [
        _row(readable_name(one.name, LABEL - 3), one.ns, f"{format_count(one.count)} times") for one in ordered[:MOST]
    ]
    left = len(work) - MOST
    return ["", title, *rows, *([f"  and {left} more"] if left > 0 else [])]


def _row(label: str, ns: int, said: str) -> str:
    return f"  {label:<{LABEL}}{format_duration(ns):>{TIME}}  {said}"


def _problems(problems: Sequence[Problem]) -> list[str]:
    if not problems:
        return ["", "FINDINGS: none"]
    lines = ["", "FINDINGS"]
    for one in sorted(problems, key=lambda one: (-(one.ns or 0), one.rule)):
        cost = f": {format_duration(one.ns)}" if one.ns else ""
        lines += wrap(f"{one.rule} {one.title} [{one.severity}]{cost}", "  ", "    ")
    return lines


def _metrics(metrics: dict[str, Value]) -> list[str]:
    """Those of rules that found nothing are only counted."""
    silent = {name for name, one in metrics.items() if not one.value and RULE_METRIC.match(name)}
    shown = sorted(metrics.keys() - silent)
    if not shown:
        return []
    width = max(map(len, shown))
    rows = [f"  {name:<{width}}  {_value(metrics[name])}" for name in shown]
    silent_rules, shown_rules = ({name.partition(".")[0] for name in names} for names in (silent, shown))
    rules = len(silent_rules - shown_rules)
    return ["", "FIGURES, for budgets", *rows, *([f"  and those of {rules} rules, which are 0"] if rules else [])]


def _value(one: Value) -> str:
    return format_value(one.value, one.unit) + (f"  ({one.where})" if one.where else "")
