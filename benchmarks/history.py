"""What it costs to read a history of 10,000 captures, to tell what changed in it, and to make its page."""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.measure import measure, ratio
from tests.history.many import many_entries, write_packed

CAPTURES = 10_000
SERIES = (1, 20, 500)
TOOL = (sys.executable, "-m", "traceanalyzer", "history")


def history(folder: Path) -> None:
    """Print seconds and peak memory of each, and how large the page is, for one series and for many."""
    for series in SERIES:
        print(f"A history of {CAPTURES:,} captures in {series} series")
        place, page = folder / f"history-{series}", folder / "trend.html"
        write_packed(place, many_entries(CAPTURES, series))
        measure("history show", *TOOL, "show", str(place))
        report = measure("history report", *TOOL, "report", str(place), "-o", str(page))
        ratio("seconds of history report to 20", report.wall / 20, 1)
        ratio("memory of history report to 1 GB", report.memory * 2**20 / 1e9, 1)
        ratio("size of the page to 5 MB", page.stat().st_size / 5e6, 1)


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as made:
        history(Path(made))
