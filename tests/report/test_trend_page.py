"""The page of a history: what it says of many captures, few, one and none, and that names are text."""

from __future__ import annotations

import re
from dataclasses import replace
from html import escape, unescape

import numpy as np
import pytest
from report_sample import HOSTILE
from trend_sample import HISTORIES, rendered

from benchmarks.nights import DRIVER, NIGHTS, NOISY, PROFILER, SLOWER, nights
from traceanalyzer.report.charts.trend import MOST_POINTS, trend_charts
from traceanalyzer.report.trend_context import TrendContext
from traceanalyzer.result.history.trend import trend_of


def text_of(page: bytes, section: str) -> str:
    (found,) = re.findall(rf'<section id="{section}".*?</section>', page.decode(), re.S)
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", found)).split())


def rows_of(page: bytes, section: str) -> list[str]:
    (found,) = re.findall(rf'<section id="{section}".*?</section>', page.decode(), re.S)
    rows = re.findall(r"<tr>(.*?)</tr>", found.partition("<tbody>")[2], re.S)
    return [" ".join(unescape(re.sub(r"<[^>]*>", " ", row)).split()) for row in rows]


def context(entries) -> TrendContext:
    return TrendContext(trend_of(entries), entries, None)


def test_a_month_names_each_change_with_its_verdict():
    entries = nights()
    page = rendered(entries)
    rows = rows_of(page, "changes")
    verdicts = [re.search(r" (real|method|hardware|noise) ", row) for row in rows]
    assert [one and one[1] for one in verdicts] == ["real", "noise", "hardware", "method"]
    commits = [entries[at].labels["commit"] for at in (SLOWER, NOISY, DRIVER, PROFILER)]
    assert [row.split()[-1] for row in rows] == commits
    assert "of host work instead of" in rows[0] and "HST001" in rows[0]
    assert "Another driver (13.1 instead of 13.0)." in rows[2] and "Another profiler" in rows[3]
    assert f"(commit {commits[0]}) a step takes" in text_of(page, "top")
    assert f"{NIGHTS} captures" in text_of(page, "top")
    assert len(rows_of(page, "captures")) == NIGHTS


def test_a_noisy_last_night_waits_for_the_next():
    page = rendered(nights()[: NOISY + 1])
    assert "noise" in rows_of(page, "changes")[0] and "the next capture tells" in rows_of(page, "changes")[0]
    assert text_of(page, "top").startswith("The last capture takes")


@pytest.mark.parametrize(("name", "said"), [("three", "3 captures so far"), ("single", "One capture so far")])
def test_few_captures_are_shown_and_not_judged(name, said):
    page = rendered(HISTORIES[name])
    assert text_of(page, "top").startswith(said) and "1 captures" not in text_of(page, "top")
    assert b'id="changes"' not in page and b'id="charts"' in page
    assert len(rows_of(page, "captures")) == len(HISTORIES[name])


def test_an_empty_history_says_so():
    page = rendered([])
    assert text_of(page, "top") == "The history is empty."
    assert b'id="charts"' not in page and b'id="captures"' not in page


def test_every_chart_of_a_single_capture_draws_something():
    for chart in trend_charts(context(nights()[:1]).groups):
        for trace in chart.first.data:
            assert len(trace["x"]) > 1 or trace["mode"] == "markers"


def test_many_captures_are_few_points_whose_mean_is_theirs():
    entries = [
        replace(one, id=f"{month:03d}{one.id}", time_ns=one.time_ns + month * NIGHTS * 86_400 * 10**9)
        for month in range(100)
        for one in nights()[:PROFILER]
    ]
    lines = next(chart for chart in trend_charts(context(entries).groups) if chart.id == "lines")
    for trace in lines.first.data:
        assert len(trace["x"]) <= MOST_POINTS and trace["x"] == sorted(set(trace["x"]))
        mean = np.mean([entry.lines[trace["meta"]] for entry in entries]) / 1e6
        assert np.mean(trace["y"]) == pytest.approx(mean, rel=1e-3)


def test_ticks_lie_within_their_axis():
    for count in (1, 2, 7, 8, 9, NIGHTS):
        layout = trend_charts(context(nights()[:count]).groups)[0].first.layout["xaxis"]
        ticks = layout["tickvals"]
        assert ticks == sorted(set(ticks)) and ticks[0] >= 1 and ticks[-1] <= count
        assert len(layout["ticktext"]) == len(ticks) == min(count, 8)


def test_several_series_have_a_table_and_what_changed_most_stands_first():
    page = rendered(HISTORIES["many"])
    assert len(rows_of(page, "top")) == 3
    assert text_of(page, "top").startswith("3 of 3 series take more time, most of all ")
    assert "could not be judged" in text_of(page, "top")


def test_names_are_text():
    page = rendered(HISTORIES["many"])
    assert HOSTILE.encode() not in page
    assert escape(HOSTILE).encode() in page or HOSTILE in text_of(page, "top")


@pytest.mark.parametrize(
    "link", ["javascript:alert(1)", "data:text/html,x", "\\\\host\\share", "file:///etc/passwd", "//host"]
)
def test_links_of_a_stranger_lead_nowhere(link):
    entries = [replace(one, report=link) for one in nights()[:3]]
    assert f'href="{escape(link)}"'.encode() not in rendered(entries)


@pytest.mark.parametrize("link", ["https://example.com/run/1", "reports/x.html", "../reports/x.html"])
def test_reports_are_linked(link):
    entries = [replace(one, report=link) for one in nights()[:3]]
    assert rendered(entries).decode().count(f'href="{link}"') == 3


def test_same_history_same_bytes():
    assert rendered(nights()) == rendered(nights()[::-1][::-1])
