"""What aggregates need of all rows at once, gathered a block after the other: it lies in a file where it is much."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.columns.spill import Narrow
from traceanalyzer.engine.language import compute


class Numbers:
    """Numbers of which a quantile is wanted, and which."""

    def __init__(self) -> None:
        self._whole, self._fractions = Narrow(), list[pa.Array]()
        self._share = 0.5

    def append(self, part: tuple[pa.Array, float]) -> None:
        """More numbers, and the quantile as a share."""
        values, self._share = part
        if pa.types.is_integer(values.type):
            self._whole.add(values.drop_null().to_numpy())
        else:
            self._fractions.append(compute.to_float(values))

    def quantile(self) -> pa.Scalar:
        # Of whole numbers Arrow makes fractions itself, and need not sort those that are close together.
        numbers = pa.array(self._whole.array())
        if self._fractions:
            numbers = pa.chunked_array([*self._fractions, compute.to_float(numbers)])
        return pc.quantile(numbers, q=self._share)[0]


class Distinct:
    """How many different values there are, given those of each block once and without null."""

    def __init__(self) -> None:
        self._numbers, self._others = Narrow(), list[pa.Array]()
        self._in_order, self._count, self._last = True, 0, 0

    def append(self, values: pa.Array) -> None:
        if not len(values):
            return
        if not pa.types.is_integer(values.type):
            self._others.append(values)
        else:
            first, last = values[0].as_py(), values[-1].as_py()
            # Most are in order: then none comes again, but the last of a block as the first of the next.
            self._in_order &= (not self._count or first >= self._last) and ascends(values)
            self._count += len(values) - (self._count > 0 and first == self._last)
            self._last = last
            self._numbers.add(values.to_numpy())

    def count(self) -> int:
        others = len(pa.chunked_array(self._others).unique()) if self._others else 0
        return others + (self._count if self._in_order else len(pa.array(self._numbers.array()).unique()))


def ascends(values: pa.Array) -> bool:
    """Whether each of some whole numbers is larger than the one before."""
    plain = values.to_numpy()
    return bool((plain[1:] > plain[:-1]).all())
