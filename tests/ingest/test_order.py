"""Keys after the times are looked at for equal times alone: the order is that of all keys."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from traceanalyzer.columns import ascending
from traceanalyzer.ingest.rows.order import KEYS, key_columns, sorted_order

FEW = st.integers(0, 2) | st.none()
ANY = FEW | st.sampled_from([-(1 << 62), 1 << 16, 1 << 40])
ROW = st.tuples(FEW, st.integers(0, 2), st.integers(3, 4), ANY, ANY, FEW, st.sampled_from(["memset", "kernel", None]))
COLUMNS = ("device", "start_ns", "end_ns", "process", "thread", "bytes", "kind")


def table(rows: list[tuple]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [()] * len(COLUMNS)
    types = [pa.string() if name == "kind" else pa.int64() for name in COLUMNS]
    found = [pa.array(column, of) for column, of in zip(columns, types, strict=True)]
    return pa.table([*found[:-1], found[-1].dictionary_encode()], COLUMNS)


@given(
    st.lists(ROW, max_size=20),
    st.sampled_from(["gpu_ops", "api_calls", "thread_runs", "devices", "stream_events", "overheads"]),
)
def test_the_order_is_that_of_all_keys(rows, name):
    """Whatever threads there are, and in whatever order each of them comes."""
    found = sorted_order(table(rows), KEYS[name])
    expected = np.lexsort(key_columns(table(rows), KEYS[name])[::-1])
    if found is None:
        assert (expected == np.arange(len(rows))).all()
    else:
        assert (found == expected).all()


@given(st.lists(st.integers(-3, 3)))
def test_ascending(values):
    assert ascending(np.array(values, np.int64)).tolist() == sorted(set(values))
