"""Which files are read, how they are opened, and what is said of the file as a whole."""

from __future__ import annotations

import gzip
import hashlib
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from nsys_export import facts, kernel, make_export, process_id, read, runtime

from traceanalyzer.errors import InputError
from traceanalyzer.ingest.registry import find_sources

GPU = "CUPTI_ACTIVITY_KIND_KERNEL"
API = "CUPTI_ACTIVITY_KIND_RUNTIME"


def _state(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def _refused(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        read(path)
    message = str(caught.value)
    assert path.name in message
    assert "\n" not in message
    return message


@pytest.mark.parametrize("journal", ["delete", "wal"])
@pytest.mark.parametrize("read_only", [False, True])
def test_the_input_and_its_folder_stay_as_they_are(tmp_path: Path, journal: str, read_only: bool) -> None:
    folder = tmp_path / "odd #?%20 name"
    folder.mkdir()
    path = make_export(folder / "e.sqlite", {GPU: [kernel()]})
    connection = sqlite3.connect(path)
    connection.execute(f"pragma journal_mode={journal}")
    connection.close()
    before = _state(folder)
    if read_only:
        path.chmod(0o444)
        folder.chmod(0o555)
    try:
        assert read(path).table("gpu_ops").num_rows == 1
        assert _state(folder) == before
    finally:
        folder.chmod(0o755)


def test_changes_that_wait_in_a_wal_are_read_from_a_copy(tmp_path: Path) -> None:
    path = make_export(tmp_path / "e.sqlite", {GPU: [kernel()]})
    writer = sqlite3.connect(path)
    writer.execute("pragma journal_mode=wal")
    writer.execute(f"insert into {GPU} select * from {GPU}")
    writer.commit()
    before = _state(tmp_path)
    assert "e.sqlite-wal" in before
    assert read(path).table("gpu_ops").num_rows == 2
    assert _state(tmp_path) == before
    writer.close()


def test_a_journal_is_left_alone(tmp_path: Path) -> None:
    path = make_export(tmp_path / "e.sqlite", {GPU: [kernel()]})
    (tmp_path / "e.sqlite-journal").write_bytes(b"left by a crash")
    before = _state(tmp_path)
    assert read(path).table("gpu_ops").num_rows == 1
    assert _state(tmp_path) == before


def test_gzipped(tmp_path: Path) -> None:
    path = make_export(tmp_path / "e.sqlite", {GPU: [kernel()]})
    packed = tmp_path / "e.sqlite.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert read(packed).table("gpu_ops").num_rows == 1


def test_other_sqlite_is_refused(tmp_path: Path) -> None:
    message = _refused(make_export(tmp_path / "other.sqlite", {"notes": [{"id": 1}]}, strings=None))
    assert "nsys export --type sqlite" in message


def test_no_gpu_work_is_not_an_error(tmp_path: Path) -> None:
    sink = read(make_export(tmp_path / "e.sqlite", {}))
    assert not sink.batches
    assert sink.facts.process is None


@pytest.mark.parametrize("share", [0.02, 0.3, 0.6, 0.99])
def test_cut_off_files_are_refused(tmp_path: Path, share: float) -> None:
    data = make_export(tmp_path / "e.sqlite", {GPU: [kernel(i, i + 1) for i in range(500)]}).read_bytes()
    cut = tmp_path / "cut.sqlite"
    cut.write_bytes(data[: max(int(len(data) * share), 20)])
    assert "nsys export" in _refused(cut)


def test_damaged_pages_are_refused(tmp_path: Path) -> None:
    path = make_export(tmp_path / "e.sqlite", {GPU: [kernel(i, i + 1) for i in range(2000)]})
    data = bytearray(path.read_bytes())
    data[8192:-4096] = b"\xa5" * (len(data) - 8192 - 4096)
    path.write_bytes(data)
    assert "nsys export" in _refused(path)


def test_damaged_schema_is_refused(tmp_path: Path) -> None:
    path = make_export(tmp_path / "e.sqlite", {GPU: [kernel()]})
    data = bytearray(path.read_bytes())
    data[100:4096] = b"\xa5" * 3996
    path.write_bytes(data)
    _refused(path)


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "e.sqlite"
    path.touch()
    _refused(path)


def test_other_formats_are_not_sniffed(tmp_path: Path) -> None:
    path = tmp_path / "e.sqlite"
    path.write_text("{}")
    assert find_sources([path])[0].kind == "kineto"


@pytest.mark.parametrize("table", ["META_DATA_EXPORT", "EXPORT_META_DATA"])
def test_producer_and_clock(tmp_path: Path, table: str) -> None:
    tables = facts(
        table, EXPORT_PRODUCT_VERSION="2025.3.2.0", EXPORT_SCHEMA_VERSION="3.20.3", EXPORT_PARAM_TIME_SHIFT=100
    )
    tables |= {
        GPU: [kernel()],
        API: [runtime()],
        "TARGET_INFO_SESSION_START_TIME": [{"utcEpochNs": 1795813196842305054}],
    }
    sink = read(make_export(tmp_path / "e.sqlite", tables))
    assert sink.facts.producer == "Nsight Systems 2025.3.2.0"
    assert sink.facts.clock_base_ns == 1795813196842305054 - 100
    assert sink.facts.process == process_id(7)
    assert sink.facts.rank is None
    assert sink.codes == []


@pytest.mark.parametrize(
    "rows",
    [
        {"RANK": 3, "WORLD_SIZE": 8, "LOCAL_RANK": 1},
        {"PROCESS_0:ENVIRONMENT:OMPI_COMM_WORLD_RANK": 3, "PROCESS_0:ENVIRONMENT:OMPI_COMM_WORLD_SIZE": 8},
        {"PROCESS_0:ENV_0": "LOCAL_RANK=1", "PROCESS_0:ENV_1": "SLURM_PROCID=3", "PROCESS_0:ENV_2": "SLURM_NTASKS=8"},
        {"ENVIRONMENT": "LOCAL_RANK=1;RANK=3;WORLD_SIZE=8;RANK_FILE=x"},
    ],
)
def test_rank_from_the_recorded_environment(tmp_path: Path, rows: dict[str, Any]) -> None:
    tables = facts("META_DATA_CAPTURE", **rows)
    sink = read(make_export(tmp_path / "one.sqlite", tables | {GPU: [kernel()]}))
    assert (sink.facts.rank, sink.facts.world_size) == (3, 8)
    # The environment of the launcher is nobody's rank when it launched several.
    sink = read(make_export(tmp_path / "two.sqlite", tables | {GPU: [kernel(), kernel(pid=8)]}))
    assert (sink.facts.rank, sink.facts.world_size) == (None, None)


def test_health_of_the_file(tmp_path: Path) -> None:
    tables = facts("META_DATA_EXPORT", EXPORT_SCHEMA_VERSION_MAJOR=4, EXPORT_PARAM_TABLES_TO_EXPORT="NVTX_EVENTS")
    texts = {"Not all CUDA events might have been collected.": 2, "12 events were dropped": 3, "CUPTI failed": 3}
    tables |= {"DIAGNOSTIC_EVENT": [{"severity": s, "text": text} for text, s in texts.items()]}
    tables |= {GPU: [kernel()], API: [runtime()]}
    sink = read(make_export(tmp_path / "e.sqlite", tables))
    assert [(code, severity, example) for code, severity, _, _, example in sink.messages] == [
        ("TRC009", "low", "NVTX_EVENTS"),
        ("TRC001", "low", "schema 4"),
        ("TRC003", "medium", "12 events were dropped"),
        ("TRC003", "info", "CUPTI failed"),
        ("TRC003", "info", "Not all CUDA events might have been collected."),
    ]


@pytest.mark.parametrize(("normalized", "base"), [("false", 1795813196842305054 + 50), ("true", 50)])
def test_the_clock_of_shifted_exports(tmp_path: Path, normalized: str, base: int) -> None:
    tables = facts("META_DATA_EXPORT", EXPORT_PARAM_TIME_SHIFT=-50, EXPORT_PARAM_TIME_NORMALIZE=normalized)
    tables |= {
        GPU: [kernel()],
        API: [runtime()],
        "TARGET_INFO_SESSION_START_TIME": [{"utcEpochNs": 1795813196842305054}],
    }
    assert read(make_export(tmp_path / "e.sqlite", tables)).facts.clock_base_ns == base


def test_versioned_table_names(tmp_path: Path) -> None:
    path = make_export(
        tmp_path / "e.sqlite", {GPU + "_V2": [kernel()], GPU + "_V10": [kernel(), kernel()], API: [runtime()]}
    )
    sink = read(path)
    assert sink.table("gpu_ops").num_rows == 2
    message = "of several versions of one table only one was read: what the others hold is missing"
    assert ("TRC001", "medium", message, 1, f"{GPU}_V10, not {GPU}_V2") in sink.messages


def test_reading_twice_gives_the_same(tmp_path: Path) -> None:
    path = make_export(
        tmp_path / "e.sqlite", {GPU: [kernel(5, 9, pid=8), kernel(5, 9), kernel(5, 11)], API: [runtime()]}
    )
    first, second = read(path), read(path)
    assert list(first.batches) == list(second.batches)
    assert all(first.table(name).equals(second.table(name)) for name in first.batches)
    assert first.column("gpu_ops", "end_ns") == [9, 9, 11]
    assert first.column("gpu_ops", "process") == [process_id(7), process_id(8), process_id(7)]
