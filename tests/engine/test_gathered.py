"""What aggregates gather block by block says what all rows at once say, of whatever kinds the blocks are."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceanalyzer.engine.language.gathered import Distinct, Numbers

WHOLE = st.lists(st.one_of(st.none(), st.integers(-5, 5), st.integers(-(1 << 40), 1 << 40)), max_size=6)


@given(st.lists(WHOLE, max_size=5), st.sampled_from([0.0, 0.25, 0.5, 0.95]))
def test_a_quantile_of_all_blocks(blocks: list[list[int | None]], share: float) -> None:
    found, all_rows = Numbers(), [value for block in blocks for value in block]
    for block in blocks:
        found.append((pa.array(block, pa.int64()), share))
    assert found.quantile() == (pc.quantile(pa.array(all_rows, pa.int64()), q=share if blocks else 0.5)[0])


def test_whole_numbers_count_beside_fractions() -> None:
    found = Numbers()
    for block in (pa.array([1, 2, None]), pa.array([0.5, 9.5]), pa.nulls(2)):
        found.append((block, 0.5))
    assert found.quantile().as_py() == 1.5


@pytest.mark.parametrize("kind", [pa.int64(), pa.int32()])
@given(st.lists(st.lists(st.integers(-3, 6), unique=True, max_size=6), max_size=5))
def test_values_of_several_blocks_count_once(kind: pa.DataType, blocks: list[list[int]]) -> None:
    for some in (blocks, [sorted(block) for block in blocks], [*map(sorted, sorted(blocks))]):
        found = Distinct()
        for block in some:
            found.append(pa.array(block, kind))
        assert found.count() == len({value for block in some for value in block})


def test_a_block_without_values_changes_nothing() -> None:
    found = Distinct()
    for block in (pa.array([1, 2]), pa.nulls(0), pa.array([2, 3])):
        found.append(block)
    assert found.count() == 3
