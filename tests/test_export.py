"""The exported trace: legal for Perfetto, and true to the tables to the nanosecond."""

from __future__ import annotations

import gzip
import io
import json
from collections import Counter
from functools import cache, partial

import numpy as np
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import traceanalyzer as ta
from tests.support.chrome_trace import nanoseconds, tracks_of
from tests.support.kineto import KinetoTrace
from tests.support.places import FIXTURES
from traceanalyzer.analysis import ReportTables, analyze_parts, parts_of
from traceanalyzer.config import Config
from traceanalyzer.export.packing import packing
from traceanalyzer.export.perfetto import Recording, write_trace
from traceanalyzer.export.text import micros
from traceanalyzer.export.tracks import layers
from traceanalyzer.ingest.formats.kineto.copies import copy_kind

KINETO = FIXTURES / "kineto" / "dataloader.slow.pt.trace.json.gz"
STREAMS = FIXTURES / "kineto" / "streams_overlap.slow.pt.trace.json.gz"
NSYS = FIXTURES / "nsys" / "nvtx_dataloader.slow.sqlite"
GRAPH = FIXTURES / "nsys" / "launch_storm.fixed.graph-node.sqlite"
WHOLE_GRAPHS = FIXTURES / "nsys" / "launch_storm.fixed.graph-level.sqlite"
JOB = FIXTURES / "multirank" / "gpu_straggler.slow"


def exported(path, redact=True):
    """Trace, result and the exported bytes."""
    trace = ta.load(path)
    parts, config = parts_of(trace), Config()
    found = analyze_parts(parts, config)
    recordings = []
    for part in parts:
        label = f"rank {part.input.rank}" if len(parts) > 1 else ""
        tables = partial(ReportTables, [part], config, found.tables)
        recordings.append(Recording(label, part.input.rank, part.input.ordinal, tables))
    out = io.BytesIO()
    write_trace(found.result, recordings, out, redact)
    return trace, found, out.getvalue()


cached = cache(exported)


def rows(trace, table, ordinal):
    found = trace.table(table)
    found = found.filter(pc.equal(found["rank"], ordinal))
    if table == "gpu_ops":
        found = found.filter(pc.invert(pc.fill_null(found["quarantined"], False)))
    return Counter(
        zip(found["start_ns"].to_pylist(), found["end_ns"].to_pylist(), found["name"].to_pylist(), strict=True)
    )


def first_time(trace, ordinal):
    return min(
        start
        for name in ("gpu_ops", "api_calls", "host_ranges", "overheads")
        for start, *_ in rows(trace, name, ordinal)
    )


@pytest.mark.parametrize("path", [KINETO, STREAMS, NSYS, GRAPH], ids=lambda p: p.name)
def test_our_own_reader_finds_every_event_again(tmp_path, path):
    trace, found, content = cached(path)
    copy = tmp_path / "copy.json"
    copy.write_bytes(content)
    again = ta.load(copy)
    for table in ("gpu_ops", "host_ranges", "api_calls"):
        origin = first_time(trace, trace.inputs[0].ordinal)
        expected = rows(trace, table, trace.inputs[0].ordinal)
        assert rows(again, table, again.inputs[0].ordinal) == {
            (start - origin, end - origin, name): count for (start, end, name), count in expected.items()
        }
    assert again.table("health").num_rows == 0
    (before, after) = (result.devices[0] for result in (found.result, ta.analyze(again)))
    assert (before.window_ns, before.busy_ns, before.idle_ns) == (after.window_ns, after.busy_ns, after.idle_ns)


def test_a_graph_that_was_recorded_as_a_whole_is_gpu_work(tmp_path):
    _, found, content = cached(WHOLE_GRAPHS)
    (tmp_path / "copy.json").write_bytes(content)
    again = ta.analyze(ta.load(tmp_path / "copy.json"))
    # What Nsight Systems said of its own recording stays with it.
    assert [note.code for note in found.result.health if note.severity != "info"] == ["TRC008"]
    assert [note.code for note in again.health] == ["TRC008"]
    (before, after) = (result.devices[0] for result in (found.result, again))
    assert (before.window_ns, before.compute_ns, before.idle_ns) == (after.window_ns, after.compute_ns, after.idle_ns)
    assert again.verdict.headline == found.result.verdict.headline


@pytest.mark.parametrize(("name", "kind"), [("Memcpy Unified DtoH", "uvm_dtoh"), ("Memcpy Unified HtoD", "uvm_htod")])
def test_migrations_are_migrations_again(name, kind):
    assert copy_kind(name) == kind


@pytest.mark.parametrize("path", [KINETO, STREAMS, NSYS, GRAPH, JOB], ids=lambda p: p.name)
def test_slices_nest_and_the_ledger_is_whole(path):
    _, found, content = cached(path)
    tracks = tracks_of(content)
    ledgers = [track for track in tracks if track.name == "where the time went"]
    for track, device in zip(ledgers, found.result.devices, strict=True):
        line = Counter()
        for start, end, event in track.slices:
            line[event["name"].partition(":")[0]] += end - start
        assert sum(line.values()) == device.window_ns and line["idle"] == device.idle_ns
    assert tracks[0].process == "traceanalyzer findings"


def test_findings_are_tracks():
    _, found, content = cached(KINETO)
    tracks = [track for track in tracks_of(content) if track.process == "traceanalyzer findings"]
    with_evidence = [finding for finding in found.result.findings if finding.evidence]
    assert list(dict.fromkeys(track.name for track in tracks)) == [f"{f.rule} {f.title}" for f in with_evidence]
    event = tracks[0].slices[0][2]
    first = found.result.findings[0]
    assert event["args"]["severity"] == first.severity and event["args"]["message"] == first.message
    assert event["args"]["recoverable ms"] == first.saving.recoverable_ns / 1e6
    lengths = [e.end_ns - e.start_ns for finding in with_evidence for e in finding.evidence]
    assert sorted(end - start for track in tracks for start, end, _ in track.slices) == sorted(lengths)


def test_arrows_are_launches():
    _, found, content = cached(KINETO)
    events = [event for track in tracks_of(content) for *_, event in track.slices]
    calls = {e["bind_id"]: e["args"]["correlation"] for e in events if e.get("flow_out")}
    ops = [(calls[e["bind_id"]], e["args"]["correlation"]) for e in events if e.get("flow_in")]
    assert len(ops) == found.result.devices[0].gpu_op_count and all(a == b for a, b in ops)


def test_ranks_are_on_one_clock():
    trace, found, content = cached(JOB)
    tracks = tracks_of(content)
    ahead = {clock.rank: clock.offset_ns for clock in found.result.job.clocks}
    origins = set()
    for one in trace.inputs:
        mine = [t for t in tracks if t.process.startswith(f"rank {one.rank} (GPU") and t.name.startswith("stream")]
        first = min(track.slices[0][0] for track in mine)
        recorded = min(start for start, *_ in rows(trace, "gpu_ops", one.ordinal))
        origins.add(recorded - first - ahead[one.rank])
    assert len(trace.inputs) == 4 and len(origins) == 1


def test_evidence_lies_in_the_file_that_it_is_from(tmp_path):
    """Two files that do not say their ranks, on clocks that have nothing in common."""
    for path in (KINETO, STREAMS):
        (tmp_path / path.name).symlink_to(path)
    trace, found, content = exported(tmp_path)
    starts = {one.ordinal: first_time(trace, one.ordinal) for one in trace.inputs}
    recorded = Counter()
    for finding in found.result.findings:
        for one in finding.evidence:
            ordinal = max((first, ordinal) for ordinal, first in starts.items() if first <= one.start_ns)[1]
            recorded[f"{finding.rule} {finding.title}", one.start_ns - starts[ordinal]] += 1
    tracks = [track for track in tracks_of(content) if track.process == "traceanalyzer findings"]
    assert {one.rank for one in trace.inputs} == {None} and len(set(starts.values())) == 2
    assert Counter((track.name, start) for track in tracks for start, *_ in track.slices) == recorded


def test_same_bytes_and_packed(tmp_path):
    _, _, content = exported(STREAMS)
    assert content == cached(STREAMS)[2]
    packs = []
    for _ in range(2):
        out = io.BytesIO()
        with packing(out, True) as file:
            file.write(content)
        packs.append(out.getvalue())
    assert packs[0] == packs[1] and gzip.decompress(packs[0]) == content


def test_names_are_data_and_counters_are_finite(tmp_path):
    made = KinetoTrace()
    name = 'a "quoted" \\ name\u2028 </script> \u0001 é'
    made.op(100, 200, name=name, launch=(50, 60))
    made.range("/home/alice/proj/train.py(3): step", 0, 300, category="python_function")
    path = made.write(tmp_path / "t.json")
    content = exported(path)[2]
    names = {event["name"] for track in tracks_of(content) for *_, event in track.slices}
    assert name in names and "proj/train.py(3): step" in names and b"alice" not in content
    assert b"/home/alice/proj" in exported(path, redact=False)[2]
    assert json.loads(content)["otherData"]["name"] == "traceanalyzer"


@given(st.lists(st.integers(0, 2**43), min_size=1, max_size=50))
def test_microseconds_are_exact(times):
    for text, ns in zip(micros(np.array(times, np.int64)).to_pylist(), times, strict=True):
        assert nanoseconds(json.loads(text)) == ns


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 12)), max_size=40))
def test_slices_of_a_layer_nest(ranges):
    ordered = sorted(((start, start + length) for start, length in ranges), key=lambda r: (r[0], -r[1]))
    starts, ends = (np.array([r[at] for r in ordered], np.int64) for at in (0, 1))
    layer = layers(starts, ends)
    for number in set(layer.tolist()):
        own = [r for r, at in zip(ordered, layer.tolist(), strict=True) if at == number]
        for n, (a, b) in enumerate(own):
            assert all(d <= b or c >= b for c, d in own[n + 1 :] if c < b or c == a)
    nested = all(d <= b or c >= b for n, (a, b) in enumerate(ordered) for c, d in ordered[n + 1 :])
    assert not nested or not layer.any()
