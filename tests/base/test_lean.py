"""Columns in which all rows are alike are held once, and read as what they are."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from traceanalyzer.columns import NULL, frames, integers, ints
from traceanalyzer.columns.lean import MOST, WORTH, lean, lean_table, repeated, repeats

ROWS = WORTH + 5
NAME = pa.dictionary(pa.int32(), pa.string())
ALIKE = {
    "number": pa.array(np.full(ROWS, 7)),
    "small": pa.array(np.full(ROWS, 3, np.int32)),
    "flag": pa.array(np.ones(ROWS, bool)),
    "nothing": pa.nulls(ROWS, pa.int64()),
    "name": pa.array(["a", "b"] * 2).dictionary_encode().take(pa.array(np.ones(ROWS, np.int64))),
    "no name": pa.nulls(ROWS, NAME),
    "triple": pa.FixedSizeListArray.from_arrays(pa.array([1, 2, 3] * ROWS, pa.int32()), 3),
}
UNLIKE = {
    "number": pa.array(np.append(np.full(ROWS - 2, 7), [8, 7])),
    "gap": pa.array(np.full(ROWS, 7), mask=np.arange(ROWS) == 9),
    "flag": pa.array(np.arange(ROWS) != 5),
    "name": pa.array(["a"] * (ROWS - 2) + ["b", "a"]).dictionary_encode(),
    "triple": pa.FixedSizeListArray.from_arrays(
        pa.array([1, 2, 3] + [3, 2, 1] * (ROWS - 2) + [1, 2, 3], pa.int32()), 3
    ),
}


@pytest.mark.parametrize("name", ALIKE)
def test_a_column_that_says_one_thing_is_held_once(name: str) -> None:
    column = pa.chunked_array([ALIKE[name]])
    once = lean(column)
    assert once.equals(column)
    assert repeats(once)
    assert len({chunk.buffers()[-1].address for chunk in once.chunks if chunk.buffers()[-1]}) <= 1


@pytest.mark.parametrize("name", UNLIKE)
def test_a_column_that_says_more_stays(name: str) -> None:
    column = pa.chunked_array([UNLIKE[name]])
    assert lean(column) is column
    assert not repeats(column)


def test_small_columns_stay() -> None:
    column = ALIKE["number"][: WORTH - 1]
    assert lean(column) is column


def test_it_reads_as_any_other() -> None:
    plain = pa.table({name: column for name, column in ALIKE.items() if name not in ("triple", "flag")})
    table = lean_table(plain)
    for name in ("number", "small", "nothing"):
        assert np.array_equal(ints(table, name), ints(plain, name))
        assert np.array_equal(integers(table, name), integers(plain, name))
        assert ints(table, name).strides == (0,)
    for name in ("name", "no name"):
        (index, values), (other, others) = frames.codes(table, name), frames.codes(plain, name)
        assert len(index) == ROWS
        assert {values[i] for i in np.unique(index)} == {others[i] for i in np.unique(other)}
    assert ints(table, "nothing")[0] == NULL
    assert table.filter(pa.array(np.arange(ROWS) < 3)).num_rows == 3


def test_tables_one_after_another_are_lean_too() -> None:
    table = lean_table(pa.table({"number": ALIKE["number"], "name": ALIKE["name"]}))
    both = frames.concatenated([table, table])
    assert both.num_rows == 2 * ROWS
    assert all(repeats(column) for column in both.columns)


def test_no_row_at_all() -> None:
    assert len(repeated(pa.array([1]), 0)) == 0
    assert not repeats(pa.chunked_array([pa.array([], pa.int64())] * 2))


@pytest.mark.parametrize("name", UNLIKE)
def test_a_table_behind_itself_says_what_it_says(name: str) -> None:
    """Its blocks lie in one place, and yet no two rows need be alike."""
    table = pa.table({name: UNLIKE[name]})
    both = pa.concat_tables([table, table])
    assert not repeats(both[name])
    if name in ("number", "gap"):
        assert np.array_equal(ints(both, name), np.tile(ints(table, name), 2))


def test_of_very_many_rows_a_small_block_is_held() -> None:
    count = 40 * MOST + 3
    once = repeated(pa.array([7]), count)
    assert len(once) == count
    assert max(map(len, once.chunks)) == MOST
    assert repeats(once)
    assert ints(pa.table({"number": once}), "number").strides == (0,)
