"""The page is never larger than it may be."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pytest
from report_sample import Sample, many_kernels, rows, sample

from traceanalyzer.errors import InputError
from traceanalyzer.report.html import render_html
from traceanalyzer.report.page_size import LIMIT, MEGABYTE, MOST_SLICES, Budget, Made, fit_page


def test_the_limit_sets_how_much_is_shown():
    assert Budget.of(LIMIT) == Budget() == Budget(MOST_SLICES, 1_000)
    assert Budget.of(50 * MEGABYTE).slices == Budget.of(500 * MEGABYTE).slices == MOST_SLICES == 1_000_000
    assert Budget.of(5 * MEGABYTE) == Budget(500_000, 500)
    assert Budget.of(MEGABYTE // 10) == Budget(10_000, 100)


def test_what_is_too_large_is_halved_until_it_fits():
    tried = []

    def page(budget: Budget) -> Made:
        tried.append(budget)
        return Made(bytes(budget.slices * 100))

    assert len(fit_page(page, 6_000_000)) <= 6_000_000
    assert [budget.slices for budget in tried] == [600_000, 300_000, 150_000, 75_000, 37_500]
    assert [budget.rows for budget in tried] == [600, 300, 150, 75, 37]


def test_a_timeline_that_is_too_large_is_made_again_as_large_as_fits() -> None:
    """All else stays as it is, and nothing is made more often than it takes to find out."""
    tried = []

    def page(budget: Budget) -> Made:
        tried.append(budget)
        timeline = 20 * budget.slices
        return Made(bytes(2_000_000 + timeline), timeline, budget.slices, False)

    assert 0.96 * LIMIT < len(fit_page(page, LIMIT)) <= LIMIT
    assert [budget.slices for budget in tried] == [MOST_SLICES, 385_000]
    assert {budget.rows for budget in tried} == {1_000}


def test_tables_get_shorter_only_where_few_slices_are_left() -> None:
    """A fifth of the usual slices, then half of that and of the tables, again and again."""
    tried = []

    def page(budget: Budget) -> Made:
        tried.append((budget.slices, budget.rows))
        timeline = 20 * budget.slices
        return Made(bytes(1_000 * budget.rows + 500_000 + timeline), timeline, budget.slices, False)

    found = fit_page(page, 2 * MEGABYTE)
    assert 0.9 * 2 * MEGABYTE < len(found) <= 2 * MEGABYTE
    assert tried[:2] == [(200_000, 200), (62_000, 200)]
    tried.clear()
    fit_page(page, MEGABYTE)
    assert tried == [(100_000, 100), (20_000, 100)]
    tried.clear()
    fit_page(page, 6 * MEGABYTE // 10)
    assert tried[:3] == [(60_000, 100), (12_000, 100), (6_000, 50)]


def test_what_cannot_fit_says_what_would():
    with pytest.raises(
        InputError, match=r"does not fit into 1 MB; the smallest for this trace takes 2\.4 MB \(--limit-mb\)"
    ):
        fit_page(lambda _: Made(bytes(2_345_678)), MEGABYTE)


@pytest.mark.parametrize(("bytes_each", "slices"), [(10, 700_000), (1, MOST_SLICES), (60, None)])
def test_the_page_is_filled(bytes_each: int, slices: int | None) -> None:
    """As many slices as have room, a million at most; a page that shows every event stays as it is."""
    everything = 5_000_000 if slices else 120_000

    def page(budget: Budget) -> Made:
        shown = min(budget.slices, everything)
        timeline = shown * bytes_each
        return Made(bytes(2_500_000 + timeline), timeline, shown, shown == everything)

    found = fit_page(page, LIMIT)
    assert len(found) <= LIMIT
    count = (len(found) - 2_500_000) / bytes_each
    assert count == everything if slices is None else slices < count * 1.01 and count <= MOST_SLICES


def test_what_grows_too_far_goes_back() -> None:
    """What is added takes four times as much as what was there."""

    def page(budget: Budget) -> Made:
        timeline = 10 * budget.slices + 30 * max(budget.slices - 200_000, 0)
        return Made(bytes(2_000_000 + timeline), timeline, budget.slices, False)

    assert 0.7 * LIMIT < len(fit_page(page, LIMIT)) <= LIMIT


def test_a_page_of_long_names_fits():
    """As many names as kernels, all different, and nothing in them to compress."""
    count = 20_000
    tables = many_kernels(count)
    letters = np.random.default_rng(1).integers(65, 91, (count, 400), dtype=np.uint8)
    names = pa.array([row.tobytes().decode() for row in letters])
    found = tables.table("gpu_ops")
    columns = {name: found[name].to_pylist() for name in found.column_names}
    gpu_ops = rows("gpu_ops", **{**columns, "name": names.to_pylist()})
    limit = 3 * MEGABYTE
    page = render_html(sample()[0], Sample(**{**tables.tables, "gpu_ops": gpu_ops}), limit=limit)
    assert len(page) <= limit
    shown = re.search(rb"of them that lie within", page)
    assert shown
