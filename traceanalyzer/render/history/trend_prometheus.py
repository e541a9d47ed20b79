"""A history in the text format of Prometheus (0.0.4), for node_exporter's textfile collector: the last capture of each series."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from traceanalyzer.render.prometheus import NS, Family
from traceanalyzer.result.history.entry import Entry
from traceanalyzer.result.history.trend import STATES, Series, Trend
from traceanalyzer.vocabulary.levels import SEVERITIES


def render_trend_metrics(trend: Trend, entries: Iterable[Entry]) -> str:
    """Gauges in base units, labelled with the series; ends in a newline."""
    by_id = {entry.id: entry for entry in entries}
    families = [family for family in _families(trend, by_id) if family.samples]
    return "\n".join(line for family in families for line in family.lines()) + "\n"


def _families(trend: Trend, by_id: dict[str, Entry]) -> Iterator[Family]:
    captures = Family("history_captures", "Captures of the series, without those that could not be judged.")
    left_out = Family("history_unjudged", "Captures of the series that could not be judged.")
    recorded = Family("history_recorded_timestamp_seconds", "When the last capture was recorded.")
    unit = Family("history_unit_seconds", "Mean time of a unit of work (a step) in the last capture.")
    level = Family("history_level_seconds", "The level of the last captures, without those that are far off.")
    noise = Family("history_noise_ratio", "What one capture differs from the next by: a standard deviation.")
    change = Family(
        "history_change_ratio", "By how much the last change of the level was longer (less than 0: shorter)."
    )
    state = Family("history_state", "1 for what is known of the last capture, else 0.")
    lines = Family("history_ledger_seconds", "A unit of work of the last capture by line of the ledger.")
    findings = Family("history_finding_seconds", "What a rule's findings account for in a unit of work.")
    severities = Family("history_findings", "Rules with findings in the last capture, by severity.")
    for series in trend.series:
        own = _labels(series)
        captures.samples.append((own, len(series.captures)))
        left_out.samples.append((own, len(series.left_out)))
        state.samples += [(own | {"state": name}, int(series.state == name)) for name in STATES]
        if not series.captures:
            continue
        last = by_id[series.captures[-1]]
        recorded.samples.append((own, last.time_ns // NS))
        unit.samples.append((own, (last.unit_ns or 0) / NS))
        level.samples.append((own, series.stretches[-1].mean_ns / NS))
        if series.noise is not None:
            noise.samples.append((own, series.noise))
            change.samples.append((own, series.shifts[-1].share if series.shifts else 0))
        lines.samples += [(own | {"line": name}, ns / NS) for name, ns in sorted(last.lines.items())]
        findings.samples += [
            (own | {"rule": one.rule}, (one.ns or 0) / NS) for one in sorted(last.findings, key=lambda one: one.rule)
        ]
        severities.samples += [
            (own | {"severity": name}, sum(one.severity == name for one in last.findings)) for name in SEVERITIES
        ]
    yield from (captures, left_out, recorded, unit, level, noise, change, state, lines, findings, severities)


def _labels(series: Series) -> dict[str, str]:
    return {name: series.labels.get(name, "") for name in ("project", "config")}
