"""Rows come out of a spool in order, all of them, however they went in and however little of them fits into memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceanalyzer.ingest.rows import external_sort
from traceanalyzer.ingest.rows.external_sort import Spool
from traceanalyzer.ingest.rows.order import KEYS
from traceanalyzer.model.schema import EVENT_TABLES

SPEC = EVENT_TABLES["host_ranges"]
ROW = st.tuples(
    st.sampled_from([1, 2, None]),
    st.sampled_from([7, 8]),
    st.integers(-5, 5) | st.just(2**62),
    st.integers(0, 3),
    st.sampled_from(["annotation", "operator", "python"]),
)


def batch(rows: list[tuple], numbers: list[int]) -> pa.Table:
    process, thread, start, length, category = zip(*rows, strict=True)
    return pa.table(
        {
            "name": pa.array([f"row {n}" for n in numbers]).dictionary_encode(),
            "process": pa.array(process, pa.int64()),
            "thread": pa.array(thread, pa.int64()),
            "start_ns": pa.array(start, pa.int64()),
            "end_ns": pa.array([s + n for s, n in zip(start, length, strict=True)], pa.int64()),
            "category": pa.array(category).dictionary_encode(),
        }
    )


@contextmanager
def little_memory(run_rows: int) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(external_sort, "RUN_ROWS", run_rows)
        patch.setattr(external_sort, "BLOCK_ROWS", 2)
        patch.setattr(external_sort, "MOST_OPEN", 3)
        yield


@given(rows=st.lists(ROW, max_size=60), size=st.integers(1, 9), run_rows=st.integers(1, 9))
def test_rows_come_out_in_order(tmp_path_factory, rows, size, run_rows):
    """Like a stable sort in memory; what is outside comes before what is inside, and of equals the first to arrive."""

    def place(number: int) -> tuple:
        process, thread, start, length, category = rows[number]
        return (process is None, process, thread, start, -length, ["annotation", "python", "operator"].index(category))

    expected = [f"row {n}" for n in sorted(range(len(rows)), key=place)]
    with little_memory(run_rows):
        sorter = Spool(SPEC, KEYS["host_ranges"], tmp_path_factory.mktemp("runs"))
        for first in range(0, len(rows), size):
            part = rows[first : first + size]
            sorter.add(batch(part, list(range(first, first + len(part)))))
        for _ in range(2):  # as often as it is asked
            blocks = list(sorter.blocks())
            assert [name for block in blocks for name in block["name"].to_pylist()] == expected
            assert all(block.schema == SPEC.schema for block in blocks)
            assert [block.num_rows for block in blocks[:-1]] == [run_rows] * (len(blocks) - 1)


def test_dictionaries_hold_no_more_than_their_rows(tmp_path):
    vocabulary = pa.array([f"name {n}" for n in range(1000)])
    names = pa.DictionaryArray.from_arrays(pa.array([5, None, 999, 5], pa.int32()), vocabulary)
    sorter = Spool(SPEC, (), tmp_path)
    sorter.add(pa.table({"name": names}))
    (block,) = sorter.blocks()
    assert block["name"].to_pylist() == ["name 5", None, "name 999", "name 5"]
    assert block["name"].chunk(0).dictionary.to_pylist() == ["name 5", "name 999"]


def test_a_column_that_the_table_does_not_have(tmp_path):
    with pytest.raises(ValueError, match="host_ranges has no column colour"):
        Spool(SPEC, (), tmp_path).add(pa.table({"colour": [1]}))
