"""What the lines of a large job tell of their chains is bounded, and adds up to the same."""

from __future__ import annotations

import numpy as np
import pytest

from traceanalyzer.derive.replay.path_parts import PathParts
from traceanalyzer.ranks.replay.line_paths import MOST_PIECES, _coarse

CHAINS, PIECES, WINDOW = 8, 5_000, 50_000_000


def _parts() -> PathParts:
    """Chains that overlap, each tiled by pieces of few kinds and names."""
    random = np.random.default_rng(0)
    length = random.integers(1, 9_000, CHAINS * PIECES)
    stay = np.repeat(np.arange(CHAINS), PIECES)
    end = np.cumsum(length.reshape(CHAINS, -1), axis=1).ravel() + 1_000 * stay
    where, kind, name = (random.integers(0, most, len(stay)) for most in (2, 3, 10))
    return PathParts(stay, end - length, end, where, kind, name)


def _times(parts: PathParts) -> dict[tuple[int, ...], int]:
    told: dict[tuple[int, ...], int] = {}
    for *key, start, end in zip(parts.stay, parts.where, parts.kind, parts.name, parts.start, parts.end, strict=True):
        told[tuple(map(int, key))] = told.get(tuple(map(int, key)), 0) + int(end - start)
    return told


@pytest.mark.parametrize("share", [0, 3_000, 20_000, 10**6])
def test_pieces_put_together_add_up_and_are_no_more_than_the_share_of_their_line(share):
    parts = _parts()
    coarse = _coarse(parts, WINDOW, share)
    assert _times(coarse) == _times(parts)
    assert len(coarse.stay) <= max(share, MOST_PIECES // 4)
    first, last = (np.flatnonzero(np.diff(coarse.stay, **edge)) for edge in ({"prepend": -1}, {"append": -1}))
    # Those of a chain tile it, as they did.
    joints = np.diff(coarse.stay) == 0
    assert (coarse.start[1:][joints] == coarse.end[:-1][joints]).all()
    assert coarse.start[first].tolist() == parts.start[::PIECES].tolist()
    assert coarse.end[last].tolist() == parts.end[PIECES - 1 :: PIECES].tolist()
