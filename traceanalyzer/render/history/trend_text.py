"""A history as plain text: each series with its changes and its last captures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from traceanalyzer.render.lines import page, wrap
from traceanalyzer.result.history.entry import Entry
from traceanalyzer.result.history.parts import PartShift
from traceanalyzer.result.history.trend import Series, Shift, Trend, name_of
from traceanalyzer.result.history.verdicts import NOISE
from traceanalyzer.units import format_duration, format_share

MOST = 10
"""So many of the last captures are listed."""
_COMMIT = 12


def render_trend(trend: Trend, entries: Iterable[Entry]) -> str:
    """The headline and, series by series, its changes, its noisy nights and its last captures."""
    by_id = {entry.id: entry for entry in entries}
    lines = wrap(trend.headline, "", "")
    for series in trend.series:
        lines += ["", *_series(series, by_id)]
    return page(lines)


def _series(series: Series, entries: dict[str, Entry]) -> list[str]:
    count = len(series.captures)
    lines = [f"{name_of(series).upper()}: {count} capture{'s' if count != 1 else ''}"]
    if count:
        first, last = (entries[id] for id in (series.captures[0], series.captures[-1]))
        lines += wrap(f"{_day(first)} to {_day(last)}{_noise(series)}", "  ", "  ")
    lines += wrap(f"{series.state.replace('_', ' ')}: {series.latest}", "  now      ", "           ")
    for shift in series.shifts:
        lines += _shift(shift, entries)
    for part in series.parts[:MOST]:
        lines += _part(part, entries)
    for id in series.noisy:
        lines += wrap(f"{_day(entries[id])} {entries[id].name}: far off its neighbours", f"  {NOISE:<9}", "           ")
    for left in series.left_out[-MOST:]:
        lines += wrap(f"{entries[left.id].name}: {left.reason}", "  left out ", "           ")
    shown = series.captures[-MOST:]
    if shown:
        lines += ["", f"  {'recorded':<18}{'a unit':>10}  {'commit':<{_COMMIT}}  capture"]
        lines += [_row(entries[id]) for id in shown]
    return lines


def _noise(series: Series) -> str:
    if series.noise is None:
        return ""
    return f"; one differs from the next by {format_share(series.noise)} (standard deviation)"


def _shift(shift: Shift, entries: dict[str, Entry]) -> Sequence[str]:
    after = entries[shift.after]
    sign = "+" if shift.share > 0 else "-"
    much = f"{sign}{format_share(abs(shift.share))} ({_signed(shift.low)} to {_signed(shift.high)})"
    times = f"{format_duration(shift.before_ns)} to {format_duration(shift.after_ns)}"
    commits = ""
    if shift.commits[1]:
        commits = f", {shift.commits[0] or '?'} to {shift.commits[1]}"
    lines = wrap(f"{_day(after)} {much}: {times}{commits}", f"  {shift.verdict:<9}", "           ")
    lines += wrap(shift.reason, "           ", "           ")
    return [*lines, *(line for one in shift.also for line in wrap(f"also: {one}", "           ", "           "))]


def _part(part: PartShift, entries: dict[str, Entry]) -> list[str]:
    times = f"{format_duration(part.before_ns)} to {format_duration(part.after_ns)} of a unit"
    why = "" if part.with_unit else f"; {part.verdict}: {part.reason}"
    return wrap(f"{_day(entries[part.after])} {part.words}: {times}{why}", "  part     ", "           ")


def _signed(share: float) -> str:
    return f"{'+' if share > 0 else '-'}{format_share(abs(share))}"


def _row(entry: Entry) -> str:
    time = format_duration(entry.unit_ns) if entry.unit_ns is not None else "-"
    return f"  {_day(entry):<18}{time:>10}  {entry.labels.get('commit', '-')[:_COMMIT]:<{_COMMIT}}  {entry.name}"


def _day(entry: Entry) -> str:
    return f"{datetime.fromtimestamp(entry.time_ns // 10**9, UTC):%Y-%m-%d %H:%M}"
