"""A store is written once: by any number of workers, on a disk or behind a URL, and what was read before is not read again."""

from __future__ import annotations

import gzip
import os
import shutil
import signal
import sys
from pathlib import Path

import fsspec
import pytest

import traceanalyzer as ta
from tests.cli.test_cli import run
from tests.model.test_store import contents
from tests.support.kineto import KinetoTrace
from tests.support.places import FIXTURES
from traceanalyzer import forks
from traceanalyzer.errors import InputError
from traceanalyzer.ingest import ahead, storing
from traceanalyzer.ingest.pipeline import read_file
from traceanalyzer.ingest.rows import external_sort
from traceanalyzer.ingest.storing import find_inputs, ingest_to_store, write_store
from traceanalyzer.model.stores.store import is_store, read_manifest, read_rank, read_store
from traceanalyzer.urls import url_of
from traceanalyzer.workers import workers

RANKS = FIXTURES / "multirank" / "pipeline_bubble.slow"


@pytest.fixture
def ranks(tmp_path) -> Path:
    return Path(shutil.copytree(RANKS, tmp_path / "ranks"))


@pytest.fixture
def read(monkeypatch) -> list[str]:
    """The names of the files that are read, as they are."""
    names: list[str] = []

    def counted(source, *args):
        names.append(source.path.name)
        return read_file(source, *args)

    monkeypatch.setattr(storing, "read_file", counted)
    return names


@pytest.fixture
def bucket():
    """A folder in a file system that only this process has."""
    there = fsspec.filesystem("memory")
    yield "memory://bucket"
    there.rm("/bucket", recursive=True)


def test_any_number_of_workers_gives_the_same_bytes(tmp_path, ranks):
    ingest_to_store([ranks], tmp_path / "one", "test")
    with workers(2) as executor:
        ingest_to_store([ranks], tmp_path / "two", "test", executor=executor)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["one", "ranks", "two"]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing is forked")
@pytest.mark.parametrize("killed", [False, True])
def test_copies_of_the_process_give_the_same_bytes(tmp_path, ranks, killed, monkeypatch):
    """Also where they are killed on the way: then their files are read here."""
    here, names = os.getpid(), []

    def reads(source, *args):
        if os.getpid() == here:
            names.append(source.path.name)
        elif killed:
            os.kill(os.getpid(), signal.SIGKILL)
        return read_file(source, *args)

    ingest_to_store([ranks], tmp_path / "one", "test")
    monkeypatch.setattr(storing, "read_file", reads)
    monkeypatch.setattr(forks, "may_fork", lambda: True)
    done: list[None] = []
    write_store(find_inputs([ranks]), tmp_path / "two", "test", None, None, lambda: done.append(None), processes=3)
    assert contents(tmp_path / "one") == contents(tmp_path / "two") and len(done) == 4
    assert len(names) == 4 if killed else len(names) <= 2
    assert sorted(p.name for p in tmp_path.iterdir()) == ["one", "ranks", "two"]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing is forked")
@pytest.mark.parametrize(("jobs", "copies"), [([], 3), (["--jobs", 2], 1), (["--jobs", 1], 0)])
def test_small_files_are_ingested_by_copies(tmp_path, ranks, jobs, copies, monkeypatch, capsysbinary):
    made, fork = [], os.fork
    monkeypatch.setattr(os, "fork", lambda: (made.append(None), fork())[1])
    monkeypatch.setattr("traceanalyzer.workers.cpus", lambda: 4)
    for module in (ahead, forks):
        monkeypatch.setattr(module, "may_fork", lambda: True)
    assert run(capsysbinary, "ingest", ranks, "-o", tmp_path / "s", *jobs)[0] == 0
    assert len(made) == copies


@pytest.mark.parametrize("run_rows", [1 << 15, 50], ids=["in memory", "from files"])
def test_a_store_whose_name_is_no_utf_8(tmp_path, ranks, run_rows, monkeypatch):
    monkeypatch.setattr(external_sort, "RUN_ROWS", run_rows)
    place = tmp_path / "odd\udcff.store"
    ingest_to_store([ranks], place, "test")
    ingest_to_store([ranks], tmp_path / "plain", "test")
    assert contents(place) == contents(tmp_path / "plain")


@pytest.mark.parametrize("there", [False, True], ids=["new", "replaced"])
def test_a_file_that_cannot_be_read_costs_only_itself(tmp_path, ranks, read, there):
    store, damaged = tmp_path / "s", sorted(ranks.iterdir())[1]
    if there:
        ingest_to_store([FIXTURES / "kineto" / "dataloader.slow.pt.trace.json.gz"], store, "test")
    before, good = contents(store) if there else None, damaged.read_bytes()
    damaged.write_bytes(gzip.compress(b'{"traceEvents": 7}'))
    read.clear()
    with pytest.raises(InputError, match=r"rank1.*what the other 3 files gave is kept") as caught:
        ingest_to_store([ranks], store, "test")
    assert "\n" not in str(caught.value)
    assert len(read) == 4 and (contents(store) == before if there else not store.exists())
    damaged.write_bytes(good)
    read.clear()
    assert ingest_to_store([ranks], store, "test").there_already == 3
    assert read == [damaged.name]
    ingest_to_store([ranks], tmp_path / "at_once", "test")
    assert contents(store) == contents(tmp_path / "at_once")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["at_once", "ranks", "s"]


def test_only_what_is_new_is_read(tmp_path, ranks, read):
    """By content: names and dates may change."""
    first, *rest = sorted(ranks.iterdir())
    ingest_to_store(rest, tmp_path / "s", "test")
    rest[0].rename(rest[0].with_name("other.json.gz"))
    rest[1].touch()
    read.clear()
    assert ingest_to_store([ranks], tmp_path / "s", "test").there_already == 3
    assert read == [first.name]
    assert read_store(tmp_path / "s").inputs[1].path.endswith("other.json.gz")
    read.clear()
    assert ingest_to_store([ranks], tmp_path / "s", "another version").there_already == 0
    assert len(read) == 4


def test_a_part_keeps_its_rows_when_its_number_changes(tmp_path, read, bucket):
    """Files without a rank are numbered as they come."""
    (tmp_path / "in").mkdir()
    names = ("b.json", "c.json", "a.json")
    paths = [KinetoTrace().op(0, n + 1).write(tmp_path / "in" / name) for n, name in enumerate(names)]
    for store in (tmp_path / "s", f"{bucket}/s"):
        ingest_to_store(paths[:2], store, "test")
        read.clear()
        ingest_to_store([paths[2], paths[1], paths[0]], store, "test")
        assert read == ["a.json"]
        assert [Path(i.path).name for i in read_manifest(store).inputs] == ["a.json", "c.json", "b.json"]
        ends = [read_rank(store, n).table("gpu_ops")["end_ns"].to_pylist() for n in range(3)]
        assert ends == [[3000], [2000], [1000]]
        ingest_to_store(paths[:1], store, "test")
        assert read_store(store).table("gpu_ops")["rank"].to_pylist() == [0]


def test_operations_that_cannot_be_are_stored_as_such(tmp_path):
    """That is told when all have been seen, by then as sound ones."""
    week = 8 * 86_400 * 1e6
    path = KinetoTrace().op(10, 20).op(20, 30 + week).op(30, 40).write(tmp_path / "t.json")
    ingest_to_store([path], tmp_path / "s", "test")
    ops, named = read_store(tmp_path / "s").table("gpu_ops"), ta.load(path).table("gpu_ops")
    assert ops["quarantined"].to_pylist() == named["quarantined"].to_pylist() == [False, True, False]
    assert read_manifest(tmp_path / "s").parts[0].tables["gpu_ops"].rows == 3


def test_members_of_an_archive_are_told_apart(tmp_path, ranks):
    archive = shutil.make_archive(str(tmp_path / "job"), "tar", ranks)
    assert ingest_to_store([Path(archive)], tmp_path / "s", "test").files == 4
    assert ingest_to_store([Path(archive)], tmp_path / "s", "test").there_already == 4
    assert {i.rank for i in read_store(tmp_path / "s").inputs} == {0, 1, 2, 3}


def test_a_store_behind_a_url(tmp_path, ranks, read, bucket):
    ingest_to_store([ranks], tmp_path / "s", "test")
    url = f"{bucket}/run.store"
    assert not is_store(url)
    ingest_to_store([ranks], url, "test")
    there = fsspec.filesystem("memory")
    there.get(url, str(tmp_path / "copied"), recursive=True)
    assert contents(tmp_path / "copied") == contents(tmp_path / "s")
    read.clear()
    assert ingest_to_store([ranks], url, "test").there_already == 4 and read == []
    assert is_store(url) and read_rank(url, 3).table("gpu_ops").num_rows == 45
    assert ta.load(url).inputs == read_store(tmp_path / "s").inputs
    ingest_to_store([sorted(ranks.iterdir())[0]], url, "test")
    assert there.glob(f"{url}/gpu_ops/*") == ["/bucket/run.store/gpu_ops/rank=0"]
    there.rm(f"{url}/manifest.json")
    with pytest.raises(InputError, match=r"run\.store: damaged store \(manifest\.json is missing"):
        ta.load(url)
    assert ingest_to_store([ranks], url, "test").files == 4
    there.pipe(f"{url}/notes.txt", b"mine")
    with pytest.raises(InputError, match=r"also holds notes\.txt"):
        ingest_to_store([ranks], url, "test")


def test_an_upload_that_fails_is_gone_on_with(ranks, read, bucket, monkeypatch):
    there, calls = type(fsspec.filesystem("memory")), []

    def flaky(self, source, target, **kwargs):
        calls.append(target)
        if len(calls) > 20:
            raise OSError(5, "connection lost")
        return put_file(self, source, target, **kwargs)

    put_file = there.put_file
    monkeypatch.setattr(there, "put_file", flaky)
    with pytest.raises(InputError, match=r"memory://bucket/s: cannot be written \(connection lost\)"):
        ingest_to_store([ranks], f"{bucket}/s", "test")
    assert not is_store(f"{bucket}/s")
    monkeypatch.setattr(there, "put_file", put_file)
    done = ingest_to_store([ranks], f"{bucket}/s", "test").there_already
    assert done > 0 and len(read) == 4 + 1
    assert not fsspec.filesystem("memory").exists(f"{bucket}/s/.parts")


def test_traces_behind_urls(tmp_path, ranks, bucket):
    there = fsspec.filesystem("memory")
    there.put(str(ranks), "/bucket/run", recursive=True)
    there.pipe("/bucket/run/config.json", b'{"layers": 3}')
    there.pipe("/bucket/run/notes.txt", b"mine")
    assert ingest_to_store([f"{bucket}/run/"], tmp_path / "folder", "test").files == 4
    assert ingest_to_store([f"{bucket}/run/rank*.gz"], tmp_path / "pattern", "test").files == 4
    assert contents(tmp_path / "folder") == contents(tmp_path / "pattern")
    one = ta.load(f"{bucket}/run/rank2.pt.trace.json.gz")
    assert [i.path for i in one.inputs] == ["memory://bucket/run/rank2.pt.trace.json.gz"]
    there.pipe("/bucket/run/cut.json.gz", (ranks / "rank0.pt.trace.json.gz").read_bytes()[:20])
    for given, words in (
        (f"{bucket}/run/cut.json.gz", r"^memory:///bucket/run/cut\.json\.gz: "),
        (f"{bucket}/nothing", "no such file or folder"),
        (f"{bucket}/run/*.sqlite", "there are no traces"),
        ("nonsense://bucket/x", "nonsense"),
    ):
        with pytest.raises(InputError, match=words):
            ingest_to_store([given], tmp_path / "s", "test")


def test_a_url_is_known_after_it_went_through_a_path():
    for url in ("s3://bucket/run", "memory://a/b", "file:///tmp/x"):
        assert url_of(url) == url_of(Path(url)) == url
    for path in ("run/rank0.json", "/tmp/x", "C:/x", "a:b", "-"):
        assert url_of(path) is None


def test_ingest_says_what_was_there(capsysbinary, tmp_path, ranks):
    store = tmp_path / "s"
    assert run(capsysbinary, "ingest", ranks, "-o", store)[2].endswith("rows from 4 files\n")
    again = run(capsysbinary, "ingest", ranks, "-o", store, "--jobs", 2)
    assert again[0] == 0 and again[2].endswith("rows from 4 files (4 of them were there already)\n")
