"""What a finding claimed of a GPU's lines, against the plain functions on intervals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceanalyzer.engine.tiles import Intervals, Tiles
from traceanalyzer.intervals import Spans, intersect, join, total, union
from traceanalyzer.model import claimed as module
from traceanalyzer.model.claimed import Claimed

LINES = ("compute", "idle.input", "idle.os")


def listed(spans: Spans) -> list[list[int]]:
    return [side.tolist() for side in spans]


def spans(pairs: list[tuple[int, int]]) -> Spans:
    return union(np.array([a for a, _ in pairs], np.int64), np.array([a + n for a, n in pairs], np.int64))


PAIRS = st.lists(st.tuples(st.integers(0, 90), st.integers(0, 9)), max_size=8)


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4), st.integers(0, 2)), min_size=1, max_size=30),
    PAIRS,
    PAIRS,
    st.sets(st.sampled_from(LINES)),
)
def test_what_is_claimed_is_the_union_of_its_tiles(
    drawn: list[tuple[int, int, int]], first: list[tuple[int, int]], second: list[tuple[int, int]], lines: set[str]
) -> None:
    """Tiles (pause before it, length, line), of which two claims take what lies in some intervals, whole or in part."""
    end = np.cumsum([pause + length for pause, length, _ in drawn])
    start = end - [length for _, length, _ in drawn]
    line = np.array([at for _, _, at in drawn], np.int8)
    tiles = Tiles(start, end, line, LINES)
    taken = [one for pairs in (first, second) for one in tiles.claim([Intervals(*spans(pairs))], LINES)]
    asked = spans(first + second)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_BLOCK", 3)
        found = tiles.claimed(taken)
        plain = {one: intersect(union(start[line == at], end[line == at]), asked) for at, one in enumerate(LINES)}
        for one in LINES:
            assert listed(found.on([one])) == listed(plain[one])
        assert listed(found.on(lines)) == listed(join(*(plain[one] for one in sorted(lines)), spans([])))
        assert listed(found.whole) == listed(join(*plain.values()))
        assert found.ns == sum(map(total, plain.values()))
        within = found.within(spans(second), lines)
        for one in lines:
            assert listed(within.on([one])) == listed(intersect(plain[one], spans(second)))
        assert set(within.on(set(LINES) - lines)[0]) == set()
        again = Claimed.of(plain)
        assert listed(again.whole) == listed(found.whole)
