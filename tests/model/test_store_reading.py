"""A store is read as it was written: figures of another run, of two runs or of a damaged store are never shown."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import fsspec
import msgspec
import pytest

import traceanalyzer as ta
from tests.cli.test_cli import refused, run
from tests.support.files import bound_socket
from tests.support.kineto import KinetoTrace
from traceanalyzer.analysis import opening
from traceanalyzer.analysis.opening import open_parts
from traceanalyzer.analysis.parts import MemoryPart, StoredPart
from traceanalyzer.config import Config
from traceanalyzer.errors import ChangedError, InputError
from traceanalyzer.ingest.how import How
from traceanalyzer.ingest.storing import ingest_to_store
from traceanalyzer.locks import HeldError, hold_lock
from traceanalyzer.model.stores import store as reading
from traceanalyzer.model.stores.layout import NEW, OLD, shelf_of
from traceanalyzer.model.stores.parts import seal
from traceanalyzer.model.stores.store import is_store, read_manifest, read_rank, read_store


def trace_of(length: int, rank: int = 0) -> KinetoTrace:
    made = KinetoTrace()
    made.metadata["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": 2}
    for step in range(6):
        made.op(step * 100, step * 100 + length, launch=(step * 100 - 20, step * 100 - 10))
    return made


@pytest.fixture(scope="module")
def both(tmp_path_factory) -> Path:
    """Two stores of two ranks each, `a` and `b`, with as many rows; an operation takes 10 us in the one and 40 us in the other."""
    folder = tmp_path_factory.mktemp("both")
    for name, length in (("a", 10), ("b", 40)):
        (folder / f"{name}_in").mkdir()
        for rank in (0, 1):
            trace_of(length, rank).write(folder / f"{name}_in" / f"rank{rank}.json")
        ingest_to_store([folder / f"{name}_in"], folder / name, "test")
    return folder


@pytest.fixture
def two(both, tmp_path) -> Path:
    return Path(shutil.copytree(both, tmp_path / "two"))


def busy(trace) -> int:
    table = trace.table("gpu_ops")
    return sum(
        end - start for start, end in zip(table["start_ns"].to_pylist(), table["end_ns"].to_pylist(), strict=True)
    )


def test_a_table_of_another_store_is_not_read(capsysbinary, two):
    for rank in (0, 1):
        file = f"gpu_ops/rank={rank}/part-0.parquet"
        shutil.copy(two / "a" / file, two / "kept")
        shutil.copy(two / "b" / file, two / "a" / file)
        for before, after in (
            (["analyze"], []),
            (["doctor"], []),
            (["report"], ["-o", two / "out"]),
            (["export"], ["-o", two / "out"]),
            (["baseline", "save"], ["-o", two / "out"]),
            (["compare", two / "b"], []),
            (["check"], ["--assert", "INP001"]),
            (["analyze", "--jobs", "2"], []),
        ):
            assert f"{file} is not the one that was written" in refused(capsysbinary, *before, two / "a", *after)
        with pytest.raises(InputError, match="not the one that was written"):
            read_rank(two / "a", rank)
        shutil.copy(two / "kept", two / "a" / file)
    assert not (two / "out").exists() and busy(read_store(two / "a")) == 2 * 6 * 10_000


def test_every_flipped_bit_of_a_manifest_is_noticed(two):
    manifest = two / "a" / "manifest.json"
    content = manifest.read_bytes()
    chosen = random.Random(1)
    for at in [
        *range(0, len(content), 97),
        *(content.index(word) for word in (b'"rank"', b"api_calls", b"world_size")),
    ]:
        changed = bytearray(content)
        changed[at] ^= 1 << chosen.randrange(8)
        manifest.write_bytes(changed)
        for read in (read_store, read_manifest, lambda place: read_rank(place, 0)):
            with pytest.raises(InputError) as caught:
                read(two / "a")
            assert "\n" not in str(caught.value)
    manifest.write_bytes(content)
    read_store(two / "a")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda m: m["tables"].update(aPi_calls=m["tables"].pop("api_calls")), "no table is called 'aPi_calls'"),
        (lambda m: m["parts"][0]["tables"].update(more=m["parts"][0]["tables"].pop("api_calls")), "unknown table more"),
        (lambda m: m["parts"][0]["tables"].pop("api_calls"), "do not add up"),
        (lambda m: m["tables"].update(gpu_ops=7), "do not add up"),
        (lambda m: m["tables"].pop("gpu_ops"), "unknown table gpu_ops"),
        (lambda m: m["tables"].pop("page_faults"), "table page_faults is missing"),
        (lambda m: m["inputs"][0].update(ordinal=1), "the same place"),
        (lambda m: m["inputs"][0].update(ordinal=5), "holds gpu_ops/rank=0|holds api_calls/rank=0"),
        (lambda m: m.update(parts=m["parts"][:1], inputs=m["inputs"][:1]), "do not add up"),
    ],
)
def test_a_manifest_that_does_not_fit_together_is_not_believed(two, change, words):
    """Also where its digest is right."""
    manifest = json.loads((two / "a" / "manifest.json").read_bytes())
    change(manifest)
    (two / "a" / "manifest.json").write_bytes(seal(manifest))
    with pytest.raises(InputError, match=words):
        read_store(two / "a")


@pytest.mark.parametrize(
    "name",
    [
        "gpu_ops/rank=2/part-0.parquet",
        "gpu_ops/rank=0/part-1.parquet",
        "aPi_calls/rank=0/part-0.parquet",
        "gpu_ops/x",
        "x",
    ],
)
def test_what_the_manifest_does_not_know_is_not_passed_over(capsysbinary, two, name):
    (two / "a" / name).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(two / "b" / "gpu_ops" / "rank=0" / "part-0.parquet", two / "a" / name)
    said = refused(capsysbinary, "analyze", two / "a")
    assert "which is not of it" in said or "holds more than" in said


def test_hidden_files_of_systems_do_no_harm(two):
    for folder in (two / "a", two / "a" / "gpu_ops", two / "a" / "gpu_ops" / "rank=0"):
        (folder / ".DS_Store").write_bytes(b"x")
    assert busy(read_store(two / "a")) == 2 * 6 * 10_000


def swap(two: Path) -> None:
    (two / "a").rename(two / "was")
    (two / "b").rename(two / "a")


def test_a_store_that_is_replaced_while_it_is_read_is_read_anew(capsysbinary, two, monkeypatch):
    expected = run(capsysbinary, "analyze", two / "b", "-f", "json")[1]
    rows, calls = reading._rows, []

    def replaced_meanwhile(*args):
        calls.append(args)
        if len(calls) == 3:
            swap(two)
        return rows(*args)

    monkeypatch.setattr(reading, "_rows", replaced_meanwhile)
    code, out, err = run(capsysbinary, "analyze", two / "a", "-f", "json")
    assert code == 0 and out == expected
    assert err == f"{two / 'a'}: was replaced while it was read; reading the new one\n"


def test_a_store_that_is_replaced_again_and_again_is_one_line(capsysbinary, two, monkeypatch):
    rows = reading._rows

    def replaced_meanwhile(*args):
        if args[1:3] == ("gpu_ops", 0):
            (two / "b").rename(two / "c")
            (two / "a").rename(two / "b")
            (two / "c").rename(two / "a")
        return rows(*args)

    monkeypatch.setattr(reading, "_rows", replaced_meanwhile)
    for verb in ("analyze", "doctor"):
        code, out, err = run(capsysbinary, verb, two / "a")
        assert code == 2 and not out
        assert "was replaced while it was read; give the command again" in err.splitlines()[-1]


@pytest.mark.parametrize("jobs", [None, 1, 2])
def test_a_small_store_is_read_at_once(two, jobs, monkeypatch):
    """Copies of the process judge what it has in memory; other processes would have to read it first."""
    monkeypatch.setattr(opening, "may_fork", lambda: True)
    with open_parts([two / "a"], How(jobs=jobs)) as (parts, executor):
        assert executor is None and all(isinstance(part, MemoryPart) for part in parts)


def test_all_parts_are_of_one_store(two, monkeypatch):
    """Also those that are read later, by other processes."""
    monkeypatch.setattr(opening, "may_fork", lambda: False)
    with open_parts([two / "a"], How(jobs=2)) as (parts, _):
        assert all(isinstance(part, StoredPart) for part in parts)
        parts[0].catalog(Config())
        swap(two)
        for part in parts:
            with pytest.raises(ChangedError):
                part.catalog(Config())


def test_what_was_written_is_what_is_analysed(two, monkeypatch):
    """Another run that writes to the same --store does not lend its figures."""
    from traceanalyzer.ingest import storing

    written = storing.write_store

    def overtaken(*args, **kwargs):
        done = written(*args, **kwargs)
        monkeypatch.undo()
        ingest_to_store([two / "b_in"], two / "s", "test")
        return done

    monkeypatch.setattr(storing, "write_store", overtaken)
    with pytest.raises(ChangedError), open_parts([two / "a_in"], How(store=two / "s")) as (parts, _):
        parts[0].catalog(Config())


def test_files_behind_a_url_are_checked_too(two):
    there = fsspec.filesystem("memory")
    there.put(str(two / "a"), "/checked/s", recursive=True)
    try:
        assert busy(read_store("memory://checked/s")) == 2 * 6 * 10_000
        there.put(str(two / "b/gpu_ops/rank=1/part-0.parquet"), "/checked/s/gpu_ops/rank=1/part-0.parquet")
        with pytest.raises(InputError, match="not the one that was written"):
            read_store("memory://checked/s")
        assert ingest_to_store([two / "a_in"], "memory://checked/s", "test").there_already == 1
        assert busy(read_store("memory://checked/s")) == 2 * 6 * 10_000
        there.pipe("/checked/s/gpu_ops/rank=7/part-0.parquet", b"x")
        with pytest.raises(InputError, match="which is not of it"):
            read_store("memory://checked/s")
        there.pipe("/checked/s/gpu_ops/notes.txt", b"mine")
        with pytest.raises(InputError, match=r"also holds gpu_ops/notes\.txt"):
            ingest_to_store([two / "a_in"], "memory://checked/s", "test")
        for place in ("memory://checked/s/../t", "memory://checked//./t"):
            with pytest.raises(InputError, match="name the place itself"):
                ingest_to_store([two / "a_in"], place, "test")
    finally:
        there.rm("/checked", recursive=True)


def test_an_older_store_is_one_line(capsysbinary, two):
    manifest = json.loads((two / "a" / "manifest.json").read_bytes())
    del manifest["digest"]
    (two / "a" / "manifest.json").write_text(json.dumps(manifest | {"schema_version": "1.3"}))
    said = refused(capsysbinary, "analyze", two / "a")
    assert "a store of schema 1.3, this version reads" in said and said.endswith("ingest the trace again\n")
    assert run(capsysbinary, "ingest", two / "a_in", "-o", two / "a")[0] == 0
    assert run(capsysbinary, "analyze", two / "a")[0] == 0


def pipe(path: Path) -> None:
    os.mkfifo(path)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


KINDS = {
    "pipe": pipe,
    "folder": Path.mkdir,
    "socket": bound_socket,
    "device": device,
    "tty": lambda p: p.symlink_to("/dev/tty"),
}


@pytest.mark.parametrize("name", ["manifest.json", "gpu_ops/rank=0/part-0.parquet", "gpu_ops/rank=0", "gpu_ops"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_file_is_one_line(capsysbinary, two, kind, name):
    place = two / "a" / name
    shutil.rmtree(place) if place.is_dir() else place.unlink()
    KINDS[kind](place)
    signal.alarm(100)  # a pipe that is waited for would be waited for until then
    try:
        assert refused(capsysbinary, "analyze", two / "a").startswith(f"error: {two / 'a'}: ")
        code, _, err = run(capsysbinary, "ingest", two / "a_in", "-o", two / "a")
        assert code == 0 or (code == 2 and err.startswith("error: ") and err.count("\n") == 1)
        if code:
            refused(capsysbinary, "compare", two / "a", two / "b")
    finally:
        signal.alarm(0)


@pytest.mark.parametrize(
    "content",
    [
        b'{"schema_version":' + b"[" * 100_000,
        b'{"schema_version":' + b'{"a":' * 100_000,
        b'{"schema_version": "\xff"}',
        b'{"schema_version": ' + b"9" * 10_000 + b"}",
        b'{"schema_version": 1e999999}',
        b"",
        b"null",
        b'"x"',
        b"\xff\xfe{\x00}\x00",
    ],
    ids=range(9),
)
def test_a_manifest_that_is_none_is_one_line(capsysbinary, two, content):
    (two / "a" / "manifest.json").write_bytes(content)
    assert "manifest.json is missing or not readable" in refused(capsysbinary, "analyze", two / "a")
    manifest = json.loads((two / "b" / "manifest.json").read_bytes())
    for key in manifest:
        spoiled = msgspec.json.encode({**manifest, key: "?"}).replace(b'"?"', content or b"7")
        (two / "b" / "manifest.json").write_bytes(spoiled)
        assert "ingest the trace again" in refused(capsysbinary, "analyze", two / "b")


def test_one_process_at_a_time_writes_a_store(capsysbinary, two):
    before = sorted(path.name for path in two.iterdir())
    code = (
        "import sys, time; from pathlib import Path; from traceanalyzer.locks import hold_lock\n"
        "with hold_lock(Path(sys.argv[1])): print('held', flush=True); time.sleep(600)"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(ta.__file__).parents[1])}
    lock = shelf_of(two / "a") / "lock"
    with subprocess.Popen([sys.executable, "-c", code, lock], stdout=subprocess.PIPE, env=env) as holder:
        assert holder.stdout and holder.stdout.readline() == b"held\n"
        for args in (["ingest", two / "b_in", "-o", two / "a"], ["analyze", two / "b_in", "--store", two / "a"]):
            said = refused(capsysbinary, *args)
            assert f"is being written by process {holder.pid} on {socket.gethostname()} since 20" in said
        assert busy(read_store(two / "a")) == 2 * 6 * 10_000
        holder.kill()
    assert run(capsysbinary, "ingest", two / "b_in", "-o", two / "a")[0] == 0
    assert busy(read_store(two / "a")) == 2 * 6 * 40_000
    assert sorted(path.name for path in two.iterdir()) == before


def test_where_there_are_no_locks_the_file_stands_for_one(tmp_path, monkeypatch):
    from traceanalyzer import locks

    def unknown(*_):
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(locks.fcntl, "flock", unknown)
    place = tmp_path / "shelf" / "lock"
    with hold_lock(place), pytest.raises(HeldError, match=rf"process {os.getpid()} .*remove {place}"), hold_lock(place):
        pass
    assert not place.exists()
    with hold_lock(place):
        pass


def test_a_store_is_found_between_the_two_renames(capsysbinary, two):
    """The old one is out of the way, the new one is not in its place yet, and nobody goes on."""
    shelf = shelf_of(two / "a")
    shelf.mkdir()
    (two / "a").rename(shelf / OLD)
    (two / "b").rename(shelf / NEW)
    assert is_store(two / "a") and busy(ta.load(two / "a")) == 2 * 6 * 40_000
    (two / "link").symlink_to("a")
    assert run(capsysbinary, "analyze", two / "link")[0] == 0
    assert ingest_to_store([two / "b_in"], two / "a", "test").there_already == 2
    assert busy(ta.load(two / "a")) == 2 * 6 * 40_000 and not shelf.exists()


def test_a_store_that_could_not_be_replaced_is_there_again(capsysbinary, two, monkeypatch):
    """Also when it could not even be moved back at once."""
    rename, seen = Path.rename, []

    def failing(self, target):
        if Path(target) == two / "a":
            seen.append(self.name)
            raise OSError(5, "Input/output error")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", failing)
    assert "Input/output error" in refused(capsysbinary, "ingest", two / "b_in", "-o", two / "a")
    assert seen == ["new", "old"]
    monkeypatch.undo()
    assert busy(ta.load(two / "a")) == 2 * 6 * 40_000
    assert run(capsysbinary, "ingest", two / "a_in", "-o", two / "a")[0] == 0
    assert busy(ta.load(two / "a")) == 2 * 6 * 10_000
