"""Where bytes come from: every kind of packing, every kind of damage to it, and what lies in folders, archives and pipes."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import os
import random
import sqlite3
import sys
import tarfile
import threading
import zipfile
import zlib
from functools import partial
from pathlib import Path

import pytest

import traceanalyzer as ta
from tests.support.kineto import KinetoTrace
from traceanalyzer.doctor import diagnose
from traceanalyzer.errors import InputError
from traceanalyzer.ingest.bytes import limits, sources
from traceanalyzer.ingest.bytes.source import Source
from traceanalyzer.ingest.formats.nsys import reports
from traceanalyzer.ingest.registry import find_sources

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


def steady(count: int = 400) -> KinetoTrace:
    trace = KinetoTrace()
    for n in range(count):
        trace.op(n * 1000, n * 1000 + 900, launch=(n * 1000 - 20, n * 1000 - 15), name=f"gemm_{n * n * 7919 % 1000003}")
    return trace


TEXT = steady().text().encode()
# What the time of day is would else be in the header, which is read as data where a member is damaged.
PACKERS = {"gzip": partial(gzip.compress, mtime=0), "zstd": zstd.compress, "xz": lzma.compress, "bzip2": bz2.compress}


def one(path: Path, max_bytes: int | None = None) -> Source:
    (source,) = find_sources([path], max_bytes)
    return source


def content(source: Source) -> tuple[bytes, str | None, list[tuple[str, int]]]:
    """What a source gives, why it ended early, and its notes."""
    with source.open() as stream:
        data = stream.read()
        return data, stream.damage, [(note.message, note.number) for note in stream.notes]


def given(tmp_path: Path, data: bytes, name: str = "trace") -> Source:
    (tmp_path / name).write_bytes(data)
    return one(tmp_path / name)


def refusal(*paths: Path, max_bytes: int | None = None) -> str:
    with pytest.raises(InputError) as caught:
        find_sources(list(paths), max_bytes)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def health(trace: ta.Trace) -> list[tuple[str, str, str, int, str | None]]:
    rows = trace.table("health").to_pylist()
    return [(r["code"], r["severity"], r["message"], r["count"], r["example"]) for r in rows]


# --- packing ---


@pytest.mark.parametrize("codec", PACKERS)
@pytest.mark.parametrize("name", ["t.json", "t.gz", "t"])
def test_packed_data_is_told_by_its_content(tmp_path, codec, name):
    source = given(tmp_path, PACKERS[codec](TEXT), name)
    assert source.packed and source.head == TEXT[: 64 << 10]
    assert content(source) == (TEXT, None, [])


def test_plain_data_with_the_suffix_of_packed_data(tmp_path):
    source = given(tmp_path, TEXT, "t.json.gz")
    assert not source.packed and content(source) == (TEXT, None, [])


@pytest.mark.parametrize("codec", PACKERS)
def test_members_are_read_one_after_the_other(tmp_path, codec):
    parts = [TEXT[at : at + 10_000] for at in range(0, len(TEXT), 10_000)]
    assert content(given(tmp_path, b"".join(map(PACKERS[codec], parts)))) == (TEXT, None, [])


@pytest.mark.parametrize("codec", PACKERS)
def test_what_stands_behind_the_end_is_left_out_and_counted(tmp_path, codec):
    packed = PACKERS[codec](TEXT)
    assert content(given(tmp_path, packed + b"\0" * 70_000)) == (TEXT, None, [])
    message = f"bytes after the end of the {codec} data were left out"
    assert content(given(tmp_path, packed + b"\0" * 512 + b"x" * 100_000)) == (TEXT, None, [(message, 100_000)])
    assert content(given(tmp_path, packed + b"x")) == (TEXT, None, [(message, 1)])


@pytest.mark.parametrize("codec", PACKERS)
def test_everything_before_a_cut_is_kept(tmp_path, codec):
    whole = TEXT + random.Random(0).randbytes(2 << 20)
    packed = PACKERS[codec](whole)
    data, damage, notes = content(given(tmp_path, packed[: len(packed) // 2]))
    assert (
        whole.startswith(data) and len(data) > 800_000
    )  # of 2.2 million, half of which is left; bzip2 has blocks of 900,000
    assert (damage, notes) == (f"the {codec} data is cut short: what came after is lost", [])


@pytest.mark.parametrize("codec", PACKERS)
def test_everything_before_damage_is_kept(tmp_path, codec):
    parts = [TEXT[at : at + 20_000] for at in range(0, len(TEXT), 20_000)]
    packed = [bytearray(PACKERS[codec](part)) for part in parts]
    packed[2][len(packed[2]) // 2 :] = b"\x55" * 40
    data, damage, _ = content(given(tmp_path, b"".join(packed)))
    assert data.startswith(TEXT[:40_000]) and len(data) < 60_000
    assert damage and damage.startswith(f"the {codec} data is damaged (")


def test_gzip_gives_all_that_lies_before_damage(tmp_path):
    packed = bytearray(gzip.compress(TEXT * 30))
    half = len(packed) // 2
    packed[half:] = random.Random(0).randbytes(half)
    whole = zlib.decompressobj(31).decompress(packed[:half])
    data, damage, _ = content(given(tmp_path, bytes(packed)))
    assert data.startswith(whole[:-1024]) and len(whole) > 1 << 20
    assert damage and damage.startswith("the gzip data is damaged (")


def test_a_wrong_checksum_is_said(tmp_path):
    packed = bytearray(gzip.compress(TEXT))
    packed[-8] ^= 1
    data, damage, _ = content(given(tmp_path, bytes(packed)))
    assert data == TEXT[: len(data)] and damage
    assert damage.startswith("the gzip data does not match its checksum: parts of it may be wrong")


def test_frames_that_are_to_be_skipped_are_no_data(tmp_path):
    skipped = b"\x50\x2a\x4d\x18\x04\0\0\0abcd"
    assert content(given(tmp_path, skipped + zstd.compress(TEXT) + skipped)) == (TEXT, None, [])


def test_packed_several_times_over(tmp_path):
    packed = TEXT
    for _ in range(3):
        packed = gzip.compress(packed)
    assert content(given(tmp_path, packed))[0] == TEXT
    (tmp_path / "four").write_bytes(gzip.compress(packed))
    assert "packed more than 3 times over" in refusal(tmp_path / "four")


def test_nothing_inside(tmp_path):
    (tmp_path / "t.json.gz").write_bytes(gzip.compress(b""))
    assert "there is nothing in it" in refusal(tmp_path / "t.json.gz")
    (tmp_path / "t.json.gz").write_bytes(gzip.compress(TEXT)[:12])
    assert "the gzip data is cut short" in refusal(tmp_path / "t.json.gz")


def test_small_reads_give_the_same_bytes_and_closing_early_ends_the_thread(tmp_path):
    source = given(tmp_path, gzip.compress(TEXT + b" " * (20 << 20)))
    before = threading.active_count()
    with source.open() as stream:
        assert b"".join(stream.read(997) for _ in range(50)) == TEXT[: 997 * 50]
    assert threading.active_count() == before


def test_progress_counts_the_bytes_on_disk(tmp_path):
    for data in (TEXT, gzip.compress(TEXT)):
        source, heard = given(tmp_path, data), []
        with source.open(heard.append) as stream:
            assert stream.read() == TEXT
        assert sum(heard) == source.size == len(data)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf16_is_read_as_utf8(tmp_path, encoding):
    text = '\n{"traceEvents": [], "name": "größe 😀"}' + " " * 200_000
    source = given(tmp_path, text.encode(encoding))
    assert content(source)[0].removeprefix(b"\xef\xbb\xbf") == text.encode()
    damage = "the UTF-16 text ends in the middle of a character"
    assert content(given(tmp_path, text.encode(encoding)[:-1]))[1] == damage
    assert ta.load(given(tmp_path, TEXT.decode().encode(encoding)).path).table("gpu_ops").num_rows == 400


def test_half_a_utf16_character_becomes_bytes_that_are_no_utf8(tmp_path):
    data = '{"traceEvents": ["'.encode("utf-16") + b"\x3d\xd8" + '"]}'.encode("utf-16-le")
    assert content(given(tmp_path, data))[0].endswith(b'["\xed\xa0\xbd"]}')


# --- what a cut or odd file comes to in the tables ---


def test_a_cut_file_is_read_up_to_the_cut_and_said_in_health(tmp_path):
    packed = gzip.compress(TEXT)
    trace = ta.load(given(tmp_path, packed[: len(packed) // 2]).path)
    assert 100 < trace.table("gpu_ops").num_rows < 300
    assert ("TRC001", "medium", "the gzip data is cut short: what came after is lost", 1, None) in health(trace)


def test_bytes_behind_the_end_are_said_in_health(tmp_path):
    trace = ta.load(given(tmp_path, gzip.compress(TEXT) + b"garbage").path)
    assert trace.table("gpu_ops").num_rows == 400
    assert health(trace) == [("TRC001", "info", "bytes after the end of the gzip data were left out", 7, None)]


def test_damage_before_the_first_event_is_refused(tmp_path):
    source = given(
        tmp_path, gzip.compress(b'{"schemaVersion": 1, "deviceProperties": ["' + random.Random(0).randbytes(900))[:300]
    )
    with pytest.raises(
        InputError, match="the gzip data is cut short: what came after is lost, and no event came before"
    ):
        ta.load(source.path)


# --- archives ---


def zipped(path: Path, members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def tarred(path: Path, members: dict[str, bytes], mode: str = "w") -> Path:
    with tarfile.open(path, mode) as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2])
def test_a_zip_archive_with_one_trace_is_that_trace(tmp_path, method):
    path = zipped(
        tmp_path / "t.zip", {"run/": b"", "run/t.json": TEXT, "run/README": b"x", "__MACOSX/._t.json": b"y"}, method
    )
    source = one(path)
    assert source.path == path and content(source) == (TEXT, None, [])
    assert content(one(zipped(path, {"whatever": TEXT}, method)))[0] == TEXT


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz"])
def test_a_tar_archive_with_one_trace_is_that_trace(tmp_path, mode):
    path = tarred(tmp_path / "t", {"README": b"x" * 9999, "run/t.json.gz": gzip.compress(TEXT)}, mode)
    source = one(path)
    assert source.path == path and content(source) == (TEXT, None, [])


@pytest.mark.parametrize("pack", [zipped, tarred])
def test_an_archive_of_several_traces_is_like_a_folder_of_them(tmp_path, pack):
    members = {f"run/rank{n}.json": steady(n).text().encode() for n in (10, 2)} | {"run/config.json": b'{"lr": 1}'}
    path = pack(tmp_path / "ranks.archive", {"./" + name: data for name, data in members.items()} | {"./.t.json": b"x"})
    found = find_sources([path])
    assert [s.path for s in found] == [path / "run/rank2.json", path / "run/rank10.json"]
    assert [content(s)[0] for s in found] == [members["run/rank2.json"], members["run/rank10.json"]]
    assert ta.load(path).table("gpu_ops").num_rows == 12


def test_sqlite_in_an_archive(tmp_path):
    with sqlite3.connect(tmp_path / "e.sqlite") as connection:
        connection.execute("create table StringIds (id integer, value text)")
    connection.close()
    data = (tmp_path / "e.sqlite").read_bytes()
    assert ta.load(zipped(tmp_path / "e.zip", {"e.sqlite": data})).inputs[0].format == "nsys"
    cut = tmp_path / "cut.sqlite.gz"
    cut.write_bytes(gzip.compress(data)[:-30])
    with pytest.raises(InputError, match="the gzip data is cut short"):
        ta.load(cut)


def test_archives_that_cannot_be_read(tmp_path):
    path = zipped(tmp_path / "t.zip", {"t.json": TEXT})
    whole = path.read_bytes()
    path.write_bytes(whole[:-40])
    assert "a zip archive that cannot be read" in refusal(path)
    at = whole.index(b"PK\x01\x02") + 8
    path.write_bytes(whole[:at] + b"\x01" + whole[at + 1 :])
    assert "encrypted; unpack it with its password" in refusal(path)
    assert "without a trace; it holds a.txt, b.txt" in refusal(zipped(path, {"a.txt": b"x", "b.txt": b"x"}))
    assert "it holds no files" in refusal(zipped(path, {}))
    path.write_bytes(gzip.compress(whole))
    assert "a zip archive that is packed again" in refusal(path)


def test_damage_inside_archives_is_said(tmp_path):
    path = zipped(tmp_path / "t.zip", {"t.json": TEXT}, zipfile.ZIP_STORED)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    assert content(one(path))[1] == "the content does not match its checksum: parts of it may be wrong"
    path = tarred(tmp_path / "t.tar", {"t.json": TEXT})
    path.write_bytes(path.read_bytes()[: len(TEXT) // 2])
    data, damage, _ = content(one(path))
    assert data == TEXT[: len(TEXT) // 2 - 512] and damage == "the archive is cut short: what came after is lost"


@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_files_that_a_damaged_tar_archive_no_longer_gives_are_said_to_be_lost(tmp_path, mode):
    path = tarred(tmp_path / "t.tar", {f"rank{n}.json": TEXT for n in range(3)}, mode)
    assert [s.notes for s in find_sources([path])] == [(), (), ()]
    message = "the tar archive is damaged: what lies in it behind the last file that was found is lost"
    if mode == "w":
        data = bytearray(path.read_bytes())
        data[data.index(b"rank1.json")] ^= 1  # The header no longer matches its checksum.
        path.write_bytes(data)
        (source,) = find_sources([path])
        assert [(n.message, n.example) for n in source.notes] == [(message, "rank0.json")]
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    first, *more = find_sources([path])
    assert [n.message for n in first.notes] == [message] and all(s.notes == () for s in more)


# --- what is no trace ---

FOREIGN = {
    "git lfs pull": b"version https://git-lfs.github.com/spec/v1\noid sha256:aa\nsize 3\n",
    "full of zeros": bytes(100_000),
    "a web page": b"\n<!DOCTYPE html><html><head><title>Sign in</title>",
    "to read a store, name its folder": b"PAR1\x15\x04",
    "a Python pickle": b"\x80\x04\x95\x00\x01\x00\x00\x00\x00\x00\x00}\x94(\x8c\x07weights",
    "lz4 -d": b"\x04\x22\x4d\x18abc",
    "output of nvidia-smi": b"Sat Nov 28\n+----------+\n| NVIDIA-SMI 590.48   Driver |\n",
    "no log of GPUs over time": b"pid, process_name, used_gpu_memory [MiB]\n4242, python, 4 MiB\n",
    "format of Prometheus": b"# HELP gpu_util Utilization\n# TYPE gpu_util gauge\ngpu_util 4\n",
    "what `perf script --ns": b"PERFILE2" + bytes(100),
    "a memory timeline of PyTorch": b"[[-1, 1, 37888, 7], [-1, 1, 512, 7]]",
    "a CPU profile of V8": b'{"nodes": [], "startTime": 1, "endTime": 2, "samples": [1], "timeDeltas": [1]}',
}


@pytest.mark.parametrize("words", FOREIGN)
def test_what_is_no_trace_is_named(tmp_path, words):
    for data in (FOREIGN[words], gzip.compress(FOREIGN[words])):
        (tmp_path / "trace.json").write_bytes(data)
        message = refusal(tmp_path / "trace.json")
        assert "trace.json: " in message and words in message and "; " in message


@pytest.mark.parametrize("text", ['{"schemaVersion": 1, "segments": [1], "x": ', '{"segments": [], "traceEvents": ['])
def test_a_trace_that_mentions_such_things_is_a_trace(tmp_path, text):
    assert given(tmp_path, text.encode()).head == text.encode()


def test_the_suffix_may_choose_the_words(tmp_path):
    path = tmp_path / "host.xplane.pb"
    path.write_bytes(b"\x0a\x15\x08\x01")
    with pytest.raises(InputError, match=r"\*\.trace\.json\.gz that lies beside it"):
        ta.load(path)
    assert "*.trace.json.gz that lies beside it" in refusal(tmp_path)


# --- folders ---


def put(folder: Path, **files: bytes) -> None:
    for name, data in files.items():
        path = folder / name.replace("__", "/").replace("_DOT_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def names(folder: Path) -> list[str]:
    return [str(source.path.relative_to(folder)) for source in find_sources([folder])]


def test_folders_are_read_through_and_what_is_no_trace_is_passed_over(tmp_path):
    for name in (
        "rank10/w.pt.trace.json",
        "rank2/w.pt.trace.json",
        "plugins/profile/2026/host.trace.json.gz",
        "no suffix",
        "unknown.dat",
        ".hidden/t.json",
        "rank2/.t.json",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(TEXT) if path.suffix in (".gz", ".dat") else TEXT)
    for name, data in {
        "config.json": b'{"lr": 1}',
        "tokenizer.json": b'{"vocab": {' + b'"a": 1, ' * 20_000 + b'"b": 2}}',
        "profile.cpuprofile.json": FOREIGN["a CPU profile of V8"],
        "host.xplane.pb": b"\x0a\x15",
        "notes.txt": b"hello",
        "empty.log": b"",
        "snapshot.pickle": FOREIGN["a Python pickle"],
        "other.db": b"SQLite format 3\0" + bytes(200),
        "broken.log.gz": gzip.compress(b"x" * 99)[:20],
    }.items():
        (tmp_path / name).write_bytes(data)
    assert names(tmp_path) == [
        "no suffix",
        "plugins/profile/2026/host.trace.json.gz",
        "rank2/w.pt.trace.json",
        "rank10/w.pt.trace.json",
        "unknown.dat",
    ]
    first, *others = find_sources([tmp_path])
    assert all(source.notes == () for source in others)
    (note,) = first.notes
    assert (note.code, note.severity, note.number) == ("TRC001", "info", 9)
    assert note.message == (
        "files of no kind that is read here were passed over: broken.log.gz, config.json, empty.log, host.xplane.pb, notes.txt "
        "and 4 more"
    )


def test_our_own_results_in_a_folder_are_not_worth_a_word(tmp_path):
    (tmp_path / "a.pt.trace.json").write_bytes(TEXT)
    (tmp_path / "result.json").write_text('{"schema_version": "1.0", "tool": {"name": "traceanalyzer"}}')
    assert [source.notes for source in find_sources([tmp_path])] == [()]


def test_events_behind_long_metadata_are_found(tmp_path):
    metadata = b'{"config": "' + b"x" * 300_000 + b'", '
    (tmp_path / "a.json").write_bytes(metadata + b'"traceEvents": [{"ph": "X", "ts": 1}]}')
    (tmp_path / "b.json").write_bytes(metadata + b'"other": []}')
    assert names(tmp_path) == ["a.json"]


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("rank1.json", b"", "the file is empty"),
        ("rank1.json.gz", gzip.compress(TEXT, mtime=0)[:15], "cut short"),
        ("rank1.sqlite", FOREIGN["git lfs pull"], "git lfs pull"),
        ("rank1.json", bytes(1000), "full of zeros"),
        ("rank1.json", b"<html>", "a web page"),
    ],
)
def test_a_file_called_like_a_trace_that_cannot_be_read_is_an_error(tmp_path, name, data, words):
    put(tmp_path, rank0_DOT_json=TEXT)
    (tmp_path / name).write_bytes(data)
    message = refusal(tmp_path)
    assert name in message and words in message


def test_a_trace_without_events_in_a_folder_is_an_error(tmp_path):
    put(tmp_path, rank0_DOT_json=TEXT, rank1_trace_DOT_json=b'{"schemaVersion": 1}')
    with pytest.raises(InputError, match=r"rank1_trace\.json: JSON without a traceEvents array"):
        ta.load(tmp_path)


def test_links_lead_to_each_file_once(tmp_path):
    put(tmp_path, run3__t_DOT_json=TEXT)
    (tmp_path / "latest").symlink_to("run3")
    (tmp_path / "run3/again").symlink_to("..")
    (tmp_path / "run3/a.json").symlink_to("t.json")
    (tmp_path / "run3/hard.txt").hardlink_to(tmp_path / "run3/t.json")
    assert len(names(tmp_path)) == 1
    (tmp_path / "run3/hard.txt").unlink()
    assert names(tmp_path) == ["run3/t.json"]
    assert names(tmp_path / "latest") == ["t.json"]
    (tmp_path / "run3/lost.json").symlink_to("nowhere")
    assert "lost.json: cannot be read" in refusal(tmp_path)


def test_unfinished_files_and_archives_in_a_folder_are_mentioned(tmp_path):
    put(tmp_path, w_DOT_pt_DOT_trace_DOT_json_DOT_tmp=TEXT)
    zipped(tmp_path / "old.zip", {"t.json": TEXT})
    assert "w.pt.trace.json.tmp, which is unfinished, name it" in refusal(tmp_path)
    assert content(one(tmp_path / "w.pt.trace.json.tmp"))[0] == TEXT
    put(tmp_path, t_DOT_json=TEXT)
    message = "recordings among the files were passed over; name one to read what it holds"
    assert health(ta.load(tmp_path)) == [
        ("TRC001", "info", "archives among the files were passed over; name one to read it", 1, "old.zip"),
        ("TRC006", "low", f"unfinished {message}", 1, "w.pt.trace.json.tmp"),
    ]


def test_a_trace_that_lies_there_packed_and_unpacked_is_read_once(tmp_path):
    put(tmp_path, t_DOT_json=TEXT, t_DOT_json_DOT_gz=gzip.compress(TEXT), u_DOT_json_DOT_gz=gzip.compress(TEXT))
    found = find_sources([tmp_path])
    assert [s.path.name for s in found] == ["t.json", "u.json.gz"]
    message = "packed traces were passed over, because they lie there unpacked too"
    assert [(n.message, n.number, n.example) for n in found[0].notes] == [(message, 1, "t.json.gz")]


def test_names_of_odd_bytes(tmp_path):
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/r\xff.json"))
    try:
        path.write_bytes(TEXT)
    except OSError:
        pytest.skip("this file system takes no such names")
    trace = ta.load(tmp_path)
    assert trace.inputs[0].path.endswith("r\\xff.json")
    assert b"r\\\\xff.json" in ta.analyze(trace).to_json()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read_is_an_error(tmp_path):
    put(tmp_path, t_DOT_json=TEXT, sub__u_DOT_json=TEXT)
    for path in (tmp_path / "sub", tmp_path / "t.json"):
        path.chmod(0)
        try:
            assert "cannot be read (Permission denied)" in refusal(tmp_path)
        finally:
            path.chmod(0o755)


# --- standard input and pipes ---


def test_standard_input(tmp_path, monkeypatch):
    for data in (TEXT, gzip.compress(TEXT)):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        source = one(Path("-"))
        assert (str(source.path), source.size) == ("<stdin>", len(data))
        assert content(source)[0] == TEXT and source.place.exists()
        place = source.place
        del source
        assert not place.parent.exists()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    assert "<stdin>: the file is empty" in refusal(Path("-"))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT)))
    assert "--max-size" in refusal(Path("-"), max_bytes=1000)


def test_a_terminal_is_no_input(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for stdin in (Terminal(), None):
        monkeypatch.setattr(sys, "stdin", stdin)
        assert "pipe a trace into it" in refusal(Path("-"))


def test_a_pipe_is_read_and_one_that_nobody_writes_to_is_left(tmp_path, monkeypatch):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(gzip.compress(TEXT),))
    writer.start()
    source = one(pipe)
    writer.join()
    assert source.path == pipe and content(source)[0] == TEXT
    monkeypatch.setattr(sources, "PIPE_WAIT_S", 0.01)
    assert "a pipe into which nothing is written" in refusal(pipe)


def test_hashing_ends_when_nobody_waits_for_it(tmp_path):
    source, stop = given(tmp_path, TEXT), threading.Event()
    assert source.sha256(stop) == hashlib.sha256(TEXT).hexdigest()
    stop.set()
    assert source.sha256(stop) == hashlib.sha256().hexdigest()


def test_a_file_that_goes_away_is_an_error(tmp_path):
    for data in (TEXT, gzip.compress(TEXT)):
        source = given(tmp_path, data)
        source.path.unlink()
        with pytest.raises(InputError, match="cannot be read"):
            source.sha256(threading.Event())
        if source.packed:
            words = "the file could not be read to its end (No such file or directory): what came after is lost"
            assert content(source) == (b"", words, [])
        else:
            with pytest.raises(InputError, match="cannot be read"):
                source.open()


def test_devices_are_no_input():
    assert "a device or socket" in refusal(Path("/dev/null"))


# --- limits ---


def test_limits_name_the_flag(tmp_path, monkeypatch):
    (tmp_path / "bomb.json.gz").write_bytes(gzip.compress(b'{"traceEvents": [' + b" " * (8 << 20)))
    (tmp_path / "large.json").write_bytes(TEXT)
    assert "more than the limit of 1000 B; --max-size raises" in refusal(tmp_path / "large.json", max_bytes=1000)
    assert len(content(one(tmp_path / "bomb.json.gz"))[0]) == (8 << 20) + 17
    with pytest.raises(InputError, match=r"unpacks to more than the limit of 1 MiB; .*--max-size"):
        content(one(tmp_path / "bomb.json.gz", max_bytes=1 << 20))
    monkeypatch.setattr(limits, "FLOOR_BYTES", 1 << 10)
    monkeypatch.setattr(limits, "MOST_TIMES_PACKED", 100)
    with pytest.raises(InputError, match="bomb"):
        content(one(tmp_path / "bomb.json.gz"))
    assert len(content(one(tmp_path / "bomb.json.gz", max_bytes=1 << 30))[0]) == (8 << 20) + 17


def test_the_defaults():
    assert limits.allowed_bytes(1, None) == 1 << 30
    assert limits.allowed_bytes(1 << 20, None) == 2000 << 20
    assert limits.allowed_bytes(1 << 40, None) == 64 << 30
    assert limits.allowed_bytes(1 << 40, 5) == 5


# --- reports of Nsight Systems ---

NSYS = """#!{python}
import shutil, sys
{body}
"""
COPIES = 'shutil.copy({export!r}, sys.argv[sys.argv.index("--output") + 1])'


def export(path: Path) -> Path:
    connection = sqlite3.connect(path)
    connection.execute("create table StringIds (id integer, value text)")
    connection.commit()
    connection.close()
    return path


@pytest.fixture
def nsys(tmp_path, monkeypatch):
    """Puts an `nsys` on the PATH that does what it is told."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))

    def install(body: str) -> None:
        (folder / "nsys").write_text(NSYS.format(python=sys.executable, body=body))
        (folder / "nsys").chmod(0o755)

    return install


def test_a_report_is_converted_with_nsys(tmp_path, nsys, capfd):
    nsys(COPIES.format(export=str(export(tmp_path / "made.db"))))
    report = tmp_path / "traces" / "run 1.nsys-rep"
    put(report.parent, run_DOT_txt=b"notes")
    report.write_bytes(b"some report")
    for given_path in (report, report.parent):
        source = one(given_path)
        assert (source.path, source.size, source.head[:6]) == (report, 11, b"SQLite")
        place = source.place
        trace = ta.load(given_path)
        assert (trace.inputs[0].path, trace.inputs[0].bytes) == (str(report), 11)
        assert trace.inputs[0].sha256 == hashlib.sha256(b"some report").hexdigest()
        assert place.exists()
        del source
        assert not place.parent.exists()
    assert sorted(p.name for p in report.parent.iterdir()) == [report.name, "run.txt"]
    assert f"converting {report} with nsys export" in capfd.readouterr().err


def test_the_name_of_a_report_is_no_command_to_a_terminal(tmp_path, nsys, capfd):
    nsys(COPIES.format(export=str(export(tmp_path / "made.db"))))
    report = tmp_path / "a\x1b]0;x\x07\n::error::b.nsys-rep"
    report.write_bytes(b"some report")
    one(report)
    said = capfd.readouterr().err
    assert said.isascii() and "converting" in said and said.rstrip("\n").isprintable()


def test_an_nsys_that_knows_no_blobs_is_asked_again(tmp_path, nsys):
    made = export(tmp_path / "made.db")
    refuse = "if any('blobs' in a for a in sys.argv): sys.exit(\"unrecognised option '--include-blobs=true'\")\n"
    nsys(refuse + COPIES.format(export=str(made)))
    (tmp_path / "old.qdrep").write_bytes(b"some report")
    assert one(tmp_path / "old.qdrep").head.startswith(b"SQLite")


def test_an_nsys_that_fails_is_quoted(tmp_path, nsys):
    (tmp_path / "run.nsys-rep").write_bytes(b"some report")
    nsys('print("Importer error"); sys.exit("the file is newer than this tool")')
    assert "nsys export failed (the file is newer than this tool)" in refusal(tmp_path / "run.nsys-rep")
    nsys("pass")
    assert "nsys export failed (it wrote nothing)" in refusal(tmp_path / "run.nsys-rep")


def test_without_nsys_the_command_is_given(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    report = tmp_path / "run 1.nsys-rep"
    report.write_bytes(b"some report")
    command = f"nsys export --type sqlite --include-blobs=true --output '{tmp_path}/run 1.sqlite' '{report}'"
    assert command in refusal(report) and command in refusal(tmp_path)
    report.rename(tmp_path / "run.qdstrm")
    words = f"QdstrmImporter -i {tmp_path}/run.qdstrm, then nsys export"
    assert words in refusal(tmp_path / "run.qdstrm") and words in refusal(tmp_path)


def test_what_is_called_a_report_and_is_something_known(tmp_path):
    (tmp_path / "a.nsys-rep").write_bytes(FOREIGN["git lfs pull"])
    assert "git lfs pull" in refusal(tmp_path / "a.nsys-rep")
    assert "git lfs pull" in refusal(tmp_path)
    (tmp_path / "a.nsys-rep").unlink()
    for path in (export(tmp_path / "b.nsys-rep"), tmp_path):
        assert one(path).path.name == "b.nsys-rep"


def test_an_export_beside_its_report_is_read_and_an_older_one_is_said_to_be_stale(tmp_path):
    path = export(tmp_path / "run.sqlite")
    report = tmp_path / "run.nsys-rep"
    report.write_bytes(b"some report")
    (tmp_path / "run.qdstrm").write_bytes(b"some capture")
    os.utime(path, (1000, 1000))
    os.utime(report, (900, 900))
    assert [(s.path, s.notes) for s in find_sources([tmp_path])] == [(path, ())]
    os.utime(report, (1100, 1100))
    for given_path in (path, tmp_path):
        (note,) = reports.stale_export(path)
        assert one(given_path).notes == (note,)
        assert note[:2] == ("TRC001", "low") and "newer than the export" in note.message and note.example == report.name


def test_doctor_converts_a_report_in_a_folder_once(tmp_path, nsys, capfd):
    nsys(COPIES.format(export=str(export(tmp_path / "made.db"))))
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces" / "run.nsys-rep").write_bytes(b"some report")
    (recording,) = diagnose([tmp_path / "traces"]).recordings
    assert (recording.file.path, recording.file.container) == (str(tmp_path / "traces" / "run.nsys-rep"), "plain")
    assert capfd.readouterr().err.count("converting") == 1
