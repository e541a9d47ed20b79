"""The ledgers of real traces, to the nanosecond, against figures from an independent computation."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

import traceanalyzer as ta
from tests.support.places import CORPUS, FIXTURES, needs_corpus
from traceanalyzer.catalog.catalog import Catalog

FIGURES = (
    *(
        "duration",
        "busy",
        "compute",
        "communication",
        "exposed_communication",
        "memcpy",
        "exposed_memcpy",
        "idle",
        "max_gap",
    ),
)


def entries(path: Path) -> list[dict]:
    return yaml.safe_load(path.read_text())["windows"] if path.is_file() else []


def files(path: Path) -> list[str]:
    return sorted({entry["file"] for entry in entries(path)})


def check(root: Path, truth: Path, file: str) -> None:
    catalog = Catalog(ta.load(root / file))
    rows = {row["device"]: row for row in catalog.table("ledger").to_pylist()}
    gaps = catalog.table("gaps").to_pandas()
    expected = [entry for entry in entries(truth) if entry["file"] == file]
    assert sorted(rows) == sorted(entry["device"] for entry in expected)
    for entry in expected:
        row = rows[entry["device"]]
        assert [row[name] for name in FIGURES] == entry["ns"]
        assert (row["gpu_op_count"], row["kernel_count"]) == (entry["ops"], entry["kernels"])
        own = gaps[gaps.device == entry["device"]]
        ends = own[own.previous_op_name.isna()], own[own.next_op_name.isna()]
        assert [int((end.end_ns - end.start_ns).sum()) for end in ends] == [entry["lead"], entry["tail"]]
        assert sum(ns for name, ns in row.items() if name.startswith("idle_")) == row["idle"]


@pytest.mark.parametrize("file", files(FIXTURES / "truth.yaml"))
def test_fixture(file):
    check(FIXTURES, FIXTURES / "truth.yaml", file)


@needs_corpus
@pytest.mark.parametrize("file", files(CORPUS / "TRUTH.yaml"))
def test_corpus(file):
    check(CORPUS, CORPUS / "TRUTH.yaml", file)
