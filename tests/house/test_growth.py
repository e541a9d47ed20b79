"""Small files stay cheap: what once made memory or time grow faster than the input, cause by cause.

How both grow in practice is what `python -m benchmarks.growth` measures.
"""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import traceanalyzer as ta
from benchmarks.growing import DIMENSIONS
from tests.ingest.test_sources import tarred, zipped
from tests.support.kineto import KinetoTrace, steady
from traceanalyzer.catalog.catalog import Catalog
from traceanalyzer.columns import compact, compacted, frames
from traceanalyzer.derive.launches import launches
from traceanalyzer.derive.steps.tables import STEP_STATS
from traceanalyzer.errors import InputError
from traceanalyzer.ingest.bytes import archives, limits
from traceanalyzer.ingest.bytes.folders import natural
from traceanalyzer.ingest.contract import FileFacts
from traceanalyzer.ingest.formats.kineto.columns import Vocabulary
from traceanalyzer.ingest.registry import find_sources
from traceanalyzer.ingest.rows import collector, external_sort
from traceanalyzer.ingest.rows.collector import Collector
from traceanalyzer.ingest.rows.external_sort import Spool
from traceanalyzer.ingest.rows.order import KEYS
from traceanalyzer.model.schema import EVENT_TABLES

RANGES = EVENT_TABLES["host_ranges"]
LONG = 1000


def ranges(first: int, stop: int, vocabulary: int) -> pa.Table:
    """Host ranges with a long name each, out of a dictionary that has all of them up to `vocabulary`."""
    names = pa.array([f"{n:04}{'x' * LONG}" for n in range(vocabulary)])
    rows = np.arange(first, stop)
    coded = pa.DictionaryArray.from_arrays(pa.array(rows, pa.int32()), names)
    return pa.table({"name": coded, "start_ns": rows, "end_ns": rows + 1, "process": rows * 0, "thread": rows * 0})


def dictionary_bytes(table: pa.Table) -> int:
    return sum(chunk.dictionary.nbytes for chunk in table["name"].chunks)


@pytest.mark.parametrize("rows", [[5, None, 7, 5], [None], [], list(range(100)), [*range(99, -1, -1), None]])
def test_a_compact_dictionary_has_what_its_rows_have(rows):
    names = pa.DictionaryArray.from_arrays(pa.array(rows, pa.int32()), pa.array([f"name {n}" for n in range(100)]))
    small = compact(names)
    assert small.to_pylist() == names.to_pylist()
    assert small.dictionary.to_pylist() == [f"name {n}" for n in sorted({n for n in rows if n is not None})]


def test_runs_and_blocks_are_bounded_in_bytes(tmp_path, monkeypatch):
    """However the rows came, the tables are the same, and each has no more names than it may."""
    monkeypatch.setattr(external_sort, "RUN_BYTES", 50 * LONG)
    found = []
    for size in (7, 100, 400):
        folder = tmp_path / str(size)
        folder.mkdir()
        sorter = Spool(RANGES, KEYS["host_ranges"], folder)
        for first in range(0, 400, size):
            sorter.add(compacted(ranges(first, min(first + size, 400), 400)))
        blocks = list(sorter.blocks())
        found.append([block["name"].to_pylist() for block in blocks])
        assert all(dictionary_bytes(block) <= 51 * LONG for block in blocks)
        if size < 400:
            assert (
                all(file.stat().st_size < 120 * LONG for file in folder.iterdir()) and len(list(folder.iterdir())) > 3
            )
    assert found[0] == found[1] == found[2]
    assert [name for block in found[0] for name in block] == ranges(0, 400, 400)["name"].to_pylist()


def test_a_row_larger_than_a_block_is_a_block(tmp_path, monkeypatch):
    monkeypatch.setattr(external_sort, "RUN_BYTES", LONG // 2)
    sorter = Spool(RANGES, KEYS["host_ranges"], tmp_path)
    sorter.add(ranges(0, 5, 5))
    assert [block.num_rows for block in sorter.blocks()] == [1] * 5


def test_a_block_is_given_as_soon_as_its_texts_fill_it(monkeypatch):
    monkeypatch.setattr(external_sort, "RUN_BYTES", 50 * LONG)
    tables = iter([compacted(ranges(n, n + 1, 400)) for n in range(400)])
    pieces = ([external_sort._Piece(table, table.nbytes)] for table in tables)
    assert next(external_sort._even(pieces, KEYS["host_ranges"])).num_rows <= 50 and len(list(tables)) > 300


def test_batches_that_carry_all_names_so_far_cost_what_they_use(tmp_path, monkeypatch):
    add, held = Spool.add, []

    def added(self: Spool, rows: pa.Table) -> None:
        held.append(dictionary_bytes(rows))
        add(self, rows)

    monkeypatch.setattr(Spool, "add", added)
    sink = Collector(tmp_path)
    for n in range(200):
        sink.add("host_ranges", ranges(n, n + 1, n + 1))
    tables = {name: list(blocks) for name, blocks in sink.tables(FileFacts("x", None))}
    assert sum(block.num_rows for block in tables["host_ranges"]) == 200
    # With all names so far each batch would have, on average, a hundred.
    assert sum(held) < 20 * 200 * LONG


def test_few_rows_with_long_names_do_not_wait_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(collector, "_BATCH_BYTES", 20 * LONG)
    monkeypatch.setattr(external_sort, "RUN_BYTES", 20 * LONG)
    sink = Collector(tmp_path)
    for n in range(0, 200, 5):
        sink.add("host_ranges", ranges(0, 5, 5))
        assert len([*tmp_path.iterdir()]) >= n // 20 - 4  # some are on their way
    tables = {name: list(blocks) for name, blocks in sink.tables(FileFacts("x", None))}
    assert sum(block.num_rows for block in tables["host_ranges"]) == 200


def test_a_vocabulary_begins_anew_after_so_many_bytes(monkeypatch):
    monkeypatch.setattr(Vocabulary, "LIMIT_BYTES", 20 * LONG)
    vocabulary = Vocabulary("name", upper=str.upper)
    for n in range(100):
        name = f"{n}{'x' * LONG}"
        columns = vocabulary.columns([name, None, name])
        assert columns["name"].to_pylist() == [name, None, name]
        assert columns["upper"].to_pylist() == [name.upper(), None, name.upper()]
        assert columns["name"].dictionary.nbytes < 23 * LONG


def test_a_part_of_a_table_keeps_no_names_of_the_rest():
    names = pa.array([f"step {n}" for n in range(1000)]).dictionary_encode()
    columns = {field.name: pa.nulls(2, field.type) for field in STEP_STATS.schema}
    part = frames.build(STEP_STATS, {**columns, "name": names.take(pa.array([7, 3]))})
    assert part["name"].chunk(0).dictionary.to_pylist() == ["step 3", "step 7"]
    assert frames.codes(pa.table({"name": names}).slice(5, 2), "name")[1] == ["step 5", "step 6", None]


def many_gpus(count: int) -> KinetoTrace:
    """One thread launches on some GPUs in turn, three times, with an operator before each launch."""
    trace = KinetoTrace()
    for n in range(3 * count):
        at = 100 * n
        trace.range("aten::mm", at, at + 60, category="cpu_op")
        trace.op(at + 75, at + 85, launch=(at + 62, at + 66), device=n % count)
    return trace


def test_what_a_thread_did_is_told_alike_for_one_gpu_and_for_several(tmp_path):
    """Gaps are cut by thread: those of another GPU change nothing."""
    together = Catalog(ta.load(many_gpus(4).write(tmp_path / "all.json"))).table("gaps").to_pylist()
    for device in range(4):
        alone = many_gpus(4)
        alone.events = [e for e in alone.events if e["cat"] != "kernel" or e["args"]["device"] == device]
        expected = Catalog(ta.load(alone.write(tmp_path / f"{device}.json"))).table("gaps").to_pylist()
        assert [row for row in together if row["device"] == device] == expected
        assert {row["cause"] for row in expected} == {"host_work", "host_untraced", "launch_latency"}


def test_a_thread_that_launches_on_more_gpus_than_there_are_is_not_judged(tmp_path, monkeypatch):
    monkeypatch.setattr(launches, "MOST_GPUS", 4)

    def judged(count: int) -> tuple[set[str], list[str]]:
        catalog = Catalog(ta.load(many_gpus(count).write(tmp_path / "trace.json")))
        said = [row["message"] for row in catalog.table("health").to_pylist() if row["code"] == "TRC006"]
        gaps = catalog.table("gaps")
        return set(gaps["cause"].to_pylist()), said

    assert judged(4) == ({"host_work", "host_untraced", "launch_latency"}, [])
    causes, (said,) = judged(5)
    assert causes == {"unattributed"} and "one thread launches on more than 64 GPUs" in said


def loaded(text: str, folder: Path) -> tuple[ta.Trace, int]:
    """A trace, and the most memory of Python that reading it took."""
    path = folder / "trace.json"
    ta.load(steady(3).write(path))  # the first one of a process imports what reads it
    path.write_text(text)
    tracemalloc.start()
    try:
        return ta.load(path), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


BOMBS = {
    "lists": "[" + "[]," * 700_000 + "[]]",
    "objects": "[" + "{}," * 700_000 + "{}]",
    "members": "{" + ",".join(f'"{n}":1' for n in range(150_000)) + "}",
    "text": json.dumps("x" * 2_000_000),
}


@pytest.mark.parametrize("bomb", BOMBS)
@pytest.mark.parametrize("key", ["anything", "deviceProperties", "distributedInfo"])
def test_metadata_that_is_not_read_makes_no_objects(tmp_path, bomb, key, monkeypatch):
    monkeypatch.setattr("traceanalyzer.ingest.formats.kineto.text.surroundings._MOST_FACT_BYTES", 1 << 20)
    trace = steady(3)
    plain, least = loaded(trace.text(), tmp_path)
    padding = BOMBS[bomb]
    events = json.dumps(trace.events)
    text = f'{{"before": {padding}, "schemaVersion": 1, "traceEvents": {events}, "{key}": {padding}}}'
    found, most = loaded(text, tmp_path)
    assert found.table("gpu_ops").equals(plain.table("gpu_ops"))
    assert most - least < 5 * len(text)


def test_members_of_a_description_that_are_not_read_do_not_hide_the_others(tmp_path):
    trace = steady(3)
    trace.metadata["distributedInfo"] = {"rank": 3, "world_size": 8, "pg_config": [list(range(9))] * 9}
    (read,) = ta.load(trace.write(tmp_path / "t.json")).inputs
    assert (read.rank, read.world_size) == (3, 8)


@pytest.mark.parametrize("key", ["name", "Rank", "Process Group Ranks", "anything"])
def test_arguments_of_the_wrong_kind_make_no_objects(tmp_path, key):
    plain, least = loaded(steady(3).text(), tmp_path)
    text = steady(3).range("aten::mm", 0, 9, category="cpu_op").text()
    text = text.replace(
        '"dur": 9}', f'"dur": 9, "args": {{"Collective name": "allreduce", "{key}": {BOMBS["lists"]}}}}}'
    )
    assert len(text) > 2_000_000
    found, most = loaded(text, tmp_path)
    assert found.table("gpu_ops").equals(plain.table("gpu_ops")) and found.table("host_ranges").num_rows == 1
    assert most - least < 12 * len(text)


def refusal(path: Path, max_bytes: int | None = None) -> str:
    with pytest.raises(InputError) as raised:
        find_sources([path], max_bytes)
    return str(raised.value)


TEXT = steady(40).text().encode()


@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_the_files_of_an_archive_count_together(tmp_path, mode):
    path = tarred(tmp_path / "t.tar", {f"rank{n}.json": TEXT for n in range(5)}, mode)
    assert len(find_sources([path], 6 * len(TEXT))) == 5
    assert "more than the limit" in refusal(path, 4 * len(TEXT))
    path = zipped(tmp_path / "t.zip", {f"rank{n}.json": TEXT for n in range(5)})
    assert len(find_sources([path], 6 * len(TEXT))) == 5
    assert "its files unpack to" in refusal(path, 4 * len(TEXT))


def test_what_is_packed_within_an_archive_shares_what_is_left(tmp_path):
    """Each of the files would be small enough, all of them are not."""
    packed = gzip.compress(b'{"traceEvents": [' + b" " * 3_000_000 + b"]}")
    path = tarred(tmp_path / "t.tar", {f"rank{n}.json.gz": packed for n in range(9)})
    (first, *_) = find_sources([path], 40_000_000)
    with first.open() as stream:
        assert len(stream.read()) > 3_000_000
    (first, *_) = find_sources([path], 20_000_000)
    with first.open() as stream, pytest.raises(InputError, match="unpacks to more than the limit"):
        stream.read()


def test_many_files_in_a_packed_archive_are_unpacked_once(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "MOST_PASSES", 3)
    path = tarred(tmp_path / "t.tgz", {f"rank{n}.json": TEXT for n in range(5)}, "w:gz")
    found = find_sources([path])
    assert [source.path for source in found] == [path / f"rank{n}.json" for n in range(5)]
    for source in found:
        assert not source.layers and source.origin == path
        with source.open() as stream:
            assert stream.read() == TEXT and not stream.damage


def test_archives_of_too_many_files_and_with_endless_names(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "MOST_MEMBERS", 10)
    members = {f"{n}.txt": b"" for n in range(11)}
    assert "an archive of more than 10 files" in refusal(tarred(tmp_path / "t.tar", members))
    assert "an archive of more than 10 files" in refusal(zipped(tmp_path / "t.zip", members))
    path = tarred(tmp_path / "long.tgz", {"x" * 3_000_000: b"x", "t.json": TEXT}, "w:gz")
    assert "a tar archive that cannot be read" in refusal(path)


@pytest.mark.parametrize("suffix", ["tgz", "zip"])
def test_longer_names_than_files_have_are_not_kept(tmp_path, suffix):
    """A packed archive of a megabyte holds a gigabyte of them."""
    names = [f"{n}{'x' * 20_000}" for n in range(500)]
    path = tmp_path / f"t.{suffix}"
    members = dict.fromkeys(names, b"")
    zipped(path, members) if suffix == "zip" else tarred(path, members, "w:gz")
    tracemalloc.start()
    try:
        said = refusal(path)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert "a name of more than 8,192 characters" in said and len(said) < 300
    assert suffix == "zip" or most < 5_000_000


@pytest.mark.parametrize("name", ["/etc/rank1.json", "../../rank1.json", "a/../../rank1.json"])
def test_names_of_members_lead_nowhere(tmp_path, name):
    """A member's path is a name to show, and nothing is ever written under it."""
    path = tarred(tmp_path / "t.tar", {name: TEXT, "rank2.json": TEXT})
    before = sorted(tmp_path.rglob("*"))
    trace = ta.load(path)
    assert trace.table("gpu_ops").num_rows == 80 and sorted(tmp_path.rglob("*")) == before


def test_links_and_devices_in_archives_are_passed_over(tmp_path):
    with tarfile.open(tmp_path / "t.tar", "w") as archive:
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE):
            info = tarfile.TarInfo(f"rank{ord(kind)}.json")
            info.type, info.linkname = kind, "/etc/passwd"
            archive.addfile(info)
        info = tarfile.TarInfo("rank1.json")
        info.size = len(TEXT)
        archive.addfile(info, io.BytesIO(TEXT))
    (source,) = find_sources([tmp_path / "t.tar"])
    with source.open() as stream:
        assert stream.read() == TEXT


def test_names_with_endless_numbers_are_sorted(tmp_path):
    names = ["r2.json", "r10.json", "r010.json", "r" + "1" * 5000 + ".json", "r²3.json"]
    assert [path.name for path in sorted(map(Path, names), key=natural)][:2] == ["r2.json", "r10.json"]
    members = dict.fromkeys(names[:2] + names[3:4], TEXT)
    assert [source.path.name for source in find_sources([tarred(tmp_path / "t.tar", members)])] == list(members)


@pytest.mark.parametrize("name", DIMENSIONS)
def test_what_the_benchmark_of_growth_makes_can_be_read(tmp_path, name):
    path = tmp_path / "trace.json"
    DIMENSIONS[name].write(path, 60)
    assert ta.load(path).table("gpu_ops").num_rows > 0
