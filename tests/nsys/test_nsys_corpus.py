"""Exact counts of real exports. Skipped where the corpus is absent."""

from __future__ import annotations

import hashlib
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest
import yaml
from nsys_export import Collected, read

from traceanalyzer.errors import InputError
from traceanalyzer.ingest.rows.steps import find_steps, step_marks

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus"
pytestmark = [pytest.mark.corpus, pytest.mark.skipif(not CORPUS.is_dir(), reason="no corpus here")]


def _ledger() -> list[dict[str, Any]]:
    truth = CORPUS / "TRUTH.yaml"
    rows = yaml.safe_load(truth.read_text())["windows"] if truth.is_file() else []
    return [row for row in rows if row["file"].startswith("nsys/")]


@cache
def _read(name: str) -> Collected:
    return read(CORPUS / name)


@pytest.mark.parametrize("row", _ledger(), ids=lambda row: f"{row['file']}#{row['device']}")
def test_counts_and_window(row: dict[str, Any]) -> None:
    ops = _read(row["file"]).table("gpu_ops")
    ops = ops.filter(pc.and_(pc.equal(ops["device"], row["device"]), pc.invert(ops["quarantined"])))
    kernels = pc.sum(pc.equal(ops["kind"].cast("string"), "kernel")).as_py()
    assert (ops.num_rows, kernels) == (row["ops"], row["kernels"])
    worked = pc.max(ops["end_ns"]).as_py() - pc.min(ops["start_ns"]).as_py()
    assert row["lead"] + worked + row["tail"] == row["ns"][0]


def test_every_export_of_the_corpus_has_a_truth() -> None:
    named = {row["file"] for row in _ledger()}
    assert named == {str(path.relative_to(CORPUS)) for path in (CORPUS / "nsys").glob("*.sqlite")}


def test_four_gpus() -> None:
    sink = _read("nsys/comm_not_overlapped.slow.4gpu.sqlite")
    assert sorted(set(sink.column("gpu_ops", "device"))) == [0, 1, 2, 3]
    assert Counter(sink.column("gpu_ops", "class"))["communication"] == 12
    assert sink.column("processes", "pid") == [1069, 1070, 1071, 1072]
    assert find_steps(step_marks(sink.table("host_ranges"))).num_rows == 12
    assert "TRC006" in sink.codes


def test_metrics_are_all_there() -> None:
    sink = _read("nsys/dataloader.slow.gpu-metrics.sqlite")
    assert sink.table("counters").num_rows == 114_290
    clock = [
        v
        for m, v in zip(sink.column("counters", "metric"), sink.column("counters", "value"), strict=True)
        if "GPC" in m
    ]
    assert 1000 < min(clock) <= max(clock) < 3000


def test_migrations_are_not_copies() -> None:
    sink = _read("nsys/uvm.slow.sqlite")
    assert Counter(sink.column("gpu_ops", "copy_kind")) == {"uvm_htod": 32033, "uvm_dtoh": 6130, None: 4}


def _more_than_noted(name: str) -> list[str]:
    return [code for code, severity, *_ in _read(name).messages if severity != "info"]


def test_graph_capture_is_said() -> None:
    assert _more_than_noted("nsys/launch_storm.fixed.graph-level.sqlite") == ["TRC008"]
    assert _more_than_noted("nsys/launch_storm.fixed.graph-node.sqlite") == []


def test_nvtx_operators() -> None:
    sink = _read("nsys/nvtx_dataloader.slow.sqlite")
    names = set(sink.column("host_ranges", "name"))
    assert {"iteration 0", "data_loading", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"} <= names
    assert not any("op_id" in name for name in names)
    assert find_steps(step_marks(sink.table("host_ranges")))["name"].to_pylist() == [
        "iteration 0",
        "iteration 1",
        "iteration 2",
    ]


@pytest.mark.parametrize("name", sorted(str(p.relative_to(CORPUS)) for p in CORPUS.glob("public/nsys/**/*.sqlite")))
def test_exports_of_others(name: str) -> None:
    path = CORPUS / name
    before = hashlib.sha256(path.read_bytes()).hexdigest(), sorted(path.parent.iterdir())
    sink = _read(name)
    assert sink.table("gpu_ops").num_rows > 0
    assert not any(sink.column("gpu_ops", "quarantined"))
    assert None not in sink.column("gpu_ops", "name")
    assert (hashlib.sha256(path.read_bytes()).hexdigest(), sorted(path.parent.iterdir())) == before


@pytest.mark.parametrize("name", sorted(str(p.relative_to(CORPUS)) for p in CORPUS.glob("public/malformed/*.sqlite")))
def test_malformed(name: str) -> None:
    with pytest.raises(InputError) as caught:
        read(CORPUS / name)
    assert "\n" not in str(caught.value)
