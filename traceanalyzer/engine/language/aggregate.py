"""An aggregate of an expression, as it is worked out over a block of rows after the other."""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.engine.language import compute
from traceanalyzer.engine.language.compute import Value
from traceanalyzer.engine.language.functions import Function
from traceanalyzer.engine.language.names import Rows, Run
from traceanalyzer.records import dataclass


@dataclass(frozen=True, eq=False)
class CompiledAggregate:
    """A function over the rows for which a condition holds. Those that are `alike` have the same parts.

    What several ask for, as they are written, is worked out once.
    """

    function: Function
    runs: tuple[tuple[str, Run], ...]
    condition: tuple[str, Run] | None
    alike: Hashable

    def part(self, rows: Rows) -> Any:
        values = [rows.once(text, partial(run, rows)) for text, run in self.runs]
        which = rows.once(("where", self.condition[0]), lambda: self._which(rows)) if self.condition else None
        for at, (text, _) in enumerate(self.runs):
            if at != self.function.literal:
                key = text, self.condition and self.condition[0]
                values[at] = rows.once(key, partial(_column, values[at], which, rows.count))
        return self.function.part(*values)

    def _which(self, rows: Rows) -> pa.Array | None:
        """The rows for which the condition holds, None for all."""
        assert self.condition
        mask = compute.as_array(compute.truth(self.condition[1](rows)), rows.count)
        return None if mask.true_count == rows.count else pc.indices_nonzero(mask)

    def gather(self) -> Any:
        return self.function.gather()

    def whole(self, parts: Any) -> Value:
        return self.function.whole(parts)


def _column(value: Value, which: pa.Array | None, count: int) -> pa.Array:
    """One value a row, of so many rows or of those that count."""
    if which is not None and isinstance(value, pa.Scalar):
        count, which = len(which), None
    column = compute.as_array(value, count)
    column = compute.truth(column) if pa.types.is_boolean(column.type) else column
    return column if which is None else pc.take(column, which, boundscheck=False)
