"""The store: the same bytes every time, whole or not at all, and a faithful copy of the trace."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

import traceanalyzer as ta
from tests.support.places import FIXTURES
from traceanalyzer.errors import InputError
from traceanalyzer.ingest.storing import ingest_to_store
from traceanalyzer.model.schema import EVENT_TABLES
from traceanalyzer.model.stores.placing import check_place
from traceanalyzer.model.stores.store import is_store, read_manifest, read_rank, read_store

KINETO = FIXTURES / "kineto" / "dataloader.slow.pt.trace.json.gz"
RANKS = FIXTURES / "multirank" / "pipeline_bubble.slow"
NSYS = FIXTURES / "nsys" / "h2d_pageable.slow.sqlite"


def contents(folder: Path) -> dict[str, str]:
    return {
        str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest()
        for p in sorted(folder.rglob("*"))
        if p.is_file()
    }


@pytest.fixture(scope="module")
def kept(tmp_path_factory) -> Path:
    """A store to read from; tests that harm it take a copy."""
    folder = tmp_path_factory.mktemp("kept") / "store"
    ingest_to_store([KINETO], folder, "test")
    return folder


@pytest.fixture
def copy(kept, tmp_path) -> Path:
    return Path(shutil.copytree(kept, tmp_path / "store"))


def test_a_store_is_the_same_in_every_process(tmp_path: Path) -> None:
    """Where texts lie in a set differs from process to process."""
    for seed in ("1", "2"):
        command = [sys.executable, "-m", "traceanalyzer", "ingest", str(NSYS), "-o", str(tmp_path / seed)]
        subprocess.run(command, check=True, capture_output=True, env={**os.environ, "PYTHONHASHSEED": seed})
    assert contents(tmp_path / "1") == contents(tmp_path / "2")


@pytest.mark.parametrize("path", [KINETO, RANKS, NSYS], ids=["kineto", "ranks", "nsys"])
def test_a_store_is_the_trace(tmp_path, path):
    before = contents(path) if path.is_dir() else hashlib.sha256(path.read_bytes()).hexdigest()
    beside = sorted(path.parent.iterdir())
    trace = ta.load(path)
    ingest_to_store([path], tmp_path / "a", "test")
    ingest_to_store([path], tmp_path / "b", "test")
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    assert ta.analyze(ta.load(tmp_path / "a")).to_json() == ta.analyze(trace).to_json()
    assert (contents(path) if path.is_dir() else hashlib.sha256(path.read_bytes()).hexdigest()) == before
    assert sorted(path.parent.iterdir()) == beside
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "b"]


def test_tables_come_back_as_they_were(kept):
    again, trace = read_store(kept), ta.load(KINETO)
    assert again.inputs == trace.inputs
    for name in EVENT_TABLES:
        assert again.table(name).schema == trace.table(name).schema
        assert again.table(name).to_pylist() == trace.table(name).to_pylist()


def test_others_can_read_it(tmp_path):
    ingest_to_store([RANKS], tmp_path / "s", "test")
    frame = pd.read_parquet(tmp_path / "s" / "gpu_ops")
    assert len(frame) == ta.load(RANKS).table("gpu_ops").num_rows
    assert set(frame["rank"].astype(int)) == {0, 1, 2, 3}


def test_a_store_is_replaced_whole(copy):
    ingest_to_store([RANKS], copy, "test")
    assert len(read_store(copy).inputs) == 4
    assert [p.name for p in copy.parent.iterdir()] == ["store"]


@pytest.mark.parametrize("there", [False, True])
def test_a_failed_write_changes_nothing(monkeypatch, kept, tmp_path, there):
    target = tmp_path / "store"
    if there:
        shutil.copytree(kept, target)
    before = contents(tmp_path)
    open_writer, calls = pq.ParquetWriter, []

    def full(*args, **kwargs):
        calls.append(args)
        if len(calls) > 2:
            raise OSError(28, "No space left on device")
        return open_writer(*args, **kwargs)

    monkeypatch.setattr(pq, "ParquetWriter", full)
    with pytest.raises(InputError, match=r"store: cannot be written \(No space left"):
        ingest_to_store([RANKS], target, "test")
    assert contents(tmp_path) == before
    assert [p.name for p in tmp_path.iterdir()] == (["store"] if there else [])


def test_an_interrupt_at_the_last_step_keeps_the_old_store(monkeypatch, copy):
    before, rename = contents(copy), Path.rename

    def interrupted(self, target):
        if Path(target) == copy and self.name != "old":
            raise KeyboardInterrupt
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ingest_to_store([RANKS], copy, "test")
    assert contents(copy) == before
    assert sorted(p.name for p in copy.parent.iterdir()) == [".store.parts", "store"]
    monkeypatch.undo()
    assert ingest_to_store([RANKS], copy, "test").there_already == 4
    assert [p.name for p in copy.parent.iterdir()] == ["store"]


def test_one_rank_is_read_alone(tmp_path):
    ingest_to_store([RANKS], tmp_path / "s", "test")
    whole, rank = read_store(tmp_path / "s"), read_rank(tmp_path / "s", 2)
    assert read_manifest(tmp_path / "s").inputs == whole.inputs and rank.inputs == (whole.inputs[2],)
    for name, table in rank.tables.items():
        assert table.schema == whole.table(name).schema
        assert table.to_pylist() == [row for row in whole.table(name).to_pylist() if row["rank"] == 2]
    with pytest.raises(KeyError, match="has no rank 7"):
        read_rank(tmp_path / "s", 7)


def test_what_is_damaged_is_read_again(copy):
    flip(copy)
    assert ingest_to_store([KINETO], copy, "test").there_already == 0
    assert read_store(copy).table("gpu_ops").num_rows
    assert ingest_to_store([KINETO], copy, "test").there_already == 1


def test_nothing_of_others_is_replaced(tmp_path, copy):
    other = tmp_path / "web"
    other.mkdir()
    (other / "manifest.json").write_text('{"name": "an app", "schema_version": 3}')
    assert not is_store(other)
    with pytest.raises(InputError, match="is not a store"):
        check_place(other)
    (copy / "report.html").write_text("mine")
    with pytest.raises(InputError, match=r"also holds report\.html"):
        check_place(copy)
    trace = copy.parent / "store2" / "t.json"
    shutil.copytree(copy, trace.parent)
    trace.write_text("{}")
    with pytest.raises(InputError, match="holds the input"):
        check_place(trace.parent, [trace])


def spoil_manifest(folder: Path, text: str) -> None:
    (folder / "manifest.json").write_text(text)


def other_schema(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    spoil_manifest(folder, json.dumps(manifest | {"schema_version": "99.0"}))


def no_inputs(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    del manifest["inputs"]
    spoil_manifest(folder, json.dumps(manifest))


def no_parts(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    spoil_manifest(folder, json.dumps(manifest | {"parts": []}))


def flip(folder: Path) -> None:
    part = folder / "gpu_ops" / "rank=0" / "part-0.parquet"
    data = bytearray(part.read_bytes())
    data[len(data) // 4] ^= 0xFF
    part.write_bytes(data)


def cut(folder: Path) -> None:
    part = folder / "gpu_ops" / "rank=0" / "part-0.parquet"
    part.write_bytes(part.read_bytes()[:2000])


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (lambda f: (f / "manifest.json").unlink(), "manifest.json is missing"),
        (lambda f: spoil_manifest(f, "xx"), "manifest.json is missing or not readable"),
        (lambda f: spoil_manifest(f, "[]"), "not readable"),
        (other_schema, "schema 99.0"),
        (no_inputs, "missing required field `inputs`"),
        (no_parts, "inputs or parts are missing"),
        (lambda f: shutil.rmtree(f / "gpu_ops"), "rows missing in gpu_ops"),
        (cut, "not the one that was written"),
        (flip, "damaged store"),
    ],
)
def test_damage_is_one_clear_line(copy, harm, words):
    harm(copy)
    with pytest.raises(InputError) as caught:
        ta.load(copy)
    message = str(caught.value)
    assert words in message and message.startswith(str(copy)) and message.endswith("ingest the trace again")
    assert "\n" not in message
