"""Waiting on the page is what the ranks of the job told together, wherever it is drawn."""

from __future__ import annotations

import pytest

from tests.support.places import FIXTURES
from traceanalyzer.analysis import ReportTables, analyze_parts, load, parts_of
from traceanalyzer.config import Config
from traceanalyzer.report.parted import tiles_by_gpu
from traceanalyzer.vocabulary.lines import EXPOSED_TRANSFER, EXPOSED_WAIT


@pytest.mark.parametrize("name", ["multirank/gpu_straggler.slow", "jobs/evaluating_rank.slow"])
def test_what_is_drawn_of_waiting_is_what_the_ledger_says(name):
    analysis = analyze_parts(parts_of(load(FIXTURES / name)))
    tables = ReportTables(analysis.parts, Config(), analysis.tables)
    drawn = dict(tiles_by_gpu(*(tables.table(one) for one in ("ledger_intervals", "exposed_waits", "exposed_parts"))))
    gpus = {device: tiles for (_, device), tiles in drawn.items()}
    assert len(gpus) == len(drawn) == len(analysis.result.devices)
    for one in analysis.result.devices:
        tiles = gpus[one.device]
        length = tiles.end - tiles.start
        own = {tiles.lines[code]: int(length[tiles.line == code].sum()) for code in set(tiles.line.tolist())}
        waits, transfers = (own.get(part.name, 0) for part in (EXPOSED_WAIT, EXPOSED_TRANSFER))
        assert (waits, transfers) == (one.exposed_wait_ns, one.exposed_transfer_ns)
