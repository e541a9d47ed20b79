"""Memory snapshots: the allocator's own figures come out exactly, and what a file cannot tell is said."""

from __future__ import annotations

import gzip
import json
import lzma
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.evidence.memory_snapshots import (
    FIXTURES,
    MIB,
    START_US,
    Kept,
    block,
    entry,
    frame,
    read,
    segment,
    snapshot,
    source,
    write,
)
from traceanalyzer.evidence import memory_snapshot
from traceanalyzer.evidence.memory_snapshot import KIND
from traceanalyzer.evidence.placing import Whereabouts

# What the program that was recorded read from torch.cuda.memory_stats, and a replay of its trace's sizes.
TRUTH = {
    "leak_activations.slow": {
        "allocated_bytes": 235945984,
        "reserved_bytes": 274726912,
        "active_bytes": 235945984,
        "requested_bytes": 235945984,
        "inactive_split_bytes": 5226496,
        "allocated_peak_bytes": 269500416,
        "reserved_peak_bytes": 274726912,
        "requested_peak_bytes": 269500416,
        "entries": 277,
        "lost_beginning": False,
    },
    "frag_growing.fixed": {
        "allocated_bytes": 168869888,
        "reserved_bytes": 924844032,
        "active_bytes": 168869888,
        "requested_bytes": 168869888,
        "inactive_split_bytes": 0,
        "allocated_peak_bytes": 868951040,
        "reserved_peak_bytes": 924844032,
        "requested_peak_bytes": 868950024,
        "entries": 1765,
        "lost_beginning": False,
    },
}
CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "evidence" / "memory"


@pytest.mark.parametrize("name", TRUTH)
def test_totals_are_the_allocators_own(name: str) -> None:
    sink, marks = read(FIXTURES / f"{name}.snapshot.pickle.xz")
    totals = sink.totals()
    assert {key: totals[key] for key in TRUTH[name]} == TRUTH[name]
    assert not sink.notes
    assert marks.clock == "epoch" and marks.clock_base_ns == 0
    assert marks.recorded_ns == (totals["start_ns"], totals["end_ns"])
    for row in sink.rows("snapshot_segments"):
        assert row["allocated_bytes"] <= row["active_bytes"] <= row["bytes"]
    blocks = sink.rows("snapshot_blocks")
    assert sum(row["bytes"] for row in blocks if row["state"] == "active_allocated") == totals["allocated_bytes"]


def test_owners_are_lines_of_the_program() -> None:
    sink, _ = read(FIXTURES / "leak_activations.slow.snapshot.pickle.xz")
    held: dict[str, int] = {}
    for row in sink.rows("snapshot_blocks"):
        if row["state"] == "active_allocated":
            line = (row["place"] or "none").partition(" ")[0]
            held[line] = held.get(line, 0) + row["bytes"]
    assert held == {
        "memory.py:33": 167772160,
        "memory.py:32": 34603008,
        "memory.py:22": 16793600,
        "memory.py:29": 16777216,
    }


def _run() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """One segment whose first block lives, whose second came and went; on a stream that still uses it for a while."""
    trace = [
        entry("segment_alloc", 0, 1 << 40, 20 * MIB),
        entry("alloc", 1, 1 << 40, 2 * MIB - 100, frames=[frame(1, "CUDACachingAllocator.cpp"), frame(7), frame(9)]),
        entry("alloc", 2, (1 << 40) + 2 * MIB, 4 * MIB, frames=[frame(8)]),
        entry("free_requested", 3, (1 << 40) + 2 * MIB, 4 * MIB),
        entry("free_completed", 5, (1 << 40) + 2 * MIB, 4 * MIB),
    ]
    blocks = [
        block(1 << 40, 2 * MIB, requested_size=2 * MIB - 100),
        block((1 << 40) + 2 * MIB, 18 * MIB, "inactive"),
    ]
    return [segment(1 << 40, blocks)], trace


def test_lives_of_blocks(tmp_path: Path) -> None:
    sink, _ = read(write(tmp_path, snapshot(*_run())))
    first, second = sink.rows("snapshot_blocks")
    assert first["bytes"] == 2 * MIB and first["requested_bytes"] == 2 * MIB - 100
    assert first["place"] == "train.py:7 (step)" and first["start_entry"] == 1 and first["end_ns"] is None
    assert second["state"] == "freed" and second["segment"] == 1 << 40
    times = [second[name] for name in ("start_ns", "free_requested_ns", "end_ns")]
    assert times == [(START_US + at) * 1000 for at in (2, 3, 5)]
    totals = sink.totals()
    assert totals["allocated_peak_bytes"] == totals["active_peak_bytes"] == 6 * MIB
    assert totals["requested_peak_bytes"] == 6 * MIB - 100 and totals["peak_entry"] == 2
    assert totals["inactive_split_bytes"] == 18 * MIB
    (event,) = sink.rows("snapshot_events")
    assert event["kind"] == "segment_alloc" and event["bytes"] == 20 * MIB


def test_lost_beginning_is_said_and_levels_are_right_from_the_first_entry(tmp_path: Path) -> None:
    segments, trace = _run()
    sink, _ = read(write(tmp_path, snapshot(segments, trace[3:])))
    totals = sink.totals()
    assert totals["lost_beginning"] and totals["born_before"] == 2
    assert totals["allocated_start_bytes"] == totals["allocated_peak_bytes"] == 6 * MIB
    assert totals["reserved_start_bytes"] == 20 * MIB and totals["peak_entry"] is None
    assert {row["start_ns"] for row in sink.rows("snapshot_blocks")} == {None}
    assert sink.said("2 blocks are from before it")
    # From here on the block had been given up before the history, but was still in use by a stream.
    totals = read(write(tmp_path, snapshot(segments, trace[4:])))[0].totals()
    assert totals["allocated_start_bytes"] == 2 * MIB and totals["active_peak_bytes"] == 6 * MIB


def test_pending_blocks_are_active_and_not_allocated(tmp_path: Path) -> None:
    for state in ("active_pending_free", "active_awaiting_free"):
        segments, trace = _run()
        segments[0]["blocks"][1:] = [
            block((1 << 40) + 2 * MIB, 4 * MIB, state),
            block((1 << 40) + 6 * MIB, 14 * MIB, "inactive"),
        ]
        del segments[0]["active_size"]
        sink, _ = read(write(tmp_path, snapshot(segments, trace[:4])))
        totals = sink.totals()
        assert (totals["allocated_bytes"], totals["active_bytes"]) == (2 * MIB, 6 * MIB)
        pending = sink.rows("snapshot_blocks")[1]
        assert pending["state"] == "active_pending_free" and pending["free_requested_entry"] == 3
        assert pending["end_ns"] is None


def test_gpus_pools_and_expandable_segments(tmp_path: Path) -> None:
    mapped = [
        entry("segment_map", 0, 1 << 41, 2 * MIB),
        entry("segment_map", 1, (1 << 41) + 2 * MIB, 2 * MIB),
        entry("segment_map", 2, (1 << 41) + 4 * MIB, 2 * MIB),
        entry("segment_unmap", 3, (1 << 41) + 4 * MIB, 2 * MIB),
        entry("oom", 4, 0, 8 * MIB, device_free=3 * MIB, frames=[frame(30)]),
    ]
    blocks = [block(1 << 41, MIB), block((1 << 41) + MIB, 3 * MIB, "inactive")]
    segments = [
        segment(1 << 40, [block(1 << 40, 2 * MIB)], segment_pool_id=(0, 3)),
        segment(1 << 41, blocks, device=1, is_expandable=True),
    ]
    sink, _ = read(write(tmp_path, snapshot(segments, [], mapped)))
    first, second = sink.rows("snapshot_totals")
    assert (first["device"], first["entries"], first["allocated_peak_bytes"]) == (0, 0, None)
    assert second["device"] == 1 and second["inactive_split_bytes"] == 0
    assert (second["reserved_bytes"], second["reserved_peak_bytes"]) == (4 * MIB, 6 * MIB)
    private, expandable = sink.rows("snapshot_segments")
    assert private["pool"] == "0:3" and expandable["pool"] is None
    assert expandable["expandable"] and expandable["start_entry"] == 0 and expandable["largest_free_bytes"] == 3 * MIB
    oom = sink.rows("snapshot_events")[-1]
    assert (oom["kind"], oom["bytes"], oom["device_free_bytes"], oom["place"]) == (
        "oom",
        8 * MIB,
        3 * MIB,
        "train.py:30 (step)",
    )


def test_segments_given_back(tmp_path: Path) -> None:
    trace = [
        entry("segment_free", 0, 1 << 41, 2 * MIB),
        entry("segment_alloc", 1, 1 << 40, 4 * MIB),
        entry("segment_free", 2, 1 << 40, 4 * MIB),
        entry("segment_alloc", 3, 1 << 40, 2 * MIB),
    ]
    sink, _ = read(write(tmp_path, snapshot([segment(1 << 40, [block(1 << 40, 2 * MIB, "inactive")])], trace)))
    rows = [(row["bytes"], row["start_entry"], row["end_entry"]) for row in sink.rows("snapshot_segments")]
    assert rows == [(2 * MIB, 3, None), (4 * MIB, 1, 2), (2 * MIB, None, 0)]
    totals = sink.totals()
    assert (totals["reserved_start_bytes"], totals["reserved_peak_bytes"]) == (2 * MIB, 4 * MIB)


def test_snapshots_of_other_versions(tmp_path: Path) -> None:
    """2.0: blocks without addresses, requested sizes, frames of their own; a list of segments alone; no history."""
    old = {
        "size": MIB,
        "state": "active_allocated",
        "history": [{"addr": 1, "real_size": MIB - 8, "frames": [frame(3)]}],
    }
    segments = [segment(1 << 40, [dict(old), {"size": MIB, "state": "inactive"}])]
    del segments[0]["segment_pool_id"], segments[0]["is_expandable"]
    for content in (segments, {"segments": segments}, snapshot(segments, [])):
        path = write(tmp_path, content)
        sink, marks = read(path)
        (row,) = sink.rows("snapshot_blocks")
        assert (row["address"], row["bytes"], row["requested_bytes"]) == (1 << 40, MIB, MIB - 8)
        assert row["place"] == "train.py:3 (step)" and row["start_ns"] is None
        assert sink.totals()["lost_beginning"] is None and marks.clock == "none"
        assert sink.said("holds no history")
    segments, trace = _run()
    for one in trace:
        del one["time_us"]
    sink, marks = read(write(tmp_path, snapshot(segments, trace)))
    assert sink.totals()["allocated_peak_bytes"] == 6 * MIB and sink.totals()["peak_ns"] is None
    assert marks.recorded_ns is None and sink.said("only their order is known")


def test_rounding_of_the_allocator(tmp_path: Path) -> None:
    sizes = {1: 512, 512: 512, 513: 1024, 1200 * 1024: 1280 * 1024, 2 * MIB: 2 * MIB, 9 * MIB: 10 * MIB}
    trace = []
    for place, size in enumerate(sizes):
        trace += [entry("alloc", place, 1 << 40, size), entry("free_completed", place, 1 << 40, size)]
    settings = {"roundup_power2_divisions": {"1": 4, "2": 4, "4": 4, "8": 4, "16": 0}}
    sink, _ = read(write(tmp_path, snapshot([], trace, allocator_settings=settings)))
    assert [row["bytes"] for row in sink.rows("snapshot_blocks")] == list(sizes.values())


def test_what_is_not_worth_cutting_off_is_handed_out_too(tmp_path: Path) -> None:
    """Of a large segment no less than 1 MiB remains; how far a free block reaches, its neighbours of that time tell."""
    base, other, third = 1 << 40, 1 << 41, 1 << 42
    trace = [
        entry("segment_alloc", 0, base, 20 * MIB),
        entry("alloc", 1, base, 19 * MIB + 512),
        entry("free_completed", 2, base, 19 * MIB + 512),
        entry("alloc", 3, base + 6 * MIB, 4 * MIB),
        entry("alloc", 4, base, 5 * MIB + 512),
        entry("free_completed", 5, base, 5 * MIB + 512),
        entry("free_completed", 6, base + 6 * MIB, 4 * MIB),
        entry("alloc", 7, base, 5 * MIB + 512),
        entry("free_completed", 8, base, 5 * MIB + 512),
        entry("segment_alloc", 9, other, 2 * MIB),
        entry("alloc", 10, other, MIB),
        entry("free_completed", 11, other, MIB),
        entry("alloc", 12, third, 2 * MIB - 512),
        entry("free_completed", 13, third, 2 * MIB - 512),
    ]
    segments = [
        segment(base, [block(base, 20 * MIB, "inactive")]),
        segment(other, [block(other, 2 * MIB, "inactive")], segment_type="small"),
        segment(third, [block(third, 2 * MIB, "inactive")], is_expandable=True),
    ]
    sink, _ = read(write(tmp_path, snapshot(segments, trace)))
    taken = {row["start_entry"]: row["bytes"] for row in sink.rows("snapshot_blocks")}
    assert taken == {1: 20 * MIB, 3: 4 * MIB, 4: 6 * MIB, 7: 5 * MIB + 512, 10: MIB, 12: 2 * MIB - 512}


def test_blocks_that_are_never_split(tmp_path: Path) -> None:
    trace = [
        entry("segment_alloc", 0, 0, 40 * MIB),
        entry("alloc", 1, 0, 22 * MIB),
        entry("free_completed", 2, 0, 22 * MIB),
    ]
    trace.append(entry("segment_free", 3, 0, 40 * MIB))
    settings = {"max_split_size": 20 * MIB}
    sink, _ = read(write(tmp_path, snapshot([], trace, allocator_settings=settings)))
    assert sink.rows("snapshot_blocks")[0]["bytes"] == 40 * MIB and sink.totals()["max_split_bytes"] == 20 * MIB


def test_samples_are_claimed() -> None:
    samples = sorted((Path(memory_snapshot.__file__).parent / "samples").iterdir())
    assert samples
    for path in samples:
        assert KIND.sniff(source(path))
        assert read(path)[0].totals()["entries"] == 6


def test_contradictions_are_said(tmp_path: Path) -> None:
    trace = [
        entry("alloc", 0, 512, 512),
        entry("alloc", 1, 512, 512),
        entry("free_completed", 2, 512, 512),
        entry("free_completed", 3, 512, 512),
        entry("alloc", 4, 4096, 512),
        entry("segment_free", 5, 8192, MIB),
        entry("segment_alloc", 6, 8192, 4 * MIB),
    ]
    segments = [segment(1 << 40, [block(1 << 41, MIB)], allocated_size=7)]
    sink, _ = read(write(tmp_path, snapshot(segments, trace)))
    for words in ("handed out again", "free already", "not in the snapshot", "outside of", "other sums", "more memory"):
        assert sink.said(words), words
    assert sink.totals()["allocated_bytes"] == MIB


def test_annotations(tmp_path: Path) -> None:
    found = [
        {"stage": stage, "name": name, "device": 0, "time_us": time}
        for stage, name, time in (("START", "a", 1), ("START", "a", 2), ("END", "a", 3), ("END", "b", 4))
    ]
    sink, _ = read(write(tmp_path, snapshot(*_run(), external_annotations=[*found, 7, {"name": "a"}])))
    rows = [(row["name"], row["start_ns"], row["end_ns"]) for row in sink.rows("snapshot_annotations")]
    assert rows == [("a", 1000, None), ("a", 2000, 3000), ("b", None, 4000)]


def test_json_and_packed_forms_are_the_same(tmp_path: Path) -> None:
    content = snapshot(*_run())
    expected = read(write(tmp_path, content))[0].batches
    text = json.dumps(content).encode()
    for data in (text, gzip.compress(text), lzma.compress(pickle.dumps(content)), *map(_dumped(content), (2, 3, 4, 5))):
        path = tmp_path / "other"
        path.write_bytes(data)
        assert KIND.sniff(source(path))
        assert read(path)[0].batches == expected


def _dumped(content: Any) -> Any:
    return lambda protocol: pickle.dumps(content, protocol)


def test_what_is_no_snapshot_is_not_claimed(tmp_path: Path) -> None:
    flight = {"version": "2.10", "pg_config": {}, "entries": [{"frames": [], "process_group": ("0", "default_pg")}]}
    kineto = {"schemaVersion": 1, "traceEvents": [{"name": "segments"}], "segments": []}
    others = (flight, {"model": [1, 2]}, [1], "segments", {"segments": [1]})
    for data in (*map(pickle.dumps, others), *(json.dumps(one).encode() for one in (*others, kineto)), b"\x80\x04"):
        path = tmp_path / "other"
        path.write_bytes(data)
        assert not KIND.sniff(source(path)), data


class _Given:
    """As `model.tables.Tables`."""

    def __init__(self, sink: Kept) -> None:
        self._sink = sink

    def table(self, name: str) -> pa.Table:
        spec = next(spec for spec in KIND.tables if spec.name == name)
        return pa.concat_tables(self._sink.batches[name]) if self._sink.batches[name] else spec.empty()


def test_place_is_the_only_part_of_that_time() -> None:
    def part(low: int, high: int) -> Whereabouts:
        return Whereabouts(epoch_ns=(low, high))

    own = Whereabouts(epoch_ns=(2000, 3000))
    assert KIND.place(own, [part(0, 900), part(2500, 2800)]) == (1,)
    assert KIND.place(own, [part(2500, 2800), part(2500, 2800)]) == ()
    assert KIND.place(Whereabouts(), [part(0, 1)]) == ()


def test_advice_on_recording(tmp_path: Path) -> None:
    segments, trace = _run()
    cases = ((snapshot(segments), "history"), (snapshot(segments, trace[3:]), "max_entries"))
    for content, words in cases:
        sink, _ = read(write(tmp_path, content))
        assert any(words in f"{one.name} {one.option}" for one in KIND.recording_advice(_Given(sink)))
    sink, _ = read(write(tmp_path, snapshot(segments, trace)))
    assert list(KIND.recording_advice(_Given(sink))) == []


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is not here")
def test_totals_of_the_corpus() -> None:
    import yaml

    truth = yaml.safe_load((CORPUS / "TRUTH.yaml").read_text())
    for path in sorted(CORPUS.glob("*.snapshot.pickle.xz")):
        one = truth[path.name.removesuffix(".snapshot.pickle.xz")]
        recorded, checked = one["recorded"]["at_snapshot"], one["checked"]["snapshot"]
        totals = read(path)[0].totals()
        for name in ("allocated", "reserved", "active", "requested", "inactive_split"):
            assert totals[f"{name}_bytes"] == recorded[name], (path.name, name)
        assert totals["reserved_peak_bytes"] == recorded["reserved_peak"], path.name
        assert totals["allocated_peak_bytes"] == recorded["allocated_peak"], path.name
        assert totals["requested_peak_bytes"] == checked["replay_peak"], path.name
