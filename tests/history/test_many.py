"""Ten thousand captures: all are read and looked at, and the page stays small."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.history.many import many_entries, write_packed
from traceanalyzer.history.shelf import Shelf
from traceanalyzer.report.trend_page import render_trend_html
from traceanalyzer.result.history.trend import trend_of
from traceanalyzer.result.history.verdicts import REAL

COUNT = 10_000


def test_many_captures_are_read_and_their_page_is_small(tmp_path: Path) -> None:
    given = many_entries(COUNT, 4, kernels=2)
    write_packed(tmp_path / "history", given)
    contents = Shelf(tmp_path / "history").read()
    assert contents.damaged == []
    assert [entry.id for entry in contents.entries] == [entry.id for entry in given]
    trend = trend_of(contents.entries)
    assert [len(one.captures) for one in trend.series] == [COUNT // 4] * 4
    for one in trend.series:
        (shift,) = one.shifts
        assert (shift.verdict, shift.captures) == (REAL, one.captures[::-1].index(shift.after) + 1)
        assert abs(shift.captures - COUNT // 8) <= 3
        assert shift.share == pytest.approx(0.05, abs=0.002)
    page = render_trend_html(trend, contents.entries)
    assert len(page) < 5e6
    assert given[-1].report and given[-1].report.encode() in page


@pytest.mark.parametrize("series", [1, 500])
def test_a_page_of_one_series_and_of_very_many_is_small(series: int) -> None:
    given = many_entries(COUNT, series, kernels=0)
    page = render_trend_html(trend_of(given), given)
    assert len(page) < 5e6
    assert given[-1].name.encode() in page
    assert series == 1 or all(f"config-{at:03d}".encode() in page for at in range(series))
