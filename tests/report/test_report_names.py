"""The index of names, where there is not room for all of it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from conftest import decode
from report_sample import Sample, many_kernels, named_kernels

from traceanalyzer.report.timeline import timeline as timelines
from traceanalyzer.report.timeline.timeline import build_timeline

KERNELS = 6_000


def no_rank(_: int) -> str:
    return ""


def test_the_rarest_names_are_left_out_and_counted() -> None:
    names = [f"often {k % 5}" if k % 2 else f"rare kernel number {k}" for k in range(KERNELS)]
    header, decoded = decode(build_timeline(named_kernels(names), no_rank, [], most=600).blob)
    known = set(header["names"])
    left_names, left_events = header["index"]["left"]
    assert {f"often {k}" for k in (1, 3)} <= known
    assert left_names == left_events == len(set(names) - known) > 1_000
    shown = {str(name) for row in decoded for name in row.name}
    assert shown <= known
    # What is known is counted as ever, and nothing points at a name that is not there.
    assert sum(count for (name, kind), (count, _) in header["index"]["counts"].items() if kind == "streams") == (
        KERNELS - left_events
    )
    assert all(name in known for row in decoded for _, name in row.hidden)


def test_of_too_many_places_each_name_keeps_its_first(monkeypatch) -> None:
    names = [f"kernel {k}" for k in np.random.default_rng(3).integers(0, 30, KERNELS)]
    monkeypatch.setattr(timelines, "PAIRS", 30)
    whole, rows_of_all = decode(build_timeline(named_kernels(names), no_rank, [], most=600).blob)
    monkeypatch.setattr(timelines, "PAIRS", 1)
    header, decoded = decode(build_timeline(named_kernels(names), no_rank, [], most=600).blob)
    places = header["index"]["places"]
    assert "places" not in whole["index"] and whole["index"]["counts"] == header["index"]["counts"]
    assert places > 0 and sum(header["index"]["hidden"]) <= 600
    for name in set(names):
        every, kept = (
            sorted(row.start[at] for row in found for at, one in row.hidden if one == name)
            for found in (rows_of_all, decoded)
        )
        assert kept == every[:places]


def test_names_that_are_alike_for_long_stay_apart() -> None:
    """Two kernels whose names differ only at their ends are two, however much of a name is shown."""
    start = "k" * 9_000
    header, _ = decode(build_timeline(named_kernels([start + "a", start + "b", start + "b"]), no_rank, []).blob)
    counts = sorted(count for (_, kind), (count, _) in header["index"]["counts"].items() if kind == "streams")
    assert len(header["names"]) > len(set(header["names"])) and max(map(len, header["names"])) == 8_000
    assert counts == [2]  # the later of the two, since one text hides the other here


def test_the_same_tables_give_the_same_bytes() -> None:
    tables = many_kernels(3_000)
    ops = tables.table("gpu_ops")
    shuffled = ops.set_column(
        ops.column_names.index("name"), "name", pa.chunked_array([ops["name"].cast(pa.string()).combine_chunks()])
    )
    again = Sample(**{**tables.tables, "gpu_ops": shuffled})
    assert build_timeline(tables, no_rank, [], most=500).blob == build_timeline(tables, no_rank, [], most=500).blob
    header, found = decode(build_timeline(again, no_rank, [], most=500).blob)
    assert header["index"]["counts"] == decode(build_timeline(tables, no_rank, [], most=500).blob)[0]["index"]["counts"]
    assert found
