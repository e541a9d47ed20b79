"""Stores of other versions: within a major version the tables only grow, and what that costs is said."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

import traceanalyzer as ta
from tests.cli.test_cli import run
from tests.support.kineto import KinetoTrace
from traceanalyzer.errors import InputError
from traceanalyzer.ingest.storing import ingest_to_store
from traceanalyzer.model.schema import DIM3, EVENT_TABLES, SCHEMA_VERSION, Column, TableSpec
from traceanalyzer.model.stores.parts import read_table, seal, write_tables
from traceanalyzer.model.stores.placing import check_place
from traceanalyzer.model.stores.store import read_manifest, read_store
from traceanalyzer.model.stores.versions import ADDED, OLDEST, is_readable, not_recorded, parsed
from traceanalyzer.model.table_specs import EXTRA_TABLES, register

FIRST = "655f"
SNAPSHOTS = TableSpec(
    "snapshots",
    "one snapshot",
    (
        Column("rank", pa.int32(), None, "rank"),
        Column("time_ns", pa.int64(), "ns", "when"),
        Column("level", pa.int64(), "bytes", "in use"),
    ),
)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two ranks, as they are written today."""
    folder = tmp_path_factory.mktemp("kept")
    for rank in (0, 1):
        made = KinetoTrace()
        made.metadata["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": 2}
        for step in range(6):
            made.op(step * 100, step * 100 + 40, launch=(step * 100 - 20, step * 100 - 10))
        (folder / "in").mkdir(exist_ok=True)
        made.write(folder / "in" / f"rank{rank}.json")
    ingest_to_store([folder / "in"], folder / "store", "test")
    return folder


@pytest.fixture
def place(kept: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(kept / "store", tmp_path / "store"))


def rewrite(
    store: Path, version: str, change: Callable[[str, pa.Table], pa.Table | None] = lambda _, rows: rows
) -> None:
    """Make it a store of another version, its tables as `change` makes them; None takes one out."""
    manifest = json.loads((store / "manifest.json").read_bytes())
    manifest["schema_version"] = version
    for name in list(manifest["tables"]):
        if change(name, pa.table({})) is None:
            del manifest["tables"][name]
    for given, part in zip(manifest["inputs"], manifest["parts"], strict=True):
        for name in list(part["tables"]):
            file = store / name / f"rank={given['ordinal']}" / "part-0.parquet"
            made = change(name, pq.ParquetFile(file).read())
            if made is None:
                file.unlink()
                file.parent.rmdir()
                del part["tables"][name]
                continue
            pq.write_table(made, file)
            content = file.read_bytes()
            part["tables"][name] |= {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    (store / "manifest.json").write_bytes(seal(manifest))


def without(*names: str) -> Callable[[str, pa.Table], pa.Table | None]:
    """Without these tables ("steps") and columns ("steps.open")."""

    def change(table: str, rows: pa.Table) -> pa.Table | None:
        if table in names:
            return None
        gone = [name for name in rows.column_names if f"{table}.{name}" in names]
        return rows.drop_columns(gone)

    return change


def notes(store: Path) -> set[tuple[str, str]]:
    return {(note.severity, note.message) for note in ta.analyze(ta.load(store)).health}


def test_an_older_minor_version_is_read(place: Path) -> None:
    now = ta.analyze(ta.load(place))
    rewrite(place, "1.6", without("host_ranges.domain", *ADDED["1.7"][1:]))
    trace = read_store(place)
    for name, spec in EVENT_TABLES.items():
        assert trace.table(name).schema == spec.schema
    found = ta.analyze(trace)
    told = [note for note in found.health if "schema 1.6" in note.message]
    assert [(note.rank, note.severity, note.code) for note in told] == [
        (0, "medium", "TRC001"),
        (1, "medium", "TRC001"),
    ]
    assert told[0].message.endswith(
        "which did not record cpu_samples, mpi_calls, page_faults, thread_runs: rules that need that say nothing; "
        "ingest the trace again"
    )
    assert found.devices == now.devices and found.verdict == now.verdict


def test_one_that_lacks_nothing_says_only_that_it_is_older(place: Path) -> None:
    before = notes(place)
    rewrite(place, "1.5")
    assert notes(place) - before == {("info", "the store was written by an earlier version (schema 1.5)")}


@pytest.mark.parametrize("gone", ["gpu_ops.class", "api_calls"])
def test_what_an_older_version_should_have_had_is_not_judged(place: Path, gone: str) -> None:
    rewrite(place, "1.6", without(gone))
    found = ta.analyze(ta.load(place))
    assert not found.judged
    assert f"lacks {gone}, which that version had; ingest the trace again" in found.verdict.headline


@pytest.mark.parametrize("version", ["2.0", "0.9", "1.3", "1", "1.x", "1.7.0", ""])
def test_another_major_version_is_one_clear_line(place: Path, version: str) -> None:
    rewrite(place, version)
    with pytest.raises(InputError) as caught:
        ta.load(place)
    message = str(caught.value)
    assert f"a store of schema {version}, this version reads 1.4 and later ones of 1" in message
    assert message.endswith("ingest the trace again") and "\n" not in message
    assert check_place(place) == place


def test_a_newer_minor_version_is_read_as_far_as_it_is_known(place: Path, tmp_path: Path) -> None:
    now = ta.analyze(ta.load(place))
    rewrite(
        place,
        "1.99",
        lambda name, rows: rows.append_column("more", pa.nulls(rows.num_rows)) if name == "gpu_ops" else rows,
    )
    add_table(place, "later", pa.table({"time_ns": [1, 2]}))
    found = ta.analyze(ta.load(place))
    told = [note for note in found.health if "schema 1.99" in note.message]
    assert [note.severity for note in told] == ["info", "info"]
    assert told[0].message == "the store holds gpu_ops.more, later, of a newer version (schema 1.99): not read"
    assert (found.devices, found.findings) == (now.devices, now.findings)
    assert check_place(place) == place


def test_a_column_that_this_version_has_is_not_let_off(place: Path) -> None:
    rewrite(place, SCHEMA_VERSION, without("gpu_ops.bytes"))
    with pytest.raises(InputError, match="damaged store"):
        ta.load(place)


def test_an_older_store_is_replaced_whole_and_gives_no_parts(capsysbinary, kept: Path, place: Path) -> None:
    rewrite(place, "1.6", without("page_faults", "gpu_ops.bytes"))
    assert ingest_to_store([kept / "in"], place, "test").there_already == 0
    assert read_manifest(place).schema_version == SCHEMA_VERSION
    assert notes(place) == notes(kept / "store")
    assert ingest_to_store([kept / "in"], place, "test").there_already == 2
    code, out, _ = run(capsysbinary, "analyze", str(place))
    assert code == 0 and "earlier version" not in out


def add_table(store: Path, name: str, rows: pa.Table) -> None:
    """Give every part the same further table."""
    manifest = json.loads((store / "manifest.json").read_bytes())
    for given, part in zip(manifest["inputs"], manifest["parts"], strict=True):
        file = store / name / f"rank={given['ordinal']}" / "part-0.parquet"
        file.parent.mkdir(parents=True)
        pq.write_table(rows, file)
        content = file.read_bytes()
        sha256 = hashlib.sha256(content).hexdigest()
        part["tables"][name] = {"rows": rows.num_rows, "bytes": len(content), "sha256": sha256}
    manifest["tables"][name] = rows.num_rows * len(manifest["parts"])
    (store / "manifest.json").write_bytes(seal(manifest))


def test_tables_of_other_kinds_are_read_once_they_are_registered(monkeypatch, kept: Path, place: Path) -> None:
    monkeypatch.delitem(EXTRA_TABLES, "snapshots", raising=False)
    add_table(place, "snapshots", pa.table({"time_ns": [5, 7], "level": [1, 2]}))
    with pytest.raises(KeyError, match="no table 'snapshots'"):
        read_store(place).table("snapshots")
    assert ("info", "the store holds snapshots, of a kind that is not installed here: not read") in notes(place)
    monkeypatch.setitem(EXTRA_TABLES, "snapshots", SNAPSHOTS)
    register([SNAPSHOTS])
    assert read_store(place).table("snapshots").to_pylist() == [
        {"rank": rank, "time_ns": time, "level": level} for rank in (0, 1) for time, level in ((5, 1), (7, 2))
    ]
    assert read_store(kept / "store").table("snapshots").schema == SNAPSHOTS.schema
    assert notes(place) == notes(kept / "store")
    assert ingest_to_store([kept / "in"], place, "test").files == 2


@pytest.mark.parametrize("name", ["../up", "/etc", "a/b", "Gpu_ops", ".hidden", ""])
def test_no_manifest_leads_out_of_its_store(place: Path, name: str) -> None:
    manifest = json.loads((place / "manifest.json").read_bytes())
    for part in manifest["parts"]:
        part["tables"][name] = part["tables"].pop("api_calls")
    manifest["tables"][name] = manifest["tables"].pop("api_calls")
    (place / "manifest.json").write_bytes(seal(manifest))
    with pytest.raises(InputError, match="no table is called"):
        ta.load(place)


def test_a_folder_that_the_manifest_does_not_name_is_not_replaced(place: Path) -> None:
    other = place / "notes" / "rank=0"
    other.mkdir(parents=True)
    (other / "part-0.parquet").write_bytes(b"mine")
    for version in (SCHEMA_VERSION, "2.0"):
        rewrite(place, version)
        with pytest.raises(InputError, match="also holds notes"):
            check_place(place)


def test_what_was_added_is_listed() -> None:
    """What a version adds stands in ADDED; else a store of an older one would be taken for damaged."""
    there = [
        name for spec in EVENT_TABLES.values() for name in (spec.name, *(f"{spec.name}.{c.name}" for c in spec.columns))
    ]
    added = {name for names in ADDED.values() for name in names}
    assert added <= set(there)
    first = [name for name in there if not {name, name.partition(".")[0]} & added]
    assert hashlib.sha256("\n".join(first).encode()).hexdigest()[:4] == FIRST
    assert all(is_readable(version) and parsed(version) > parsed(OLDEST) for version in ADDED)
    assert parsed(max(ADDED)) <= parsed(SCHEMA_VERSION)
    assert not_recorded(SCHEMA_VERSION, []) is None


def test_sizes_lie_in_a_store_as_lists(kept: Path) -> None:
    """What pyarrow before 26 cannot write, or cannot read again, is a list of so many values that is null."""
    file = kept / "store" / "gpu_ops" / "rank=0" / "part-0.parquet"
    assert pq.read_schema(file).field("grid").type == pa.list_(pa.int32())
    assert read_store(kept / "store").table("gpu_ops")["grid"].type == DIM3


def test_sizes_that_an_earlier_version_wrote_are_read(place: Path) -> None:
    def as_before(name: str, rows: pa.Table) -> pa.Table:
        if name == "gpu_ops" and rows.num_columns:
            for column in ("grid", "block"):
                sizes = pa.array([[row, 2, 3] for row in range(rows.num_rows)], DIM3)
                rows = rows.set_column(rows.column_names.index(column), column, sizes)
        return rows

    rewrite(place, SCHEMA_VERSION, as_before)
    file = place / "gpu_ops" / "rank=0" / "part-0.parquet"
    assert pq.read_schema(file).field("grid").type == DIM3
    table = read_store(place).table("gpu_ops")
    assert table.schema == EVENT_TABLES["gpu_ops"].schema and table["block"][2].as_py() == [2, 2, 3]


@pytest.mark.skipif(int(pa.__version__.partition(".")[0]) < 26, reason="older ones cannot write what this reads")
def test_null_sizes_that_an_earlier_version_wrote_are_read() -> None:
    sizes = [[1, 2, 3], None, [4, 5, 6], None]
    names = pa.array(["a", None, "b", "a"]).dictionary_encode()
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"grid": pa.array(sizes, DIM3), "name": names}), sink)
    found = read_table(sink.getvalue().to_pybytes(), EVENT_TABLES["gpu_ops"].schema, use_threads=False)
    assert found.schema.types == [DIM3, names.type]
    assert found["grid"].to_pylist() == sizes and found["name"].to_pylist() == names.to_pylist()


@for_all(
    st.lists(st.none() | st.lists(st.integers(-9, 9), min_size=3, max_size=3)), st.integers(0, 5), st.integers(0, 5)
)
def test_sizes_go_through_a_file(sizes: list[list[int] | None], skipped: int, dropped: int) -> None:
    """Null ones, also in the middle of a longer array."""
    chunk = pa.array(sizes, DIM3)[skipped : len(sizes) - dropped]
    rows = EVENT_TABLES["gpu_ops"].empty().schema
    table = pa.table({f.name: chunk if f.type == DIM3 else pa.nulls(len(chunk), f.type) for f in rows}, schema=rows)
    with TemporaryDirectory() as name:
        written = write_tables(Path(name), [("gpu_ops", [table])])
        if not len(chunk):
            assert not written
            return
        found = read_table((Path(name) / "gpu_ops.parquet").read_bytes(), rows, use_threads=False)
    assert found["grid"].to_pylist() == found["block"].to_pylist() == chunk.to_pylist()
