"""Journals and write-ahead logs beside an export: nothing is honoured unseen, and no file outside of a private folder is touched."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tarfile
import zipfile
from pathlib import Path

import pytest
from forged_sqlite import JOURNAL_MAGIC, journal, page_size_of, super_record
from nsys_export import Collected, kernel, make_export, read

from tests.cli.test_cli import run
from traceanalyzer.errors import InputError

GPU = "CUPTI_ACTIVITY_KIND_KERNEL"
NOT_READ = "a file beside the export is called like changes to it"


@pytest.fixture(autouse=True)
def temporary(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary folder of its own, which has to be empty in the end."""
    folder = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def state(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def starts(sink: Collected) -> list[int]:
    return list(sink.column("gpu_ops", "start_ns"))


def refused(path: Path) -> str:
    before = state(path.parent)
    with pytest.raises(InputError) as caught:
        read(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert message.isprintable()
    assert state(path.parent) == before
    return message


def untouched(path: Path) -> Collected:
    """What is read of an export beside which everything stays as it is."""
    before = state(path.parent)
    sink = read(path)
    assert state(path.parent) == before
    return sink


def in_wal_mode(path: Path, *starts: int) -> tuple[Path, sqlite3.Connection]:
    """An export with one kernel of its own and others that wait in a write-ahead log, which a program keeps open."""
    make_export(path, {GPU: [kernel()]})
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("pragma journal_mode=wal")
    for start in starts:
        writer.execute(f"insert into {GPU} (start, end, deviceId, globalPid) values ({start}, {start + 5}, 0, 0)")
    return path, writer


@pytest.mark.parametrize("where", ["absolute", "relative", "upper case", "nested", "several headers"])
def test_a_journal_names_a_file_that_is_deleted(
    tmp_path: Path, where: str, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    precious = tmp_path / "precious"
    precious.write_text("baseline")
    folder = tmp_path / "traces"
    folder.mkdir()
    monkeypatch.chdir(tmp_path)
    path = make_export(folder / ("TRACE.SQLITE" if where == "upper case" else "trace.sqlite"), {GPU: [kernel()]})
    size = page_size_of(path.read_bytes())
    victim = precious
    if where == "nested":
        # A super-journal, which names a journal, which names that super-journal.
        child = make_export(tmp_path / "child.sqlite", {GPU: [kernel()]})
        victim = tmp_path / "super"
        victim.write_bytes(str(journal(child, super_record(victim, size))).encode() + b"\0")
    tail = super_record(victim.name if where == "relative" else victim, size)
    if where == "several headers":
        tail = journal(path).read_bytes() + tail
    journal(path, tail)
    before = state(tmp_path)
    assert "names other files" in refused(path)
    for command in (["doctor", "traces"], ["analyze", str(path)], ["ingest", str(path), "-o", "store"]):
        code, _, err = run(capsysbinary, *command)
        assert (code, err.count("\n")) == (2, 1)
        assert "names other files" in err
    assert state(tmp_path) == before


def test_a_name_in_a_journal_that_is_none(tmp_path: Path) -> None:
    """SQLite looks for the name before it looks whether the journal is one."""
    precious = tmp_path / "precious"
    precious.write_text("baseline")
    path = make_export(tmp_path / "e.sqlite", {GPU: [kernel()]})
    beside = journal(path, super_record(precious, page_size_of(path.read_bytes())))
    beside.write_bytes(b"?" + beside.read_bytes()[1:])
    assert starts(untouched(path)) == [1000]
    assert precious.exists()


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_journals_in_archives(tmp_path: Path, kind: str) -> None:
    precious = tmp_path / "precious"
    precious.write_text("baseline")
    path = make_export(tmp_path / "e.sqlite", {GPU: [kernel()]})
    beside = journal(path, super_record(precious, page_size_of(path.read_bytes())))
    archive = tmp_path / f"traces.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(archive, "w") as packed:
            for file in (path, beside):
                packed.write(file, file.name)
    else:
        with tarfile.open(archive, "w") as packed:
            for file in (path, beside):
                packed.add(file, file.name)
    # Nor is one honoured that lies beside the archive.
    shutil.copy(beside, tmp_path / (archive.name + "-journal"))
    assert starts(read(archive)) == [1000]
    assert precious.exists()


def test_a_journal_that_belongs_is_applied_to_a_copy(tmp_path: Path, temporary: Path) -> None:
    path = make_export(tmp_path / "e.sqlite", {GPU: [kernel()]})
    size = page_size_of(path.read_bytes())
    pages = {n + 1: path.read_bytes()[n * size : (n + 1) * size] for n in range(len(path.read_bytes()) // size)}
    connection = sqlite3.connect(path)
    connection.execute(f"insert into {GPU} select * from {GPU}")
    connection.commit()
    connection.close()
    journal(path, records=pages)
    sink = untouched(path)
    assert starts(sink) == [1000]
    assert ("TRC001", "medium", 1) in sink.said()
    assert not list(temporary.iterdir())


def test_a_journal_that_claims_a_giant(tmp_path: Path, temporary: Path) -> None:
    path = make_export(tmp_path / "e.sqlite", {GPU: [kernel()]})
    journal(path, pages=1 << 30)
    assert "damaged" in refused(path)
    assert not list(temporary.iterdir())


@pytest.mark.parametrize("content", [b"", bytes(512), bytes(512) + JOURNAL_MAGIC])
def test_a_journal_that_is_done_with(tmp_path: Path, content: bytes) -> None:
    path = make_export(tmp_path / "e.sqlite", {GPU: [kernel()]})
    (tmp_path / "e.sqlite-journal").write_bytes(content)
    assert not any(message.startswith(NOT_READ) for _, _, message, _, _ in untouched(path).messages)


@pytest.mark.parametrize("suffix", ["-journal", "-wal"])
@pytest.mark.parametrize("kind", ["fifo", "link", "loop", "folder", "device", "text"])
def test_what_is_no_journal_is_left_alone(tmp_path: Path, suffix: str, kind: str) -> None:
    path = make_export(tmp_path / "e.sqlite", {GPU: [kernel()]})
    beside = tmp_path / f"e.sqlite{suffix}"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(JOURNAL_MAGIC)
    if kind == "fifo":
        os.mkfifo(beside)
    elif kind == "folder":
        beside.mkdir()
    elif kind == "text":
        beside.write_bytes(b"left by a crash")
    else:
        beside.symlink_to({"link": elsewhere, "loop": beside, "device": Path("/dev/zero")}[kind])
    sink = untouched(path)
    assert starts(sink) == [1000]
    assert [
        (code, severity, name) for code, severity, message, _, name in sink.messages if message.startswith(NOT_READ)
    ] == [("TRC001", "low", beside.name)]


def test_a_wal_is_applied_to_a_copy_and_told(tmp_path: Path, temporary: Path) -> None:
    path, writer = in_wal_mode(tmp_path / "e.sqlite", 5000, 7000)
    sink = untouched(path)
    assert starts(sink) == [1000, 5000, 7000]
    assert ("TRC001", "medium", 1) in sink.said()
    assert not list(temporary.iterdir())
    writer.close()


def test_a_link_to_an_export_goes_with_what_lies_beside_the_export(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    path, writer = in_wal_mode(tmp_path / "real" / "e.sqlite", 5000)
    link = tmp_path / "e.sqlite"
    link.symlink_to(path)
    assert starts(untouched(link)) == [1000, 5000]
    writer.close()


def test_a_damaged_wal_loses_changes_and_says_so(tmp_path: Path) -> None:
    path, writer = in_wal_mode(tmp_path / "e.sqlite", 5000, 7000)
    wal = tmp_path / "e.sqlite-wal"
    data = bytearray(wal.read_bytes())
    data[-100] ^= 1
    wal.write_bytes(data)
    sink = untouched(path)
    assert starts(sink) == [1000, 5000]
    assert len([severity for _, severity, message, _, _ in sink.messages if "left out" in message]) == 1
    writer.close()


def test_a_wal_of_another_kind_of_file(tmp_path: Path) -> None:
    """One that SQLite would honour: of another page size, or beside a file that says to have none."""
    other, writer = in_wal_mode(tmp_path / "other.sqlite", 5000)
    for size in (4096, 512):
        path = make_export(tmp_path / f"{size}.sqlite", {GPU: [kernel()]})
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute(f"pragma page_size={size}")
        connection.execute("vacuum")
        if size == 512:
            connection.execute("pragma journal_mode=wal")
        connection.close()
        shutil.copy(f"{other}-wal", f"{path}-wal")
        sink = untouched(path)
        assert starts(sink) == [1000]
        assert ("TRC001", "low", 1) in sink.said()
    writer.close()


def test_a_wal_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    """Of another database of the same form: its pages are not those of this file."""
    other = tmp_path / "other.sqlite"
    make_export(other, {f"A{n}": [{"start": 1}] for n in range(9)} | {GPU: [kernel()]})
    writer = sqlite3.connect(other, isolation_level=None)
    writer.execute("pragma journal_mode=wal")
    writer.execute(f"insert into {GPU} select * from {GPU}")
    path, own = in_wal_mode(tmp_path / "e.sqlite")
    own.close()
    shutil.copy(f"{other}-wal", f"{path}-wal")
    assert "nsys export again" in refused(path)
    writer.close()


def test_a_wal_that_claims_a_giant(tmp_path: Path, temporary: Path) -> None:
    path, writer = in_wal_mode(tmp_path / "e.sqlite", 5000)
    wal = tmp_path / "e.sqlite-wal"
    data = bytearray(wal.read_bytes())
    data[32:36] = b"\x7f\xff\xff\xff"
    wal.write_bytes(data)
    assert "damaged" in refused(path)
    assert not list(temporary.iterdir())
    writer.close()


def test_an_export_that_is_written_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from traceanalyzer.ingest.formats.nsys import importer

    path = make_export(tmp_path / "e.sqlite", {GPU: [kernel()]})
    read_it = importer.About.read

    def written(database: object) -> object:
        connection = sqlite3.connect(path)
        connection.execute(f"insert into {GPU} select * from {GPU}")
        connection.commit()
        connection.close()
        return read_it(database)  # type: ignore[arg-type]

    monkeypatch.setattr(importer.About, "read", written)
    with pytest.raises(InputError, match="changed while it was read"):
        read(path)
