"""What reading large pages of Nsight Compute costs: 100 MB of each within 10 s and 1 GB."""

from __future__ import annotations

import gzip
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import measure, ratio

FIXTURES = Path("tests/fixtures/evidence/kernel_counters")
PAGES = {"details": "gemv.slow.details.csv.gz", "raw": "gemv.slow.raw.csv.gz", "text": "gemv.slow.details.txt.gz"}
MEGABYTES = 100
TOOL = (sys.executable, "-m", "traceanalyzer")


def tiled(page: str, size: int) -> Iterator[str]:
    """The lines of a fixture's page again and again, its launches numbered on."""
    text = gzip.decompress((FIXTURES / PAGES[page]).read_bytes()).decode()
    head, body = text.splitlines(keepends=True)[: 2 if page == "raw" else 1], text.splitlines(keepends=True)
    yield from head
    body, written, turn = body[len(head) :], 0, 0
    while written < size:
        for line in body:
            # The two launches of the fixture are 0 and 1.
            number, comma, rest = line.partition('","')
            new = f'"{int(number[1:]) + 2 * turn}{comma}{rest}' if page != "text" else line
            written += len(new)
            yield new
        turn += 1


def write(page: str, path: Path, megabytes: int) -> None:
    with path.open("w") as stream:
        stream.writelines(tiled(page, megabytes << 20))


def counters(folder: Path) -> None:
    """Print both for each page."""
    for page in PAGES:
        path = folder / f"{page}.csv"
        write(page, path, MEGABYTES)
        cost = measure(f"analyze, {MEGABYTES} MB of the {page} page", *TOOL, "analyze", str(path), "-f", "json")
        ratio(f"seconds to 10 s, {page} page", cost.cpu / 10, 1.0)
        ratio(f"peak memory to 1 GB, {page} page", cost.memory / 1024, 1.0)
        path.unlink()
