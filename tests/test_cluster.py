"""A real Dask cluster of two processes writes a store behind a URL."""

from __future__ import annotations

from pathlib import Path

from tests.support.places import FIXTURES
from tests.test_cli import run
from tests.test_store import contents
from traceanalyzer.ingest.storing import ingest_to_store
from traceanalyzer.model.stores.store import read_store
from traceanalyzer.workers import map_parts, workers

RANKS = FIXTURES / "multirank" / "pipeline_bubble.slow"


def test_a_cluster_writes_the_same_store(tmp_path):
    inputs, url = f"file://{RANKS.absolute()}", f"file://{tmp_path}/far"
    with workers(2, "local") as executor:
        assert executor is not None
        assert ingest_to_store([inputs], url, "test", executor=executor).there_already == 0
        ingest_to_store([RANKS], tmp_path / "disk", "test", executor=executor)
        first = sorted(RANKS.iterdir())[0]
        assert ingest_to_store([first], url, "test", executor=executor).there_already == 1
        assert ingest_to_store([inputs], url, "test", executor=executor).there_already == 1
        assert map_parts(executor, abs, range(-3, 0)) == [3, 2, 1]
    ingest_to_store([RANKS], tmp_path / "here", "test")
    assert contents(tmp_path / "disk") == contents(tmp_path / "here")
    far, here = read_store(url), read_store(tmp_path / "here")
    assert [i.path for i in far.inputs] == [f"file://{Path(i.path).absolute()}" for i in here.inputs]
    assert far.tables == here.tables
    assert sorted(p.name for p in (tmp_path / "far").iterdir()) == sorted(p.name for p in (tmp_path / "here").iterdir())


def test_a_cluster_finds_the_same(tmp_path, capsysbinary):
    """Inputs and store behind URLs, the work done by two other processes."""
    url, store = f"file://{RANKS.absolute()}", f"file://{tmp_path}/store"
    alone = run(capsysbinary, "analyze", url, "-f", "json", "--store", store)
    together = run(capsysbinary, "analyze", store, "-f", "json", "--scheduler", "local", "--jobs", 2)
    assert alone[0] == together[0] == 0
    assert alone[1] == together[1]
