"""What is done for large traces only changes nothing of what is found."""

from __future__ import annotations

from pathlib import Path

import pytest

import traceanalyzer as ta
from tests.support.places import FIXTURES
from traceanalyzer.catalog import catalog
from traceanalyzer.columns import frames, lean, spill
from traceanalyzer.columns.lean import repeats
from traceanalyzer.engine.columns import Columns
from traceanalyzer.ingest.storing import ingest_to_store
from traceanalyzer.model.stores import parts

TRACES = (
    "kineto/dataloader.slow.pt.trace.json.gz",
    "kineto/gc_stack.slow.pt.trace.json.gz",
    "nsys/nvtx_dataloader.slow.sqlite",
    "nsys/launch_storm.slow.sqlite",
    "nsys/h2d_pageable.slow.sqlite",
    "nsys/comm_not_overlapped.slow.4gpu.sqlite.xz",
    "multirank/gpu_straggler.slow",
)


@pytest.fixture
def all_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every trace passes for a large one, and every column of it."""
    monkeypatch.setattr(catalog, "_LARGE", 0)
    monkeypatch.setattr(spill, "LARGE_BYTES", 1)
    for module in (lean, frames, parts):
        monkeypatch.setattr(module, "WORTH", 2)
    monkeypatch.setattr(Columns, "block", 100)


@pytest.mark.parametrize("name", TRACES)
def test_the_result_is_the_same(name: str, request: pytest.FixtureRequest) -> None:
    plain = ta.analyze(ta.load(FIXTURES / name)).to_json()
    request.getfixturevalue("all_are_large")
    assert ta.analyze(ta.load(FIXTURES / name)).to_json() == plain


@pytest.mark.parametrize("name", [TRACES[2], TRACES[5]])
def test_a_store_is_read_a_column_at_a_time(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    ingest_to_store([FIXTURES / name], tmp_path / "store", "test")
    plain = ta.load(tmp_path / "store")
    request.getfixturevalue("all_are_large")
    own = ta.load(tmp_path / "store")
    assert any(repeats(column) for column in own.table("gpu_ops").columns)
    assert all(own.table(table).equals(plain.table(table)) for table in plain.tables)
    assert all(own.table(table).schema == plain.table(table).schema for table in plain.tables)
