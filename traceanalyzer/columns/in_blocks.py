"""Columns that are made one block of rows after the other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[Any]


class InBlocks:
    """What is made of some columns. A block in which all rows are alike is held as one value."""

    def __init__(self) -> None:
        self._blocks: dict[str, list[Values]] = defaultdict(list)

    def add(self, columns: Mapping[str, Values]) -> None:
        """The same number of rows of each column, which are not empty."""
        for name, values in columns.items():
            alike = values[0] == values[-1] and (values == values[0]).all()
            self._blocks[name].append(np.broadcast_to(values[0].copy(), len(values)) if alike else values)

    def take(self, name: str) -> Values:
        """All rows of a column, which is held here no longer; where all of them are alike, in one place of memory."""
        blocks = self._blocks.pop(name)
        first, count = blocks[0][0], sum(map(len, blocks))
        if all(block.strides == (0,) and block[0] == first for block in blocks):
            return np.broadcast_to(first, count)
        return np.concatenate(blocks)
