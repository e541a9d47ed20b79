"""Streams that wait for events of others, as Nsight Systems records them."""

from __future__ import annotations

import pytest

import traceanalyzer as ta
from tests.nsys.nsys_export import Row, Tables, global_id, kernel, make_export, read, runtime
from traceanalyzer.catalog.catalog import Catalog

NONE = 4294967295


def event(stream: int = 9, correlation: int = 20, event: int = 4, **more: int) -> Row:
    row = {"deviceId": 0, "contextId": 1, "streamId": stream, "correlationId": correlation, "eventId": event}
    return row | {"globalPid": global_id(7)} | more


def wait(stream: int = 7, correlation: int = 21, **more: int) -> Row:
    return event(stream, correlation, start=650, end=660, syncType=2) | more


def export(waits: list[Row], records: list[Row]) -> Tables:
    """A kernel that was launched in time begins 100 us late."""
    ops = [kernel(1000, 2000), kernel(102_000, 103_000, correlation=2)]
    calls = [runtime(500, 600), runtime(700, 800, correlation=2), runtime(300, 310, correlation=20, name=4)]
    more = {"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": waits, "CUPTI_ACTIVITY_KIND_CUDA_EVENT": records}
    tables = {"CUPTI_ACTIVITY_KIND_KERNEL": ops, "CUPTI_ACTIVITY_KIND_RUNTIME": calls}
    return tables | {name: rows for name, rows in more.items() if rows}


@pytest.mark.parametrize(
    ("waits", "records", "cause"),
    [
        ([wait()], [event()], "dependency"),
        ([wait()], [event(9, 20), event(7, 25)], "dependency"),  # recorded anew only after the wait
        ([wait()], [event(9, 19), event(7, 20)], "queued"),  # recorded anew on its own stream
        ([wait()], [], "queued"),  # nobody knows whose event
        ([wait()], [event(event=5)], "queued"),
        ([wait()], [event(globalPid=global_id(70))], "queued"),  # of another process
        ([wait(stream=NONE)], [event()], "queued"),  # the host waits for the event
        ([wait(eventId=NONE)], [event()], "queued"),  # the host waits for the stream
        ([wait(deviceId=1)], [event()], "queued"),
        ([], [event()], "queued"),
    ],
)
def test_a_recorded_wait_names_the_stream(tmp_path, waits, records, cause):
    loaded = ta.load(make_export(tmp_path / "a.sqlite", export(waits, records)))
    assert Catalog(loaded).table("gaps")["cause"].to_pylist() == [cause]


def test_what_is_kept_of_each(tmp_path):
    found = read(make_export(tmp_path / "b.sqlite", export([wait(), wait(stream=NONE)], [event()])))
    rows = found.table("stream_events").to_pylist()
    assert [(r["kind"], r["time_ns"], r["stream"], r["event"], r["correlation"]) for r in rows] == [
        ("record", None, 9, 4, 20),
        ("wait", 650, 7, 4, 21),
    ]
