"""Columns that are read a stretch at a time are those that are read at once."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceanalyzer.model.schema import DIM3, NAME
from traceanalyzer.model.stores import stretches

SIZES = st.lists(st.integers(0, 3), min_size=3, max_size=3)
KINDS = {
    "number": (pa.int64(), st.integers(-1, 2) | st.integers(-(2**63), 2**63 - 1)),
    "small": (pa.int32(), st.integers(0, 1)),
    "address": (pa.uint64(), st.integers(0, 2**64 - 1)),
    "share": (pa.float32(), st.integers(0, 1).map(float)),
    "name": (NAME, st.sampled_from("abc")),
    "size": (DIM3, SIZES),
}


@st.composite
def columns(draw: st.DrawFn) -> tuple[pa.DataType, list[Any]]:
    kind, values = draw(st.sampled_from(list(KINDS.values())))
    more = draw(st.sampled_from([values, st.none() | values, st.none(), st.just(draw(values))]))
    return kind, draw(st.lists(more, min_size=1, max_size=40))


@given(columns(), st.integers(1, 9), st.integers(1, 20))
def test_a_column_in_stretches_is_the_column(column: tuple[pa.DataType, list[Any]], group: int, stretch: int) -> None:
    kind, values = column
    stored = pa.list_(pa.int32()) if kind == DIM3 else kind
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"one": pa.array(values, stored)}), sink, row_group_size=group, use_dictionary=["one"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stretches, "_ROWS", stretch)
        found = stretches.in_stretches(pq.ParquetFile(pa.BufferReader(sink.getvalue())), "one", kind)
    assert found is not None and found.type == kind and found.to_pylist() == pa.array(values, kind).to_pylist()


def test_what_is_better_read_at_once() -> None:
    """Texts, flags, sizes that are not all known, and very many names."""
    sizes = pa.array([[1, None, 3]], pa.list_(pa.int32()))
    many = pa.array([f"name {number}" for number in range(5000)]).dictionary_encode()
    for array, kind in (
        *((pa.array(["a"]), pa.string()), (pa.array([True]), pa.bool_())),
        *((sizes, DIM3), (many, NAME)),
    ):
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table({"one": array}), sink)
        assert stretches.in_stretches(pq.ParquetFile(pa.BufferReader(sink.getvalue())), "one", kind) is None
