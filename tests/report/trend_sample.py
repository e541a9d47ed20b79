"""Histories whose pages are tested."""

from __future__ import annotations

from dataclasses import replace

from report_sample import HOSTILE

from benchmarks.nights import nights
from traceanalyzer.report.trend_page import render_trend_html
from traceanalyzer.result.history.entry import Entry
from traceanalyzer.result.history.trend import trend_of


def many() -> list[Entry]:
    """Three programs of which one has a hostile name; captures with reports, one without a verdict."""
    found = []
    for project in ("lamp", "sail", HOSTILE):
        found += [
            replace(one, id=f"{project[:4]}{one.id}", labels={**one.labels, "project": project}) for one in nights()
        ]
    last = found[-1]
    return [*found, replace(last, id="none", time_ns=last.time_ns + 1, unit=None, unit_ns=None, unjudged=HOSTILE)]


HISTORIES = {"month": nights(), "three": nights()[:3], "single": nights()[:1], "none": [], "many": many()}


def rendered(entries: list[Entry]) -> bytes:
    return render_trend_html(trend_of(entries), entries)
