"""Exports that are made to cost more than they are worth, and forms of SQLite that no export has: read as they are, or one line."""

from __future__ import annotations

import gzip
import resource
import sqlite3
from pathlib import Path

import pytest
from forged_sqlite import edited, endless, page_size_of, schema_edited, with_tower
from nsys_export import facts, kernel, make_export, nvtx, read, runtime

from tests.cli.test_cli import run
from traceanalyzer.errors import InputError
from traceanalyzer.ingest.formats.nsys.sqlite import database, sqlite_files

GPU = "CUPTI_ACTIVITY_KIND_KERNEL"
API = "CUPTI_ACTIVITY_KIND_RUNTIME"
ENDLESS = "with recursive r(n) as (select 1 union all select n + 1 from r)"
STARTS = [1000, 3000]


@pytest.fixture
def export(tmp_path: Path) -> Path:
    return make_export(tmp_path / "e.sqlite", {GPU: [kernel(start, start + 500) for start in STARTS], API: [runtime()]})


@pytest.fixture
def long_export(tmp_path: Path) -> Path:
    """One whose tables have pages above their leaves."""
    rows = [runtime(10 * n, 10 * n + 5, correlation=n) for n in range(3000)]
    return edited(make_export(tmp_path / "e.sqlite", {GPU: [kernel()], API: rows}), page_size=512)


def refused(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        read(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert message.isprintable()
    assert len(message) < len(str(path)) + 400
    return message


@pytest.mark.parametrize("command", ["doctor", "analyze", "ingest", "report"])
@pytest.mark.parametrize("packed", [False, True])
def test_a_view_that_never_ends(
    export: Path, command: str, packed: bool, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    edited(export, f"alter table {GPU} rename to k", f"create view {GPU} as {ENDLESS} select k.* from k, r")
    if packed:
        packed_export = export.with_name("p.sqlite.gz")
        packed_export.write_bytes(gzip.compress(export.read_bytes()))
        export = packed_export
    output = [] if command == "doctor" else ["-o", export.parent / "out"]
    code, _, err = run(capsysbinary, command, export, *output)
    assert (code, err.count("\n")) == (2, 1)
    assert f"{GPU} is a view" in err
    assert not (export.parent / "out").exists()


@pytest.mark.parametrize(
    "name", ["StringIds", "NVTX_EVENTS", "META_DATA_CAPTURE", "TARGET_INFO_GPU", f"{GPU}_V3", GPU.lower()]
)
def test_a_view_of_any_name_that_is_read(export: Path, name: str) -> None:
    connection = sqlite3.connect(export)
    if connection.execute("select 1 from sqlite_master where lower(name) = lower(?)", (name,)).fetchone():
        connection.execute(f"alter table {name} rename to aside")
    connection.execute(f"create view {name} as select 1 as id, hex(zeroblob(450000000)) as value")
    connection.close()
    assert "is a view" in refused(export)


def test_other_views_and_triggers_do_nothing(export: Path) -> None:
    edited(
        export,
        f"create view forever as {ENDLESS} select * from r",
        f"create view {GPU}_V{'9' * 5000} as {ENDLESS} select * from r",
        f"create trigger t after insert on {GPU} begin select load_extension('x'); end",
    )
    assert read(export).column("gpu_ops", "start_ns") == STARTS


@pytest.mark.parametrize(
    "sql", ["create virtual table x using fts4(a)", "create virtual table StringIds2 using dbstat"]
)
def test_virtual_tables(export: Path, sql: str) -> None:
    assert "virtual table" in refused(edited(export, sql))


@pytest.mark.parametrize(
    "spelled", ["create  virtual table {0} using fts4(a)", "CREATE/**/VIRTUAL TABLE {0} USING fts4(a)"]
)
def test_virtual_tables_in_disguise(export: Path, spelled: str) -> None:
    refused(schema_edited(export, API, sql=spelled.format(API), rootpage=3))


def test_a_version_of_many_digits(export: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    for digits in ("9" * 5000, "0" * 5000, "٣", "²"):
        edited(export, f'create table "{GPU}_V{digits}"(start)')
    assert read(export).column("gpu_ops", "start_ns") == STARTS


def test_a_table_without_end(long_export: Path) -> None:
    assert "reference to page" in refused(endless(long_export, API))


def test_a_schema_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows of indexes that have no statement may come again and again."""
    for limit in ("_LEAST_WORK", "_WORK_PER_BYTE"):  # each step of this one is long
        monkeypatch.setattr(sqlite_files, limit, getattr(sqlite_files, limit) // 10)
    columns = ", ".join(f"c{n} unique" for n in range(1000))
    path = make_export(tmp_path / "e.sqlite", {GPU: [kernel()]})
    edited(path, page_size=512)
    edited(path, f"create table z({columns})")
    assert "makes more work" in refused(with_tower(path, 1))


def test_a_chain_without_end(tmp_path: Path) -> None:
    """A text whose pages lead back to themselves."""
    path = make_export(tmp_path / "e.sqlite", {GPU: [kernel()]}, {1: "name" * 20_000})
    data = bytearray(path.read_bytes())
    size = page_size_of(data)
    link = next(at for at in range(0, len(data), size) if data[at + 4 : at + 12] == b"namename")
    data[link : link + 4] = (link // size + 1).to_bytes(4, "big")
    path.write_bytes(data)
    assert "cannot be read as SQLite" in refused(path)


def test_generated_columns_and_checks_are_not_evaluated(tmp_path: Path) -> None:
    heavy = "hex(zeroblob(400000000))"
    path = make_export(tmp_path / "e.sqlite", {API: [runtime()]})
    edited(
        path,
        f"create table {GPU} (start integer, 'end' integer, deviceId integer, globalPid integer, "
        f"registersPerThread as (length({heavy})), check (start > 0))",
        f"insert into {GPU} values (1000, 2000, 0, 0)",
    )
    (sql,) = sqlite3.connect(path).execute("select sql from sqlite_master where name = ?", (GPU,)).fetchone()
    schema_edited(path, GPU, sql=sql.replace("start > 0", f"length({heavy}) > 0"))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert read(path).column("gpu_ops", "registers") == [None]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 200_000


def test_a_generated_column_that_has_to_be_checked(export: Path) -> None:
    """A column that must not be null is evaluated by the check of pages, within its limits."""
    edited(export, "create table x(a, b as (hex(zeroblob(400000000))) not null)")
    schema_edited(export, "x", sql="CREATE TABLE x(a, b as (hex(zeroblob(400000000))) not null)")
    (root,) = sqlite3.connect(export).execute(f"select rootpage from sqlite_master where name = '{GPU}'").fetchone()
    schema_edited(export, "x", rootpage=root)
    refused(export)


def test_a_default_that_stands_in_every_row(export: Path) -> None:
    edited(export, f"alter table {GPU} add column note default '{'A' * 100_000}'")
    assert "has a default" in refused(export)


def test_a_name_without_end(export: Path) -> None:
    edited(export, f"update StringIds set value = '{'A' * (database.LONGEST_TEXT + 1)}'")
    assert "StringIds holds a text of" in refused(export)


def test_long_texts_come_in_small_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("traceanalyzer.ingest.formats.nsys.sqlite.rows._BATCH_BYTES", 10_000)
    texts = [f"{n}{'x' * 1000}" for n in range(100)]
    path = make_export(tmp_path / "e.sqlite", {"NVTX_EVENTS": [nvtx(n, n + 1, text) for n, text in enumerate(texts)]})
    sink = read(path)
    assert [batch.num_rows for batch in sink.batches["host_ranges"]] == [9] * 11 + [1]
    assert sink.column("host_ranges", "name") == texts


def test_facts_without_end(export: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "_MOST_ROWS", 1000)
    edited(export, "create table META_DATA_CAPTURE(name, value)")
    many = "with recursive r(n) as (select 1 union all select n + 1 from r limit 1001)"
    edited(export, f"insert into META_DATA_CAPTURE {many} select n, n from r")
    assert "more than 1,000 rows" in refused(export)


def test_numbers_of_many_digits(tmp_path: Path) -> None:
    names = ("EXPORT_SCHEMA_VERSION_MAJOR", "EXPORT_PARAM_TIME_SHIFT")
    tables = facts("META_DATA_EXPORT", **dict.fromkeys(names, "9" * 5000)) | {GPU: [kernel()], API: [runtime()]}
    tables |= {"TARGET_INFO_SESSION_START_TIME": [{"utcEpochNs": 5}]}
    assert read(make_export(tmp_path / "e.sqlite", tables)).facts.clock_base_ns == 5


@pytest.mark.parametrize("rowid", [-(2**63), -5, 2**63 - 1])
def test_row_numbers_tell_nothing(export: Path, rowid: int) -> None:
    edited(export, f"update {GPU} set rowid = {rowid} where start = 3000", f"delete from {GPU} where start = 1000")
    assert read(export).column("gpu_ops", "start_ns") == [3000]


@pytest.mark.parametrize("rowid", [-5, 5])
def test_a_table_that_cannot_be_read_is_told_whatever_its_row_numbers(export: Path, rowid: int) -> None:
    edited(
        export,
        f"alter table {GPU} rename column start to begin",
        f"delete from {GPU} where begin = 1000",
        f"update {GPU} set rowid = {rowid}",
    )
    assert ("TRC001", "high", 1) in [(code, severity, n) for code, severity, _, n, _ in read(export).messages]


def test_a_column_that_is_called_rowid(export: Path) -> None:
    edited(export, f"alter table {GPU} add column rowid text", f"update {GPU} set rowid = 'abc'")
    assert read(export).column("gpu_ops", "start_ns") == STARTS


def test_an_index_that_says_something_else(export: Path) -> None:
    """SQLite would read an index in place of its table, where it holds all that is asked for."""
    edited(export, "create table other as select 99 as start, 100 as end, 0 as deviceId, 0 as globalPid")
    columns = ", ".join(f'"{row[1]}"' for row in sqlite3.connect(export).execute(f"pragma table_info({GPU})"))
    edited(export, f"create index i on {GPU} ({columns})", "create table k2 as select * from " + GPU)
    edited(export, "update k2 set start = 77", f"create index j on k2 ({columns})")
    roots = dict(sqlite3.connect(export).execute("select name, rootpage from sqlite_master where name in ('i', 'j')"))
    schema_edited(export, "i", rootpage=roots["j"])
    schema_edited(export, "j", rootpage=roots["i"])
    assert read(export).column("gpu_ops", "start_ns") == STARTS


@pytest.mark.parametrize("page_size", [512, 1024, 65536])
def test_pages_of_any_size(export: Path, page_size: int) -> None:
    assert page_size_of(edited(export, page_size=page_size).read_bytes()) == page_size
    assert read(export).column("gpu_ops", "start_ns") == STARTS


@pytest.mark.parametrize("encoding", ["UTF-16le", "UTF-16be"])
def test_text_in_utf16(tmp_path: Path, export: Path, encoding: str) -> None:
    path = tmp_path / "other.sqlite"
    connection = sqlite3.connect(path)
    connection.execute(f"pragma encoding = '{encoding}'")
    connection.executescript("".join(sqlite3.connect(export).iterdump()))
    connection.close()
    assert read(path).column("gpu_ops", "name") == ["void f<int>(int)"] * 2


def test_a_table_without_row_numbers(export: Path) -> None:
    edited(
        export,
        "alter table StringIds rename to s",
        "create table StringIds(id integer primary key, value text) without rowid",
        "insert into StringIds select * from s",
    )
    assert read(export).column("gpu_ops", "name") == ["void f<int>(int)"] * 2


def test_names_with_control_characters(export: Path) -> None:
    edited(export, 'create table "a\x1b[31m\n::error::"(x)', f'alter table {GPU} add column "\x1b]0;x\x07" default 1')
    sink = read(export)
    assert sink.column("gpu_ops", "start_ns") == STARTS
    assert all(message.isprintable() for _, _, message, _, _ in sink.messages)


@pytest.mark.parametrize(
    "sql", ["CREATE TABLE \x1b[31m\n::error:: (", "CREATE TABLE x(" + "(" * 5000, "nothing", "CREATE TABLE y(a)"]
)
def test_a_schema_of_broken_statements(export: Path, sql: str) -> None:
    edited(export, "create table x(a)")
    refused(schema_edited(export, "x", sql=sql))


def test_many_tables_and_columns(export: Path) -> None:
    connection = sqlite3.connect(export)
    for n in range(3000):
        connection.execute(f"create table {GPU}_V{n}_{n} (a)")
    connection.execute(f"create table wide ({', '.join(f'c{n}' for n in range(1999))})")
    connection.commit()
    connection.close()
    assert read(export).column("gpu_ops", "start_ns") == STARTS


def test_a_row_costs_no_more_than_a_row_can_hold(export: Path) -> None:
    """Short rows of a table of many columns: each of them is looked at in the check of pages."""
    edited(export, f"create table wide (a, {', '.join(f'c{n} text not null default 1' for n in range(1900))})")
    (root,) = sqlite3.connect(export).execute("select rootpage from sqlite_master where name = 'wide'").fetchone()
    edited(export, "create table narrow (a)")
    many = "with recursive r(n) as (select 1 union all select n + 1 from r limit 20000)"
    edited(export, f"insert into narrow {many} select 1 from r")
    (other,) = sqlite3.connect(export).execute("select rootpage from sqlite_master where name = 'narrow'").fetchone()
    schema_edited(export, "wide", rootpage=other)
    schema_edited(export, "narrow", rootpage=root)
    assert "makes more work" in refused(export)


def test_damage_that_reading_does_not_meet(long_export: Path) -> None:
    """A page is left out of its table: all rows that are met are sound, and some are missing."""
    connection = sqlite3.connect(long_export)
    (root,) = connection.execute("select rootpage from sqlite_master where name = ?", (API,)).fetchone()
    connection.close()
    data = bytearray(long_export.read_bytes())
    at = (root - 1) * 512
    count = int.from_bytes(data[at + 3 : at + 5], "big")
    data[at + 3 : at + 5] = (count - 1).to_bytes(2, "big")
    long_export.write_bytes(data)
    assert "nsys export again" in refused(long_export)
