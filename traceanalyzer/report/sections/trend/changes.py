"""The changes of all series and the nights that were noise, the latest first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from traceanalyzer.report.section import PageSection
from traceanalyzer.report.trend_context import TrendContext
from traceanalyzer.result.history.entry import Entry
from traceanalyzer.result.history.trend import Series, Shift, name_of
from traceanalyzer.result.history.verdicts import NOISE

MOST = 200


def _view(page: TrendContext) -> dict[str, Any] | None:
    found = [
        (one, shift, page.by_id[shift.after])
        for one, entries in page.groups
        for shift in (*one.shifts, *_noisy_nights(one, entries))
    ]
    found.sort(key=lambda row: -row[2].time_ns)
    rows = [
        {"series": name_of(one), "shift": shift, "after": after, "link": page.link(after)}
        for one, shift, after in found
    ]
    if not rows:
        return None
    return {"rows": rows[:MOST], "left": max(len(rows) - MOST, 0), "several": len(page.trend.series) > 1}


def _noisy_nights(series: Series, entries: Sequence[Entry]) -> Iterator[Shift]:
    """Captures far off their level, as changes of one capture."""
    noisy = set(series.noisy)
    for stretch in series.stretches:
        for at in range(stretch.first, stretch.end):
            entry, ns = entries[at], series.unit_ns[at]
            if entry.id not in noisy:
                continue
            share = ns / stretch.mean_ns - 1
            is_last = at == len(entries) - 1
            reason = "far off the level of its neighbours" + (
                "; the next capture tells whether it stays" if is_last else ""
            )
            commits = None, entry.labels.get("commit")
            yield Shift(entry.id, entry.id, stretch.mean_ns, ns, share, share, share, 1, NOISE, reason, [], commits)


SECTION = PageSection(
    name="changes", page="trend", title="Changes", order=20, view=_view, template="trend-changes.html.j2"
)
