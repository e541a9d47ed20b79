"""The numpy side of derived tables against the plain way to say it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traceanalyzer.columns import encoded, frames, numbering, short_encoded
from traceanalyzer.columns.frames import NULL
from traceanalyzer.columns.lean import WORTH, repeated, repeats
from traceanalyzer.report.timeline.name_table import looked_up

numbers = st.sampled_from([NULL, -(2**62), -1, 0, 1, 2, 3, 40, 2**62])
rows = st.lists(st.tuples(numbers, numbers, numbers), min_size=1, max_size=12)


def columns(table):
    return [np.array(column, np.int64) for column in zip(*table, strict=True)]


@given(rows)
def test_combinations_are_numbered_as_they_come(table):
    seen: dict[tuple[int, ...], int] = {}
    expected = [seen.setdefault(row, len(seen)) for row in table]
    assert frames.dense(*columns(table)).tolist() == expected
    packed = frames.packed(*columns(table)).tolist()
    assert [packed.index(code) for code in packed] == [table.index(row) for row in table]


@given(rows, st.sampled_from([1, 2, 100]))
def test_the_rows_of_each_combination(table, step):
    seen: dict[tuple[int, ...], list[int]] = {}
    for at, row in enumerate(table):
        seen.setdefault(row, []).append(at)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("_AT_ONCE", "_STEP"):
            patch.setattr(numbering, name, step)
        found = list(frames.together(*columns(table)))
        assert [(key, of.tolist()) for key, of in found] == list(seen.items())
        assert frames.firsts(frames.dense(*columns(table))).tolist() == [of[0] for of in seen.values()]
        own = columns([row for key, of in seen.items() for row in [key] * len(of)])
        alone = [(tuple(int(column[of.start]) for column in own), of.stop - of.start) for of in numbering.runs(*own)]
    assert alone == [(key, len(of)) for key, of in seen.items()]


@given(rows)
def test_the_latest_end_before_in_the_same_group(table):
    group, ends, _ = columns(table)
    before = [[e for g, e in zip(group[:at], ends, strict=False) if g == group[at]] for at in range(len(table))]
    found = frames.latest_before(frames.dense(group), ends)
    assert found.tolist() == [max(earlier, default=NULL) for earlier in before]


@given(rows)
def test_which_values_occur_among_others(table):
    values, others, _ = columns(table)
    values = np.where(values == NULL, 7, values)
    assert frames.among(values, others).tolist() == np.isin(values, others).tolist()


@given(rows)
def test_rows_in_order_and_the_first_of_each_number(table):
    first, second, third = columns(table)
    plain = pa.table({"first": frames.numbers(first), "second": frames.numbers(second), "third": third})
    expected = sorted(table, key=lambda row: row[:2])
    found = frames.sorted_by(plain, "first", "second")
    assert [*zip(*(frames.ints(found, c).tolist() for c in found.column_names), strict=True)] == expected
    assert frames.sorted_by(found, "first", "second") is found
    assert frames.firsts(frames.dense(first)).tolist() == sorted(
        {first.tolist().index(value) for value in first.tolist()}
    )


@given(st.lists(st.booleans(), min_size=1, max_size=12))
def test_some_rows(which):
    flags, count = np.array(which), len(which)
    one = repeated(pa.array([7]), WORTH + count)
    table = pa.table({"same": one, "place": np.arange(len(one))})
    flags = np.append(flags, np.ones(WORTH, bool))
    found = frames.filtered(table, flags)
    assert found.equals(table.filter(pa.array(flags)))
    assert found["place"].num_chunks == 1 and repeats(found["same"])


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(-1, 1), st.integers(1, 30)), max_size=40), st.integers(0, 50))
def test_rows_of_one_key_are_found_in_stretches_and_anywhere(runs: list[tuple[int, int, int]], most: int) -> None:
    columns = [np.array([run[at] for run in runs for _ in range(run[2])], np.int64) for at in (0, 1)]
    expected: dict[tuple[int, ...], list[int]] = {}
    for row, key in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
        expected.setdefault(key, []).append(row)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numbering, "_FEW_RUNS", most)
        patch.setattr(numbering, "_AT_ONCE", 7)
        found = [(key, rows.tolist()) for key, rows in frames.together(*columns)]
    assert found == list(expected.items())


@settings(max_examples=20)
@given(st.lists(st.sampled_from(["a", "b", None]), max_size=30), st.booleans())
def test_names_in_32_bits_are_those_in_64(names: list[str | None], alike: bool) -> None:
    column = pa.array(names[:1] if alike else names, pa.string()).dictionary_encode()
    table = pa.table({"name": repeated(column, WORTH) if alike and len(column) else column})
    index, texts = short_encoded(table, "name")
    told = np.array([*(f"<{text}>" for text in texts), "none"])
    seen = ["none" if name is None else f"<{name}>" for name in table["name"].to_pylist()]
    assert index.dtype == np.int32
    assert looked_up(told, index).tolist() == seen
    assert encoded(table, "name")[0].tolist() == index.tolist()
