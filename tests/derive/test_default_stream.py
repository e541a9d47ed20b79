"""Work of several streams that the legacy default stream keeps in line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.nsys.nsys_export import STRINGS, Row, Tables, global_id, kernel, make_export, memcpy, runtime
from traceanalyzer.analysis import analyze
from traceanalyzer.ingest.pipeline import ingest
from traceanalyzer.result.document import Finding

MS = 1_000_000
FIRST, SECOND, DEFAULT = 14, 15, 7


def two_streams(middle: bool = True, gap: int = 3_000, length: int = MS, blocks: int = 8, **wait: int) -> Tables:
    """Twenty times a kernel on each of two streams, launched at once, and between them, in `middle`, a memset on the default stream.

    `gap` ns lie between one and the next; negative ones overlap."""
    kernels: list[Row] = []
    memsets: list[Row] = []
    calls: list[Row] = []
    at, number = MS, 0
    for _ in range(20):
        begin = at
        for place, stream in enumerate((FIRST, DEFAULT, SECOND)):
            if stream == DEFAULT and not middle:
                continue
            number += 1
            calls.append(runtime(begin - 50_000 + 5_000 * place, begin - 48_000 + 5_000 * place, correlation=number))
            if stream == DEFAULT:
                row = {
                    "deviceId": 0,
                    "contextId": 1,
                    "streamId": stream,
                    "globalPid": global_id(7),
                    "value": 0,
                    "bytes": 64,
                    "memKind": 2,
                }
                memsets.append(row | {"start": at, "end": at + 2_000, "correlationId": number})
                at += 2_000 + gap
            else:
                grid = {"gridX": blocks, "gridY": 1, "gridZ": 1, "blockX": 128, "blockY": 1, "blockZ": 1}
                kernels.append(kernel(at, at + length, correlation=number) | {"streamId": stream} | grid)
                at += length + gap
        at += 100_000
    tables: Tables = {
        "CUPTI_ACTIVITY_KIND_KERNEL": kernels,
        "CUPTI_ACTIVITY_KIND_RUNTIME": calls,
        "PROCESSES": [{"globalPid": global_id(7), "pid": 7, "name": "./solver"}],
        "TARGET_INFO_GPU": [{"id": 0, "name": "NVIDIA A100", "smCount": 108}],
    }
    return tables | ({"CUPTI_ACTIVITY_KIND_MEMSET": memsets} if memsets else {})


def streams(**kinds: int) -> Tables:
    flags = {FIRST: 1, SECOND: 1, DEFAULT: 3} | {int(name[1:]): flag for name, flag in kinds.items()}
    rows = [
        {"streamId": stream, "hwId": 0, "vmId": 1, "processId": 7, "contextId": 1, "priority": 0, "flag": flag}
        for stream, flag in flags.items()
    ]
    return {"TARGET_INFO_CUDA_STREAM": rows}


def found(path: Path, tables: Tables, name: str = "void step(int)") -> Finding | None:
    result = analyze(ingest([make_export(path / "a.sqlite", tables, {**STRINGS, 1: name, 60: "cudaStreamWaitEvent"})]))
    return next((finding for finding in result.findings if finding.rule == "STM001"), None)


def test_a_memset_on_the_default_stream_parts_the_kernels_of_two_others(tmp_path):
    finding = found(tmp_path, two_streams() | streams())
    assert finding is not None
    assert "20 operations (mostly step)" in finding.message
    assert "(mostly Memset (Device)) was done" in finding.message
    assert "was not recorded" not in finding.message
    assert "cudaStreamNonBlocking" in str(finding.recommend)
    assert finding.saving.recoverable_ns is None


def test_without_the_kinds_of_streams_the_number_tells(tmp_path):
    finding = found(tmp_path, two_streams())
    assert finding is not None
    assert "told by its number" in finding.message


@pytest.mark.parametrize(
    "tables",
    [
        two_streams() | streams(s14=2, s15=2),
        two_streams() | streams(s7=2),
        two_streams(middle=False) | streams(),
        two_streams(length=4_000) | streams(),
        two_streams(blocks=4_000) | streams(),
        two_streams(gap=-900_000) | streams(),
    ],
    ids=[
        "streams that do not block",
        "no default stream",
        "nothing on the default stream",
        "too short to overlap",
        "each fills the GPU",
        "they overlap",
    ],
)
def test_guards(tmp_path, tables):
    assert found(tmp_path, tables) is None


def test_what_runs_on_beside_the_default_stream_is_not_kept_in_line(tmp_path):
    """As recorded with streams that do not block, where nothing else tells what they are."""
    tables = two_streams()
    first, second = (tables["CUPTI_ACTIVITY_KIND_KERNEL"][n::2] for n in (0, 1))
    for one, other, between in zip(first, second, tables["CUPTI_ACTIVITY_KIND_MEMSET"], strict=True):
        between |= {"start": one["start"] + 4_000, "end": one["start"] + 6_000}
        other |= {"start": one["start"] + 9_000, "end": one["start"] + 9_000 + MS}
    assert found(tmp_path, tables) is None


def test_no_more_is_promised_than_the_busiest_stream_leaves(tmp_path):
    """Copies on a blocking stream between kernels on the default one: each could run beside the one before it or the one behind it."""
    kernels, copies, calls = [], [], []
    at = MS
    for n in range(60):
        calls.append(runtime(100_000 + 10_000 * n, 102_000 + 10_000 * n, correlation=n + 1))
        if n % 3 == 1:
            copies.append(memcpy(at, at + MS, src=1, streamId=FIRST, correlationId=n + 1))
        else:
            kernels.append(kernel(at, at + MS, correlation=n + 1) | {"streamId": DEFAULT})
        at += MS + 2_000
    tables = {
        "CUPTI_ACTIVITY_KIND_KERNEL": kernels,
        "CUPTI_ACTIVITY_KIND_MEMCPY": copies,
        "CUPTI_ACTIVITY_KIND_RUNTIME": calls,
    }
    result = analyze(ingest([make_export(tmp_path / "b.sqlite", tables | streams(), STRINGS)]))
    copying = next(finding for finding in result.findings if finding.rule == "CPY001")
    assert "another stream alone changes nothing" in copying.message
    finding = found(tmp_path, tables | streams())
    assert finding is not None
    assert finding.metrics["beside"].value == pytest.approx(20 * MS, rel=0.01)


def test_a_wait_for_an_event_explains_the_order(tmp_path):
    tables = two_streams() | streams()
    calls = tables["CUPTI_ACTIVITY_KIND_RUNTIME"]
    waits = [
        row | {"start": row["end"] + 10, "end": row["end"] + 20, "nameId": 60, "correlationId": 900 + i}
        for i, row in enumerate(calls)
    ]
    assert found(tmp_path, tables | {"CUPTI_ACTIVITY_KIND_RUNTIME": calls + waits}) is None


def test_pytorchs_streams_do_not_wait_for_the_default_one(tmp_path):
    assert found(tmp_path, two_streams(), "void at::native::step<float>(float*)") is None
