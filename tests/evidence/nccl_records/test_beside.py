"""Dumps beside traces: whose they are, what they add, and that nothing is added where both do not agree."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tests.evidence.nccl_records.made import MS, START, Sink, dump, entry, pickled, read, rounds
from traceanalyzer.evidence.nccl_records import KIND
from traceanalyzer.evidence.nccl_records.enriching import enrich, fits
from traceanalyzer.model.schema import EVENT_TABLES
from traceanalyzer.model.trace import Trace


def _own(folder: Path, calls: list[dict[str, object]], shift: int = 0) -> Trace:
    path = folder / "dump"
    path.write_bytes(pickled(dump(calls)))
    sink: Sink = read(path)[0]
    tables = {}
    for spec in KIND.tables:
        rows = [{**row, "rank": 0} for row in sink.rows(spec.name)]
        for row in rows:
            for name in ("created_ns", "started_ns", "completed_ns"):
                if row.get(name):
                    row[name] += shift
        tables[spec.name] = pa.Table.from_pylist(rows, spec.schema)
    return Trace((), tables)


def _trace(count: int = 10, elements: int = 1024, late: int = 0) -> Trace:
    """Operators that call an all-reduce each, one 10 ms, and their kernels; times begin with `START` as 0."""
    ranges, launches, kernels = [], [], []
    for number in range(1, count + 1):
        start = number * 10 * MS - 20_000 + late
        ranges.append(
            {
                "rank": 0,
                "process": 1,
                "thread": 5,
                "start_ns": start,
                "end_ns": start + 90_000,
                "name": "nccl:all_reduce",
            }
        )
        launches.append(
            {
                "rank": 0,
                "process": 1,
                "thread": 5,
                "start_ns": start + 50_000,
                "end_ns": start + 60_000,
                "correlation": number,
            }
        )
        kernels.append(
            {
                **{"rank": 0, "process": 1, "device": 0, "stream": 7, "correlation": number, "name": "allreduce"},
                **{"start_ns": start + 70_000, "end_ns": start + 80_000, "elements": elements, "group": None},
            }
        )
    rows = {"host_ranges": ranges, "api_calls": launches, "collectives": kernels}
    return Trace(
        (),
        {
            name: pa.Table.from_pylist(
                [{field: row.get(field) for field in spec.schema.names} for row in rows.get(name, [])], spec.schema
            )
            for name, spec in EVENT_TABLES.items()
        },
    )


def test_numbers_and_names_are_added(tmp_path: Path) -> None:
    made = enrich(_own(tmp_path, rounds(20), -START), _trace(), True)["collectives"]
    assert made["sequence"].to_pylist() == list(range(1, 11))
    assert made["group"].to_pylist() == ["0"] * 10
    assert made["bytes"].to_pylist() == [4096] * 10
    assert made.schema == EVENT_TABLES["collectives"].schema


def test_nothing_is_added_on_no_clock(tmp_path: Path) -> None:
    assert enrich(_own(tmp_path, rounds(20)), _trace(), False) == {}


def test_nothing_is_added_where_sizes_differ(tmp_path: Path) -> None:
    assert enrich(_own(tmp_path, rounds(20), -START), _trace(elements=99), True) == {}


def test_two_calls_in_one_range_are_not_told_apart(tmp_path: Path) -> None:
    calls = [*rounds(10), entry(11, at=10.001)]
    made = enrich(_own(tmp_path, calls, -START), _trace(), True)["collectives"]
    assert made["sequence"].to_pylist() == [None, *range(2, 11)]


def test_calls_at_other_times_are_anothers(tmp_path: Path) -> None:
    made = enrich(_own(tmp_path, rounds(20), -START), _trace(late=4 * MS), True)
    assert list(made) == ["health"]
    (note,) = made["health"].to_pylist()
    assert note["code"] == "TRC006" and "another rank's" in note["message"]


@pytest.mark.parametrize(("count", "outcome"), [(10, None), (9, None), (3, None)])
def test_an_even_rhythm_tells_nothing(tmp_path: Path, count: int, outcome: bool | None) -> None:
    """It fits at more places than one."""
    assert fits(_own(tmp_path, rounds(20)), _trace(count)) is outcome


def test_the_rhythm_tells_whose_calls_they_are(tmp_path: Path) -> None:
    assert fits(_own(tmp_path, rounds(10)), _trace(10)) is True
    assert fits(_own(tmp_path, rounds(10, every=11.0)), _trace(10)) is None
